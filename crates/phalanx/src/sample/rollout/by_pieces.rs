//! Factored worlds: trajectories side by side, agents in pieces that threads share. A single trajectory in a
//! single piece has a loop of its own. Neighbouring processes tell each other states and actions of the
//! agents at their borders at every step.

use std::ops::Range;

use rayon::prelude::*;

use super::columns::{copy_columns, copy_rewards};
use super::{Draws, Request, SPLIT_AGENTS, StartFrom, Trajectory, of_step};
use crate::Result;
use crate::base::sampler::uniform;
use crate::base::stream::Stream;
use crate::distributed::{Halo, Messages};
use crate::policy::{ActAlone, ActTogether, Acting, Policy};
use crate::world::{Factored, World, sampled_channels};

/// Agents whose columns are written at a time, and that a thread advances at a time at most if there are
/// many.
const PIECE: usize = 4096;

/// Agents that a thread advances at a time at least.
const SMALL_PIECE: usize = 128;

/// Bytes of parameters of the agents that a thread advances at a time: they should stay in its cache from one
/// trajectory to the next.
const CACHED: usize = 1 << 19;

/// Bytes that the steps of a chunk may need, of all trajectories that are simulated side by side.
const ROOM: usize = 1 << 28;

/// Steps that are simulated step by step before they are turned into columns.
const CHUNK: usize = 32;

/// What the trajectories have in common.
pub struct ByPieces<'a> {
    world: &'a dyn World,
    factored: &'a dyn Factored,
    policy: Acting<'a>,
    stream: &'a Stream,
    /// Borders with other processes.
    halo: &'a Halo,
    /// Places of the sampled channels.
    sampled: Vec<usize>,
    agents: usize,
    /// From the first own agent to the last.
    span: Range<usize>,
    ids: Ids<'a>,
    /// Agents that a thread advances at a time.
    pub(super) piece: usize,
}

/// Numbers of the agents in the whole graph.
enum Ids<'a> {
    /// They follow each other.
    From(usize),
    Listed(&'a [u32]),
}

/// One of the trajectories.
struct Job<'b> {
    request: &'b Request,
    trajectory: &'b mut Trajectory,
    agents: usize,
    /// Steps of a chunk.
    chunk: usize,
    /// Where the step's row begins in those of the chunk.
    row: usize,
    draws: Draws,
    /// Rows `[step][agent]` of a chunk, and one more: the first state of the next chunk.
    states: Vec<u8>,
    /// Rows `[step][agent]` of a chunk.
    actions: Vec<u8>,
    /// Of the sampled channels, `[channel][step][agent]`.
    rewards: Vec<f32>,
}

/// What a step reads.
#[derive(Clone, Copy)]
struct Now<'r> {
    states: &'r [u8],
    /// None yet while they act.
    actions: &'r [u8],
    draws: &'r [u32],
}

impl Job<'_> {
    fn room(&self) -> usize {
        self.trajectory.room()
    }

    /// Room for the actions of a step.
    fn acting(&mut self, step: usize) -> (&mut [u8], Now<'_>) {
        let (states, draws) = (&self.states[self.row..][..self.agents], of_step(&self.draws, step)[0]);
        (&mut self.actions[self.row..][..self.agents], Now { states, actions: &[], draws })
    }

    /// Room for the states after a step.
    fn moving(&mut self, step: usize) -> (&mut [u8], Now<'_>) {
        let (states, next) = self.states[self.row..][..2 * self.agents].split_at_mut(self.agents);
        let (actions, draws) = (&self.actions[self.row..][..self.agents], of_step(&self.draws, step)[1]);
        (next, Now { states, actions, draws })
    }

    /// Room for what sampled channel number `number` pays for a step.
    fn earning(&mut self, step: usize, number: usize) -> (&mut [f32], Now<'_>) {
        let [states, actions] = [&self.states, &self.actions].map(|rows| &rows[self.row..][..self.agents]);
        let rewards = &mut self.rewards[number * self.chunk * self.agents + self.row..][..self.agents];
        (rewards, Now { states, actions, draws: of_step(&self.draws, step)[1] })
    }
}

impl<'a> ByPieces<'a> {
    /// In one piece where there are few agents, or where they must not be split.
    pub fn new(
        world: &'a dyn World,
        factored: &'a dyn Factored,
        policy: &'a dyn Policy,
        stream: &'a Stream,
        halo: &'a Halo,
    ) -> Self {
        let (agents, span) = (world.graph().agents(), world.graph().owned_span());
        let bytes = size_of_val(policy.theta().data()) / policy.agents().max(1);
        let is_small = agents < SPLIT_AGENTS && halo.links.is_empty();
        let piece = if is_small || world.is_serial() {
            agents
        } else {
            (CACHED / bytes.max(1)).clamp(SMALL_PIECE, PIECE)
        };
        let ids = match (world.graph().ids(), world.graph().contiguous_ids()) {
            (Some(ids), contiguous) if contiguous.is_empty() => Ids::Listed(ids),
            (_, contiguous) => Ids::From(contiguous.start),
        };
        let (policy, sampled) = (policy.acting(), sampled_channels(world));
        ByPieces { world, factored, policy, stream, halo, sampled, agents, span, ids, piece }
    }

    /// Trajectories that are best simulated side by side: those of agents in one piece are worth a thread
    /// each.
    pub fn at_once(&self) -> usize {
        if matches!(self.policy, Acting::Together(_)) || !self.halo.links.is_empty() {
            return usize::MAX;
        }
        if self.piece == self.agents {
            return 1;
        }
        let draws = 4 * size_of::<u32>();
        let each = self.agents * (2 * CHUNK + 1 + draws + self.sampled.len() * CHUNK * size_of::<f32>());
        (ROOM / each.max(1)).max(2)
    }

    /// Simulates trajectories, longest first.
    pub fn run(&self, requested: &mut [(&Request, &mut Trajectory)]) -> Result<()> {
        let longest = requested.first().map_or(0, |(_, trajectory)| trajectory.room());
        // A policy that looks at the trajectories wants them to be complete at every step.
        let chunk = if matches!(self.policy, Acting::Alone(_)) { CHUNK.min(longest).max(1) } else { 1 };
        let mut jobs: Vec<Job<'_>> = (requested.iter_mut())
            .map(|(request, trajectory)| self.begin(request, trajectory, chunk))
            .collect();
        let mut messages = self.halo.messages();
        for first in (0..longest).step_by(chunk) {
            let steps = first..longest.min(first + chunk);
            match (&mut jobs[..], self.policy) {
                ([job], Acting::Alone(policy)) if self.is_one_piece() => {
                    self.chunk_of_one(policy, job, steps)
                }
                (jobs, _) => self.chunk_of_several(jobs, steps, &mut messages)?,
            }
            jobs.iter_mut().for_each(|job| self.write_down(job, first));
        }
        Ok(())
    }

    /// Whether nobody waits for anybody between steps.
    fn is_one_piece(&self) -> bool {
        self.span.len() <= self.piece && self.halo.links.is_empty()
    }

    /// One trajectory, one piece. A step of ten agents takes 80 ns: what several need would add a third to
    /// it.
    fn chunk_of_one(&self, policy: &dyn ActAlone, job: &mut Job<'_>, steps: Range<usize>) {
        let (agents, all) = (self.agents, 0..self.agents);
        let Job { request, chunk, draws, states, actions, rewards, .. } = job;
        let (states, actions) = (&mut states[..], &mut actions[..]);
        for (k, step) in steps.enumerate() {
            if step.is_multiple_of(2) {
                self.draw_piece(request, step / 2, all.clone(), draws.each_mut().map(|row| &mut row[..]));
            }
            let (states, next) = states[k * agents..(k + 2) * agents].split_at_mut(agents);
            let actions = &mut actions[k * agents..(k + 1) * agents];
            let [choices, moves] = of_step(draws, step);
            policy.act(all.clone(), states, choices, actions);
            self.factored.step(all.clone(), states, actions, moves, next);
            for (number, &channel) in self.sampled.iter().enumerate() {
                let rewards = &mut rewards[(number * *chunk + k) * agents..][..agents];
                self.factored.sample_rewards(channel, all.clone(), states, actions, moves, rewards);
            }
        }
    }

    fn chunk_of_several(
        &self,
        jobs: &mut [Job<'_>],
        steps: Range<usize>,
        messages: &mut Messages,
    ) -> Result<()> {
        for (k, step) in steps.enumerate() {
            let going_on = |step: usize| jobs.partition_point(|job| job.room() > step);
            let [active, next] = [step, step + 1].map(going_on);
            let jobs = &mut jobs[..active];
            jobs.iter_mut().for_each(|job| job.row = k * self.agents);
            if step.is_multiple_of(2) {
                jobs.iter_mut().for_each(|job| self.draw(job, step / 2));
            }
            self.act(jobs, step, messages)?;
            self.move_on(jobs, step, next, messages)?;
        }
        Ok(())
    }

    fn begin<'b>(&self, request: &'b Request, trajectory: &'b mut Trajectory, chunk: usize) -> Job<'b> {
        let agents = self.agents;
        let steps = trajectory.room();
        trajectory.finish(steps, false);
        let mut states = vec![0; (chunk + 1) * agents];
        let (graph, place, size) = (self.world.graph(), request.start_place(), self.piece.max(PIECE));
        // Ghosts start by their own numbers: nobody has to tell how.
        let start = |(piece, states): (usize, &mut [u8])| {
            let members = piece * size..piece * size + states.len();
            match request.start {
                StartFrom::World => self.factored.start(self.stream, place, members, states),
                StartFrom::Uniform => {
                    for (agent, state) in members.zip(states) {
                        let draw = self.stream.words(place, graph.global_id(agent), 0)[0] >> 1;
                        *state = uniform(self.world.states(agent), draw);
                    }
                }
            }
        };
        if agents <= size {
            start((0, &mut states[..agents]));
        } else {
            states[..agents].par_chunks_mut(size).enumerate().for_each(start);
        }
        Job {
            request,
            trajectory,
            agents,
            chunk,
            row: 0,
            draws: std::array::from_fn(|_| vec![0; agents]),
            states,
            actions: vec![0; chunk * agents],
            rewards: vec![0.0; self.sampled.len() * chunk * agents],
        }
    }

    /// Draws of steps 2·`pair` and the next.
    fn draw(&self, job: &mut Job<'_>, pair: usize) {
        let span = self.span.clone();
        let [r0, r1, r2, r3] = job.draws.each_mut().map(|row| row[span.clone()].par_chunks_mut(PIECE));
        r0.zip(r1).zip(r2).zip(r3).enumerate().for_each(|(piece, (((r0, r1), r2), r3))| {
            let start = span.start + piece * PIECE;
            self.draw_piece(job.request, pair, start..start + r0.len(), [r0, r1, r2, r3]);
        });
    }

    #[inline]
    fn draw_piece(&self, request: &Request, pair: usize, members: Range<usize>, rows: [&mut [u32]; 4]) {
        let (place, pair) = (request.place, pair as u32);
        match self.ids {
            Ids::From(first) => self.stream.step_pair(place, pair, (first + members.start) as u32, rows),
            Ids::Listed(ids) => self.stream.step_pair_of(place, pair, &ids[members], rows),
        }
    }

    /// a^step ~ π(· | s^step).
    fn act(&self, jobs: &mut [Job<'_>], step: usize, messages: &mut Messages) -> Result<()> {
        if let Acting::Together(policy) = self.policy {
            self.act_together(policy, jobs, step);
        }
        let act = |members: Range<usize>, now: Now<'_>, actions: &mut [u8]| {
            if let Acting::Alone(policy) = self.policy {
                policy.act(members.clone(), now.states, &now.draws[members], actions);
            }
        };
        self.exchange(jobs, messages, |job| job.acting(step), act, |_| ())
    }

    /// The actions of a policy that looks at whole trajectories.
    fn act_together(&self, policy: &dyn ActTogether, jobs: &mut [Job<'_>], step: usize) {
        let all = jobs.len() * self.agents;
        let (mut draws, mut actions) = (Vec::with_capacity(all), vec![0; all]);
        for job in jobs.iter_mut() {
            let room = job.room();
            job.trajectory.finish(step + 1, false);
            let (columns, _, _) = job.trajectory.columns_mut();
            columns.iter_mut().skip(step).step_by(room).zip(&job.states).for_each(|(out, &s)| *out = s);
            draws.extend_from_slice(of_step(&job.draws, step)[0]);
        }
        let seen: Vec<&Trajectory> = jobs.iter().map(|job| &*job.trajectory).collect();
        policy.act(&seen, step, &draws, &mut actions);
        for (job, actions) in jobs.iter_mut().zip(actions.chunks_exact(self.agents)) {
            job.actions.copy_from_slice(actions);
        }
    }

    /// s^{step + 1} ~ ℙ(· | s^step, a^step), and what the step earns. The first `next` trajectories go on
    /// after it.
    fn move_on(&self, jobs: &mut [Job<'_>], step: usize, next: usize, messages: &mut Messages) -> Result<()> {
        let (going_on, last) = jobs.split_at_mut(next);
        let move_on = |members: Range<usize>, now: Now<'_>, next: &mut [u8]| {
            self.factored.step(members.clone(), now.states, now.actions, &now.draws[members], next);
        };
        let reward = |jobs: &mut [Job<'_>]| self.reward(jobs, step);
        self.exchange(going_on, messages, |job| job.moving(step), move_on, reward)?;
        self.reward(last, step);
        Ok(())
    }

    /// Rewards of the sampled channels.
    fn reward(&self, jobs: &mut [Job<'_>], step: usize) {
        for (number, &channel) in self.sampled.iter().enumerate() {
            let reward = |members: Range<usize>, now: Now<'_>, rewards: &mut [f32]| {
                let (Now { states, actions, .. }, draws) = (now, &now.draws[members.clone()]);
                self.factored.sample_rewards(channel, members, states, actions, draws, rewards);
            };
            self.over_pieces(jobs, |job| job.earning(step, number), reward);
        }
    }

    /// Does `work` on a row of every trajectory, first at the borders: neighbours are told of the agents
    /// there, all agents are worked on `meanwhile` too, and what neighbours tell is written down.
    fn exchange<'j>(
        &self,
        jobs: &mut [Job<'j>],
        messages: &mut Messages,
        row: impl for<'r> Fn(&'r mut Job<'j>) -> (&'r mut [u8], Now<'r>),
        work: impl Fn(Range<usize>, Now<'_>, &mut [u8]) + Sync,
        meanwhile: impl Fn(&mut [Job<'j>]),
    ) -> Result<()> {
        let work_on_all = |jobs: &mut [Job<'j>]| {
            self.over_pieces(jobs, &row, &work);
            meanwhile(jobs);
        };
        if self.halo.links.is_empty() {
            work_on_all(jobs);
            return Ok(());
        }
        for job in jobs.iter_mut() {
            let (out, now) = row(job);
            self.halo.border.iter().for_each(|run| work(run.clone(), now, &mut out[run.clone()]));
        }
        let rows: Vec<&[u8]> = jobs.iter_mut().map(|job| &*row(job).0).collect();
        self.halo.pack(&rows, messages);
        self.halo.exchange(messages, &mut || work_on_all(jobs))?;
        jobs.iter_mut().enumerate().for_each(|(k, job)| self.halo.unpack(messages, k, row(job).0));
        Ok(())
    }

    /// Does `work(agents, now, their part of the row)` on pieces of one row of each trajectory. A piece is
    /// worked on in all trajectories before the next one: what is known of its agents stays in cache.
    fn over_pieces<'j, T: Send>(
        &self,
        jobs: &mut [Job<'j>],
        row: impl for<'r> Fn(&'r mut Job<'j>) -> (&'r mut [T], Now<'r>),
        work: impl Fn(Range<usize>, Now<'_>, &mut [T]) + Sync,
    ) {
        let (span, size) = (self.span.clone(), self.piece);
        if span.len() <= size {
            for job in jobs {
                let (out, now) = row(job);
                work(span.clone(), now, &mut out[span.clone()]);
            }
            return;
        }
        let mut pieces: Vec<Vec<_>> = (0..span.len().div_ceil(size)).map(|_| Vec::new()).collect();
        for job in jobs {
            let (out, now) = row(job);
            let parts = out[span.clone()].chunks_mut(size);
            parts.zip(&mut pieces).for_each(|(part, piece)| piece.push((part, now)));
        }
        pieces.into_par_iter().enumerate().for_each(|(piece, parts)| {
            let start = span.start + piece * size;
            parts.into_iter().for_each(|(part, now)| work(start..start + part.len(), now, part));
        });
    }

    /// Turns the rows of a chunk into columns.
    fn write_down(&self, job: &mut Job<'_>, first: usize) {
        let (agents, chunk, steps) = (self.agents, job.chunk, job.room());
        let count = chunk.min(steps.saturating_sub(first));
        if count == 0 {
            return;
        }
        let (states, actions, rewards) = job.trajectory.columns_mut();
        let split = self.piece.max(PIECE);
        if matches!(self.policy, Acting::Alone(_)) {
            copy_columns(&job.states, agents, count, first, steps, states, split);
        }
        copy_columns(&job.actions, agents, count, first, steps, actions, split);
        copy_rewards(&job.rewards, agents, [count, chunk], first, steps, rewards);
        job.states.copy_within(count * agents..(count + 1) * agents, 0);
    }
}

//! Factored worlds of many agents: a few trajectories side by side, agents in pieces that threads share.
//! Neighbouring processes tell each other states and actions of the agents at their borders at every step.

use std::ops::Range;

use rayon::prelude::*;

use super::columns::{copy_columns, copy_rewards};
use super::{Draws, Request, Trajectory, of_step, start};
use crate::Result;
use crate::base::stream::Stream;
use crate::distributed::{Halo, Messages};
use crate::policy::{Acting, Policy};
use crate::world::{Factored, World};

/// Agents whose columns are written at a time, and that a thread advances at a time at most.
const PIECE: usize = 4096;

/// Agents that a thread advances at a time at least.
const SMALL_PIECE: usize = 128;

/// Bytes of parameters of the agents that a thread advances at a time: they should stay in its cache from one
/// trajectory to the next.
const CACHED: usize = 1 << 19;

/// Bytes that the steps of a chunk may need, of all trajectories that are simulated side by side.
const ROOM: usize = 1 << 28;

/// Agents that a thread advances at a time.
pub fn piece(policy: &dyn Policy) -> usize {
    let bytes = size_of_val(policy.theta().data()) / policy.agents().max(1);
    (CACHED / bytes.max(1)).clamp(SMALL_PIECE, PIECE)
}

/// Trajectories of so many agents that are simulated side by side.
pub fn side_by_side(agents: usize, sampled: usize) -> usize {
    let draws = 4 * size_of::<u32>();
    let each = agents * (2 * CHUNK + 1 + draws + sampled * CHUNK * size_of::<f32>());
    (ROOM / each.max(1)).max(2)
}

/// Steps that are simulated step by step before they are turned into columns.
const CHUNK: usize = 32;

/// What the trajectories have in common.
pub struct ByPieces<'a> {
    pub world: &'a dyn World,
    pub factored: &'a dyn Factored,
    pub policy: Acting<'a>,
    pub stream: &'a Stream,
    /// Places of the sampled channels.
    pub sampled: &'a [usize],
    /// Agents that a thread advances at a time.
    pub piece: usize,
    /// Borders with other processes.
    pub halo: &'a Halo,
}

/// One of the trajectories.
struct Job<'b> {
    request: &'b Request,
    trajectory: &'b mut Trajectory,
    draws: Draws,
    /// Rows `[step][agent]` of a chunk, and one more: the first state of the next chunk.
    states: Vec<u8>,
    /// Rows `[step][agent]` of a chunk.
    actions: Vec<u8>,
    /// Of the sampled channels, `[channel][step][agent]`.
    rewards: Vec<f32>,
}

impl Job<'_> {
    fn room(&self) -> usize {
        self.trajectory.room()
    }
}

impl ByPieces<'_> {
    /// Simulates trajectories, longest first.
    pub fn run(&self, requested: &mut [(&Request, &mut Trajectory)]) -> Result<()> {
        // A policy that looks at the trajectories wants them to be complete at every step.
        let chunk = if matches!(self.policy, Acting::Alone(_)) { CHUNK } else { 1 };
        let longest = requested.first().map_or(0, |(_, trajectory)| trajectory.room());
        let mut jobs: Vec<Job<'_>> = (requested.iter_mut())
            .map(|(request, trajectory)| self.begin(request, trajectory, chunk))
            .collect();
        let mut messages = self.halo.messages();
        for first in (0..longest).step_by(chunk) {
            for k in 0..chunk {
                let going_on = |step: usize| jobs.partition_point(|job| job.room() > step);
                let [active, next] = [first + k, first + k + 1].map(going_on);
                let jobs = &mut jobs[..active];
                if active == 0 {
                    break;
                }
                if (first + k).is_multiple_of(2) {
                    jobs.iter_mut().for_each(|job| self.draw(job, (first + k) / 2));
                }
                self.act(jobs, first + k, k, &mut messages)?;
                self.move_on(jobs, first + k, k, next, &mut messages)?;
            }
            jobs.iter_mut().for_each(|job| self.write_down(job, first, chunk));
        }
        Ok(())
    }

    fn begin<'b>(&self, request: &'b Request, trajectory: &'b mut Trajectory, chunk: usize) -> Job<'b> {
        let agents = self.world.graph().agents();
        let steps = trajectory.room();
        trajectory.finish(steps, false);
        let mut states = vec![0; (chunk + 1) * agents];
        // Ghosts start by their own numbers: nobody has to tell how.
        states[..agents].par_chunks_mut(PIECE).enumerate().for_each(|(piece, states)| {
            let members = piece * PIECE..piece * PIECE + states.len();
            start(self.world, self.factored, self.stream, request, members, states);
        });
        Job {
            request,
            trajectory,
            draws: std::array::from_fn(|_| vec![0; agents]),
            states,
            actions: vec![0; chunk * agents],
            rewards: vec![0.0; self.sampled.len() * chunk * agents],
        }
    }

    /// Draws of steps 2·`pair` and the next.
    fn draw(&self, job: &mut Job<'_>, pair: usize) {
        let (network, place) = (self.world.graph(), job.request.place);
        let (sweep, window) = (network.owned_span(), network.contiguous_ids());
        let [r0, r1, r2, r3] = job.draws.each_mut().map(|row| row[sweep.clone()].par_chunks_mut(PIECE));
        r0.zip(r1).zip(r2).zip(r3).enumerate().for_each(|(piece, (((r0, r1), r2), r3))| {
            let members = sweep.start + piece * PIECE..sweep.start + piece * PIECE + r0.len();
            let rows = [r0, r1, r2, r3];
            match network.ids().filter(|_| window.is_empty()) {
                Some(ids) => self.stream.step_pair_of(place, pair as u32, &ids[members], rows),
                None => {
                    self.stream.step_pair(place, pair as u32, (window.start + members.start) as u32, rows)
                }
            }
        });
    }

    /// a^step ~ π(· | s^step), into row k.
    fn act(&self, jobs: &mut [Job<'_>], step: usize, k: usize, messages: &mut Messages) -> Result<()> {
        let network = self.world.graph();
        let (agents, sweep) = (network.agents(), network.owned_span());
        let row = k * agents..(k + 1) * agents;
        let policy = match self.policy {
            Acting::Alone(policy) => policy,
            Acting::Together(_) => {
                self.act_together(jobs, step);
                return self.exchange(jobs, messages, |job| &mut job.actions[row.clone()], &mut |_| ());
            }
        };
        for job in jobs.iter_mut() {
            let draws = of_step(&job.draws, step)[0];
            for run in &self.halo.border {
                let actions = &mut job.actions[row.start + run.start..row.start + run.end];
                policy.act(run.clone(), &job.states[row.clone()], &draws[run.clone()], actions);
            }
        }
        self.exchange(jobs, messages, |job| &mut job.actions[row.clone()], &mut |jobs| {
            let (mut out, mut seen) = (Vec::new(), Vec::new());
            for job in jobs.iter_mut() {
                out.push(&mut job.actions[row.start + sweep.start..row.start + sweep.end]);
                seen.push((&job.states[row.clone()], of_step(&job.draws, step)[0]));
            }
            over_pieces(self.piece, sweep.start, out, |job, members, actions| {
                let (states, draws) = seen[job];
                policy.act(members.clone(), states, &draws[members], actions);
            });
        })
    }

    /// The actions of policies that look at whole trajectories, into row 0.
    fn act_together(&self, jobs: &mut [Job<'_>], step: usize) {
        let Acting::Together(policy) = self.policy else { return };
        let agents = self.world.graph().agents();
        let (mut draws, mut actions) =
            (Vec::with_capacity(jobs.len() * agents), vec![0; jobs.len() * agents]);
        for job in jobs.iter_mut() {
            let room = job.room();
            let (columns, _, _) = job.trajectory.columns_mut();
            columns.iter_mut().skip(step).step_by(room).zip(&job.states).for_each(|(out, &s)| *out = s);
            draws.extend_from_slice(&of_step(&job.draws, step)[0][..agents]);
        }
        let seen: Vec<&Trajectory> = jobs.iter().map(|job| &*job.trajectory).collect();
        policy.act(&seen, step, &draws, &mut actions);
        for (job, actions) in jobs.iter_mut().zip(actions.chunks_exact(agents)) {
            job.actions.copy_from_slice(actions);
        }
    }

    /// s^{step + 1} ~ ℙ(· | s^step, a^step), into row k + 1, and what the step earns. The first `next`
    /// trajectories go on after it.
    fn move_on(
        &self,
        jobs: &mut [Job<'_>],
        step: usize,
        k: usize,
        next: usize,
        messages: &mut Messages,
    ) -> Result<()> {
        let network = self.world.graph();
        let (agents, sweep) = (network.agents(), network.owned_span());
        let (row, after) = (k * agents..(k + 1) * agents, (k + 1) * agents..(k + 2) * agents);
        for job in jobs[..next].iter_mut() {
            let draws = of_step(&job.draws, step)[1];
            let (now, later) = job.states[row.start..after.end].split_at_mut(agents);
            for run in &self.halo.border {
                let (actions, out) = (&job.actions[row.clone()], &mut later[run.clone()]);
                self.factored.step(run.clone(), now, actions, &draws[run.clone()], out);
            }
        }
        let (going_on, last) = jobs.split_at_mut(next);
        self.exchange(going_on, messages, |job| &mut job.states[after.clone()], &mut |jobs| {
            let (mut out, mut seen) = (Vec::new(), Vec::new());
            for job in jobs.iter_mut() {
                let (now, later) = job.states[row.start..after.end].split_at_mut(agents);
                out.push(&mut later[sweep.clone()]);
                seen.push((&*now, &job.actions[row.clone()], of_step(&job.draws, step)[1]));
            }
            over_pieces(self.piece, sweep.start, out, |job, members, later| {
                let (states, actions, draws) = seen[job];
                self.factored.step(members.clone(), states, actions, &draws[members], later);
            });
            self.reward(jobs, step, k);
        })?;
        self.reward(last, step, k);
        Ok(())
    }

    /// Rewards of the sampled channels.
    fn reward(&self, jobs: &mut [Job<'_>], step: usize, k: usize) {
        let network = self.world.graph();
        let (agents, sweep) = (network.agents(), network.owned_span());
        for (number, &channel) in self.sampled.iter().enumerate() {
            let (mut out, mut seen) = (Vec::new(), Vec::new());
            for job in jobs.iter_mut() {
                let chunk = job.actions.len() / agents;
                let first = (number * chunk + k) * agents;
                out.push(&mut job.rewards[first + sweep.start..first + sweep.end]);
                let row = k * agents..(k + 1) * agents;
                seen.push((&job.states[row.clone()], &job.actions[row], of_step(&job.draws, step)[1]));
            }
            over_pieces(self.piece, sweep.start, out, |job, members, rewards| {
                let (states, actions, draws) = seen[job];
                let draws = &draws[members.clone()];
                self.factored.sample_rewards(channel, members, states, actions, draws, rewards);
            });
        }
    }

    /// Tells neighbours the entries of a row of every trajectory that they must know, `meanwhile` working on
    /// all of them, and writes down theirs.
    fn exchange<'j>(
        &self,
        jobs: &mut [Job<'j>],
        messages: &mut Messages,
        row: impl for<'r> Fn(&'r mut Job<'j>) -> &'r mut [u8],
        meanwhile: &mut dyn FnMut(&mut [Job<'j>]),
    ) -> Result<()> {
        let rows: Vec<&[u8]> = jobs.iter_mut().map(|job| &*row(job)).collect();
        self.halo.pack(&rows, messages);
        self.halo.exchange(messages, &mut || meanwhile(jobs))?;
        jobs.iter_mut().enumerate().for_each(|(k, job)| self.halo.unpack(messages, k, row(job)));
        Ok(())
    }

    /// Turns the rows of a chunk into columns.
    fn write_down(&self, job: &mut Job<'_>, first: usize, chunk: usize) {
        let (agents, steps) = (self.world.graph().agents(), job.room());
        let count = chunk.min(steps.saturating_sub(first));
        if count == 0 {
            return;
        }
        let (states, actions, rewards) = job.trajectory.columns_mut();
        if matches!(self.policy, Acting::Alone(_)) {
            copy_columns(&job.states, agents, count, first, steps, states, PIECE);
        }
        copy_columns(&job.actions, agents, count, first, steps, actions, PIECE);
        copy_rewards(&job.rewards, agents, [count, chunk], first, steps, rewards);
        job.states.copy_within(count * agents..(count + 1) * agents, 0);
    }
}

/// Runs `work(trajectory, agents, their part of its row)` on pieces of one row for each trajectory, whose
/// first entries belong to agent `first`. A piece is worked on in all trajectories before the next one: what
/// is known of its agents stays in cache.
fn over_pieces<T: Send>(
    size: usize,
    first: usize,
    rows: Vec<&mut [T]>,
    work: impl Fn(usize, Range<usize>, &mut [T]) + Sync,
) {
    let length = rows.first().map_or(0, |row| row.len());
    let mut pieces: Vec<Vec<&mut [T]>> = (0..length.div_ceil(size)).map(|_| Vec::new()).collect();
    for row in rows {
        row.chunks_mut(size).zip(&mut pieces).for_each(|(part, piece)| piece.push(part));
    }
    let all = |(piece, parts): (usize, Vec<&mut [T]>)| {
        for (job, part) in parts.into_iter().enumerate() {
            let start = first + piece * size;
            work(job, start..start + part.len(), part);
        }
    };
    if pieces.len() == 1 {
        return pieces.into_iter().enumerate().for_each(all);
    }
    pieces.into_par_iter().enumerate().for_each(all);
}

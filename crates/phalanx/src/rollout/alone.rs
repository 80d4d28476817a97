//! Factored worlds, one trajectory at a time: fast for policies that are cheap to ask.

use std::ops::Range;

use rayon::prelude::*;

use super::columns::{copy_columns, copy_rewards};
use super::{Draws, Request, Trajectory, of_step, start};
use crate::policy::ActAlone;
use crate::stream::{LANES, Place, Stream};
use crate::world::{Factored, World};

/// Steps that are simulated step by step before they are turned into columns.
const CHUNK: usize = 64;

/// The same in large networks, where these steps are a fair part of all memory.
const SHORT_CHUNK: usize = 32;
const LARGE: usize = 1 << 18;

/// One trajectory's simulation; agents are advanced in runs of `split`, in parallel if there are several.
pub struct Simulation<'a> {
    pub world: &'a dyn World,
    pub factored: &'a dyn Factored,
    pub policy: &'a dyn ActAlone,
    pub stream: &'a Stream,
    pub split: usize,
    /// Places of the sampled channels.
    pub sampled: &'a [usize],
}

impl Simulation<'_> {
    pub fn run(&self, request: &Request, trajectory: &mut Trajectory) {
        let agents = self.world.network().agents();
        let steps = trajectory.room();
        let at_once = if agents < LARGE { CHUNK } else { SHORT_CHUNK };
        trajectory.finish(steps, false);
        let mut draws: Draws = std::array::from_fn(|_| vec![0; agents.next_multiple_of(LANES)]);
        // Rows `[step][agent]`, one more than a chunk: the last is the first state of the next chunk.
        let mut states = vec![0; (at_once.min(steps) + 1) * agents];
        let mut actions = vec![0; at_once.min(steps) * agents];
        let mut rewards = vec![0.0; self.sampled.len() * at_once.min(steps) * agents];
        self.start(request, &mut states[..agents]);
        for first in (0..steps).step_by(at_once) {
            let chunk = at_once.min(steps - first);
            for k in 0..chunk {
                let (now, next) = states[k * agents..(k + 2) * agents].split_at_mut(agents);
                let act = &mut actions[k * agents..(k + 1) * agents];
                let [_, moves] = self.step(request.place, first + k, now, act, next, &mut draws);
                self.reward(now, act, moves, k, chunk, &mut rewards);
            }
            let (state_columns, action_columns, reward_columns) = trajectory.columns_mut();
            copy_rewards(&rewards, agents, chunk, first, steps, reward_columns);
            copy_columns(&states, agents, chunk, first, steps, state_columns, self.split);
            copy_columns(&actions, agents, chunk, first, steps, action_columns, self.split);
            states.copy_within(chunk * agents..(chunk + 1) * agents, 0);
        }
    }

    fn start(&self, request: &Request, states: &mut [u8]) {
        self.over_agents(states, |agents, states| {
            start(self.world, self.factored, self.stream, request, agents, states);
        });
    }

    /// a^k ~ π(· | s^k), then s^{k+1} ~ ℙ(· | s^k, a^k). Returns the draws of actions and of transitions.
    fn step<'d>(
        &self,
        place: Place,
        step: usize,
        now: &[u8],
        actions: &mut [u8],
        next: &mut [u8],
        draws: &'d mut Draws,
    ) -> [&'d [u32]; 2] {
        if step.is_multiple_of(2) {
            self.draw_pair(place, (step / 2) as u32, draws);
        }
        let [act, move_on] = of_step(draws, step);
        self.over_agents(actions, |agents, actions| {
            self.policy.act(agents.clone(), now, &act[agents], actions);
        });
        let actions = &*actions;
        self.over_agents(next, |agents, next| {
            self.factored.step(agents.clone(), now, actions, &move_on[agents], next);
        });
        [act, move_on]
    }

    /// Rewards of the sampled channels at step k of a chunk, into rows `[channel][step][agent]`.
    fn reward(&self, now: &[u8], actions: &[u8], moves: &[u32], k: usize, chunk: usize, rewards: &mut [f32]) {
        let agents = now.len();
        for (number, &channel) in self.sampled.iter().enumerate() {
            let row = &mut rewards[(number * chunk + k) * agents..][..agents];
            let split = self.split.min(agents);
            let part = |block: usize, row: &mut [f32]| {
                let members = block * split..block * split + row.len();
                let moves = &moves[members.clone()];
                self.factored.sample_rewards(channel, members, now, actions, moves, row);
            };
            if split == agents {
                part(0, row);
            } else {
                row.par_chunks_mut(split).enumerate().for_each(|(block, row)| part(block, row));
            }
        }
    }

    fn draw_pair(&self, place: Place, pair: u32, draws: &mut Draws) {
        let [r0, r1, r2, r3] = draws;
        if self.split >= self.world.network().agents() {
            return self.stream.step_pair(place, pair, 0, [r0, r1, r2, r3]);
        }
        r0.par_chunks_mut(self.split)
            .zip(r1.par_chunks_mut(self.split))
            .zip(r2.par_chunks_mut(self.split))
            .zip(r3.par_chunks_mut(self.split))
            .enumerate()
            .for_each(|(block, (((r0, r1), r2), r3))| {
                self.stream.step_pair(place, pair, (block * self.split) as u32, [r0, r1, r2, r3]);
            });
    }

    /// Runs `work` on runs of agents with their part of `row` (one entry an agent).
    fn over_agents(&self, row: &mut [u8], work: impl Fn(Range<usize>, &mut [u8]) + Sync) {
        if self.split >= row.len() {
            return work(0..row.len(), row);
        }
        row.par_chunks_mut(self.split).enumerate().for_each(|(block, part)| {
            let first = block * self.split;
            work(first..first + part.len(), part);
        });
    }
}

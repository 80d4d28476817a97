//! Factored worlds, one trajectory at a time: fast for policies that are cheap to ask.

use super::columns::{copy_columns, copy_rewards};
use super::{Draws, Request, Trajectory, of_step, start};
use crate::base::stream::Stream;
use crate::policy::ActAlone;
use crate::world::{Factored, World};

/// Steps that are simulated step by step before they are turned into columns.
const CHUNK: usize = 64;

/// Simulation of one trajectory after the other.
pub struct Simulation<'a> {
    pub world: &'a dyn World,
    pub factored: &'a dyn Factored,
    pub policy: &'a dyn ActAlone,
    pub stream: &'a Stream,
    /// Places of the sampled channels.
    pub sampled: &'a [usize],
}

impl Simulation<'_> {
    pub fn run(&self, request: &Request, trajectory: &mut Trajectory) {
        let agents = self.world.graph().agents();
        let steps = trajectory.room();
        trajectory.finish(steps, false);
        let mut draws: Draws = std::array::from_fn(|_| vec![0; agents]);
        // Rows `[step][agent]`, one more than a chunk: the last is the first state of the next chunk.
        let mut states = vec![0; (CHUNK.min(steps) + 1) * agents];
        let mut actions = vec![0; CHUNK.min(steps) * agents];
        let mut rewards = vec![0.0; self.sampled.len() * CHUNK.min(steps) * agents];
        start(self.world, self.factored, self.stream, request, 0..agents, &mut states[..agents]);
        for first in (0..steps).step_by(CHUNK) {
            let chunk = CHUNK.min(steps - first);
            for k in 0..chunk {
                let (now, next) = states[k * agents..(k + 2) * agents].split_at_mut(agents);
                let act = &mut actions[k * agents..(k + 1) * agents];
                let step = first + k;
                if step.is_multiple_of(2) {
                    let [r0, r1, r2, r3] = &mut draws;
                    self.stream.step_pair(request.place, (step / 2) as u32, 0, [r0, r1, r2, r3]);
                }
                // a^k ~ π(· | s^k), then s^{k+1} ~ ℙ(· | s^k, a^k).
                let [choices, moves] = of_step(&draws, step);
                self.policy.act(0..agents, now, choices, act);
                self.factored.step(0..agents, now, act, moves, next);
                for (number, &channel) in self.sampled.iter().enumerate() {
                    let row = &mut rewards[(number * chunk + k) * agents..][..agents];
                    self.factored.sample_rewards(channel, 0..agents, now, act, moves, row);
                }
            }
            let (state_columns, action_columns, reward_columns) = trajectory.columns_mut();
            copy_rewards(&rewards, agents, [chunk, chunk], first, steps, reward_columns);
            copy_columns(&states, agents, chunk, first, steps, state_columns, agents);
            copy_columns(&actions, agents, chunk, first, steps, action_columns, agents);
            states.copy_within(chunk * agents..(chunk + 1) * agents, 0);
        }
    }
}

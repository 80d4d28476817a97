//! Simulated trajectories. Paper: alg:pdac line 3, alg:subroutine lines 2 and 4.

use std::ops::Range;

use rayon::prelude::*;

use crate::policy::{ActTogether, Policy};
use crate::sampler::uniform;
use crate::stream::{LANES, Place, Purpose, Stream};
use crate::world::{World, sampled_channels};

/// States and actions of every agent over the steps of one trajectory, as bytes, `[agent][step]`: an agent's
/// learning reads the columns of its neighbours from front to back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trajectory {
    steps: usize,
    states: Vec<u8>,
    actions: Vec<u8>,
    /// Rewards of the sampled channels, `[channel][agent][step]`.
    rewards: Vec<f32>,
}

impl Trajectory {
    /// Room for `steps` state–action pairs of `agents` agents.
    pub fn new(agents: usize, steps: usize) -> Self {
        Trajectory::with_channels(agents, steps, 0)
    }

    /// The same with room for the rewards of `channels` sampled channels.
    pub fn with_channels(agents: usize, steps: usize, channels: usize) -> Self {
        let column = || vec![0; agents * steps];
        Trajectory {
            steps,
            states: column(),
            actions: column(),
            rewards: vec![0.0; channels * agents * steps],
        }
    }

    /// Number of sampled channels.
    pub fn channels(&self) -> usize {
        self.rewards.len().checked_div(self.states.len()).unwrap_or(0)
    }

    /// Rewards of agent i from the sampled channel number `channel`, step by step.
    #[inline]
    pub fn rewards(&self, channel: usize, agent: usize) -> &[f32] {
        let first = channel * self.states.len() + agent * self.steps;
        &self.rewards[first..first + self.steps]
    }

    /// Number of state–action pairs an agent.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// s_i^0, s_i^1, …
    #[inline]
    pub fn states(&self, agent: usize) -> &[u8] {
        &self.states[agent * self.steps..(agent + 1) * self.steps]
    }

    /// a_i^0, a_i^1, …
    #[inline]
    pub fn actions(&self, agent: usize) -> &[u8] {
        &self.actions[agent * self.steps..(agent + 1) * self.steps]
    }

    /// s_i^k and a_i^k, to be changed (tests of locality do).
    pub fn pair_mut(&mut self, agent: usize, step: usize) -> (&mut u8, &mut u8) {
        let at = agent * self.steps + step;
        (&mut self.states[at], &mut self.actions[at])
    }

    /// Agent i's reward from the sampled channel number `channel` at step k, to be changed (tests of locality do).
    pub fn reward_mut(&mut self, channel: usize, agent: usize, step: usize) -> &mut f32 {
        let first = channel * self.states.len() + agent * self.steps;
        &mut self.rewards[first..first + self.steps][step]
    }
}

/// Where a trajectory starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFrom {
    /// The world's law ρ.
    World,
    /// Every local state equally likely, agents independent (alg:subroutine's ρ₀).
    Uniform,
}

/// One trajectory to simulate.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Where its numbers come from.
    pub place: Place,
    /// Purpose of its start states.
    pub start_purpose: Purpose,
    /// Where it starts.
    pub start: StartFrom,
}

/// Steps that are simulated step by step before they are turned into columns.
const CHUNK: usize = 64;

/// From this many agents on, one trajectory keeps all threads busy; below, threads take a trajectory each.
pub const SPLIT_AGENTS: usize = 1 << 15;

/// Agents of one trajectory that a thread advances at a time.
const SPLIT_BLOCK: usize = 4096;

/// Simulates every requested trajectory under `policy`.
///
/// The numbers drawn depend on the place, the agent and the step alone, so the order of work does not matter.
pub fn simulate(
    world: &dyn World,
    policy: &dyn Policy,
    stream: &Stream,
    requests: &[Request],
    trajectories: &mut [Trajectory],
) {
    assert_eq!(requests.len(), trajectories.len());
    let agents = world.network().agents();
    let split = if agents < SPLIT_AGENTS { agents } else { SPLIT_BLOCK };
    let simulation = Simulation { world, policy, stream, split, sampled: sampled_channels(world) };
    if let Some(together) = policy.together() {
        return simulation.run_together(together, requests, trajectories);
    }
    let mut jobs: Vec<_> = requests.iter().zip(trajectories).collect();
    if agents >= SPLIT_AGENTS {
        jobs.into_iter().for_each(|(request, trajectory)| simulation.run(request, trajectory));
        return;
    }
    // Longest first, or the last one would keep everybody waiting.
    jobs.sort_by_key(|(_, trajectory)| std::cmp::Reverse(trajectory.steps));
    rayon::scope_fifo(|scope| {
        let simulation = &simulation;
        for (request, trajectory) in jobs {
            scope.spawn_fifo(move |_| simulation.run(request, trajectory));
        }
    });
}

/// One trajectory's simulation; agents are advanced in runs of `split`, in parallel if there are several.
struct Simulation<'a> {
    world: &'a dyn World,
    policy: &'a dyn Policy,
    stream: &'a Stream,
    split: usize,
    /// Places of the sampled channels.
    sampled: Vec<usize>,
}

/// Draws of two steps, `[action, world]` each.
type Draws = [Vec<u32>; 4];

impl Simulation<'_> {
    fn run(&self, request: &Request, trajectory: &mut Trajectory) {
        let agents = self.world.network().agents();
        let steps = trajectory.steps;
        let mut draws: Draws = std::array::from_fn(|_| vec![0; agents.next_multiple_of(LANES)]);
        // Rows `[step][agent]`, one more than a chunk: the last is the first state of the next chunk.
        let mut states = vec![0; (CHUNK.min(steps) + 1) * agents];
        let mut actions = vec![0; CHUNK.min(steps) * agents];
        let mut rewards = vec![0.0; self.sampled.len() * CHUNK.min(steps) * agents];
        self.start(request, &mut states[..agents]);
        for first in (0..steps).step_by(CHUNK) {
            let chunk = CHUNK.min(steps - first);
            for k in 0..chunk {
                let (now, next) = states[k * agents..(k + 2) * agents].split_at_mut(agents);
                let act = &mut actions[k * agents..(k + 1) * agents];
                let [_, moves] = self.step(request.place, first + k, now, act, next, &mut draws);
                self.reward(now, act, moves, k, chunk, &mut rewards);
            }
            copy_rewards(&rewards, agents, chunk, first, steps, &mut trajectory.rewards);
            copy_columns(&states, agents, chunk, first, steps, &mut trajectory.states, self.split);
            copy_columns(&actions, agents, chunk, first, steps, &mut trajectory.actions, self.split);
            states.copy_within(chunk * agents..(chunk + 1) * agents, 0);
        }
    }

    fn start(&self, request: &Request, states: &mut [u8]) {
        let place = Place { purpose: request.start_purpose, ..request.place };
        self.over_agents(states, |agents, states| match request.start {
            StartFrom::World => self.world.start(self.stream, place, agents, states),
            StartFrom::Uniform => {
                for (agent, state) in agents.zip(states) {
                    let draw = self.stream.words(place, agent as u32, 0)[0] >> 1;
                    *state = uniform(self.world.states(agent), draw);
                }
            }
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
        let [act, move_on] = self.draw(place, step, draws);
        self.over_agents(actions, |agents, actions| {
            self.policy.act(agents.clone(), now, &act[agents], actions);
        });
        let actions = &*actions;
        self.over_agents(next, |agents, next| {
            self.world.step(agents.clone(), now, actions, &move_on[agents], next);
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
                self.world.sample_rewards(channel, members, now, actions, moves, row);
            };
            if split == agents {
                part(0, row);
            } else {
                row.par_chunks_mut(split).enumerate().for_each(|(block, row)| part(block, row));
            }
        }
    }

    /// The draws of actions and of transitions at `step`, which must follow the step before.
    fn draw<'d>(&self, place: Place, step: usize, draws: &'d mut Draws) -> [&'d [u32]; 2] {
        if step.is_multiple_of(2) {
            self.draw_pair(place, (step / 2) as u32, draws);
        }
        match draws {
            [act, move_on, _, _] if step.is_multiple_of(2) => [act, move_on],
            [_, _, act, move_on] => [act, move_on],
        }
    }

    /// All trajectories side by side, step by step, for policies that act faster in many at once.
    fn run_together(
        &self,
        together: &dyn ActTogether,
        requests: &[Request],
        trajectories: &mut [Trajectory],
    ) {
        let agents = self.world.network().agents();
        // Longest first: those still going are then the first ones.
        let mut jobs: Vec<Job<'_>> = requests
            .iter()
            .zip(trajectories)
            .map(|(request, trajectory)| Job {
                place: request.place,
                draws: std::array::from_fn(|_| vec![0; agents.next_multiple_of(LANES)]),
                trajectory,
                request,
            })
            .collect();
        jobs.sort_by_key(|job| std::cmp::Reverse(job.trajectory.steps));
        let longest = jobs.first().map_or(0, |job| job.trajectory.steps);
        let mut now = vec![0; jobs.len() * agents];
        let (mut next, mut actions) = (now.clone(), now.clone());
        let mut act_draws = vec![0; now.len()];
        let mut rewards = vec![0.0; self.sampled.len() * agents];
        for (job, states) in jobs.iter().zip(now.chunks_exact_mut(agents)) {
            self.start(job.request, states);
        }
        for k in 0..longest {
            let going = jobs.partition_point(|job| job.trajectory.steps > k);
            let jobs = &mut jobs[..going];
            for (job, out) in jobs.iter_mut().zip(act_draws.chunks_exact_mut(agents)) {
                let [act, _] = self.draw(job.place, k, &mut job.draws);
                out.copy_from_slice(&act[..agents]);
            }
            let all = going * agents;
            together.act_together(going, &now[..all], &act_draws[..all], &mut actions[..all]);
            let rows =
                now.chunks_exact(agents).zip(actions.chunks_exact(agents)).zip(next.chunks_exact_mut(agents));
            for (job, ((now, actions), next)) in jobs.iter_mut().zip(rows) {
                let moves = &job.draws[if k.is_multiple_of(2) { 1 } else { 3 }][..agents];
                self.world.step(0..agents, now, actions, moves, next);
                self.reward(now, actions, moves, 0, 1, &mut rewards);
                let steps = job.trajectory.steps;
                for i in 0..agents {
                    let at = i * steps + k;
                    (job.trajectory.states[at], job.trajectory.actions[at]) = (now[i], actions[i]);
                }
                copy_rewards(&rewards, agents, 1, k, steps, &mut job.trajectory.rewards);
            }
            std::mem::swap(&mut now, &mut next);
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

/// One trajectory among many that are simulated side by side.
struct Job<'a> {
    place: Place,
    draws: Draws,
    trajectory: &'a mut Trajectory,
    request: &'a Request,
}

/// Turns rows `[channel][step][agent]` into steps `first..first + chunk` of columns `[channel][agent][step]`.
fn copy_rewards(rows: &[f32], agents: usize, chunk: usize, first: usize, steps: usize, columns: &mut [f32]) {
    if columns.is_empty() {
        return;
    }
    for (rows, columns) in rows.chunks_exact(chunk * agents).zip(columns.chunks_exact_mut(agents * steps)) {
        columns.par_chunks_mut(COLUMN_BLOCK * steps).enumerate().for_each(|(block, columns)| {
            for (m, column) in columns.chunks_exact_mut(steps).enumerate() {
                let agent = block * COLUMN_BLOCK + m;
                let out = column[first..first + chunk].iter_mut();
                out.enumerate().for_each(|(k, out)| *out = rows[k * agents + agent]);
            }
        });
    }
}

/// Agents whose columns are written at a time.
const COLUMN_BLOCK: usize = 4096;

/// Turns rows `[step][agent]` into steps `first..first + chunk` of columns `[agent][step]`.
fn copy_columns(
    rows: &[u8],
    agents: usize,
    chunk: usize,
    first: usize,
    steps: usize,
    columns: &mut [u8],
    split: usize,
) {
    let copy = |(block, columns): (usize, &mut [u8])| {
        for (group, columns) in columns.chunks_mut(8 * steps).enumerate() {
            let start = block * split + group * 8;
            let whole = if columns.len() == 8 * steps { chunk / 8 * 8 } else { 0 };
            for k in (0..whole).step_by(8) {
                let mut square = [0; 8];
                for (row, word) in square.iter_mut().enumerate() {
                    *word = u64_at(rows, (k + row) * agents + start);
                }
                transpose_bytes(&mut square);
                for (m, word) in square.into_iter().enumerate() {
                    let at = m * steps + first + k;
                    columns[at..at + 8].copy_from_slice(&word.to_le_bytes());
                }
            }
            for (m, column) in columns.chunks_exact_mut(steps).enumerate() {
                for (k, out) in column[first..first + chunk].iter_mut().enumerate().skip(whole) {
                    *out = rows[k * agents + start + m];
                }
            }
        }
    };
    if split >= agents {
        copy((0, columns));
    } else {
        columns.par_chunks_mut(split * steps).enumerate().for_each(copy);
    }
}

/// Eight bytes from `at` on, the first in the lowest place.
#[inline(always)]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Transposes an 8 × 8 matrix of bytes, one row a word: swaps off-diagonal 4 × 4, then 2 × 2, then single bytes.
#[inline(always)]
fn transpose_bytes(rows: &mut [u64; 8]) {
    for (distance, shift, mask) in
        [(4, 32, 0x0000_0000_ffff_ffff), (2, 16, 0x0000_ffff_0000_ffff), (1, 8, 0x00ff_00ff_00ff_00ff)]
    {
        for upper in 0..8 {
            if upper & distance == 0 {
                let lower = upper | distance;
                let swap = ((rows[upper] >> shift) ^ rows[lower]) & mask;
                rows[lower] ^= swap;
                rows[upper] ^= swap << shift;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Parameterisation, Tabular};
    use crate::world::{Line, Start};

    fn request(iteration: u32) -> Request {
        Request {
            place: Place { purpose: Purpose::Batch, iteration, trajectory: 2 },
            start_purpose: Purpose::BatchStart,
            start: StartFrom::World,
        }
    }

    /// The same trajectory, one agent and one step at a time, straight from the definition.
    fn by_definition(
        world: &Line,
        policy: &Tabular,
        stream: &Stream,
        request: Request,
        steps: usize,
    ) -> Trajectory {
        let agents = world.network().agents();
        let mut trajectory = Trajectory::new(agents, steps);
        let mut states = vec![0; agents];
        let start = Place { purpose: request.start_purpose, ..request.place };
        world.start(stream, start, 0..agents, &mut states);
        for k in 0..steps {
            let (mut actions, mut next) = (vec![0; agents], vec![0; agents]);
            let word = |i: usize, w| stream.words(request.place, i as u32, k as u32 / 2)[k % 2 * 2 + w] >> 1;
            for i in 0..agents {
                policy.act(i..i + 1, &states, &[word(i, 0)], &mut actions[i..=i]);
            }
            for i in 0..agents {
                world.step(i..i + 1, &states, &actions, &[word(i, 1)], &mut next[i..=i]);
                let (s, a) = trajectory.pair_mut(i, k);
                (*s, *a) = (states[i], actions[i]);
            }
            states = next;
        }
        trajectory
    }

    #[test]
    fn fast_simulation_is_the_definition() {
        for (agents, steps) in [(3, 1), (10, 125), (70, 131)] {
            let world = Line::new(agents, Start::Uniform, 0.1).unwrap();
            let stream = Stream::new(4);
            let policy = Tabular::new(&world, 1, Parameterisation::Softmax, 1.0, &stream).unwrap();
            let mut fast = [Trajectory::new(agents, steps)];
            simulate(&world, &policy, &stream, &[request(6)], &mut fast);
            assert_eq!(fast[0], by_definition(&world, &policy, &stream, request(6), steps));
        }
    }

    #[test]
    fn splitting_a_trajectory_over_threads_changes_nothing() {
        let world = Line::new(1000, Start::Uniform, 0.1).unwrap();
        let stream = Stream::new(5);
        let policy = Tabular::new(&world, 1, Parameterisation::Softmax, 1.0, &stream).unwrap();
        let run = |split| {
            let mut trajectory = Trajectory::new(1000, 150);
            let simulation =
                Simulation { world: &world, policy: &policy, stream: &stream, split, sampled: Vec::new() };
            simulation.run(&request(0), &mut trajectory);
            trajectory
        };
        assert_eq!(run(1000), run(96));
    }
}

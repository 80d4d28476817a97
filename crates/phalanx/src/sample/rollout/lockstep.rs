//! Joint worlds: episodes side by side, step by step.

use rayon::prelude::*;

use super::{Draws, Request, Trajectory, of_step};
use crate::base::stream::Stream;
use crate::policy::Acting;
use crate::world::{Episode, Joint, World, sampled_channels};

/// What trajectories have in common.
pub struct Lockstep<'a> {
    pub world: &'a dyn World,
    pub joint: &'a dyn Joint,
    pub policy: Acting<'a>,
    pub stream: &'a Stream,
}

/// One of the trajectories.
struct Job<'b> {
    request: &'b Request,
    trajectory: &'b mut Trajectory,
    draws: Draws,
    /// s^k.
    states: Vec<u8>,
    /// Of the sampled channels in one step, `[channel][agent]`.
    rewards: Vec<f32>,
    episode: Box<dyn Episode>,
}

impl Lockstep<'_> {
    /// Trajectories that are best simulated side by side.
    pub fn at_once(&self) -> usize {
        if matches!(self.policy, Acting::Together(_)) { usize::MAX } else { 1 }
    }

    /// Simulates trajectories, longest first.
    pub fn run(&self, requested: &mut [(&Request, &mut Trajectory)]) {
        let agents = self.world.graph().agents();
        let mut jobs: Vec<Job<'_>> = (requested.iter_mut())
            .filter(|(_, trajectory)| trajectory.room() > 0)
            .map(|(request, trajectory)| self.begin(request, trajectory))
            .collect();
        let (mut act_draws, mut actions) = (vec![0; jobs.len() * agents], vec![0; jobs.len() * agents]);
        for k in 0.. {
            if jobs.is_empty() {
                return;
            }
            let all = jobs.len() * agents;
            let (act_draws, actions) = (&mut act_draws[..all], &mut actions[..all]);
            for (job, draws) in jobs.iter_mut().zip(act_draws.chunks_exact_mut(agents)) {
                job.observe(k);
                if k.is_multiple_of(2) {
                    let [r0, r1, r2, r3] = &mut job.draws;
                    self.stream.step_pair(job.request.place, (k / 2) as u32, 0, [r0, r1, r2, r3]);
                }
                draws.copy_from_slice(of_step(&job.draws, k)[0]);
            }
            match self.policy {
                Acting::Together(policy) => {
                    let seen: Vec<&Trajectory> = jobs.iter().map(|job| &*job.trajectory).collect();
                    policy.act(&seen, k, act_draws, actions);
                }
                Acting::Alone(policy) => {
                    let rows = act_draws.chunks_exact(agents).zip(actions.chunks_exact_mut(agents));
                    for (job, (draws, actions)) in jobs.iter().zip(rows) {
                        policy.act(0..agents, &job.states, draws, actions);
                    }
                }
            }
            // A joint step is long enough to be worth a thread.
            let work = |(job, actions): (&mut Job<'_>, &[u8])| job.step(k, actions);
            if jobs.len() > 1 && !self.world.is_serial() {
                jobs.par_iter_mut().zip(actions.par_chunks_exact(agents)).for_each(work);
            } else {
                jobs.iter_mut().zip(actions.chunks_exact(agents)).for_each(work);
            }
            jobs.retain(|job| !job.trajectory.ended() && job.trajectory.room() > k + 1);
        }
    }

    fn begin<'b>(&self, request: &'b Request, trajectory: &'b mut Trajectory) -> Job<'b> {
        let agents = self.world.graph().agents();
        Job {
            request,
            trajectory,
            draws: std::array::from_fn(|_| vec![0; agents]),
            states: vec![0; agents],
            rewards: vec![0.0; sampled_channels(self.world).len() * agents],
            episode: self.joint.begin(self.stream, request.start_place()),
        }
    }
}

impl Job<'_> {
    /// Writes down what is seen at step k.
    fn observe(&mut self, k: usize) {
        self.trajectory.finish(k + 1, false);
        self.episode.observe(&mut self.states, self.trajectory.global_state_mut(k));
        let room = self.trajectory.room();
        let (states, _, _) = self.trajectory.columns_mut();
        states.iter_mut().skip(k).step_by(room).zip(&self.states).for_each(|(out, &s)| *out = s);
    }

    /// Writes down what is done at step k and what it earns, and moves on.
    fn step(&mut self, k: usize, actions: &[u8]) {
        let room = self.trajectory.room();
        let ended = self.episode.step(actions, of_step(&self.draws, k)[1], &mut self.rewards);
        self.trajectory.finish(k + 1, ended);
        let measures = self.trajectory.measures_mut(k);
        if !measures.is_empty() {
            self.episode.measures(measures);
        }
        let (_, columns, rewards) = self.trajectory.columns_mut();
        columns.chunks_exact_mut(room).zip(actions).for_each(|(column, &a)| column[k] = a);
        rewards.chunks_exact_mut(room).zip(&self.rewards).for_each(|(column, &r)| column[k] = r);
    }
}

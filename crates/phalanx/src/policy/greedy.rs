//! The most likely action of another policy.

use super::{ActTogether, Acting, GradientInput, GradientScratch, Policy};
use crate::Ragged;
use crate::world::{LARGEST_LOCAL_SPACE, Trajectory};
use rayon::prelude::*;

/// Takes what its policy takes most often; the first of equals. It is evaluated, not trained.
#[derive(Debug)]
pub struct GreedyPolicy(Box<dyn Policy>);

impl GreedyPolicy {
    /// The most likely actions of `policy`.
    pub fn new(policy: Box<dyn Policy>) -> Self {
        GreedyPolicy(policy)
    }

    fn choose(&self, agent: usize, trajectory: &Trajectory, k: usize) -> u8 {
        let mut law = [0.0; LARGEST_LOCAL_SPACE];
        let law = &mut law[..self.actions(agent)];
        self.0.law(agent, trajectory, k, law);
        (1..law.len()).fold(0, |best, action| if law[action] > law[best] { action } else { best }) as u8
    }
}

impl Policy for GreedyPolicy {
    fn action_counts(&self) -> &[usize] {
        self.0.action_counts()
    }

    fn groups(&self) -> Ragged<u32> {
        self.0.groups()
    }

    fn theta(&self) -> &Ragged<f64> {
        self.0.theta()
    }

    fn theta_mut(&mut self) -> &mut Ragged<f64> {
        self.0.theta_mut()
    }

    fn row_of(&self, agent: usize) -> usize {
        self.0.row_of(agent)
    }

    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    fn stands_for_row(&self, agent: usize) -> bool {
        self.0.stands_for_row(agent)
    }

    fn refresh(&mut self) {
        self.0.refresh();
    }

    fn acting(&self) -> Acting<'_> {
        Acting::Together(self)
    }

    fn law(&self, agent: usize, trajectory: &Trajectory, k: usize, out: &mut [f64]) {
        out.fill(0.0);
        out[usize::from(self.choose(agent, trajectory, k))] = 1.0;
    }

    fn gradient(&self, _: GradientInput<'_>, _: &mut GradientScratch, out: &mut [f64]) {
        out.fill(0.0);
    }

    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn tensors(&self, agent: usize) -> Vec<(String, Vec<usize>)> {
        self.0.tensors(agent)
    }

    fn is_single(&self) -> bool {
        self.0.is_single()
    }
}

impl ActTogether for GreedyPolicy {
    fn act(&self, trajectories: &[&Trajectory], k: usize, _draws: &[u32], actions: &mut [u8]) {
        let rows = actions.par_chunks_exact_mut(self.agents()).zip(trajectories);
        rows.for_each(|(actions, trajectory)| {
            let choices = actions.iter_mut().enumerate();
            choices.for_each(|(agent, action)| *action = self.choose(agent, trajectory, k));
        });
    }
}

//! Scripted policies that look at what a joint world shows.

use super::{ActTogether, Acting, GradientInput, GradientScratch, Policy};
use crate::Ragged;
use crate::world::Trajectory;
use crate::world::{ScriptedPolicy, World};

/// A [`ScriptedPolicy`] as a policy. It has no parameters.
#[derive(Debug)]
pub struct RulePolicy {
    rule: Box<dyn ScriptedPolicy>,
    actions: Vec<usize>,
    theta: Ragged<f64>,
}

impl RulePolicy {
    /// The same rule for every agent.
    pub fn new(world: &dyn World, rule: Box<dyn ScriptedPolicy>) -> Self {
        let n = world.graph().agents();
        RulePolicy {
            rule,
            actions: (0..n).map(|i| world.actions(i)).collect(),
            theta: Ragged::zeros(std::iter::repeat_n(0, n)),
        }
    }
}

impl Policy for RulePolicy {
    fn action_counts(&self) -> &[usize] {
        &self.actions
    }

    fn groups(&self) -> Ragged<u32> {
        Ragged::from_rows((0..self.actions.len() as u32).map(|i| [i]))
    }

    fn theta(&self) -> &Ragged<f64> {
        &self.theta
    }

    fn theta_mut(&mut self) -> &mut Ragged<f64> {
        &mut self.theta
    }

    fn acting(&self) -> Acting<'_> {
        Acting::Together(self)
    }

    fn law(&self, agent: usize, trajectory: &Trajectory, k: usize, out: &mut [f64]) {
        out.fill(0.0);
        let action = self.rule.act(agent, trajectory.states(agent)[k], trajectory.global_state(k));
        out[usize::from(action)] = 1.0;
    }

    fn gradient(&self, _: GradientInput<'_>, _: &mut GradientScratch, out: &mut [f64]) {
        out.fill(0.0);
    }

    fn kind(&self) -> &'static str {
        "scripted"
    }

    fn tensors(&self, _agent: usize) -> Vec<(String, Vec<usize>)> {
        Vec::new()
    }
}

impl ActTogether for RulePolicy {
    fn act(&self, trajectories: &[&Trajectory], k: usize, _draws: &[u32], actions: &mut [u8]) {
        for (trajectory, actions) in trajectories.iter().zip(actions.chunks_exact_mut(self.actions.len())) {
            for (agent, action) in actions.iter_mut().enumerate() {
                *action = self.rule.act(agent, trajectory.states(agent)[k], trajectory.global_state(k));
            }
        }
    }
}

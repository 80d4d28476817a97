//! Temporal differences with a target network: how the neural networks of one agent and utility learn.

use super::super::CriticInput;
use super::NeuralCriticSettings;
use crate::base::stream::Sequence;
use crate::learn::shadow::{reward_column, weigh};
use crate::neural::{Chain, Inputs, Net, NetworkMut, Tape, Target, Training, polyak, shuffle};
use crate::policy::observation::ObservationEncoder;
use crate::world::Trajectory;

/// Buffers of one agent's learning.
#[derive(Default)]
pub struct LearnerScratch {
    now: Inputs,
    next: Inputs,
    /// 0 where the episode ended with the transition, else 1.
    continues: Vec<f32>,
    part: Inputs,
    training: Training,
    /// Rewards of all transitions.
    rewards: Vec<f32>,
    column: Vec<f64>,
    next_values: Vec<f32>,
    wanted: Vec<f32>,
    order: Vec<u32>,
}

/// One agent's neural networks of one utility: one, or twins.
pub struct Learner<'a> {
    pub rule: &'a NeuralCriticSettings,
    pub encoder: &'a ObservationEncoder,
    pub gamma: f32,
    pub twins: Vec<NetworkMut<'a>>,
    /// `[twin][parameter]`; empty without target networks.
    pub targets: &'a mut [f32],
    /// Gradient steps before this evaluation.
    pub steps: u64,
}

impl LearnerScratch {
    /// Inputs before and after every transition, and a fresh order of them for every pass.
    pub fn encode(
        &mut self,
        rule: &NeuralCriticSettings,
        encoder: &ObservationEncoder,
        trajectories: &[Trajectory],
        mut sequence: Sequence,
    ) {
        if rule.minibatch == 0 {
            return;
        }
        let LearnerScratch { now, next, continues, part, order, .. } = self;
        now.clear();
        next.clear();
        continues.clear();
        for trajectory in trajectories {
            encoder.encode([(trajectory, trajectory.steps())], part);
            for k in 0..trajectory.transitions() {
                let ends = k + 1 == trajectory.steps();
                now.add_sample(part, k);
                // What stands for the state after the end is not looked at.
                next.add_sample(part, if ends { k } else { k + 1 });
                continues.push(if ends { 0.0 } else { 1.0 });
            }
        }
        shuffle(rule.passes, now.size, &mut sequence, order);
    }

    /// Agent j's shadow rewards of a utility along the trajectories; of all utilities at once where neural
    /// networks are merged.
    pub fn write_rewards(
        &mut self,
        j: usize,
        utility: usize,
        merged: bool,
        evidence: &CriticInput<'_>,
        trajectories: &[Trajectory],
    ) {
        let (rewards, mu) = (evidence.signals.rewards.row(j), evidence.mu.row(j));
        let actions = evidence.signals.actions[j];
        let row = rewards.len() / (1 + mu.len());
        let mut reward = rewards[utility * row..(utility + 1) * row].to_vec();
        if merged {
            weigh(rewards, mu, &mut reward);
        }
        self.rewards.clear();
        for trajectory in trajectories {
            reward_column(&reward, trajectory, j, actions, trajectory.transitions(), &mut self.column);
            self.rewards.extend(self.column.iter().map(|&r| r as f32));
        }
    }
}

impl Learner<'_> {
    /// Learns from all transitions.
    pub fn learn(&mut self, trajectories: &[Trajectory], scratch: &mut LearnerScratch) {
        if self.rule.minibatch > 0 {
            self.learn_in_minibatches(scratch);
            return;
        }
        let mut first = 0;
        for trajectory in trajectories {
            let LearnerScratch { now, rewards, training, .. } = &mut *scratch;
            self.encoder.encode([(trajectory, trajectory.steps())], now);
            let end = first + trajectory.transitions();
            self.learn_online(now, &rewards[first..end], &mut training.tape);
            first = end;
        }
    }

    /// Passes over all transitions in minibatches, in the order of `scratch.order`.
    fn learn_in_minibatches(&mut self, scratch: &mut LearnerScratch) {
        let LearnerScratch { now, next, continues, part, training, rewards, .. } = scratch;
        let LearnerScratch { next_values, wanted, order, .. } = scratch;
        let (descent, mut number) = (&self.rule.descent, self.steps);
        for pass in order.chunks_exact(now.size) {
            self.value_next(next, &mut training.tape, next_values);
            for members in pass.chunks(self.rule.minibatch) {
                number += 1;
                let seen = now.select(Some(members), part);
                let target = |k: usize| rewards[k] + self.gamma * continues[k] * next_values[k];
                wanted.clear();
                wanted.extend(members.iter().map(|&k| target(k as usize)));
                for (twin, network) in self.twins.iter_mut().enumerate() {
                    network.gradient(seen.batch(), training, |values, slopes| {
                        self.rule.loss.evaluate(values, wanted, slopes);
                    });
                    network.descend(number, descent, training);
                    let parameters = network.weights.len();
                    if let Some(target) = self.targets.chunks_exact_mut(parameters).nth(twin) {
                        polyak(self.rule.polyak as f32, network.weights, target);
                    }
                }
            }
        }
    }

    /// Values of the next states, by the target networks if there are any.
    fn value_next(&self, next: &Inputs, tape: &mut Tape<f32>, values: &mut Vec<f32>) {
        let net = self.twins[0].net;
        if self.targets.is_empty() {
            least(net, self.twins.iter().map(|network| &*network.weights), next, tape, values);
        } else {
            least(net, self.targets.chunks_exact(net.parameters()), next, tape, values);
        }
    }

    /// eq:td_learning with a gradient, one transition at a time along a chain. There is one reward fewer than
    /// inputs, or as many if the episode ended with the last.
    fn learn_online(&mut self, inputs: &Inputs, rewards: &[f32], tape: &mut Tape<f32>) {
        let (along, after) = rewards.split_at(rewards.len().min(inputs.size - 1));
        for (twin, NetworkMut { net, weights, .. }) in self.twins.iter_mut().enumerate() {
            let mut learn = |rows: &[f32], symbols: &[u8], rewards: &[f32], gamma: f32| {
                let eta = self.rule.descent.learning_rate as f32;
                let target = self.targets.chunks_exact_mut(net.parameters()).nth(twin);
                let target = target.map(|w| Target { w, tau: self.rule.polyak as f32 });
                net.td(weights, target, Chain { rows, symbols, rewards, gamma, eta }, tape);
            };
            learn(&inputs.rows, &inputs.symbols, along, self.gamma);
            if !after.is_empty() {
                // Nothing comes after the end, so whatever stands there counts for nothing.
                let rows = inputs.rows[inputs.rows.len() - net.row_inputs()..].repeat(2);
                let symbols = inputs.symbols[inputs.symbols.len() - net.symbol_inputs()..].repeat(2);
                learn(&rows, &symbols, after, 0.0);
            }
        }
    }
}

/// The value of one neural network, or the smaller of two.
pub fn least<'w>(
    net: &Net,
    twins: impl Iterator<Item = &'w [f32]>,
    inputs: &Inputs,
    tape: &mut Tape<f32>,
    values: &mut Vec<f32>,
) {
    for (twin, weights) in twins.enumerate() {
        keep_least(values, net.forward(weights, inputs.batch(), tape), twin == 0);
    }
}

/// Keeps the smaller of what is there and other values; those of the first neural network as they are.
pub fn keep_least(values: &mut Vec<f32>, others: &[f32], is_first: bool) {
    if is_first {
        values.clear();
        values.extend_from_slice(others);
        return;
    }
    values.iter_mut().zip(others).for_each(|(v, &o)| *v = if o < *v { o } else { *v });
}

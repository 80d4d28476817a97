//! Actors and multipliers: proximal steps of one agent.

use super::multiplier::ascend;
use super::steps::{Parameters, Steps, look, select};
use super::surrogate::{Sample, Surrogate};
use crate::base::stream::Sequence;
use crate::neural::{Net, Tape, softmax};
use crate::policy::observation::{Inputs, ObservationEncoder};
use crate::world::Trajectory;

/// What all actors have in common.
#[derive(Debug, Clone, Copy)]
pub struct ActorSettings {
    pub surrogate: Surrogate,
    pub lambda_rate: f64,
    pub gamma: f64,
    pub steps: Steps,
}

/// One agent's actor and multipliers.
pub struct Actor<'a> {
    pub rule: &'a ActorSettings,
    pub sight: &'a ObservationEncoder,
    pub net: &'a Net,
    pub parameters: Parameters<'a>,
    /// λ_i.
    pub lambda: &'a mut [f64],
    /// Ĵ_c − b of each constraint.
    pub excess: &'a [f64],
    /// Its gradient at the first step.
    pub gradient: &'a mut [f64],
}

/// Buffers of one agent's steps.
#[derive(Default)]
pub struct Scratch {
    inputs: Inputs,
    part: Inputs,
    tape: Tape<f32>,
    taken: Vec<u8>,
    single: Vec<f32>,
    law: Vec<f64>,
    /// π_old of the actions taken.
    old: Vec<f64>,
    slopes: Vec<f32>,
    gradient: Vec<f32>,
    order: Vec<u32>,
}

impl Actor<'_> {
    /// All steps of an iteration: θ_i up the surrogate of Â_r − Σ_k λ_k·Â_ck, λ_k up after each. `advantages` is
    /// `[utility][sample]`, `weights` holds M, or nothing for 1; `steps` says how many of each trajectory count.
    pub fn improve(
        &mut self,
        agent: usize,
        (batch, steps): (&[Trajectory], &[usize]),
        advantages: &[f64],
        weights: &[f64],
        sequence: &mut Sequence,
        scratch: &mut Scratch,
    ) {
        look(self.sight, batch, steps, &mut scratch.inputs);
        scratch.taken.clear();
        for (trajectory, &steps) in batch.iter().zip(steps) {
            scratch.taken.extend_from_slice(&trajectory.actions(agent)[..steps]);
        }
        let samples = scratch.inputs.size;
        scratch.remember(self.net, self.parameters.weights);
        self.rule.steps.order(samples, sequence, &mut scratch.order);
        let Scratch { inputs, part, tape, taken, single, law, old, slopes, gradient, order } = scratch;
        let actions = self.net.outputs();
        law.resize(actions, 0.0);
        gradient.resize(self.net.parameters(), 0.0);
        let (net, rule) = (self.net, self.rule);
        let (of_reward, of_costs) = advantages.split_at(samples);
        let mut costs = vec![0.0; self.lambda.len()];
        rule.steps.each(samples, order, |number, members| {
            let seen = select(inputs, members, part);
            single.clear();
            single.extend_from_slice(net.forward(self.parameters.weights, seen.batch(), tape));
            softmax(single, actions);
            slopes.clear();
            costs.fill(0.0);
            let share = 1.0 / seen.size as f64;
            for (k, probabilities) in single.chunks_exact(actions).enumerate() {
                let sample = members.map_or(k, |members| members[k] as usize);
                let of_cost = |constraint: usize| of_costs[constraint * samples + sample];
                let mut advantage = of_reward[sample];
                for (k, lambda) in self.lambda.iter().enumerate() {
                    advantage -= lambda * of_cost(k);
                }
                let sample = Sample {
                    action: taken[sample],
                    probability: old[sample],
                    advantage,
                    weight: weights.get(sample).copied().unwrap_or(1.0),
                };
                law.iter_mut().zip(probabilities).for_each(|(p, &single)| *p = f64::from(single));
                let (_, ratio) = rule.surrogate.evaluate(sample, share, law);
                for (k, cost) in costs.iter_mut().enumerate() {
                    *cost += share * ratio * of_cost(k);
                }
                // Adam goes down, the surrogate is to go up.
                slopes.extend(law.iter().map(|slope| -slope as f32));
            }
            net.backward(self.parameters.weights, seen.batch(), tape, slopes, gradient);
            if number == 1 {
                self.gradient.iter_mut().zip(gradient.iter()).for_each(|(to, &from)| *to = -f64::from(from));
            }
            rule.steps.descend(number, &mut self.parameters, gradient);
            for ((lambda, excess), cost) in self.lambda.iter_mut().zip(self.excess).zip(&costs) {
                *lambda = ascend(*lambda, rule.lambda_rate, *excess, rule.gamma, *cost);
            }
        });
    }

    /// M ← M·π_new/π_old along the batch of the last [`Actor::improve`].
    pub fn pass_on(&self, weights: &mut [f64], scratch: &mut Scratch) {
        let Scratch { inputs, tape, taken, single, old, .. } = scratch;
        let actions = self.net.outputs();
        single.clear();
        single.extend_from_slice(self.net.forward(self.parameters.weights, inputs.batch(), tape));
        softmax(single, actions);
        let laws = single.chunks_exact(actions).zip(taken.iter()).zip(old.iter());
        for (weight, ((law, &action), old)) in weights.iter_mut().zip(laws) {
            *weight *= f64::from(law[usize::from(action)]) / old;
        }
    }
}

impl Scratch {
    fn remember(&mut self, net: &Net, weights: &[f32]) {
        let Scratch { inputs, tape, taken, single, old, .. } = self;
        let actions = net.outputs();
        single.clear();
        single.extend_from_slice(net.forward(weights, inputs.batch(), tape));
        softmax(single, actions);
        old.clear();
        // An action that was taken can have a probability that single precision rounds to 0.
        let probability =
            |law: &[f32], action: u8| f64::from(law[usize::from(action)]).max(f64::from(f32::MIN_POSITIVE));
        old.extend(
            single.chunks_exact(actions).zip(taken.iter()).map(|(law, &action)| probability(law, action)),
        );
    }
}

//! Actors and multipliers: proximal steps of one agent.

use super::steps::Steps;
use super::surrogate::{Sample, Surrogate};
use crate::base::stream::Sequence;
use crate::neural::{Inputs, NetworkMut, Training, softmax};
use crate::policy::observation::ObservationEncoder;
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
    pub encoder: &'a ObservationEncoder,
    pub network: NetworkMut<'a>,
    /// λ_i.
    pub lambda: &'a mut [f64],
    /// Ĵ_c − b of each constraint.
    pub excess: &'a [f64],
    /// Its gradient at the first step.
    pub gradient: &'a mut [f64],
}

/// Buffers of one agent's steps.
#[derive(Default)]
pub struct ActorScratch {
    inputs: Inputs,
    part: Inputs,
    training: Training,
    taken: Vec<u8>,
    /// Probabilities as `[sample][action]`, in single precision.
    laws: Vec<f32>,
    law: Vec<f64>,
    entropy_slopes: Vec<f64>,
    /// π_old of the actions taken.
    old: Vec<f64>,
    order: Vec<u32>,
}

impl Actor<'_> {
    /// All steps of an iteration: θ_i up the surrogate of Â_r − Σ_k λ_k·Â_ck, λ_k up after each. `advantages`
    /// is `[utility][sample]`, `weights` holds M, or nothing for 1; `steps` says how many of each trajectory
    /// count.
    pub fn improve(
        &mut self,
        agent: usize,
        (batch, steps): (&[Trajectory], &[usize]),
        advantages: &[f64],
        weights: &[f64],
        sequence: &mut Sequence,
        scratch: &mut ActorScratch,
    ) {
        self.encoder.encode(batch.iter().zip(steps.iter().copied()), &mut scratch.inputs);
        scratch.taken.clear();
        for (trajectory, &steps) in batch.iter().zip(steps) {
            scratch.taken.extend_from_slice(&trajectory.actions(agent)[..steps]);
        }
        let samples = scratch.inputs.size;
        scratch.remember(&self.network);
        self.rule.steps.order(samples, sequence, &mut scratch.order);
        let ActorScratch { inputs, part, training, taken, laws, law, entropy_slopes, old, order } = scratch;
        let actions = self.network.net.outputs();
        law.resize(actions, 0.0);
        let rule = self.rule;
        let (of_reward, of_costs) = advantages.split_at(samples);
        let mut costs = vec![0.0; self.lambda.len()];
        rule.steps.minibatches(samples).each(samples, order, |number, members| {
            let seen = inputs.select(members, part);
            costs.fill(0.0);
            let share = 1.0 / seen.size as f64;
            self.network.gradient(seen.batch(), training, |logits, slopes| {
                laws.clear();
                laws.extend_from_slice(logits);
                softmax(laws, actions);
                let steps = laws.chunks_exact(actions).zip(slopes.chunks_exact_mut(actions));
                for (k, (probabilities, slopes)) in steps.enumerate() {
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
                    let (_, ratio) = rule.surrogate.evaluate(sample, share, law, entropy_slopes);
                    for (k, cost) in costs.iter_mut().enumerate() {
                        *cost += share * ratio * of_cost(k);
                    }
                    // Adam goes down, the surrogate is to go up.
                    slopes.iter_mut().zip(law.iter()).for_each(|(to, slope)| *to = -slope as f32);
                }
            });
            if number == 1 {
                let gradient = self.gradient.iter_mut().zip(&training.gradient);
                gradient.for_each(|(to, &from)| *to = -f64::from(from));
            }
            rule.steps.descend(number, &mut self.network, training);
            for ((lambda, excess), cost) in self.lambda.iter_mut().zip(self.excess).zip(&costs) {
                *lambda = ascend(*lambda, rule.lambda_rate, *excess, rule.gamma, *cost);
            }
        });
    }

    /// M ← M·π_new/π_old along the batch of the last [`Actor::improve`].
    pub fn pass_on(&self, weights: &mut [f64], scratch: &mut ActorScratch) {
        scratch.write_laws(&self.network);
        let laws = scratch.laws.chunks_exact(self.network.net.outputs());
        let laws = laws.zip(&scratch.taken).zip(&scratch.old);
        for (weight, ((law, &action), old)) in weights.iter_mut().zip(laws) {
            *weight *= f64::from(law[usize::from(action)]) / old;
        }
    }
}

impl ActorScratch {
    /// Probabilities at all samples.
    fn write_laws(&mut self, network: &NetworkMut<'_>) {
        let logits = network.forward(self.inputs.batch(), &mut self.training.tape);
        self.laws.clear();
        self.laws.extend_from_slice(logits);
        softmax(&mut self.laws, network.net.outputs());
    }

    /// Makes the present probabilities of the actions taken π_old.
    fn remember(&mut self, network: &NetworkMut<'_>) {
        self.write_laws(network);
        // An action that was taken can have a probability that single precision rounds to 0.
        let probability =
            |law: &[f32], action: u8| f64::from(law[usize::from(action)]).max(f64::from(f32::MIN_POSITIVE));
        let laws = self.laws.chunks_exact(network.net.outputs()).zip(&self.taken);
        self.old.clear();
        self.old.extend(laws.map(|(law, &action)| probability(law, action)));
    }
}

/// λ ← max(0, λ + rate·((Ĵ_c − b)·(1 − γ) + mean[ρ·Â_c])). Plain ascent without a cap.
///
/// `excess` is Ĵ_c − b in the units of the constraint, `surrogate` the mean of ρ·Â_c over a minibatch: what
/// the step at hand adds to the cost. NaN stays NaN.
fn ascend(lambda: f64, rate: f64, excess: f64, gamma: f64, surrogate: f64) -> f64 {
    (lambda + rate * (excess * (1.0 - gamma) + surrogate)).clamp(0.0, f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::ascend;

    #[test]
    fn steps_by_hand() {
        assert_eq!(ascend(0.75, 0.5, 3.0, 0.75, 0.25), 0.75 + 0.5 * (0.75 + 0.25));
        assert_eq!(ascend(0.75, 0.5, -3.0, 0.75, 0.25), 0.5);
        assert_eq!(ascend(0.25, 1.0, -8.0, 0.5, 0.0), 0.0);
        assert!(ascend(f64::NAN, 1.0, 1.0, 0.5, 0.0).is_nan());
    }
}

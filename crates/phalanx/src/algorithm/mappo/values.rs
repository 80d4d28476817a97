//! Critics: one value network for the reward and one for each cost of an agent.

use super::normaliser::{Normaliser, preserve};
use super::rewards::Rewards;
use super::steps::Steps;
use super::value_loss::ValueLoss;
use super::{Behaviour, MappoSettings};
use crate::base::elementary::powi;
use crate::base::fields::{Field, Fields};
use crate::base::parallel::{agent_blocks, for_each_agent};
use crate::base::stream::{Place, Purpose, Stream};
use crate::learn::gae;
use crate::neural::{Bank, BankSettings, Inputs, NetworkMut, Training};
use crate::policy::observation::ObservationEncoder;
use crate::utility::problem::Problem;
use crate::world::Trajectory;
use crate::world::World;
use crate::{Ragged, Result};

/// Value networks of all agents.
pub struct Values {
    encoders: Vec<ObservationEncoder>,
    /// One neural network per agent and utility.
    bank: Bank,
    /// Row i is `[utility][number]`; one normaliser for all utilities where they share it.
    normalisers: Ragged<f64>,
    rule: Rule,
}

/// What all neural networks have in common.
struct Rule {
    loss: ValueLoss,
    gamma: f64,
    lambda: f64,
    epsilon: f64,
    /// Whether an agent's utilities share a normaliser.
    shared: bool,
}

/// What critics are given.
pub struct Experience<'a> {
    pub iteration: u32,
    pub batch: &'a [Trajectory],
    /// Steps of every trajectory that count.
    pub steps: &'a [usize],
    pub rewards: &'a Rewards,
    /// What every agent learns from, row i one per sample.
    pub received: &'a Ragged<f64>,
    pub stream: &'a Stream,
}

impl<'a> Experience<'a> {
    /// The trajectories, with their steps that count.
    fn trajectories(&self) -> impl Iterator<Item = (&'a Trajectory, usize)> {
        self.batch.iter().zip(self.steps.iter().copied())
    }
}

/// Size of the last layer's initial weights.
const OUTPUT_GAIN: f64 = 0.01;

impl Values {
    /// Networks of agents that see the `groups`, with orthogonal weights.
    pub fn new(
        world: &dyn World,
        problem: &Problem,
        groups: &Ragged<u32>,
        rule: &MappoSettings,
        stream: &Stream,
    ) -> Result<Self> {
        let n = world.graph().agents();
        let utilities = |i: usize| 1 + problem.agents[i].constraints.len();
        let settings = BankSettings {
            field: "mappo.hidden",
            bytes: 12,
            purpose: Purpose::CriticInit,
            stream,
            output_gain: OUTPUT_GAIN,
            moments: true,
        };
        let (widths, sizes) = (rule.widths(), |i: usize| [utilities(i), 1]);
        let (encoders, bank) =
            ObservationEncoder::with_networks(world, groups, false, &widths, sizes, &settings)?;
        let faithful = rule.behaviour == Behaviour::Faithful;
        let normalisers = |i: usize| Normaliser::LENGTH * if faithful { 1 } else { utilities(i) };
        Ok(Values {
            normalisers: Ragged::zeros((0..n).map(normalisers)),
            encoders,
            bank,
            rule: Rule {
                loss: ValueLoss { clip: *rule.value_clip, huber: *rule.huber, one_sided: faithful },
                gamma: problem.gamma,
                lambda: *rule.lambda_gae,
                epsilon: *rule.advantage_epsilon,
                shared: faithful,
            },
        })
    }

    /// Standardised advantages of every utility, row i of `out` as `[utility][sample]`, by the neural
    /// networks as they are; then the neural networks learn.
    pub fn learn(&mut self, experience: &Experience<'_>, steps: Steps, out: &mut Ragged<f64>) {
        let blocks = agent_blocks(self.bank.nets.len());
        let (encoders, rule) = (&self.encoders, &self.rule);
        let results = self.normalisers.split_rows_mut(&blocks).into_iter().zip(out.split_rows_mut(&blocks));
        let parts = self.bank.split_mut(&blocks).into_iter().zip(results);
        let place = Place { purpose: Purpose::CriticOrder, iteration: experience.iteration, trajectory: 0 };
        for_each_agent(&blocks, parts, |scratch: &mut ValueScratch, i, (bank, (normalisers, advantages))| {
            let mut sequence = experience.stream.sequence(place, i as u32);
            scratch.encode(&encoders[i], experience);
            steps.order(scratch.inputs.size, &mut sequence, &mut scratch.order);
            let rows = advantages.row_mut(i).chunks_exact_mut(scratch.inputs.size);
            for (utility, (mut network, advantages)) in bank.networks_mut(i).zip(rows).enumerate() {
                let number = if rule.shared { 0 } else { utility };
                let normaliser = &mut Normaliser::of_row(normalisers.row_mut(i))[number];
                scratch.write_rewards(i, utility, experience);
                scratch.write_advantages(rule, &network, normaliser.scale(), experience, advantages);
                scratch.write_targets(rule, &mut network, normaliser);
                scratch.descend(&rule.loss, steps, &mut network);
                standardise(advantages, rule.epsilon);
            }
        });
    }

    /// What it remembers.
    pub fn fields(&mut self) -> Fields<'_> {
        let mut fields = self.bank.fields(["critic", "critic.first", "critic.second"]);
        fields.push(("critic.normalisers", Field::Rows(&mut self.normalisers)));
        fields
    }
}

/// Buffers of one agent's learning.
#[derive(Default)]
struct ValueScratch {
    /// What counts, and the states at which trajectories were cut.
    inputs: Inputs,
    tails: Inputs,
    part: Inputs,
    training: Training,
    column: Vec<f64>,
    rewards: Vec<f64>,
    values: Vec<f64>,
    tail_values: Vec<f64>,
    returns: Vec<f64>,
    old: Vec<f32>,
    targets: Vec<f32>,
    part_old: Vec<f32>,
    part_targets: Vec<f32>,
    order: Vec<u32>,
}

impl ValueScratch {
    /// What the agent sees along the batch, and where it was cut.
    fn encode(&mut self, encoder: &ObservationEncoder, experience: &Experience<'_>) {
        encoder.encode(experience.trajectories(), &mut self.inputs);
        self.tails.clear();
        for (trajectory, steps) in experience.trajectories().filter(continues) {
            encoder.encode_step(trajectory, steps, |_| 0, &mut self.tails);
        }
    }

    /// What the utility pays.
    fn write_rewards(&mut self, agent: usize, utility: usize, experience: &Experience<'_>) {
        if utility == 0 {
            self.rewards.clear();
            self.rewards.extend_from_slice(experience.received.row(agent));
            return;
        }
        let Experience { batch, steps, rewards, .. } = experience;
        rewards.reward_along(agent, utility, batch, steps, &mut self.column, &mut self.rewards);
    }

    /// Advantages, and the λ-returns that values are to become, given the mean and deviation that the
    /// neural network's outputs are scaled by.
    fn write_advantages(
        &mut self,
        rule: &Rule,
        network: &NetworkMut<'_>,
        (mean, deviation): (f64, f64),
        experience: &Experience<'_>,
        advantages: &mut [f64],
    ) {
        let ValueScratch { inputs, tails, training, rewards, values, tail_values, returns, old, .. } = self;
        let scaled = |x: &f32| mean + deviation * f64::from(*x);
        tail_values.clear();
        if tails.size > 0 {
            tail_values.extend(network.forward(tails.batch(), &mut training.tape).iter().map(scaled));
        }
        old.clear();
        old.extend_from_slice(network.forward(inputs.batch(), &mut training.tape));
        values.clear();
        values.extend(old.iter().map(scaled));
        let (mut first, mut tails) = (0, tail_values.iter());
        for (trajectory, steps) in experience.trajectories() {
            let range = first..first + steps;
            let tail = if continues(&(trajectory, steps)) { tails.next() } else { None };
            let bootstrap = tail.copied().unwrap_or(0.0);
            let (rewards, values) = (&rewards[range.clone()], &values[range.clone()]);
            gae::advantages(rewards, values, bootstrap, rule.gamma, rule.lambda, &mut advantages[range]);
            first += steps;
        }
        returns.clear();
        returns.extend(advantages.iter().zip(values.iter()).map(|(a, v)| a + v));
    }

    /// What the neural network's outputs are to become, once the returns are taken into its scale.
    fn write_targets(&mut self, rule: &Rule, network: &mut NetworkMut<'_>, normaliser: &mut Normaliser) {
        let before = normaliser.scale();
        normaliser.update(&self.returns);
        let (mean, deviation) = normaliser.scale();
        let normalise = |values: &[f64], to: &mut Vec<f32>| {
            to.clear();
            to.extend(values.iter().map(|v| ((v - mean) / deviation) as f32));
        };
        if !rule.shared {
            // The last layer changes with the scale, so that nothing jumps.
            let layer = network.net.output_layer();
            let (weights, biases) = network.weights[layer.offset..].split_at_mut(layer.weights().len());
            preserve(before, (mean, deviation), weights, biases);
            normalise(&self.values, &mut self.old);
        }
        normalise(&self.returns, &mut self.targets);
    }

    /// All steps of an iteration towards the targets.
    fn descend(&mut self, loss: &ValueLoss, steps: Steps, network: &mut NetworkMut<'_>) {
        let ValueScratch { inputs, part, training, old, targets, part_old, part_targets, order, .. } = self;
        let samples = inputs.size;
        steps.minibatches(samples).each(samples, order, |number, members| {
            let seen = inputs.select(members, part);
            let (old, targets) = match members {
                None => (&*old, &*targets),
                Some(members) => {
                    let pick = |from: &[f32], to: &mut Vec<f32>| {
                        to.clear();
                        to.extend(members.iter().map(|&sample| from[sample as usize]));
                    };
                    pick(old, part_old);
                    pick(targets, part_targets);
                    (&*part_old, &*part_targets)
                }
            };
            network.gradient(seen.batch(), training, |values, slopes| {
                loss.evaluate(values, old, targets, slopes);
            });
            steps.descend(number, network, training);
        });
    }
}

/// Whether a trajectory goes on behind the steps that count.
fn continues(&(trajectory, steps): &(&Trajectory, usize)) -> bool {
    steps < trajectory.steps()
}

/// Shifts and scales numbers to mean 0 and standard deviation 1 (a little less, by `epsilon`).
pub fn standardise(numbers: &mut [f64], epsilon: f64) {
    let count = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / count;
    let variance = numbers.iter().map(|x| powi(x - mean, 2)).sum::<f64>() / count;
    let scale = 1.0 / (variance.sqrt() + epsilon);
    numbers.iter_mut().for_each(|x| *x = (*x - mean) * scale);
}

#[cfg(test)]
mod tests {
    use super::standardise;

    #[test]
    fn standardised_numbers_by_hand() {
        let mut numbers = [1.0, 3.0, 5.0, 7.0];
        standardise(&mut numbers, 0.0);
        let unit = 5.0f64.sqrt();
        assert_eq!(numbers.map(|x| (x * unit * 1e12).round()), [-3e12, -1e12, 1e12, 3e12]);
        // Numbers that do not differ become 0.
        let mut equal = [2.0; 3];
        standardise(&mut equal, 1e-5);
        assert_eq!(equal, [0.0; 3]);
    }
}

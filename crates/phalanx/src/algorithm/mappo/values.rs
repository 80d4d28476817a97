//! Critics: one value network for the reward and one for each cost of an agent.

use super::normaliser::{Normaliser, preserve};
use super::rewards::Rewards;
use super::standardise::standardise;
use super::steps::Steps;
use super::value_loss::ValueLoss;
use super::{Behaviour, MappoSettings};
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
    /// One network per agent and utility.
    bank: Bank,
    /// Row i is `[utility][number]`; one normaliser for all utilities where they share it.
    normalisers: Ragged<f64>,
    shared: bool,
    rule: Rule,
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
            shared: faithful,
            rule: Rule {
                loss: ValueLoss { clip: *rule.value_clip, huber: *rule.huber, one_sided: faithful },
                gamma: problem.gamma,
                lambda: *rule.lambda_gae,
                epsilon: *rule.advantage_epsilon,
            },
        })
    }

    /// Standardised advantages of every utility, row i of `out` as `[utility][sample]`, by the networks as they are; then the
    /// networks learn.
    pub fn learn(&mut self, experience: &Experience<'_>, steps: Steps, out: &mut Ragged<f64>) {
        let blocks = agent_blocks(self.bank.nets.len());
        let (encoders, rule, shared) = (&self.encoders, &self.rule, self.shared);
        let results = self.normalisers.split_rows_mut(&blocks).into_iter().zip(out.split_rows_mut(&blocks));
        let parts = self.bank.split_mut(&blocks).into_iter().zip(results);
        let place = Place { purpose: Purpose::CriticOrder, iteration: experience.iteration, trajectory: 0 };
        for_each_agent(&blocks, parts, |scratch: &mut ValueScratch, i, (bank, (normalisers, advantages))| {
            let mut sequence = experience.stream.sequence(place, i as u32);
            scratch.encode(&encoders[i], experience);
            steps.order(scratch.inputs.size, &mut sequence, &mut scratch.order);
            let rows = advantages.row_mut(i).chunks_exact_mut(scratch.inputs.size);
            for (utility, (network, advantages)) in bank.networks_mut(i).zip(rows).enumerate() {
                let mut learner = ValueLearner { rule, steps, preserves: !shared, network };
                let number = if shared { 0 } else { utility };
                let normaliser = &mut Normaliser::of_row(normalisers.row_mut(i))[number];
                scratch.write_rewards(i, utility, experience);
                learner.learn(normaliser, experience.steps, advantages, scratch);
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

/// What all networks have in common.
struct Rule {
    loss: ValueLoss,
    gamma: f64,
    lambda: f64,
    epsilon: f64,
}

/// Buffers of one agent's learning.
#[derive(Default)]
struct ValueScratch {
    /// What counts, and the states at which trajectories were cut.
    inputs: Inputs,
    tails: Inputs,
    part: Inputs,
    training: Training,
    /// Number of every trajectory's state among the `tails`.
    cut: Vec<Option<usize>>,
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
        let Experience { batch, steps, .. } = experience;
        encoder.encode(batch.iter().zip(steps.iter().copied()), &mut self.inputs);
        self.tails.clear();
        self.cut.clear();
        for (trajectory, &steps) in batch.iter().zip(*steps) {
            let continues = steps < trajectory.steps();
            self.cut.push(continues.then_some(self.tails.size));
            if continues {
                encoder.encode_step(trajectory, steps, |_| 0, &mut self.tails);
            }
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
}

/// One network.
struct ValueLearner<'a> {
    rule: &'a Rule,
    steps: Steps,
    /// Whether a new scale changes the last layer too, so that nothing jumps.
    preserves: bool,
    network: NetworkMut<'a>,
}

impl ValueLearner<'_> {
    fn learn(
        &mut self,
        normaliser: &mut Normaliser,
        steps: &[usize],
        advantage: &mut [f64],
        scratch: &mut ValueScratch,
    ) {
        let scale = normaliser.scale();
        self.advantages(scale, steps, advantage, scratch);
        normaliser.update(&scratch.returns);
        let new = normaliser.scale();
        if self.preserves {
            self.rescale(scale, new);
            scratch.old.clear();
            scratch.old.extend(scratch.values.iter().map(|v| ((v - new.0) / new.1) as f32));
        }
        scratch.targets.clear();
        scratch.targets.extend(scratch.returns.iter().map(|v| ((v - new.0) / new.1) as f32));
        self.descend(scratch);
    }

    /// Advantages, and the λ-returns that values are to become.
    fn advantages(
        &self,
        scale: (f64, f64),
        steps: &[usize],
        advantage: &mut [f64],
        scratch: &mut ValueScratch,
    ) {
        let ValueScratch { inputs, tails, training, cut, rewards, values, .. } = scratch;
        let ValueScratch { tail_values, returns, old, .. } = scratch;
        let scaled = |x: &f32| scale.0 + scale.1 * f64::from(*x);
        tail_values.clear();
        if tails.size > 0 {
            tail_values.extend(self.network.forward(tails.batch(), &mut training.tape).iter().map(scaled));
        }
        old.clear();
        old.extend_from_slice(self.network.forward(inputs.batch(), &mut training.tape));
        values.clear();
        values.extend(old.iter().map(scaled));
        let mut first = 0;
        for (&steps, cut) in steps.iter().zip(cut) {
            let range = first..first + steps;
            let bootstrap = cut.map_or(0.0, |place| tail_values[place]);
            let (rewards, values) = (&rewards[range.clone()], &values[range.clone()]);
            let (gamma, lambda) = (self.rule.gamma, self.rule.lambda);
            gae::advantages(rewards, values, bootstrap, gamma, lambda, &mut advantage[range]);
            first += steps;
        }
        returns.clear();
        returns.extend(advantage.iter().zip(values.iter()).map(|(a, v)| a + v));
    }

    fn rescale(&mut self, old: (f64, f64), new: (f64, f64)) {
        let tensors = self.network.net.tensors();
        let range = |name: &str| tensors.iter().find(|tensor| tensor.name == name).map(|t| t.range.clone());
        if let (Some(weights), Some(biases)) = (range("output.weight"), range("output.bias")) {
            // Biases stand behind the weights.
            let (before, after) = self.network.weights.split_at_mut(biases.start);
            preserve(old, new, &mut before[weights], &mut after[..biases.len()]);
        }
    }

    fn descend(&mut self, scratch: &mut ValueScratch) {
        let ValueScratch { inputs, part, training, old, targets, order, .. } = scratch;
        let ValueScratch { part_old, part_targets, .. } = scratch;
        let (loss, steps, samples) = (&self.rule.loss, self.steps, inputs.size);
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
            self.network.gradient(seen.batch(), training, |values, slopes| {
                loss.evaluate(values, old, targets, slopes);
            });
            steps.descend(number, &mut self.network, training);
        });
    }
}

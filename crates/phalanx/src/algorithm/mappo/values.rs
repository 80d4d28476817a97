//! Critics: one value network for the reward and one for each cost of an agent.

use rayon::prelude::*;

use super::gae::{advantages, standardise};
use super::normaliser::{Normaliser, preserve};
use super::rewards::Rewards;
use super::steps::{Parameters, Steps, look, select};
use super::value_loss::ValueLoss;
use super::{Behaviour, MappoRule};
use crate::base::fields::{Field, Fields};
use crate::base::memory::check_memory;
use crate::base::parallel::agent_blocks;
use crate::base::stream::{Place, Purpose, Stream};
use crate::neural::{Net, Tape};
use crate::policy::observation::{Inputs, ObservationEncoder, Widths};
use crate::utility::problem::Problem;
use crate::world::Trajectory;
use crate::world::World;
use crate::{Ragged, Result};

/// Value networks of all agents.
pub struct Values {
    sights: Vec<ObservationEncoder>,
    nets: Vec<Net>,
    /// Row i is `[utility][parameter]`.
    weights: Ragged<f32>,
    first: Ragged<f32>,
    second: Ragged<f32>,
    /// Row i is `[utility][number]`; one normaliser for all utilities where they share it.
    normalisers: Ragged<f64>,
    loss: ValueLoss,
    shared: bool,
    gamma: f64,
    lambda: f64,
    epsilon: f64,
}

/// What critics are given.
pub struct Experience<'a> {
    pub iteration: u32,
    pub batch: &'a [Trajectory],
    /// Steps of every trajectory that count.
    pub steps: &'a [usize],
    pub rewards: &'a Rewards,
    /// What every agent learns from, row i one a sample.
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
        rule: &MappoRule,
        stream: &Stream,
    ) -> Result<Self> {
        let n = world.graph().agents();
        let utilities = |i: usize| 1 + problem.agents[i].constraints.len();
        let sights: Vec<ObservationEncoder> =
            (0..n).map(|i| ObservationEncoder::new(world, i, groups.row(i), false)).collect();
        let widths =
            Widths { embedding: rule.embedding, row_hidden: rule.row_hidden, hidden: rule.hidden.clone() };
        let nets = sights.iter().map(|sight| Net::new(sight.architecture(&widths, 1), "mappo.hidden"));
        let nets: Vec<Net> = nets.collect::<Result<_>>()?;
        let parameters: u128 = (0..n).map(|i| (utilities(i) * nets[i].parameters()) as u128).sum();
        check_memory(12 * parameters, "mappo.hidden", &format!("networks of {parameters} parameters"))?;
        let place = Place { purpose: Purpose::CriticInit, iteration: 0, trajectory: 0 };
        let weights = Ragged::from_rows((0..n).map(|i| {
            let mut sequence = stream.sequence(place, i as u32);
            (0..utilities(i))
                .flat_map(|_| nets[i].initialise::<f32>(OUTPUT_GAIN, &mut sequence))
                .collect::<Vec<_>>()
        }));
        let faithful = rule.behaviour == Behaviour::Faithful;
        let normalisers = |i: usize| Normaliser::LENGTH * if faithful { 1 } else { utilities(i) };
        Ok(Values {
            first: Ragged::zeros_like(&weights),
            second: Ragged::zeros_like(&weights),
            weights,
            normalisers: Ragged::zeros((0..n).map(normalisers)),
            sights,
            nets,
            loss: ValueLoss { clip: rule.value_clip, huber: rule.huber, one_sided: faithful },
            shared: faithful,
            gamma: problem.gamma,
            lambda: rule.lambda_gae,
            epsilon: rule.advantage_epsilon,
        })
    }

    /// Standardised advantages of every utility, row i of `out` as `[utility][sample]`, by the networks as they are; then the
    /// networks learn.
    pub fn learn(&mut self, experience: &Experience<'_>, steps: Steps, out: &mut Ragged<f64>) {
        let blocks = agent_blocks(self.nets.len());
        let weights = self.weights.split_rows_mut(&blocks).into_iter();
        let moments = self.first.split_rows_mut(&blocks).into_iter().zip(self.second.split_rows_mut(&blocks));
        let results = self.normalisers.split_rows_mut(&blocks).into_iter().zip(out.split_rows_mut(&blocks));
        let parts: Vec<_> = blocks.iter().zip(weights.zip(moments).zip(results)).collect();
        let (nets, sights) = (&self.nets, &self.sights);
        let rule =
            Rule { loss: self.loss, gamma: self.gamma, lambda: self.lambda, epsilon: self.epsilon, steps };
        let shared = self.shared;
        parts.into_par_iter().for_each_init(Scratch::default, |scratch, (block, ((w, moments), results))| {
            let (mut weights, (mut first, mut second)) = (w, moments);
            let (mut normalisers, mut advantages) = results;
            for i in block.clone() {
                let place =
                    Place { purpose: Purpose::CriticOrder, iteration: experience.iteration, trajectory: 0 };
                let mut sequence = experience.stream.sequence(place, i as u32);
                scratch.look(&sights[i], experience);
                steps.order(scratch.inputs.size, &mut sequence, &mut scratch.order);
                let parameters = nets[i].parameters();
                let utilities = weights.row_mut(i).len() / parameters;
                let rows = advantages.row_mut(i).chunks_exact_mut(scratch.inputs.size);
                for (utility, advantages) in rows.enumerate() {
                    let range = utility * parameters..(utility + 1) * parameters;
                    let mut learner = Learner {
                        rule: &rule,
                        net: &nets[i],
                        preserves: !shared,
                        parameters: Parameters {
                            weights: &mut weights.row_mut(i)[range.clone()],
                            first: &mut first.row_mut(i)[range.clone()],
                            second: &mut second.row_mut(i)[range],
                        },
                    };
                    let number = if shared { 0 } else { utility };
                    let memory = &mut normalisers.row_mut(i)[number * Normaliser::LENGTH..];
                    scratch.earn(i, utility, utilities, experience);
                    learner.learn(memory, experience.steps, advantages, scratch);
                    standardise(advantages, rule.epsilon);
                }
            }
        });
    }

    /// What it remembers.
    pub fn fields(&mut self) -> Fields<'_> {
        vec![
            ("critic", Field::SingleRows(&mut self.weights)),
            ("critic.first", Field::SingleRows(&mut self.first)),
            ("critic.second", Field::SingleRows(&mut self.second)),
            ("critic.normalisers", Field::Rows(&mut self.normalisers)),
        ]
    }
}

/// What all networks have in common.
struct Rule {
    loss: ValueLoss,
    gamma: f64,
    lambda: f64,
    epsilon: f64,
    steps: Steps,
}

/// Buffers of one agent's learning.
#[derive(Default)]
struct Scratch {
    /// What counts, and the states at which trajectories were cut.
    inputs: Inputs,
    tails: Inputs,
    part: Inputs,
    tape: Tape<f32>,
    /// Number of every trajectory's state among the `tails`.
    cut: Vec<Option<usize>>,
    column: Vec<f64>,
    rewards: Vec<f64>,
    values: Vec<f64>,
    behind: Vec<f64>,
    wanted: Vec<f64>,
    old: Vec<f32>,
    targets: Vec<f32>,
    part_old: Vec<f32>,
    part_targets: Vec<f32>,
    slopes: Vec<f32>,
    gradient: Vec<f32>,
    order: Vec<u32>,
}

impl Scratch {
    fn look(&mut self, sight: &ObservationEncoder, experience: &Experience<'_>) {
        look(sight, experience.batch, experience.steps, &mut self.inputs);
        self.tails.clear();
        self.cut.clear();
        for (trajectory, &steps) in experience.batch.iter().zip(experience.steps) {
            let goes_on = steps < trajectory.steps();
            self.cut.push(goes_on.then_some(self.tails.size));
            if goes_on {
                sight.push(trajectory, steps, |_| 0, &mut self.tails);
            }
        }
    }

    /// What the utility pays.
    fn earn(&mut self, agent: usize, utility: usize, utilities: usize, experience: &Experience<'_>) {
        if utility == 0 {
            self.rewards.clear();
            self.rewards.extend_from_slice(experience.received.row(agent));
            return;
        }
        let Experience { batch, steps, rewards, .. } = experience;
        rewards.along(agent, (utility, utilities), batch, steps, &mut self.column, &mut self.rewards);
    }
}

/// One network.
struct Learner<'a> {
    rule: &'a Rule,
    net: &'a Net,
    /// Whether a new scale changes the last layer too, so that nothing jumps.
    preserves: bool,
    parameters: Parameters<'a>,
}

impl Learner<'_> {
    fn learn(&mut self, memory: &mut [f64], steps: &[usize], advantage: &mut [f64], scratch: &mut Scratch) {
        let mut normaliser = Normaliser::read(memory);
        let scale = normaliser.scale();
        self.look(scale, steps, advantage, scratch);
        normaliser.update(&scratch.wanted);
        normaliser.write(memory);
        let new = normaliser.scale();
        if self.preserves {
            self.rescale(scale, new);
            scratch.old.clear();
            scratch.old.extend(scratch.values.iter().map(|v| ((v - new.0) / new.1) as f32));
        }
        scratch.targets.clear();
        scratch.targets.extend(scratch.wanted.iter().map(|v| ((v - new.0) / new.1) as f32));
        self.descend(scratch);
    }

    /// Advantages, and the λ-returns that values are to become.
    fn look(&self, scale: (f64, f64), steps: &[usize], advantage: &mut [f64], scratch: &mut Scratch) {
        let Scratch { inputs, tails, tape, cut, rewards, values, behind, wanted, old, .. } = scratch;
        let (net, weights) = (self.net, &*self.parameters.weights);
        let scaled = |x: &f32| scale.0 + scale.1 * f64::from(*x);
        behind.clear();
        if tails.size > 0 {
            behind.extend(net.forward(weights, tails.batch(), tape).iter().map(scaled));
        }
        old.clear();
        old.extend_from_slice(net.forward(weights, inputs.batch(), tape));
        values.clear();
        values.extend(old.iter().map(scaled));
        let mut first = 0;
        for (&steps, cut) in steps.iter().zip(cut) {
            let range = first..first + steps;
            let after = cut.map_or(0.0, |place| behind[place]);
            let (rewards, values) = (&rewards[range.clone()], &values[range.clone()]);
            advantages(rewards, values, after, self.rule.gamma, self.rule.lambda, &mut advantage[range]);
            first += steps;
        }
        wanted.clear();
        wanted.extend(advantage.iter().zip(values.iter()).map(|(a, v)| a + v));
    }

    fn rescale(&mut self, old: (f64, f64), new: (f64, f64)) {
        let tensors = self.net.tensors();
        let range = |name: &str| tensors.iter().find(|tensor| tensor.name == name).map(|t| t.range.clone());
        if let (Some(weights), Some(biases)) = (range("output.weight"), range("output.bias")) {
            // Biases stand behind the weights.
            let (before, after) = self.parameters.weights.split_at_mut(biases.start);
            preserve(old, new, &mut before[weights], &mut after[..biases.len()]);
        }
    }

    fn descend(&mut self, scratch: &mut Scratch) {
        let Scratch { inputs, part, tape, old, targets, slopes, gradient, order, .. } = scratch;
        let Scratch { part_old, part_targets, .. } = scratch;
        gradient.resize(self.net.parameters(), 0.0);
        let (net, rule) = (self.net, self.rule);
        rule.steps.each(inputs.size, order, |number, members| {
            let seen = select(inputs, members, part);
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
            let values = net.forward(self.parameters.weights, seen.batch(), tape);
            slopes.resize(values.len(), 0.0);
            rule.loss.evaluate(values, old, targets, slopes);
            net.backward(self.parameters.weights, seen.batch(), tape, slopes, gradient);
            rule.steps.descend(number, &mut self.parameters, gradient);
        });
    }
}

//! One neural network of values for all agents of a kind.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::along::{Along, Columns, advance_squares, scale};
use super::batch::BatchAdvantages;
use super::{OUTPUT_GAIN, ReturnsSettings};
use crate::base::error::ensure;
use crate::base::exact_sum::ExactSums;
use crate::base::fields::{Field, Fields};
use crate::base::key;
use crate::base::limits::check_memory;
use crate::base::ragged::RowsMut;
use crate::base::stream::{Place, Purpose, Sequence, Stream};
use crate::distributed::Halo;
use crate::learn::critic::sharing::{SharedSums, sharing_error};
use crate::learn::critic::{
    Critic, CriticContext, CriticInput, HIDDEN, QValues, SampleRequest, ValueReceiver,
};
use crate::learn::shadow::Signals;
use crate::neural::{Bank, BankSettings, Batch, OptimizerKind, Training};
use crate::neural::{NetworkMut, shuffle};
use crate::policy::observation::Widths;
use crate::policy::{KINDS_KEY, PlaceEncoder, Reads};
use crate::world::Trajectory;
use crate::{Error, Ragged, Result};

/// [`Returns`](super::Returns) whose neural networks agents of a kind share. A neural network reads of an
/// agent's κ_q-hop neighbourhood what the neural network of a shared policy would, and has one output per
/// utility.
///
/// A gradient step takes a minibatch of every agent and follows the mean of their gradients. Gradients are
/// summed up exactly, so that neither threads nor processes change a bit. Values are learnt in units of the
/// running size of the returns of the whole kind.
pub struct SharedReturns {
    encoders: Vec<PlaceEncoder>,
    /// One neural network per kind.
    bank: Bank,
    /// Agents of each kind in the whole graph.
    members: Vec<f64>,
    /// Agents that learn here.
    blocks: Vec<Range<usize>>,
    learners: Vec<Learner>,
    halo: Arc<Halo>,
    rule: ReturnsSettings,
    stream: Stream,
    /// Gradient steps so far.
    steps: u64,
    /// Running mean of squared returns, row k one per utility of kind k.
    squares: Ragged<f64>,
    /// Utilities of every agent, ghosts included.
    utilities: Vec<usize>,
    advantages: BatchAdvantages,
}

/// One agent's part in learning.
struct Learner {
    agent: usize,
    /// Its number in the whole graph.
    id: u32,
    kind: usize,
    /// λ-returns, `[sample][utility]`.
    targets: Vec<f32>,
    /// The order of its samples in this pass, and where that of the next comes from.
    order: Vec<u32>,
    sequence: Sequence,
}

/// What one neural network looks like: the numbers that it reads and gives.
type Sizes = [usize; 2];

impl SharedReturns {
    /// Networks with orthogonal weights for the kinds of the context's policy; the last layer starts small.
    /// All processes make theirs at the same time.
    pub fn new(context: CriticContext<'_>, widths: &Widths, rule: ReturnsSettings) -> Result<Self> {
        let CriticContext { world, problem, policy, kappa_q, batch, horizon, halo, stream } = context;
        let graph = world.graph();
        let kinds = policy.theta().rows();
        // What agents act on they judge by.
        let reads = if policy.rows_read(0).is_some() { Reads::View } else { Reads::States };
        let utilities: Vec<usize> = problem.agents.iter().map(|agent| 1 + agent.constraints.len()).collect();
        // Every process must get to the sums over all of them, or none.
        let made = PlaceEncoder::for_agents(world, kappa_q, Some(reads)).and_then(|encoders| {
            let numbers: u128 = graph.owned_agents().map(|j| 1 + utilities[j] as u128).sum();
            let steps = batch as u128 * (horizon as u128 + 1);
            let what = format!("orders and targets of {steps} steps");
            check_memory(4 * numbers * steps, key::BATCH, &what)?;
            let members = graph.owned_agents().map(|j| {
                let sizes = [encoders[j].width(), utilities[j]];
                (policy.row_of(j), graph.global_id(j), sizes)
            });
            Ok((sizes_of_kinds(kinds, members)?, encoders))
        });
        let (own_sizes, encoders) = halo.all_ok(made)?;
        let mut sizes: Vec<u64> = own_sizes.iter().flatten().map(|&size| size as u64).collect();
        halo.fold(&mut sizes, u64::max)?;
        let sizes: Vec<Sizes> =
            sizes.chunks_exact(2).map(|pair| [pair[0] as usize, pair[1] as usize]).collect();
        let is_alike = own_sizes.iter().zip(&sizes).all(|(own, all)| *own == [0, 0] || own == all);
        halo.all_ok(ensure(is_alike, || {
            unlike("some agents", "read other numbers or have other constraints")
        }))?;
        let mut members = vec![0; kinds];
        graph.owned_agents().for_each(|j| members[policy.row_of(j)] += 1);
        halo.fold(&mut members, |a, b| a + b)?;

        let networks = (0..).zip(&sizes);
        let networks =
            networks.map(|(kind, &[width, outputs])| PlaceEncoder::network(kind, width, widths, outputs));
        let settings = BankSettings {
            field: HIDDEN,
            // Single precision, two moments, and exact sums here and elsewhere.
            bytes: 64,
            purpose: Purpose::CriticInit,
            stream,
            output_gain: OUTPUT_GAIN,
            moments: rule.descent.optimizer == OptimizerKind::Adam,
        };
        let bank = Bank::new(networks, &settings)?;
        let learner = |agent: usize| {
            let (id, kind) = (graph.global_id(agent), policy.row_of(agent));
            let sequence = stream.sequence(order_place(0), id);
            Learner { agent, id, kind, targets: Vec::new(), order: Vec::new(), sequence }
        };
        Ok(SharedReturns {
            encoders,
            bank,
            members: members.into_iter().map(|count| count as f64).collect(),
            blocks: graph.work_blocks(),
            learners: graph.owned_agents().map(learner).collect(),
            halo: halo.clone(),
            rule,
            stream: *stream,
            steps: 0,
            squares: Ragged::zeros(sizes.iter().map(|sizes| sizes[1])),
            utilities,
            advantages: BatchAdvantages::default(),
        })
    }

    /// Writes advantages and targets of all agents, and brings the sizes of returns up to date.
    fn judge(&mut self, evidence: &CriticInput<'_>) -> Result<Vec<u32>> {
        let (batch, signals, lambda) = (evidence.batch, evidence.signals, self.rule.lambda);
        let samples = self.advantages.prepare(batch, self.utilities.iter().copied());
        let all = samples.len().max(1);
        let SharedReturns { encoders, bank, squares, stream, .. } = self;
        let place = order_place(evidence.iteration);
        let nothing = || (Scratch::default(), ExactSums::zeros(squares.data().len()));
        let judge_block = |mut found: (Scratch, ExactSums), (learners, mut rows): BlockPart<'_>| {
            let (scratch, sums) = (&mut found.0, &mut found.1);
            for learner in learners {
                let Learner { agent: j, id, kind, ref mut targets, ref mut sequence, .. } = *learner;
                *sequence = stream.sequence(place, id);
                let steps =
                    batch.iter().flat_map(|trajectory| (0..trajectory.steps()).map(move |k| (trajectory, k)));
                let size = scratch.encode(&encoders[j], steps);
                let Scratch { rows: seen, training, columns, .. } = &mut *scratch;
                let values = bank.forward(kind, Batch { size, rows: seen, symbols: &[] }, &mut training.tape);
                let utilities = squares.row(kind).len();
                targets.clear();
                targets.resize(size * utilities, 0.0);
                let along = Along { j, lambda, signals, batch, values, utilities };
                for (utility, advantages) in rows.row_mut(j).chunks_exact_mut(all).enumerate() {
                    let size = scale(squares.row(kind)[utility]);
                    let found = along.advantages(utility, size, advantages, targets, columns);
                    sums.add_at(squares.offsets()[kind] + utility, &[found / all as f64]);
                }
            }
            found
        };
        let rows = self.advantages.rows.all.split_rows_mut(&self.blocks);
        let parts: Vec<BlockPart<'_>> =
            split_blocks(&mut self.learners, &self.blocks).into_iter().zip(rows).collect();
        let found: Vec<ExactSums> =
            parts.into_par_iter().fold(nothing, judge_block).map(|(_, sums)| sums).collect();
        let found = self.total(found, self.squares.data().len())?;
        let begun = self.steps > 0;
        for (kind, &members) in self.members.iter().enumerate() {
            let first = self.squares.offsets()[kind];
            for (squares, &found) in self.squares.row_mut(kind).iter_mut().zip(&found[first..]) {
                *squares = advance_squares(*squares, begun, found, members);
            }
        }
        self.finite(self.squares.data(), self.squares.offsets(), "Q", evidence.iteration)?;
        Ok(samples)
    }

    /// The mean gradient of every kind at minibatch `number` of a pass, one after the other.
    fn gradient(&self, samples: &[u32], moments: &[(&Trajectory, usize)], number: usize) -> Result<Vec<f64>> {
        let SharedReturns { encoders, bank, squares, rule, .. } = self;
        let parameters = bank.weights.data().len();
        let nothing = || (Scratch::default(), ExactSums::zeros(parameters));
        let add = |(mut scratch, mut sums): (Scratch, ExactSums), learner: &Learner| {
            let Some(members) = learner.order.chunks(rule.minibatch).nth(number) else {
                return (scratch, sums);
            };
            let squares = squares.row(learner.kind);
            scratch.wanted.clear();
            let members = members.iter().map(|&place| samples[place as usize] as usize);
            for sample in members.clone() {
                let targets = &learner.targets[sample * squares.len()..][..squares.len()];
                let targets =
                    targets.iter().zip(squares).map(|(target, &squares)| target / scale(squares) as f32);
                scratch.wanted.extend(targets);
            }
            let size = scratch.encode(&encoders[learner.agent], members.map(|sample| moments[sample]));
            let Scratch { rows, training, wanted, slopes, .. } = &mut scratch;
            let (net, weights) = (&bank.nets[learner.kind], bank.weights.row(learner.kind));
            let seen = Batch { size, rows, symbols: &[] };
            net.gradient(weights, seen, training, |values, slopes| {
                rule.loss.evaluate(values, wanted, slopes);
            });
            slopes.clear();
            slopes.extend(training.gradient.iter().map(|&slope| f64::from(slope)));
            sums.add_at(bank.weights.offsets()[learner.kind], slopes);
            (scratch, sums)
        };
        let sums = self.learners.par_iter().fold(nothing, add).map(|(_, sums)| sums).collect();
        let mut gradient = self.total(sums, parameters)?;
        for (kind, &members) in self.members.iter().enumerate() {
            let range = bank.weights.offsets()[kind]..bank.weights.offsets()[kind + 1];
            gradient[range].iter_mut().for_each(|slope| *slope /= members);
        }
        Ok(gradient)
    }

    /// One step of every kind's neural network down its gradient.
    fn descend(&mut self, gradient: &[f64], training: &mut Training) {
        let (kinds, offsets) = (self.bank.nets.len(), self.bank.weights.offsets().to_vec());
        let (descent, number) = (self.rule.descent, self.steps);
        for mut part in self.bank.split_mut(std::slice::from_ref(&(0..kinds))) {
            for kind in 0..kinds {
                let slopes = &gradient[offsets[kind]..offsets[kind + 1]];
                training.gradient.clear();
                training.gradient.extend(slopes.iter().map(|&slope| slope as f32));
                let networks = part.networks_mut(kind);
                networks.for_each(|mut network: NetworkMut<'_>| network.descend(number, &descent, training));
            }
        }
    }

    /// Whether sums in rows like `offsets`, one per kind, are numbers. An agent of the kind stands for it.
    fn finite(&self, numbers: &[f64], offsets: &[usize], what: &'static str, iteration: usize) -> Result<()> {
        let Some(place) = numbers.iter().position(|number| !number.is_finite()) else { return Ok(()) };
        let is_of_kind =
            |learner: &&Learner| place < offsets[learner.kind + 1] && place >= offsets[learner.kind];
        let agent = self.learners.iter().find(is_of_kind).or(self.learners.first());
        let agent = agent.map_or(0, |learner| learner.agent);
        Err(Error::Diverged { iteration, agent, quantity: what, value: numbers[place], advice: "" })
    }

    /// The sums of all parts, in all processes.
    fn total(&self, parts: Vec<ExactSums>, length: usize) -> Result<Vec<f64>> {
        let mut total = ExactSums::zeros(length);
        parts.iter().for_each(|part| total.merge(part.sums()));
        self.halo.sum_exactly(&mut total)?;
        let mut numbers = vec![0.0; length];
        total.write(&mut numbers);
        Ok(numbers)
    }
}

/// The agents of a block, and their advantages.
type BlockPart<'a> = (&'a mut [Learner], RowsMut<'a, f64>);

/// Buffers of one thread.
#[derive(Default)]
struct Scratch {
    rows: Vec<f32>,
    view: Vec<f32>,
    training: Training,
    columns: Columns,
    wanted: Vec<f32>,
    slopes: Vec<f64>,
}

impl Scratch {
    /// Reads steps of trajectories; returns how many.
    fn encode<'a>(
        &mut self,
        encoder: &PlaceEncoder,
        steps: impl Iterator<Item = (&'a Trajectory, usize)>,
    ) -> usize {
        self.rows.clear();
        steps
            .map(|(trajectory, k)| encoder.encode_step(trajectory, k, &mut self.view, &mut self.rows))
            .count()
    }
}

/// Where the orders of samples of an iteration are drawn.
fn order_place(iteration: usize) -> Place {
    Place { purpose: Purpose::CriticOrder, iteration: iteration as u32, trajectory: 0 }
}

/// What the neural networks of all kinds look like, from the kind, number and sizes of every agent; `[0, 0]`
/// for kinds without agents here.
fn sizes_of_kinds(kinds: usize, agents: impl Iterator<Item = (usize, u32, Sizes)>) -> Result<Vec<Sizes>> {
    let mut known: Vec<Option<(u32, Sizes)>> = vec![None; kinds];
    for (kind, id, sizes) in agents {
        let (first, of_first) = *known[kind].get_or_insert((id, sizes));
        ensure(sizes == of_first, || {
            let [[a, b], [c, d]] = [of_first, sizes];
            let what = format!("read {a} and {c} numbers and have {} and {} constraints", b - 1, d - 1);
            unlike(&format!("agents {first} and {id}"), &what)
        })?;
    }
    Ok(known.into_iter().map(|known| known.map_or([0, 0], |(_, sizes)| sizes)).collect())
}

fn unlike(who: &str, what: &str) -> Error {
    sharing_error(format!(
        "{who} are of one kind, but {what}; give them kinds of their own ({KINDS_KEY}), or use `none`"
    ))
}

/// The agents of every block.
fn split_blocks<'a>(mut learners: &'a mut [Learner], blocks: &[Range<usize>]) -> Vec<&'a mut [Learner]> {
    let mut parts = Vec::with_capacity(blocks.len());
    for block in blocks {
        let (part, rest) = std::mem::take(&mut learners).split_at_mut(block.len());
        parts.push(part);
        learners = rest;
    }
    parts
}

impl Critic for SharedReturns {
    fn samples(&self) -> SampleRequest {
        SampleRequest::batch(1)
    }

    fn learn(&mut self, evidence: CriticInput<'_>) -> Result<()> {
        let samples = self.judge(&evidence)?;
        let moments: Vec<(&Trajectory, usize)> = evidence
            .batch
            .iter()
            .flat_map(|trajectory| (0..trajectory.steps()).map(move |k| (trajectory, k)))
            .collect();
        let mut training = Training::default();
        for _ in 0..self.rule.passes {
            self.learners
                .par_iter_mut()
                .for_each(|learner| shuffle(1, samples.len(), &mut learner.sequence, &mut learner.order));
            for number in 0..samples.len().div_ceil(self.rule.minibatch) {
                let gradient = self.gradient(&samples, &moments, number)?;
                self.finite(
                    &gradient,
                    self.bank.weights.offsets(),
                    "the critic's gradient",
                    evidence.iteration,
                )?;
                self.steps += 1;
                self.descend(&gradient, &mut training);
            }
        }
        Ok(())
    }

    fn values(&self) -> &dyn QValues {
        self
    }

    fn values_mut(&mut self) -> &mut dyn QValues {
        self
    }

    fn sums(&self, transitions: usize) -> Option<SharedSums> {
        let steps = self.rule.minibatches().steps(transitions) as usize;
        let numbers = self.squares.data().len() + steps * self.bank.weights.data().len();
        Some(SharedSums { rounds: 1 + steps, numbers })
    }

    fn fields(&mut self) -> Fields<'_> {
        let mut fields = self.bank.shared_fields(["critic", "critic.first", "critic.second"]);
        fields.push(("critic.squares", Field::Numbers(self.squares.data_mut())));
        fields.push(("critic.steps", Field::Counter(&mut self.steps)));
        fields
    }
}

impl QValues for SharedReturns {
    fn set_multipliers(&mut self, _signals: &Signals, mu: &Ragged<f64>) -> Option<(usize, f64)> {
        self.advantages.set_multipliers(mu, &self.blocks)
    }

    fn add_taken(&self, sender: u32, inbox: &ValueReceiver<'_>, _scratch: &mut Vec<u32>, out: &mut [f64]) {
        self.advantages.add_taken(sender, inbox, out);
    }
}

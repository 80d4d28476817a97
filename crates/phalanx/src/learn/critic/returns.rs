//! Sampled λ-returns minus a learnt baseline.

mod along;
mod batch;
mod shared;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::learning::LearningKeys;
use super::sharing::{Sharing, SharingKeys};
use super::{
    Critic, CriticContext, CriticInput, CriticSettings, Descent, HIDDEN, QValues, SampleRequest,
    ValueReceiver,
};
use crate::base::fields::{Field, Fields};
use crate::base::key;
use crate::base::limits::check_memory;
use crate::base::parallel::for_each_agent;
use crate::base::range::Fraction;
use crate::base::section::Keys;
use crate::base::stream::{Place, Purpose, Stream};
use crate::learn::shadow::Signals;
use crate::neural::{Bank, BankSettings, Inputs, Loss, Minibatches, NetworkMut};
use crate::neural::{OptimizerKind, Training, shuffle};
use crate::policy::Baseline;
use crate::policy::observation::{ObservationEncoder, Widths};
use crate::utility::problem::Problem;
use crate::world::Trajectory;
use crate::world::World;
use crate::{Ragged, Result};

use along::{Along, Columns, advance_squares, scale};
use batch::BatchAdvantages;
pub use shared::SharedReturns;

/// Keys of `[critic]` on returns (returns).
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default)]
struct LambdaKeys {
    /// λ of sampled returns: 1 for rewards alone, less to trust the learnt baseline.
    lambda: Fraction,
}

impl Default for LambdaKeys {
    fn default() -> Self {
        LambdaKeys { lambda: Fraction(0.95) }
    }
}

/// The settings of `returns`.
#[derive(Debug)]
pub struct ReturnsCriticSettings {
    returns: LambdaKeys,
    widths: Widths,
    learning: LearningKeys,
    sharing: SharingKeys,
}

impl ReturnsCriticSettings {
    pub(crate) fn read(keys: &mut Keys) -> Result<Self> {
        let (returns, widths) = (keys.read()?, keys.read()?);
        Ok(ReturnsCriticSettings { returns, widths, learning: keys.read()?, sharing: keys.read()? })
    }
}

impl CriticSettings for ReturnsCriticSettings {
    fn check(&self, _batch: usize, _is_exact: bool) -> Result<()> {
        self.learning.check_minibatches("returns")?;
        self.widths.check("critic")
    }

    fn build(&self, context: CriticContext<'_>) -> Result<Box<dyn Critic>> {
        let CriticContext { world, problem, kappa_q, batch, horizon, stream, .. } = context;
        let rule = ReturnsSettings {
            lambda: *self.returns.lambda,
            descent: self.learning.descent(),
            minibatch: self.learning.minibatch,
            passes: *self.learning.passes,
            loss: self.learning.loss(),
        };
        let steps = batch as u128 * (horizon as u128 + 1);
        self.learning.check_memory(steps)?;
        // Advantages of every utility along the batch, and their sum.
        let numbers: u128 = problem.agents.iter().map(|agent| 2 + agent.constraints.len() as u128).sum();
        check_memory(8 * numbers * steps, key::BATCH, &format!("advantages along {steps} steps"))?;
        match self.sharing.sharing {
            Sharing::None => {
                Ok(Box::new(Returns::new(world, problem, kappa_q, &self.widths, rule, *stream)?))
            }
            Sharing::Kind => Ok(Box::new(SharedReturns::new(context, &self.widths, rule)?)),
        }
    }

    fn can_share(&self) -> bool {
        true
    }

    fn knows_alternatives(&self) -> bool {
        false
    }

    fn baseline(&self) -> Baseline {
        Baseline::None
    }
}

/// How values are learnt.
#[derive(Debug, Clone)]
pub struct ReturnsSettings {
    /// λ: 0 trusts the learnt values after one step, 1 the sampled rewards alone.
    pub lambda: f64,
    /// Steps of a gradient.
    pub descent: Descent,
    /// Samples of a gradient step, shuffled.
    pub minibatch: usize,
    /// Passes over the batch.
    pub passes: usize,
    /// Of a value against its λ-return.
    pub loss: Loss,
}

/// A_j^k = Σ_{l ≥ k} (γλ)^{l−k}·δ_j^l with δ_j^k = r_j^k + γ·V_j^{k+1} − V_j^k, along the batch itself, for
/// every utility of agent j. V_j is a neural network that sees what a policy of radius κ_q would; it learns
/// A_j^k + V_j^k by regression.
///
/// Stands where Q_j stands: Σ_j A_j over the neighbours weighs the scores, which for λ = 1 is the unbiased
/// Monte-Carlo gradient with a baseline that depends on no action. A learnt Q used directly has to resolve
/// how much a single action of a single agent matters, which its error easily exceeds; here a wrong V costs
/// variance, not direction.
///
/// V = 0 after an episode that ended; one that was cut is valued at the state it was cut at, for which the
/// batch is one step longer than the horizon. Networks learn values divided by their running size, so that
/// utilities of any scale are learnt alike. Literature: Schulman and others, "High-dimensional continuous
/// control using generalized advantage estimation", ICLR 2016.
pub struct Returns {
    encoders: Vec<ObservationEncoder>,
    /// One neural network per agent, with one output per utility.
    bank: Bank,
    /// Numbers in the whole graph.
    ids: Vec<u32>,
    /// Agents that learn here.
    blocks: Vec<Range<usize>>,
    rule: ReturnsSettings,
    stream: Stream,
    /// Gradient steps so far; they differ between iterations with the number of samples.
    steps: u64,
    /// Running mean of squared returns, row j one per utility.
    squares: Ragged<f64>,
    advantages: BatchAdvantages,
}

impl Returns {
    /// Values over κ_q-hop neighbourhoods with orthogonal weights; the last layer starts small.
    pub fn new(
        world: &dyn World,
        problem: &Problem,
        kappa_q: usize,
        widths: &Widths,
        rule: ReturnsSettings,
        stream: Stream,
    ) -> Result<Self> {
        let n = world.graph().agents();
        let utilities = |j: usize| 1 + problem.agents[j].constraints.len();
        let settings = BankSettings {
            field: HIDDEN,
            bytes: 16,
            purpose: Purpose::CriticInit,
            stream: &stream,
            output_gain: OUTPUT_GAIN,
            moments: rule.descent.optimizer == OptimizerKind::Adam,
        };
        let (groups, sizes) = (world.graph().neighbourhoods(kappa_q), |j: usize| [1, utilities(j)]);
        let (encoders, bank) =
            ObservationEncoder::with_networks(world, &groups, false, widths, sizes, &settings)?;
        Ok(Returns {
            encoders,
            bank,
            ids: (0..n).map(|j| world.graph().global_id(j)).collect(),
            blocks: world.graph().work_blocks(),
            rule,
            stream,
            steps: 0,
            squares: Ragged::zeros((0..n).map(utilities)),
            advantages: BatchAdvantages::default(),
        })
    }
}

/// Size of the last layer's initial weights.
const OUTPUT_GAIN: f64 = 0.1;

/// Buffers of one agent's learning.
#[derive(Default)]
struct ReturnsScratch {
    inputs: Inputs,
    part: Inputs,
    training: Training,
    values: Vec<f32>,
    columns: Columns,
    /// λ-returns in the neural network's units, `[sample][utility]`.
    targets: Vec<f32>,
    wanted: Vec<f32>,
    order: Vec<u32>,
}

/// One agent.
struct ReturnsLearner<'a> {
    j: usize,
    rule: &'a ReturnsSettings,
    signals: &'a Signals,
    batch: &'a [Trajectory],
    network: NetworkMut<'a>,
    squares: &'a mut [f64],
}

impl ReturnsLearner<'_> {
    /// Advantages of every utility along the batch, `[utility][trajectory][step]`, and the targets of the
    /// values.
    fn advantages(&mut self, begun: bool, advantages: &mut [f64], scratch: &mut ReturnsScratch) {
        let ReturnsScratch { inputs, training, values, columns, targets, .. } = scratch;
        values.clear();
        values.extend_from_slice(self.network.forward(inputs.batch(), &mut training.tape));
        let utilities = self.squares.len();
        targets.clear();
        targets.resize(inputs.size * utilities, 0.0);
        let (j, lambda, all) = (self.j, self.rule.lambda, advantages.len() / utilities);
        let along = Along { j, lambda, signals: self.signals, batch: self.batch, values, utilities };
        for (utility, advantages) in advantages.chunks_exact_mut(all.max(1)).enumerate() {
            let squares = &mut self.squares[utility];
            let found = along.advantages(utility, scale(*squares), advantages, targets, columns);
            *squares = advance_squares(*squares, begun, found, all as f64);
            let size = scale(*squares) as f32;
            targets.iter_mut().skip(utility).step_by(utilities).for_each(|target| *target /= size);
        }
    }

    /// Regression of the values on their targets, in minibatches of the samples in `scratch.order`, `samples`
    /// per pass.
    fn learn(&mut self, steps: u64, samples: usize, scratch: &mut ReturnsScratch) {
        let ReturnsScratch { inputs, part, training, targets, wanted, order, .. } = scratch;
        let (utilities, descent, loss) = (self.squares.len(), self.rule.descent, self.rule.loss);
        self.rule.minibatches().each(samples, order, |number, members| {
            let seen = inputs.select(members, part);
            wanted.clear();
            for &sample in members.into_iter().flatten() {
                let first = sample as usize * utilities;
                wanted.extend_from_slice(&targets[first..first + utilities]);
            }
            self.network.gradient(seen.batch(), training, |values, slopes| {
                loss.evaluate(values, wanted, slopes);
            });
            self.network.descend(steps + number, &descent, training);
        });
    }
}

impl ReturnsSettings {
    fn minibatches(&self) -> Minibatches {
        Minibatches { passes: self.passes, size: self.minibatch }
    }
}

impl Critic for Returns {
    fn samples(&self) -> SampleRequest {
        SampleRequest::batch(1)
    }

    fn learn(&mut self, evidence: CriticInput<'_>) -> Result<()> {
        let (batch, n) = (evidence.batch, self.bank.nets.len());
        let squares = &self.squares;
        let samples = self.advantages.prepare(batch, (0..n).map(|j| squares.row(j).len()));
        let (blocks, ids, minibatches) = (&self.blocks, &self.ids, self.rule.minibatches());
        let (rule, encoders, signals) = (&self.rule, &self.encoders, evidence.signals);
        let (steps, stream) = (self.steps, &self.stream);
        let place =
            Place { purpose: Purpose::CriticOrder, iteration: evidence.iteration as u32, trajectory: 0 };
        let results = self.squares.split_rows_mut(blocks).into_iter();
        let results = results.zip(self.advantages.rows.all.split_rows_mut(blocks));
        let parts = self.bank.split_mut(blocks).into_iter().zip(results);
        for_each_agent(blocks, parts, |scratch: &mut ReturnsScratch, j, (bank, (squares, advantages))| {
            encoders[j]
                .encode(batch.iter().map(|trajectory| (trajectory, trajectory.steps())), &mut scratch.inputs);
            let mut sequence = stream.sequence(place, ids[j]);
            shuffle(rule.passes, samples.len(), &mut sequence, &mut scratch.order);
            scratch.order.iter_mut().for_each(|place| *place = samples[*place as usize]);
            for network in bank.networks_mut(j) {
                let squares = squares.row_mut(j);
                let mut learner = ReturnsLearner { j, rule, signals, batch, network, squares };
                learner.advantages(steps > 0, advantages.row_mut(j), scratch);
                learner.learn(steps, samples.len(), scratch);
            }
        });
        self.steps += minibatches.steps(samples.len());
        Ok(())
    }

    fn values(&self) -> &dyn QValues {
        self
    }

    fn values_mut(&mut self) -> &mut dyn QValues {
        self
    }

    fn fields(&mut self) -> Fields<'_> {
        let mut fields = self.bank.fields(["critic", "critic.first", "critic.second"]);
        fields.push(("critic.squares", Field::Rows(&mut self.squares)));
        fields.push(("critic.steps", Field::Counter(&mut self.steps)));
        fields
    }
}

impl QValues for Returns {
    fn set_multipliers(&mut self, _signals: &Signals, mu: &Ragged<f64>) -> Option<(usize, f64)> {
        self.advantages.set_multipliers(mu, &self.blocks)
    }

    fn add_taken(&self, sender: u32, inbox: &ValueReceiver<'_>, _scratch: &mut Vec<u32>, out: &mut [f64]) {
        self.advantages.add_taken(sender, inbox, out);
    }
}

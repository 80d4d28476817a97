//! Truncated Q-functions from neural networks, one per agent and utility.

mod learner;
mod values;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use self::learner::{Learner, LearnerScratch};
use self::values::VALUES;
use super::alternatives::Split;
use super::chains::ChainKeys;
use super::learning::LearningKeys;
use super::{
    Critic, CriticContext, CriticInput, CriticSettings, Descent, HIDDEN, QValues, SampleRequest, StepsKeys,
    ValueReceiver, ValueRequest,
};
use crate::base::fields::{Field, Fields};
use crate::base::parallel::for_each_agent;
use crate::base::section::Keys;
use crate::base::stream::{Place, Purpose, Stream};
use crate::learn::shadow::Signals;
use crate::neural::{Bank, BankSettings, Loss, Minibatches, OptimizerKind};
use crate::policy::Baseline;
use crate::policy::observation::{ObservationEncoder, Widths};
use crate::utility::problem::Problem;
use crate::world::Trajectory;
use crate::world::World;
use crate::{Ragged, Result};

/// Keys of `[critic]` on what has a neural network (network).
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
struct NetworkKeys {
    /// Two critics, of which the smaller value counts; without minibatches each learns from its own.
    twin: bool,
    /// One critic for f + Σ μ·g instead of one for each utility.
    merged: bool,
}

/// The settings of `network`.
#[derive(Debug)]
pub struct NeuralSettings {
    samples: StepsKeys,
    chains: ChainKeys,
    widths: Widths,
    learning: LearningKeys,
    networks: NetworkKeys,
}

impl NeuralSettings {
    pub(crate) fn read(keys: &mut Keys) -> Result<Self> {
        Ok(NeuralSettings {
            samples: keys.read()?,
            chains: keys.read()?,
            widths: keys.read()?,
            learning: keys.read()?,
            networks: keys.read()?,
        })
    }
}

impl CriticSettings for NeuralSettings {
    fn check(&self, batch: usize, _is_exact: bool) -> Result<()> {
        self.widths.check("critic")?;
        self.learning.check_optimizer()?;
        self.chains.check(&self.samples, batch)
    }

    fn build(&self, context: CriticContext<'_>) -> Result<Box<dyn Critic>> {
        let CriticContext { world, problem, kappa_q, batch, horizon, stream, .. } = context;
        let rule = NeuralCriticSettings {
            descent: self.learning.descent(),
            minibatch: self.learning.minibatch,
            passes: *self.learning.passes,
            loss: self.learning.loss(),
            polyak: *self.learning.polyak,
            twin: self.networks.twin,
            merged: self.networks.merged,
        };
        let samples = self.chains.wanted(&self.samples);
        self.learning.check_memory(match samples.chains as u128 {
            0 => batch as u128 * horizon as u128,
            chains => chains * (samples.evaluation_pairs as u128 - 1),
        })?;
        Ok(Box::new(NeuralCritic::new(world, problem, kappa_q, &self.widths, rule, samples, *stream)?))
    }

    fn baseline(&self) -> Baseline {
        Baseline::Mean
    }

    fn is_merged(&self) -> bool {
        self.networks.merged
    }
}

/// How the neural networks learn.
#[derive(Debug, Clone)]
pub struct NeuralCriticSettings {
    /// Steps of a gradient.
    pub descent: Descent,
    /// Transitions of a gradient step, shuffled; 0: one at a time, in order, by plain gradient steps.
    pub minibatch: usize,
    /// Passes over the transitions.
    pub passes: usize,
    /// Of a prediction against r + γ·Q', in minibatches.
    pub loss: Loss,
    /// Share of itself that the target network keeps at a gradient step; 0: the neural network is its own
    /// target.
    pub polyak: f64,
    /// Two neural networks, of which the smaller value counts; without minibatches each learns from its own.
    pub twin: bool,
    /// One neural network for f + Σ μ·g.
    pub merged: bool,
}

/// Networks Q_u(s, a)_{N_j} of every agent j and utility u, trained by temporal differences with a target
/// neural network.
///
/// The target values a pass's next states once, at its beginning; it follows the neural network after every
/// gradient step.
pub struct NeuralCritic {
    encoders: Vec<ObservationEncoder>,
    /// Agent j's neural networks are `[utility][twin]`.
    bank: Bank,
    /// The target networks, shaped like the bank; empty rows without them.
    targets: Ragged<f32>,
    /// Numbers in the whole graph, and its size.
    ids: Vec<u32>,
    total: usize,
    /// Agents that learn here.
    blocks: Vec<Range<usize>>,
    rule: NeuralCriticSettings,
    samples: SampleRequest,
    stream: Stream,
    /// Gradient steps of every neural network so far.
    steps: u64,
    /// μ^{t+1}.
    mu: Ragged<f64>,
    /// Σ_u of weighted values along the batch, row j as `[trajectory][step]`; then those of f alone, if some
    /// agents want them.
    along: Ragged<f64>,
    /// First step of every trajectory in those rows.
    offsets: Vec<usize>,
    /// The neural networks in two parts, for values at alternatives.
    splits: Vec<Option<Split>>,
    /// Sums in the first hidden layers along the batch, row j as `[utility][twin][trajectory][step][unit]`;
    /// empty where that would be too much, or is not asked for.
    sums: Ragged<f32>,
}

impl NeuralCritic {
    /// Networks over κ_q-hop neighbourhoods with orthogonal weights.
    pub fn new(
        world: &dyn World,
        problem: &Problem,
        kappa_q: usize,
        widths: &Widths,
        rule: NeuralCriticSettings,
        samples: SampleRequest,
        stream: Stream,
    ) -> Result<Self> {
        let n = world.graph().agents();
        let utilities = |j: usize| if rule.merged { 1 } else { 1 + problem.agents[j].constraints.len() };
        let settings = BankSettings {
            field: HIDDEN,
            bytes: 16,
            purpose: Purpose::CriticInit,
            stream: &stream,
            output_gain: 1.0,
            moments: rule.descent.optimizer == OptimizerKind::Adam,
        };
        let (groups, sizes) =
            (world.graph().neighbourhoods(kappa_q), |j: usize| [utilities(j) * rule.twins(), 1]);
        let (encoders, bank) =
            ObservationEncoder::with_networks(world, &groups, true, widths, sizes, &settings)?;
        let none = || Ragged::zeros(std::iter::repeat_n(0, n));
        Ok(NeuralCritic {
            targets: if rule.polyak > 0.0 { bank.weights.clone() } else { none() },
            splits: bank.nets.iter().map(Split::new).collect::<Result<_>>()?,
            encoders,
            bank,
            ids: (0..n).map(|j| world.graph().global_id(j)).collect(),
            total: world.graph().total(),
            blocks: world.graph().work_blocks(),
            rule,
            samples,
            stream,
            steps: 0,
            mu: Ragged::zeros(problem.agents.iter().map(|agent| agent.constraints.len())),
            along: Ragged::zeros(std::iter::repeat_n(0, n)),
            offsets: Vec::new(),
            sums: Ragged::zeros(std::iter::repeat_n(0, n)),
        })
    }
}

impl NeuralCritic {
    /// The neural networks.
    pub(crate) fn bank(&self) -> &Bank {
        &self.bank
    }

    /// What they read.
    pub(crate) fn encoders(&self) -> &[ObservationEncoder] {
        &self.encoders
    }

    /// How they learn.
    pub(crate) fn rule(&self) -> &NeuralCriticSettings {
        &self.rule
    }

    /// Counts gradient steps that are taken elsewhere; returns how many there were before.
    pub(crate) fn count_steps(&mut self, steps: u64) -> u64 {
        self.steps += steps;
        self.steps - steps
    }
}

impl NeuralCriticSettings {
    fn twins(&self) -> usize {
        if self.twin { 2 } else { 1 }
    }
}

impl Critic for NeuralCritic {
    fn samples(&self) -> SampleRequest {
        self.samples
    }

    fn learn(&mut self, evidence: CriticInput<'_>) -> Result<()> {
        let trajectories = evidence.wanted(self.samples);
        let (rule, encoders, blocks, ids) = (&self.rule, &self.encoders, &self.blocks, &self.ids);
        let (gamma, steps, stream) = (evidence.signals.gamma as f32, self.steps, &self.stream);
        let place =
            Place { purpose: Purpose::CriticOrder, iteration: evidence.iteration as u32, trajectory: 0 };
        let networks = self.bank.split_mut(blocks).into_iter().zip(self.targets.split_rows_mut(blocks));
        for_each_agent(blocks, networks, |scratch: &mut LearnerScratch, j, (bank, targets)| {
            scratch.encode(rule, &encoders[j], trajectories, stream.sequence(place, ids[j]));
            let mut networks = bank.networks_mut(j);
            let mut targets = &mut targets.row_mut(j)[..];
            for utility in 0.. {
                let twins: Vec<_> = networks.by_ref().take(rule.twins()).collect();
                let width: usize = twins.iter().map(|network| network.weights.len()).sum();
                if width == 0 {
                    break;
                }
                // Without target networks there is nothing.
                let (own, others) = targets.split_at_mut(width.min(targets.len()));
                targets = others;
                scratch.write_rewards(j, utility, rule.merged, &evidence, trajectories);
                let encoder = &encoders[j];
                let mut learner = Learner { rule, encoder, gamma, twins, targets: own, steps };
                learner.learn(trajectories, scratch);
            }
        });
        if self.rule.minibatch > 0 {
            let minibatches = Minibatches { passes: self.rule.passes, size: self.rule.minibatch };
            self.steps += minibatches.steps(trajectories.iter().map(Trajectory::transitions).sum());
        }
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
        fields.insert(1, ("critic.target", Field::SingleRows(&mut self.targets)));
        fields.push(("critic.steps", Field::Counter(&mut self.steps)));
        fields
    }
}

impl QValues for NeuralCritic {
    fn set_multipliers(&mut self, _signals: &Signals, mu: &Ragged<f64>) -> Option<(usize, f64)> {
        self.mu.data_mut().copy_from_slice(mu.data());
        let bad = |row: &[f32]| row.iter().copied().find(|w| !w.is_finite());
        (0..self.bank.nets.len())
            .find_map(|j| bad(self.bank.weights.row(j)).map(|value| (j, f64::from(value))))
    }

    fn precompute(&mut self, batch: &[Trajectory], steps: usize, wanted: ValueRequest) {
        let mut total = 0;
        self.offsets.clear();
        for trajectory in batch {
            self.offsets.push(total);
            total += trajectory.steps().min(steps);
        }
        if wanted.alternatives {
            self.sums = self.first_sums(batch, steps, total);
        } else {
            self.along = self.values_along(batch, steps, total, wanted.partial);
        }
    }

    fn add_taken(&self, sender: u32, inbox: &ValueReceiver<'_>, _scratch: &mut Vec<u32>, out: &mut [f64]) {
        let row = self.along.row(sender as usize);
        // Without constraints: the second half.
        let first = if inbox.counts_constraints(sender) { 0 } else { row.len() / 2 };
        let values = &row[first + self.offsets[inbox.number]..][..inbox.steps];
        out.iter_mut().zip(values).for_each(|(out, q)| *out += q);
    }

    fn knows_alternatives(&self) -> bool {
        true
    }

    fn add_alternatives(
        &self,
        sender: u32,
        inbox: &ValueReceiver<'_>,
        actions: usize,
        _: &mut Vec<u32>,
        out: &mut [f64],
    ) {
        VALUES.with_borrow_mut(|(values, scratch)| {
            values.clear();
            values.resize(inbox.steps * actions, 0.0);
            if !self.alternatives_from_sums(sender as usize, inbox, actions, scratch, values) {
                self.alternatives_whole(sender as usize, inbox, actions, scratch, values);
            }
            out.iter_mut().zip(&*values).for_each(|(out, q)| *out += q);
        });
    }
}

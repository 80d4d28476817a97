//! Soft-max policies from neural networks, one per agent.

use std::cell::RefCell;
use std::ops::Range;

use phalanx_agent::policy::{Network, Rule};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{ActTogether, Acting, Policy, PolicySettings, logit_gradients, softmax};
use super::{GradientInput, GradientScratch, ThetaKeys};
use crate::base::fields::{Field, Fields};
use crate::base::parallel::{agent_blocks, for_each_agent};
use crate::base::range::NonNegative;
use crate::base::sampler::{outcome, write_thresholds};
use crate::base::section::Keys;
use crate::base::stream::{Purpose, Stream};
use crate::neural::{Bank, BankSettings, Batch, Net, Tape};
use crate::policy::observation::{Inputs, ObservationEncoder, Widths};
use crate::world::Trajectory;
use crate::world::{LARGEST_LOCAL_SPACE, World};
use crate::{Ragged, Result};

/// Keys of `[policy]` on how neural networks start (network, shared).
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct OutputKeys {
    /// Size of the last layer's initial weights: a small one starts near uniform.
    output_gain: NonNegative,
}

impl Default for OutputKeys {
    fn default() -> Self {
        OutputKeys { output_gain: NonNegative(0.01) }
    }
}

impl OutputKeys {
    pub(super) fn gain(&self) -> f64 {
        *self.output_gain
    }
}

/// The setting that errors about sizes of neural networks name.
pub(crate) const HIDDEN: &str = "policy.hidden";

/// The settings of `network`.
#[derive(Debug)]
pub struct NeuralPolicySettings {
    theta: ThetaKeys,
    widths: Widths,
    output: OutputKeys,
}

impl NeuralPolicySettings {
    pub(super) fn read(keys: &mut Keys) -> Result<Self> {
        Ok(NeuralPolicySettings { theta: keys.read()?, widths: keys.read()?, output: keys.read()? })
    }

    /// The neural networks.
    pub fn build(&self, world: &dyn World, kappa: usize, stream: &Stream) -> Result<NeuralPolicy> {
        NeuralPolicy::new(world, kappa, &self.widths, self.output.gain(), stream)
    }
}

impl PolicySettings for NeuralPolicySettings {
    fn check(&self) -> Result<()> {
        self.theta.without_box("`softmax` and `linear`")?;
        self.widths.check("policy")
    }

    fn build(&self, world: &dyn World, kappa: usize, stream: &Stream) -> Result<Box<dyn Policy>> {
        Ok(Box::new(self.build(world, kappa, stream)?))
    }

    fn neural(&self) -> Option<&NeuralPolicySettings> {
        Some(self)
    }
}

/// π_i(· | x) = soft-max of a neural network's outputs. Row i of θ holds its parameters; the neural network
/// itself computes in single precision.
#[derive(Debug)]
pub struct NeuralPolicy {
    encoders: Vec<ObservationEncoder>,
    actions: Vec<usize>,
    theta: Ragged<f64>,
    /// θ in single precision.
    bank: Bank,
    /// Agents that act here.
    acting: Range<usize>,
}

/// Multiplications per step below which threads would cost more than they save.
const WORTH_THREADS: usize = 1 << 17;

impl NeuralPolicy {
    /// Networks with orthogonal weights. The last layer's are `output_gain` times as large: a small gain
    /// starts close to uniform without being symmetric (errata 10).
    pub fn new(
        world: &dyn World,
        kappa: usize,
        widths: &Widths,
        output_gain: f64,
        stream: &Stream,
    ) -> Result<Self> {
        let n = world.graph().agents();
        let groups = world.graph().neighbourhoods(kappa);
        let actions: Vec<usize> = (0..n).map(|i| world.actions(i)).collect();
        let settings = BankSettings {
            field: HIDDEN,
            // θ, the gradient, an optimiser's two moments, and single precision.
            bytes: 36,
            purpose: Purpose::PolicyInit,
            stream,
            output_gain,
            moments: false,
        };
        let (encoders, bank) =
            ObservationEncoder::with_networks(world, &groups, false, widths, |i| [1, actions[i]], &settings)?;
        let theta =
            Ragged::from_rows(bank.weights.iter().map(|weights| weights.iter().map(|&w| f64::from(w))));
        let acting = world.graph().owned_span();
        Ok(NeuralPolicy { encoders, actions, theta, bank, acting })
    }

    /// The sizes of the neural networks.
    pub(crate) fn nets(&self) -> &[Net] {
        &self.bank.nets
    }

    /// What agents see.
    pub(crate) fn encoders(&self) -> &[ObservationEncoder] {
        &self.encoders
    }

    /// What agents see, and their neural networks, to be trained; [`NeuralPolicy::adopt`] must follow.
    pub(crate) fn parts_mut(&mut self) -> (&[ObservationEncoder], &mut Bank) {
        (&self.encoders, &mut self.bank)
    }

    /// What checkpoints hold where the neural networks are trained in single precision: θ and Adam's moments.
    pub(crate) fn fields(&mut self) -> Fields<'_> {
        let mut fields = self.bank.fields(["actor", "actor.first", "actor.second"]);
        // θ says what the parameters are.
        fields[0] = ("theta", Field::Rows(&mut self.theta));
        fields
    }

    /// Makes θ what the parameters in single precision have become.
    pub(crate) fn adopt(&mut self) {
        self.theta.data_mut().iter_mut().zip(self.bank.weights.data()).for_each(|(x, &w)| *x = f64::from(w));
    }

    /// Agent i's probabilities at the only sample of a batch.
    fn law_of_batch(&self, agent: usize, batch: Batch<'_, f32>, out: &mut [f64]) {
        let mut tape = Tape::default();
        let logits = self.bank.forward(agent, batch, &mut tape);
        out.iter_mut().zip(logits).for_each(|(p, &logit)| *p = f64::from(logit));
        softmax(out);
    }

    /// Draws one action per sample of agent i's inputs.
    fn draw(
        &self,
        agent: usize,
        acting: &mut ActingScratch,
        draws: impl Iterator<Item = u32>,
        actions: &mut [u8],
    ) {
        let logits = self.bank.forward(agent, acting.inputs.batch(), &mut acting.tape);
        let (mut law, mut thresholds) = ([0.0; LARGEST_LOCAL_SPACE], [0; LARGEST_LOCAL_SPACE]);
        let law = &mut law[..self.actions[agent]];
        let thresholds = &mut thresholds[..law.len() - 1];
        for ((logits, draw), action) in logits.chunks_exact(law.len()).zip(draws).zip(actions) {
            law.iter_mut().zip(logits).for_each(|(p, &logit)| *p = f64::from(logit));
            softmax(law);
            write_thresholds(law, thresholds);
            *action = outcome(thresholds, draw);
        }
    }
}

/// The gradient in the parameters of a neural network of the bank, whose inputs along the batch are in the
/// buffers.
pub(super) fn network_gradient(
    bank: &Bank,
    number: usize,
    input: GradientInput<'_>,
    scratch: &mut GradientScratch,
    out: &mut [f64],
) {
    let GradientScratch { values, pairs, laws, inputs, training, .. } = scratch;
    let (net, weights) = (&bank.nets[number], bank.weights.row(number));
    net.gradient(weights, inputs.batch(), training, |logits, slopes| {
        laws.clear();
        laws.extend(logits.iter().map(|&logit| f64::from(logit)));
        laws.chunks_exact_mut(net.outputs()).for_each(softmax);
        logit_gradients(input, laws, values, pairs);
        slopes.iter_mut().zip(laws.iter()).for_each(|(to, &slope)| *to = slope as f32);
    });
    out.iter_mut().zip(&training.gradient).for_each(|(g, &slope)| *g = f64::from(slope));
}

/// Buffers of one thread's acting.
#[derive(Default)]
struct ActingScratch {
    inputs: Inputs,
    tape: Tape<f32>,
}

thread_local! {
    static ACTING: RefCell<ActingScratch> = RefCell::default();
}

impl Policy for NeuralPolicy {
    fn action_counts(&self) -> &[usize] {
        &self.actions
    }

    fn groups(&self) -> Ragged<u32> {
        Ragged::from_rows(self.encoders.iter().map(|encoder| encoder.group.to_vec()))
    }

    fn theta(&self) -> &Ragged<f64> {
        &self.theta
    }

    fn theta_mut(&mut self) -> &mut Ragged<f64> {
        &mut self.theta
    }

    fn refresh(&mut self) {
        let blocks = agent_blocks(self.actions.len());
        let weights = self.bank.weights.split_rows_mut(&blocks);
        let theta = &self.theta;
        for_each_agent(&blocks, weights, |(): &mut (), i, weights| {
            weights.row_mut(i).iter_mut().zip(theta.row(i)).for_each(|(w, &x)| *w = x as f32);
        });
    }

    fn acting(&self) -> Acting<'_> {
        Acting::Together(self)
    }

    fn law(&self, agent: usize, trajectory: &Trajectory, k: usize, out: &mut [f64]) {
        let mut inputs = Inputs::default();
        self.encoders[agent].encode_step(trajectory, k, |_| 0, &mut inputs);
        self.law_of_batch(agent, inputs.batch(), out);
    }

    fn rows_read(&self, agent: usize) -> Option<usize> {
        self.encoders[agent].numbers()
    }

    fn law_of_rows(&self, agent: usize, rows: &[f32], out: &mut [f64]) -> bool {
        if self.rows_read(agent) != Some(rows.len()) {
            return false;
        }
        self.law_of_batch(agent, Batch { size: 1, rows, symbols: &[] }, out);
        true
    }

    fn gradient(&self, input: GradientInput<'_>, scratch: &mut GradientScratch, out: &mut [f64]) {
        let GradientInput { agent, batch, rule, .. } = input;
        let steps = batch.iter().map(|trajectory| (trajectory, rule.steps(trajectory)));
        self.encoders[agent].encode(steps, &mut scratch.inputs);
        network_gradient(&self.bank, agent, input, scratch, out);
    }

    fn kind(&self) -> &'static str {
        "network"
    }

    fn tensors(&self, agent: usize) -> Vec<(String, Vec<usize>)> {
        let tensors = self.bank.nets[agent].tensors().into_iter();
        tensors.map(|tensor| (format!("theta.{agent}.{}", tensor.name), tensor.shape)).collect()
    }

    fn is_single(&self) -> bool {
        true
    }

    fn network(&self) -> Option<&NeuralPolicy> {
        Some(self)
    }

    fn portable(&self, agent: usize, _: &[usize], networks: &mut Vec<Network>) -> Result<Rule> {
        let network = networks.len();
        networks.push(self.bank.nets[agent].portable(self.bank.weights.row(agent)));
        Ok(match self.rows_read(agent) {
            Some(_) => Rule::Numbers { network, site: Vec::new() },
            None => Rule::Symbols { network },
        })
    }
}

impl ActTogether for NeuralPolicy {
    fn act(&self, trajectories: &[&Trajectory], k: usize, draws: &[u32], actions: &mut [u8]) {
        let (n, count) = (self.actions.len(), trajectories.len());
        let mut by_agent = vec![0; count * self.acting.len()];
        let act = |(place, actions): (usize, &mut [u8])| {
            let agent = self.acting.start + place;
            ACTING.with_borrow_mut(|acting| {
                acting.inputs.clear();
                for trajectory in trajectories {
                    self.encoders[agent].encode_step(trajectory, k, |_| 0, &mut acting.inputs);
                }
                self.draw(agent, acting, draws[agent..].iter().step_by(n).copied(), actions);
            });
        };
        if count * self.bank.weights.data().len() < WORTH_THREADS {
            by_agent.chunks_exact_mut(count).enumerate().for_each(act);
        } else {
            by_agent.par_chunks_exact_mut(count).enumerate().for_each(act);
        }
        for (t, actions) in actions.chunks_exact_mut(n).enumerate() {
            let acting = actions[self.acting.clone()].iter_mut().enumerate();
            acting.for_each(|(place, action)| *action = by_agent[place * count + t]);
        }
    }
}

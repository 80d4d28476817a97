//! One soft-max neural network for all agents of a kind. Agents differ in what they see, not in what they
//! have learnt, so that the same policy acts on any graph.

mod encoder;
mod kinds;

use std::cell::RefCell;
use std::ops::Range;

use phalanx_agent::policy::{Network, Rule};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::neural::{HIDDEN, OutputKeys, network_gradient};
use super::observation::Widths;
use super::{ActAlone, ActTogether, Acting, Policy, PolicySettings, softmax};
use super::{GradientInput, GradientScratch, ThetaKeys, kind_error};
use crate::base::error::ensure;
use crate::base::sampler::{outcome, write_thresholds};
use crate::base::section::Keys;
use crate::base::stream::{Purpose, Stream};
use crate::neural::{Bank, BankSettings, Batch, Tape};
use crate::world::{LARGEST_LOCAL_SPACE, Trajectory, World};
use crate::{Ragged, Result};

pub(crate) use encoder::PlaceEncoder;
pub use encoder::Reads;
pub(crate) use kinds::KEY as KINDS_KEY;
pub use kinds::KindsKey;
use kinds::Source;

/// Keys of `[policy]` on sharing (shared).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default)]
pub struct SharedKeys {
    /// `all`, `graph`, or a list of kinds that repeats along the agents.
    pub kinds: KindsKey,
    /// `states` or `view`. Default: the world's own view, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<Reads>,
}

impl Default for SharedKeys {
    fn default() -> Self {
        SharedKeys { kinds: KindsKey::Named(Source::All), reads: None }
    }
}

/// The settings of `shared`.
#[derive(Debug)]
pub struct SharedPolicySettings {
    theta: ThetaKeys,
    widths: Widths,
    output: OutputKeys,
    sharing: SharedKeys,
}

impl SharedPolicySettings {
    pub(super) fn read(keys: &mut Keys) -> Result<Self> {
        let (theta, widths) = (keys.read()?, keys.read()?);
        Ok(SharedPolicySettings { theta, widths, output: keys.read()?, sharing: keys.read()? })
    }
}

impl PolicySettings for SharedPolicySettings {
    fn check(&self) -> Result<()> {
        self.theta.without_box("`softmax` and `linear`")?;
        self.widths.check("policy")
    }

    fn build(&self, world: &dyn World, kappa: usize, stream: &Stream) -> Result<Box<dyn Policy>> {
        let gain = self.output.gain();
        Ok(Box::new(SharedPolicy::new(world, kappa, &self.sharing, &self.widths, gain, stream)?))
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// π_i(· | x) = soft-max of the neural network of agent i's kind at what agent i reads. Row k of θ
/// holds the parameters of kind k; neural networks compute in single precision.
#[derive(Debug)]
pub struct SharedPolicy {
    encoders: Vec<PlaceEncoder>,
    /// Kind of every agent, and the first agent of each kind in the whole graph.
    kinds: Vec<usize>,
    first: Vec<u32>,
    ids: Option<Vec<u32>>,
    actions: Vec<usize>,
    theta: Ragged<f64>,
    /// θ in single precision, a neural network per kind.
    bank: Bank,
    /// Agents that act here.
    acting: Range<usize>,
}

/// Samples that go through a neural network at a time while acting.
const TILE: usize = 256;

impl SharedPolicy {
    /// Networks with orthogonal weights, the last layer's `output_gain` times as large.
    pub fn new(
        world: &dyn World,
        kappa: usize,
        sharing: &SharedKeys,
        widths: &Widths,
        output_gain: f64,
        stream: &Stream,
    ) -> Result<Self> {
        let (graph, n) = (world.graph(), world.graph().agents());
        let kinds::Kinds { of: kinds, first } = sharing.kinds.of(graph)?;
        let encoders = PlaceEncoder::for_agents(world, kappa, sharing.reads)?;
        let actions: Vec<usize> = (0..n).map(|i| world.actions(i)).collect();
        let sizes = |i: usize| [encoders[i].width(), actions[i]];
        let mut of_kind: Vec<Option<usize>> = vec![None; first.len()];
        for i in 0..n {
            let known = *of_kind[kinds[i]].get_or_insert(i);
            ensure(sizes(i) == sizes(known), || {
                let [a, b] = [known, i].map(|i| (graph.global_id(i), sizes(i)));
                kind_error(format!(
                    "`shared`: agents {} and {} are of one kind, but read {} and {} numbers and have {} and {} actions; \
                     give them kinds of their own",
                    a.0, b.0, a.1[0], b.1[0], a.1[1], b.1[1]
                ))
            })?;
        }
        let networks = of_kind.iter().enumerate().map(|(kind, &agent)| {
            // A process that has no agents of a kind takes it to look like others.
            let [width, outputs] = sizes(agent.unwrap_or(0));
            PlaceEncoder::network(kind as u32, width, widths, outputs)
        });
        let settings = BankSettings {
            field: HIDDEN,
            // θ, the gradient, an optimiser's two moments, and single precision.
            bytes: 36,
            purpose: Purpose::PolicyInit,
            stream,
            output_gain,
            moments: false,
        };
        let bank = Bank::new(networks, &settings)?;
        let theta = Ragged::from_rows(bank.weights.iter().map(|row| row.iter().map(|&w| f64::from(w))));
        let (acting, ids) = (graph.owned_span(), graph.ids().map(<[u32]>::to_vec));
        Ok(SharedPolicy { encoders, kinds, first, ids, actions, theta, bank, acting })
    }

    /// Writes one law per sample of agents of `kind`.
    fn laws(&self, kind: usize, batch: Batch<'_, f32>, tape: &mut Tape<f32>, out: &mut [f64]) {
        let logits = self.bank.forward(kind, batch, tape);
        out.iter_mut().zip(logits).for_each(|(p, &logit)| *p = f64::from(logit));
        out.chunks_exact_mut(self.bank.nets[kind].outputs()).for_each(softmax);
    }

    /// Draws the actions of consecutive samples, which belong to agents one after the other: `encode` adds
    /// sample number k, of the agent that `agent` tells.
    fn draw(
        &self,
        samples: usize,
        agent: impl Fn(usize) -> usize,
        encode: impl Fn(usize, &mut ActingScratch),
        draws: impl Fn(usize) -> u32,
        actions: &mut [u8],
    ) {
        let mut thresholds = [0; LARGEST_LOCAL_SPACE];
        ACTING.with_borrow_mut(|scratch| {
            let mut first = 0;
            while first < samples {
                let kind = self.kinds[agent(first)];
                let mut end = first;
                scratch.rows.clear();
                while end < samples && end < first + TILE && self.kinds[agent(end)] == kind {
                    encode(end, scratch);
                    end += 1;
                }
                let ActingScratch { rows, laws, tape, .. } = scratch;
                let outputs = self.bank.nets[kind].outputs();
                laws.resize((end - first) * outputs, 0.0);
                self.laws(kind, Batch { size: end - first, rows, symbols: &[] }, tape, laws);
                for (k, law) in (first..end).zip(laws.chunks_exact(outputs)) {
                    let thresholds = &mut thresholds[..outputs - 1];
                    write_thresholds(law, thresholds);
                    actions[k] = outcome(thresholds, draws(k));
                }
                first = end;
            }
        });
    }
}

/// Buffers of one thread's acting.
#[derive(Default)]
struct ActingScratch {
    rows: Vec<f32>,
    view: Vec<f32>,
    laws: Vec<f64>,
    tape: Tape<f32>,
}

thread_local! {
    static ACTING: RefCell<ActingScratch> = RefCell::default();
}

impl ActAlone for SharedPolicy {
    fn act(&self, agents: Range<usize>, states: &[u8], draws: &[u32], actions: &mut [u8]) {
        let start = agents.start;
        let encode = |m: usize, scratch: &mut ActingScratch| {
            let encoder = &self.encoders[start + m];
            let first = scratch.rows.len();
            scratch.rows.resize(first + encoder.width(), 0.0);
            encoder.write_states(|other| states[other], &mut scratch.rows[first..]);
        };
        self.draw(agents.len(), |m| start + m, encode, |m| draws[m], actions);
    }
}

impl ActTogether for SharedPolicy {
    fn act(&self, trajectories: &[&Trajectory], k: usize, draws: &[u32], actions: &mut [u8]) {
        let (n, span) = (self.actions.len(), self.acting.clone());
        let rows = trajectories.par_iter().zip(actions.par_chunks_exact_mut(n)).enumerate();
        rows.for_each(|(t, (trajectory, actions))| {
            let encode = |m: usize, scratch: &mut ActingScratch| {
                let ActingScratch { rows, view, .. } = scratch;
                self.encoders[span.start + m].encode_step(trajectory, k, view, rows);
            };
            let draw = |m: usize| draws[t * n + span.start + m];
            self.draw(span.len(), |m| span.start + m, encode, draw, &mut actions[span.clone()]);
        });
    }
}

impl Policy for SharedPolicy {
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

    fn row_of(&self, agent: usize) -> usize {
        self.kinds[agent]
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn stands_for_row(&self, agent: usize) -> bool {
        let id = self.ids.as_ref().map_or(agent as u32, |ids| ids[agent]);
        self.first[self.kinds[agent]] == id
    }

    fn refresh(&mut self) {
        let weights = self.bank.weights.data_mut().iter_mut();
        weights.zip(self.theta.data()).for_each(|(w, &x)| *w = x as f32);
    }

    fn acting(&self) -> Acting<'_> {
        // All read alike.
        if self.encoders.first().is_some_and(PlaceEncoder::reads_states) {
            Acting::Alone(self)
        } else {
            Acting::Together(self)
        }
    }

    fn law(&self, agent: usize, trajectory: &Trajectory, k: usize, out: &mut [f64]) {
        let (mut rows, mut view) = (Vec::new(), Vec::new());
        self.encoders[agent].encode_step(trajectory, k, &mut view, &mut rows);
        let batch = Batch { size: 1, rows: &rows, symbols: &[] };
        self.laws(self.kinds[agent], batch, &mut Tape::default(), out);
    }

    fn rows_read(&self, agent: usize) -> Option<usize> {
        self.encoders[agent].view_numbers()
    }

    fn law_of_rows(&self, agent: usize, rows: &[f32], out: &mut [f64]) -> bool {
        if self.rows_read(agent) != Some(rows.len()) {
            return false;
        }
        let mut numbers = vec![0.0; self.encoders[agent].width()];
        self.encoders[agent].write_rows(rows, &mut numbers);
        let batch = Batch { size: 1, rows: &numbers, symbols: &[] };
        self.laws(self.kinds[agent], batch, &mut Tape::default(), out);
        true
    }

    fn gradient(&self, input: GradientInput<'_>, scratch: &mut GradientScratch, out: &mut [f64]) {
        let GradientInput { agent, batch, rule, .. } = input;
        let encoder = &self.encoders[agent];
        let inputs = &mut scratch.inputs;
        inputs.clear();
        let mut view = Vec::new();
        for trajectory in batch {
            for k in 0..rule.steps(trajectory) {
                encoder.encode_step(trajectory, k, &mut view, &mut inputs.rows);
                inputs.size += 1;
            }
        }
        network_gradient(&self.bank, self.kinds[agent], input, scratch, out);
    }

    fn kind(&self) -> &'static str {
        "shared"
    }

    fn tensors(&self, kind: usize) -> Vec<(String, Vec<usize>)> {
        let tensors = self.bank.nets[kind].tensors().into_iter();
        tensors.map(|tensor| (format!("theta.{kind}.{}", tensor.name), tensor.shape)).collect()
    }

    fn is_single(&self) -> bool {
        true
    }

    fn portable(&self, agent: usize, _: &[usize], networks: &mut Vec<Network>) -> Result<Rule> {
        let encoder = &self.encoders[agent];
        if networks.is_empty() {
            let kinds = self.bank.nets.iter().zip(self.bank.weights.iter());
            networks.extend(kinds.map(|(net, w)| net.portable(w)));
            // All agents see one member alone, or nobody's rows can be told apart without its place.
            if encoder.reads_one_row() {
                networks.iter_mut().for_each(without_count);
            }
        }
        let (network, site) = (self.kinds[agent], encoder.site().to_vec());
        match encoder.places() {
            Some(places) => Ok(Rule::Places { network, places, site }),
            None if encoder.sums_rows() && !encoder.reads_one_row() => Err(kind_error(
                "`shared` sums up rows of neighbours, which has no form as data; train with policy.reads = \"states\" to export it",
            )),
            None => Ok(Rule::Numbers { network, site }),
        }
    }
}

/// Takes the first input away, which is 1: how many members there are.
fn without_count(network: &mut Network) {
    if let Some(layer) = &mut network.row_layer
        && !layer.weights.is_empty()
    {
        let count = layer.weights.remove(0);
        layer.biases.iter_mut().zip(count).for_each(|(bias, weight)| *bias += weight);
    }
}

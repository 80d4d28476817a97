//! Soft-max policies from neural networks, one an agent.

use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use super::logits::logit_gradients;
use super::{ActTogether, Acting, Policy, Receive, softmax};
use super::{GradientSettings, Scratch};
use crate::base::memory::check_memory;
use crate::base::parallel::agent_blocks;
use crate::base::sampler::{outcome, write_thresholds};
use crate::base::stream::{Place, Purpose, Stream};
use crate::neural::{Net, Tape};
use crate::policy::observation::{Inputs, ObservationEncoder, Widths};
use crate::world::Trajectory;
use crate::world::{LARGEST_LOCAL_SPACE, World};
use crate::{Ragged, Result};

/// π_i(· | x) = soft-max of a network's outputs. Row i of θ holds its parameters; the network itself computes in single
/// precision.
#[derive(Debug)]
pub struct NeuralPolicy {
    sights: Vec<ObservationEncoder>,
    nets: Vec<Net>,
    actions: Vec<usize>,
    theta: Ragged<f64>,
    /// θ in single precision.
    weights: Ragged<f32>,
    /// Agents that act here.
    acting: Range<usize>,
}

/// Multiplications a step below which threads would cost more than they save.
const WORTH_THREADS: usize = 1 << 17;

impl NeuralPolicy {
    /// Networks with orthogonal weights. The last layer's are `output_gain` times as large: a small gain starts close to
    /// uniform without being symmetric (errata 10).
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
        let sights: Vec<ObservationEncoder> =
            (0..n).map(|i| ObservationEncoder::new(world, i, groups.row(i), false)).collect();
        let nets = sights.iter().zip(&actions);
        let nets: Vec<Net> = nets
            .map(|(sight, &actions)| Net::new(sight.architecture(widths, actions), "policy.hidden"))
            .collect::<Result<_>>()?;
        let parameters: u128 = nets.iter().map(|net| net.parameters() as u128).sum();
        // θ, the gradient, an optimiser's two moments, and single precision.
        check_memory(36 * parameters, "policy.hidden", &format!("networks of {parameters} parameters"))?;
        let place = Place { purpose: Purpose::PolicyInit, iteration: 0, trajectory: 0 };
        let theta = Ragged::from_rows(nets.iter().enumerate().map(|(i, net)| {
            let mut sequence = stream.sequence(place, world.graph().global_id(i));
            let weights: Vec<f32> = net.initialise(output_gain, &mut sequence);
            weights.into_iter().map(f64::from).collect::<Vec<_>>()
        }));
        let weights = Ragged::zeros(nets.iter().map(Net::parameters));
        let acting = world.graph().owned_span();
        let mut policy = NeuralPolicy { sights, nets, actions, theta, weights, acting };
        policy.refresh();
        Ok(policy)
    }

    /// What agents see, their networks, and their parameters in single precision, to be changed; [`NeuralPolicy::adopt`]
    /// must follow.
    pub(crate) fn parts_mut(&mut self) -> (&[ObservationEncoder], &[Net], &mut Ragged<f32>) {
        (&self.sights, &self.nets, &mut self.weights)
    }

    /// Makes θ what the parameters in single precision have become.
    pub(crate) fn adopt(&mut self) {
        self.theta.data_mut().iter_mut().zip(self.weights.data()).for_each(|(x, &w)| *x = f64::from(w));
    }

    /// Draws one action a sample of agent i's inputs.
    fn draw(&self, agent: usize, acting: &mut Buffers, draws: impl Iterator<Item = u32>, actions: &mut [u8]) {
        let logits =
            self.nets[agent].forward(self.weights.row(agent), acting.inputs.batch(), &mut acting.tape);
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

/// Buffers of one thread's acting.
#[derive(Default)]
struct Buffers {
    inputs: Inputs,
    tape: Tape<f32>,
}

thread_local! {
    static ACTING: RefCell<Buffers> = RefCell::default();
}

impl Policy for NeuralPolicy {
    fn action_counts(&self) -> &[usize] {
        &self.actions
    }

    fn groups(&self) -> Ragged<u32> {
        Ragged::from_rows(self.sights.iter().map(|sight| sight.group().to_vec()))
    }

    fn theta(&self) -> &Ragged<f64> {
        &self.theta
    }

    fn theta_mut(&mut self) -> &mut Ragged<f64> {
        &mut self.theta
    }

    fn refresh(&mut self) {
        let blocks = agent_blocks(self.actions.len());
        let weights = self.weights.split_rows_mut(&blocks);
        let theta = &self.theta;
        blocks.par_iter().zip(weights).for_each(|(block, mut weights)| {
            for i in block.clone() {
                weights.row_mut(i).iter_mut().zip(theta.row(i)).for_each(|(w, &x)| *w = x as f32);
            }
        });
    }

    fn acting(&self) -> Acting<'_> {
        Acting::Together(self)
    }

    fn law(&self, agent: usize, trajectory: &Trajectory, k: usize, out: &mut [f64]) {
        let Buffers { mut inputs, mut tape } = Buffers::default();
        self.sights[agent].push(trajectory, k, |_| 0, &mut inputs);
        let logits = self.nets[agent].forward(self.weights.row(agent), inputs.batch(), &mut tape);
        out.iter_mut().zip(logits).for_each(|(p, &logit)| *p = f64::from(logit));
        softmax(out);
    }

    fn rows_read(&self, agent: usize) -> Option<usize> {
        self.sights[agent].numbers()
    }

    fn law_of_rows(&self, agent: usize, rows: &[f32], out: &mut [f64]) -> bool {
        if self.rows_read(agent) != Some(rows.len()) {
            return false;
        }
        let batch = crate::neural::Batch { size: 1, rows, symbols: &[] };
        let mut tape = Tape::default();
        let logits = self.nets[agent].forward(self.weights.row(agent), batch, &mut tape);
        out.iter_mut().zip(logits).for_each(|(p, &logit)| *p = f64::from(logit));
        softmax(out);
        true
    }

    fn gradient(
        &self,
        agent: usize,
        batch: &[Trajectory],
        receive: &Receive<'_>,
        rule: &GradientSettings,
        scratch: &mut Scratch,
        out: &mut [f64],
    ) {
        let actions = self.actions[agent];
        let Scratch { values, pairs, laws, net: NeuralScratch { inputs, tape, slopes, gradient }, .. } =
            scratch;
        inputs.clear();
        for trajectory in batch {
            self.sights[agent].push_steps(trajectory, rule.steps(trajectory), inputs);
        }
        let (net, weights) = (&self.nets[agent], self.weights.row(agent));
        let logits = net.forward(weights, inputs.batch(), tape);
        laws.clear();
        laws.extend(logits.iter().map(|&logit| f64::from(logit)));
        laws.chunks_exact_mut(actions).for_each(softmax);
        logit_gradients(agent, batch, receive, rule, laws, values, pairs);
        slopes.clear();
        slopes.extend(laws.iter().map(|&slope| slope as f32));
        gradient.resize(out.len(), 0.0);
        net.backward(weights, inputs.batch(), tape, slopes, gradient);
        out.iter_mut().zip(gradient.iter()).for_each(|(g, &slope)| *g = f64::from(slope));
    }

    fn kind(&self) -> &'static str {
        "network"
    }

    fn tensors(&self, agent: usize) -> Vec<(String, Vec<usize>)> {
        let tensors = self.nets[agent].tensors().into_iter();
        tensors.map(|tensor| (format!("theta.{agent}.{}", tensor.name), tensor.shape)).collect()
    }

    fn is_single(&self) -> bool {
        true
    }
}

/// Buffers of one agent's backward pass.
#[derive(Debug, Default)]
pub(crate) struct NeuralScratch {
    inputs: Inputs,
    tape: Tape<f32>,
    slopes: Vec<f32>,
    gradient: Vec<f32>,
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
                    self.sights[agent].push(trajectory, k, |_| 0, &mut acting.inputs);
                }
                self.draw(agent, acting, draws[agent..].iter().step_by(n).copied(), actions);
            });
        };
        if count * self.weights.data().len() < WORTH_THREADS {
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

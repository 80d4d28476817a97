//! Values of neural Q-functions along a batch: at the actions taken, and at all alternatives of a
//! neighbour's.

use std::cell::RefCell;

use super::super::ValueReceiver;
use super::super::alternatives::{AlternativesScratch, Split};
use super::NeuralCritic;
use super::learner::{keep_least, least};
use crate::Ragged;
use crate::base::parallel::for_each_agent;
use crate::neural::{Inputs, Tape};
use crate::world::Trajectory;

/// Sums kept at most along a batch.
const MOST_SUMS: usize = 1 << 24;

/// Buffers of one thread's values.
#[derive(Default)]
pub struct ValueScratch {
    inputs: Inputs,
    tape: Tape<f32>,
    values: Vec<f32>,
    alternatives: AlternativesScratch,
}

thread_local! {
    /// One sender's values, and those buffers.
    pub(super) static VALUES: RefCell<(Vec<f64>, ValueScratch)> = RefCell::default();
}

impl NeuralCritic {
    /// What a utility of agent j counts: 1 for f, μ^{t+1} for constraints, if those count at all.
    fn weight(&self, j: usize, utility: usize, constraints: bool) -> f64 {
        match utility.checked_sub(1) {
            None => 1.0,
            Some(k) if constraints => self.mu.row(j)[k],
            Some(_) => 0.0,
        }
    }

    /// Values of agent j's neural networks for the inputs in `scratch`, weighed by μ^{t+1} and summed over
    /// the utilities that count: written over `out`.
    fn weighed(&self, j: usize, constraints: bool, scratch: &mut ValueScratch, out: &mut [f64]) {
        let ValueScratch { inputs, tape, values, .. } = scratch;
        let (net, row) = (&self.bank.nets[j], self.bank.weights.row(j));
        out.fill(0.0);
        for (utility, twins) in row.chunks_exact(self.rule.twins() * net.parameters()).enumerate() {
            let mu = self.weight(j, utility, constraints);
            if mu == 0.0 {
                continue;
            }
            let twins = twins.chunks_exact(net.parameters());
            least(net, twins, inputs, tape, values);
            out.iter_mut().zip(&*values).for_each(|(out, &q)| *out += mu * f64::from(q));
        }
    }

    /// Weighted values along the first `steps` steps of the batch, `total` of them; then those of f alone, if
    /// `partial`.
    pub(super) fn values_along(
        &self,
        batch: &[Trajectory],
        steps: usize,
        total: usize,
        partial: bool,
    ) -> Ragged<f64> {
        let kinds = if partial { 2 } else { 1 };
        let mut lengths = vec![0; self.bank.nets.len()];
        self.blocks.iter().cloned().flatten().for_each(|j| lengths[j] = kinds * total);
        let mut along = Ragged::zeros(lengths);
        let blocks = &self.blocks;
        for_each_agent(blocks, along.split_rows_mut(blocks), |scratch: &mut ValueScratch, j, rows| {
            self.encode(j, batch, steps, &mut scratch.inputs);
            for (kind, row) in rows.row_mut(j).chunks_exact_mut(total).enumerate() {
                self.weighed(j, kind == 0, scratch, row);
            }
        });
        along
    }

    /// What agent j sees at the first `steps` steps of the batch.
    fn encode(&self, j: usize, batch: &[Trajectory], steps: usize, inputs: &mut Inputs) {
        let trajectories = batch.iter().map(|trajectory| (trajectory, trajectory.steps().min(steps)));
        self.encoders[j].encode(trajectories, inputs);
    }

    /// Sums in the first hidden layers along the batch, if they can be used and are not too many.
    pub(super) fn first_sums(&self, batch: &[Trajectory], steps: usize, total: usize) -> Ragged<f32> {
        // An agent's share of the memory depends on nobody else, so that a process with a part of them does
        // the same.
        let length = |j: usize| {
            let width = self.splits[j].as_ref().map_or(0, Split::width);
            let length = self.bank.networks(j).len() * total * width;
            if length.saturating_mul(self.total) <= MOST_SUMS { length } else { 0 }
        };
        let mut lengths = vec![0; self.bank.nets.len()];
        self.blocks.iter().cloned().flatten().for_each(|j| lengths[j] = length(j));
        let mut sums = Ragged::zeros(lengths);
        let blocks = &self.blocks;
        for_each_agent(blocks, sums.split_rows_mut(blocks), |scratch: &mut ValueScratch, j, rows| {
            let ValueScratch { inputs, tape, .. } = scratch;
            let Some(split) = self.splits[j].as_ref().filter(|_| !rows.row_mut(j).is_empty()) else {
                return;
            };
            self.encode(j, batch, steps, inputs);
            let rows = rows.row_mut(j).chunks_exact_mut(total * split.width());
            for (w, row) in self.bank.networks(j).zip(rows) {
                row.copy_from_slice(split.sums(w, inputs.batch(), tape));
            }
        });
        sums
    }

    /// Sender j's values at the alternatives of the receiver, from its sums along the batch, written over
    /// zeros. False if they cannot be had that way.
    pub(super) fn alternatives_from_sums(
        &self,
        j: usize,
        inbox: &ValueReceiver<'_>,
        actions: usize,
        scratch: &mut ValueScratch,
        out: &mut [f64],
    ) -> bool {
        let member = self.encoders[j].group.iter().position(|&m| m as usize == inbox.to);
        let rows = self.sums.row(j);
        let (Some(split), Some(slot), false) = (&self.splits[j], member, rows.is_empty()) else {
            return false;
        };
        let (networks, twins) = (self.bank.networks(j), self.rule.twins());
        let each = rows.len() / networks.len();
        let first = self.offsets[inbox.number] * split.width();
        let taken = &inbox.trajectory.actions(inbox.to)[..inbox.steps];
        let ValueScratch { values, alternatives, .. } = scratch;
        for (number, (w, sums)) in networks.zip(rows.chunks_exact(each)).enumerate() {
            let utility = number / twins;
            let mu = self.weight(j, utility, inbox.counts_constraints(j as u32));
            if mu == 0.0 {
                continue;
            }
            let sums = &sums[first..first + inbox.steps * split.width()];
            let outputs = split.outputs(w, sums, slot, taken, actions, alternatives);
            keep_least(values, outputs, number % twins == 0);
            if number % twins == twins - 1 {
                out.iter_mut().zip(values.iter()).for_each(|(out, &q)| *out += mu * f64::from(q));
            }
        }
        true
    }

    /// The same by a whole pass for every alternative.
    pub(super) fn alternatives_whole(
        &self,
        j: usize,
        inbox: &ValueReceiver<'_>,
        actions: usize,
        scratch: &mut ValueScratch,
        out: &mut [f64],
    ) {
        scratch.inputs.clear();
        let trajectory = inbox.trajectory;
        for k in 0..inbox.steps {
            for b in 0..actions {
                let action = |m: usize| if m == inbox.to { b as u8 } else { trajectory.actions(m)[k] };
                self.encoders[j].encode_step(trajectory, k, action, &mut scratch.inputs);
            }
        }
        self.weighed(j, inbox.counts_constraints(j as u32), scratch, out);
    }
}

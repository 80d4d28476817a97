//! Advantages along a batch, as neighbours are told of them.

use std::ops::Range;

use crate::Ragged;
use crate::learn::critic::ValueReceiver;
use crate::learn::critic::utility_rows::{UtilityRows, fit};
use crate::world::Trajectory;

/// Advantages of every utility of every agent.
#[derive(Debug, Default)]
pub(super) struct BatchAdvantages {
    /// A row of a utility is `[trajectory][step]`, as long as the batch.
    pub rows: UtilityRows,
    /// First step of every trajectory in those rows.
    offsets: Vec<usize>,
}

impl BatchAdvantages {
    /// Makes room for a batch and agents with so many utilities each. Returns which of the batch's steps have
    /// a successor, of which there are as many as advantages.
    pub fn prepare(
        &mut self,
        batch: &[Trajectory],
        utilities: impl Iterator<Item = usize> + Clone,
    ) -> Vec<u32> {
        let transitions: usize = batch.iter().map(Trajectory::transitions).sum();
        self.offsets.clear();
        let (mut first, mut sample, mut samples) = (0, 0, Vec::with_capacity(transitions));
        for trajectory in batch {
            self.offsets.push(first);
            first += trajectory.transitions();
            samples.extend((0..trajectory.transitions()).map(|k| (sample + k) as u32));
            sample += trajectory.steps();
        }
        fit(&mut self.rows.all, utilities.map(|utilities| utilities * transitions));
        samples
    }

    /// Fixes the multipliers of the agents in `blocks`; see [`UtilityRows::set_multipliers`].
    pub fn set_multipliers(&mut self, mu: &Ragged<f64>, blocks: &[Range<usize>]) -> Option<(usize, f64)> {
        self.rows.set_multipliers(mu, blocks)
    }

    /// Adds what a sender tells the receiver.
    pub fn add_taken(&self, sender: u32, inbox: &ValueReceiver<'_>, out: &mut [f64]) {
        let first = self.offsets[inbox.number];
        let advantages = &self.rows.told(inbox, sender)[first..first + inbox.steps];
        out.iter_mut().zip(advantages).for_each(|(out, a)| *out += a);
    }
}

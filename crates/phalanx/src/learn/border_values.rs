//! Q values along the batch that cross a border. Paper: fig:alg_flow, ★.

use std::ops::Range;

use rayon::prelude::*;

use crate::Ragged;
use crate::base::parallel::runs_of;
use crate::distributed::{Halo, Messages};
use crate::learn::critic::{QValues, ValueReceiver};
use crate::world::Trajectory;

/// What owners of neighbouring agents send each other for the actor: values of agent j for agent i, where a
/// border runs between them.
pub struct BorderValues {
    /// For every neighbouring process: whom its agents hear from, and who hears from them, as (receiver,
    /// sender), ascending.
    outgoing: Vec<Vec<(u32, u32)>>,
    incoming: Vec<Vec<(u32, u32)>>,
    messages: Messages,
    /// By own receiver: its senders elsewhere, and the place of their values in `values`.
    places: Ragged<(u32, usize)>,
    values: Vec<f64>,
    /// Values that a receiver wants for a step.
    wants: Vec<usize>,
    /// Steps of the whole batch, and of a trajectory.
    steps: [usize; 2],
}

impl BorderValues {
    /// For agents with Q neighbourhoods `groups`, a batch of so many trajectories of `horizon` steps, and
    /// receivers that want so many values for a step.
    pub fn new(halo: &Halo, groups: &Ragged<u32>, wants: Vec<usize>, batch: usize, horizon: usize) -> Self {
        let sorted = |mut pairs: Vec<(u32, u32)>| {
            pairs.sort_unstable();
            pairs
        };
        let (mut outgoing, mut incoming) = (Vec::new(), Vec::new());
        for link in &halo.links {
            let mut crossing = Vec::new();
            // Neighbourhoods are mutual, and only those of own agents are whole.
            for &own in &link.sends {
                let ghosts = groups.row(own as usize).iter();
                let ghosts = ghosts.filter(|ghost| link.receives.binary_search(ghost).is_ok());
                crossing.extend(ghosts.map(|&ghost| (ghost, own)));
            }
            incoming.push(sorted(crossing.iter().map(|&(ghost, own)| (own, ghost)).collect()));
            outgoing.push(sorted(crossing));
        }
        let mut rows = vec![Vec::new(); groups.rows()];
        let mut place = 0;
        for &(to, from) in incoming.iter().flatten() {
            rows[to as usize].push((from, place));
            place += batch * horizon * wants[to as usize];
        }
        BorderValues {
            outgoing,
            incoming,
            messages: halo.messages(),
            places: Ragged::from_rows(rows),
            values: vec![0.0; place],
            wants,
            steps: [batch * horizon, horizon],
        }
    }

    /// Of some runs of agents, those that hear from nobody elsewhere, and the others.
    pub fn split(&self, runs: &[Range<usize>]) -> [Vec<Range<usize>>; 2] {
        let agents = || runs.iter().cloned().flatten();
        [false, true].map(|hears| runs_of(agents().filter(|&i| self.reaches(i) == hears)))
    }

    /// Writes what others want to hear. `constrained` are the neighbourhoods within which constraints count.
    pub fn write(
        &mut self,
        batch: &[Trajectory],
        values: &dyn QValues,
        constrained: &Ragged<u32>,
        alternatives: bool,
    ) {
        let (wants, [total, horizon]) = (&self.wants, self.steps);
        for (pairs, message) in self.outgoing.iter().zip(&mut self.messages.outgoing) {
            let row = |scratch: &mut Vec<u32>, &(receiver, sender): &(u32, u32)| {
                let (to, from, wanted) = (receiver as usize, &[sender], wants[receiver as usize]);
                let counts = constrained.row(sender as usize).binary_search(&receiver).is_ok();
                let constrained: &[u32] = if counts { from } else { &[] };
                let mut row = vec![0.0; total * wanted];
                let parts = row.chunks_exact_mut(horizon * wanted);
                for (number, (trajectory, out)) in batch.iter().zip(parts).enumerate() {
                    let inbox = ValueReceiver { to, from, constrained, number, trajectory, steps: horizon };
                    if alternatives {
                        values.add_alternatives(sender, &inbox, wanted, scratch, out);
                    } else {
                        values.add_taken(sender, &inbox, scratch, out);
                    }
                }
                row
            };
            let rows: Vec<Vec<f64>> = pairs.par_iter().map_init(Vec::new, row).collect();
            message.clear();
            rows.iter().for_each(|row| message.extend_from_slice(bytemuck::cast_slice(row)));
        }
        for (pairs, message) in self.incoming.iter().zip(&mut self.messages.incoming) {
            let length: usize = pairs.iter().map(|&(to, _)| 8 * total * wants[to as usize]).sum();
            message.resize(length, 0);
        }
    }

    /// Sends it, `meanwhile` working, and reads what has come.
    pub fn exchange(&mut self, halo: &Halo, meanwhile: &mut dyn FnMut()) -> crate::Result<()> {
        halo.exchange(&mut self.messages, meanwhile)?;
        let words = self.messages.incoming.iter().flat_map(|message| message.as_chunks::<8>().0);
        self.values.iter_mut().zip(words).for_each(|(x, word)| *x = f64::from_le_bytes(*word));
        Ok(())
    }

    /// Values that another process sent, of `from` for `to` along trajectory number `number`; none if this
    /// one has `from`.
    pub fn received(&self, to: usize, from: u32, number: usize) -> Option<&[f64]> {
        let &(_, place) = self.places.row(to).iter().find(|(sender, _)| *sender == from)?;
        let length = self.steps[1] * self.wants[to];
        Some(&self.values[place + number * length..][..length])
    }

    /// Whether an agent hears from elsewhere at all.
    pub fn reaches(&self, to: usize) -> bool {
        !self.places.row(to).is_empty()
    }
}

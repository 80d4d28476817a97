//! What critics know of every utility of an agent, and the sum that its neighbours are told.

use std::ops::Range;

use rayon::prelude::*;

use super::ValueReceiver;
use crate::Ragged;
use crate::base::ragged::RowsMut;
use crate::learn::shadow::weigh;

/// Numbers of every utility, agent by agent: tables, weights, advantages or rewards.
#[derive(Debug, Clone, Default)]
pub struct UtilityRows {
    /// Row j is `[1 + m_j][…]`: those of f_j, then those of every g_jk.
    pub all: Ragged<f64>,
    /// Row j is that of f_j plus Σ_k μ_k times that of g_jk.
    pub weighted: Ragged<f64>,
}

impl UtilityRows {
    /// Nothing is weighted yet.
    pub fn new(all: Ragged<f64>) -> Self {
        UtilityRows { all, weighted: Ragged::default() }
    }

    /// Fixes the multipliers of the agents in `blocks`. Returns the first agent with a number that is not
    /// finite, and that number.
    pub fn set_multipliers(&mut self, mu: &Ragged<f64>, blocks: &[Range<usize>]) -> Option<(usize, f64)> {
        let UtilityRows { all, weighted } = self;
        fit(weighted, (0..all.rows()).map(|j| all.row(j).len() / (1 + mu.row(j).len())));
        let weigh_block = |(block, mut part): (&Range<usize>, RowsMut<'_, f64>)| {
            let mut bad = None;
            for j in block.clone() {
                let out = part.row_mut(j);
                weigh(all.row(j), mu.row(j), out);
                bad = bad.or_else(|| out.iter().find(|x| !x.is_finite()).map(|&value| (j, value)));
            }
            bad
        };
        let parts = weighted.split_rows_mut(blocks);
        let found: Vec<_> = blocks.par_iter().zip(parts).map(weigh_block).collect();
        found.into_iter().flatten().next()
    }

    /// What a sender tells the receiver: with its constraints, or without.
    pub fn told(&self, inbox: &ValueReceiver<'_>, sender: u32) -> &[f64] {
        let j = sender as usize;
        if inbox.counts_constraints(sender) {
            self.weighted.row(j)
        } else {
            &self.all.row(j)[..self.weighted.row(j).len()]
        }
    }
}

/// Rows of the given lengths, in the memory that is there if they are as before. What they hold is to be
/// written over.
pub fn fit(rows: &mut Ragged<f64>, lengths: impl Iterator<Item = usize> + Clone) {
    if !rows.iter().map(<[f64]>::len).eq(lengths.clone()) {
        *rows = Ragged::zeros(lengths);
    }
}

//! One table of Q values an agent and utility, over the pairs of its κ_q-hop neighbourhood.

use rayon::prelude::*;

use super::Message;
use crate::columns::pair_column;
use crate::indexing::{PairIndex, PairTerm};
use crate::parallel::agent_blocks;
use crate::problem::Problem;
use crate::world::World;
use crate::{Ragged, Result};

/// Tables Q̃_{f_j}, Q̃_{g_jk} over (s, a)_{N_j^{κ_q}}, and their weighted sum.
#[derive(Debug, Clone)]
pub struct QTables {
    index: PairIndex,
    /// Row j is `[1 + m_j][∏ S][∏ A]`.
    tables: Ragged<f64>,
    /// Row j is Q_f + Σ_k μ_k·Q_gk.
    weighted: Ragged<f64>,
}

impl QTables {
    /// Zero tables.
    pub fn new(world: &dyn World, kappa_q: usize, problem: &Problem) -> Result<Self> {
        let n = world.network().agents();
        let states: Vec<usize> = (0..n).map(|i| world.states(i)).collect();
        let actions: Vec<usize> = (0..n).map(|i| world.actions(i)).collect();
        let index = PairIndex::new(&world.network().neighbourhoods(kappa_q), &states, &actions, "kappa_q")?;
        Ok(QTables {
            tables: Ragged::zeros((0..n).map(|j| (1 + problem.agents[j].constraints.len()) * index.size(j))),
            weighted: Ragged::zeros((0..n).map(|j| index.size(j))),
            index,
        })
    }

    /// Which pairs each table is over.
    pub fn index(&self) -> &PairIndex {
        &self.index
    }

    /// Agent j's table of utility `which` (0: f, then g_jk).
    pub fn table(&self, agent: usize, which: usize) -> Option<&[f64]> {
        self.tables.row(agent).chunks_exact(self.index.size(agent)).nth(which)
    }

    /// Runs `learn(agent, table of one utility, which)` for every agent, in parallel, with scratch from `init`.
    pub fn for_each_agent<S>(
        &mut self,
        init: impl Fn() -> S + Sync + Send,
        learn: impl Fn(usize, &PairIndex, &mut [f64], &mut S) + Sync + Send,
    ) {
        let blocks = agent_blocks(self.weighted.rows());
        let tables = self.tables.split_rows_mut(&blocks);
        let index = &self.index;
        blocks.par_iter().zip(tables).for_each_init(init, |scratch, (block, mut tables)| {
            for j in block.clone() {
                learn(j, index, tables.row_mut(j), scratch);
            }
        });
    }

    /// Forms Q_f + Σ_k μ_k·Q_gk; returns an agent with a value that is not finite.
    pub fn weigh(&mut self, mu: &Ragged<f64>) -> Option<(usize, f64)> {
        let blocks = agent_blocks(self.weighted.rows());
        let tables = &self.tables;
        let rows = self.weighted.split_rows_mut(&blocks);
        let weigh_block = |(block, mut rows): (&std::ops::Range<usize>, crate::ragged::RowsMut<'_, f64>)| {
            let mut bad = None;
            for j in block.clone() {
                let weighted = rows.row_mut(j);
                let (f, gs) = tables.row(j).split_at(weighted.len());
                weighted.copy_from_slice(f);
                for (g, &mu) in gs.chunks_exact(weighted.len()).zip(mu.row(j)) {
                    for (w, q) in weighted.iter_mut().zip(g) {
                        *w += mu * q;
                    }
                }
                if let Some(&value) = weighted.iter().find(|w| !w.is_finite()) {
                    bad = bad.or(Some((j, value)));
                }
            }
            bad
        };
        let found: Vec<_> = blocks.par_iter().zip(rows).map(weigh_block).collect();
        found.into_iter().flatten().next()
    }

    /// Adds W_j(z^k) to `out[k]`.
    pub fn add_taken(&self, message: Message<'_>, scratch: &mut Vec<u32>, out: &mut [f64]) {
        let terms = self.index.terms(message.from).iter().copied();
        pair_column(terms, message.trajectory, message.steps, scratch);
        let table = self.weighted.row(message.from);
        for (out, &z) in out.iter_mut().zip(scratch.iter()) {
            *out += table[z as usize];
        }
    }

    /// Adds W_j(z^k with a_i = b) to `out[k][b]`.
    pub fn add_alternatives(
        &self,
        message: Message<'_>,
        actions: usize,
        scratch: &mut Vec<u32>,
        out: &mut [f64],
    ) -> bool {
        let mut stride = 0;
        // The column without agent i's own action; its alternatives are then `stride` apart.
        let terms = self.index.terms(message.from).iter().map(|term| {
            if term.agent as usize == message.to {
                stride = term.action_stride;
                PairTerm { action_stride: 0, ..*term }
            } else {
                *term
            }
        });
        pair_column(terms, message.trajectory, message.steps, scratch);
        let table = self.weighted.row(message.from);
        let stride = stride as usize;
        if actions == 2 {
            for (out, &z) in out.chunks_exact_mut(2).zip(scratch.iter()) {
                let z = z as usize;
                out[0] += table[z];
                out[1] += table[z + stride];
            }
        } else {
            for (out, &z) in out.chunks_exact_mut(actions).zip(scratch.iter()) {
                for (b, out) in out.iter_mut().enumerate() {
                    *out += table[z as usize + b * stride];
                }
            }
        }
        true
    }
}

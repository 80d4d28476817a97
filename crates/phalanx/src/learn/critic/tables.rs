//! One table of Q values per agent and utility, over the pairs of its κ_q-hop neighbourhood.

use std::ops::Range;

use super::utility_rows::UtilityRows;
use super::{QValues, ValueReceiver};
use crate::base::parallel::for_each_agent;
use crate::graph::indexing::PairIndex;
use crate::learn::shadow::Signals;
use crate::policy::columns::pair_column;
use crate::utility::problem::Problem;
use crate::world::World;
use crate::{Ragged, Result};

/// Tables Q̃_{f_j}, Q̃_{g_jk} over (s, a)_{N_j^{κ_q}}, and their weighted sum.
#[derive(Debug, Clone)]
pub struct QTables {
    /// Which pairs each table is over.
    pub(crate) index: PairIndex,
    /// Agents that learn here.
    blocks: Vec<Range<usize>>,
    /// A row of a utility is `[∏ S][∏ A]`.
    pub(crate) tables: UtilityRows,
}

/// How tables are learnt by temporal differences.
#[derive(Debug, Clone, Copy)]
pub struct TableLearning<'a> {
    /// The tables.
    pub tables: &'a QTables,
    /// η_Q^0 … η_Q^{K−1}.
    pub steps: &'a [f64],
    /// Whether it starts from the last iteration's tables.
    pub is_warm: bool,
}

impl QTables {
    /// Zero tables.
    pub fn new(world: &dyn World, kappa_q: usize, problem: &Problem) -> Result<Self> {
        let n = world.graph().agents();
        let states: Vec<usize> = (0..n).map(|i| world.states(i)).collect();
        let actions: Vec<usize> = (0..n).map(|i| world.actions(i)).collect();
        let index = PairIndex::new(
            &world.graph().neighbourhoods(kappa_q),
            &states,
            &actions,
            crate::base::key::KAPPA_Q,
        )?;
        let length = |j: usize| (1 + problem.agents[j].constraints.len()) * index.size(j);
        let tables = UtilityRows::new(Ragged::zeros((0..n).map(length)));
        Ok(QTables { tables, blocks: world.graph().work_blocks(), index })
    }

    /// Runs `learn(agent, index, its tables, scratch)` for every agent, in parallel.
    pub fn for_each_agent<S: Default>(
        &mut self,
        learn: impl Fn(usize, &PairIndex, &mut [f64], &mut S) + Sync + Send,
    ) {
        let (blocks, index) = (&self.blocks, &self.index);
        for_each_agent(blocks, self.tables.all.split_rows_mut(blocks), |scratch, j, tables| {
            learn(j, index, tables.row_mut(j), scratch);
        });
    }
}

impl QValues for QTables {
    fn set_multipliers(&mut self, _signals: &Signals, mu: &Ragged<f64>) -> Option<(usize, f64)> {
        self.tables.set_multipliers(mu, &self.blocks)
    }

    fn release(&mut self) {
        self.tables.weighted = Ragged::default();
    }

    /// `out[k]` += W_j(z_j^k).
    fn add_taken(&self, sender: u32, inbox: &ValueReceiver<'_>, scratch: &mut Vec<u32>, out: &mut [f64]) {
        let j = sender as usize;
        pair_column(self.index.terms(j), None, inbox.trajectory, inbox.steps, scratch);
        let table = self.tables.told(inbox, sender);
        for (out, &z) in out.iter_mut().zip(scratch.iter()) {
            *out += table[z as usize];
        }
    }

    /// `out[k][b]` += W_j(z_j^k with a_i = b).
    fn add_alternatives(
        &self,
        sender: u32,
        inbox: &ValueReceiver<'_>,
        actions: usize,
        scratch: &mut Vec<u32>,
        out: &mut [f64],
    ) {
        let j = sender as usize;
        let terms = self.index.terms(j);
        // A sender that does not see the receiver has the same value whatever it does.
        let own = terms.iter().find(|term| term.agent as usize == inbox.to);
        let stride = own.map_or(0, |own| own.action_stride as usize);
        // Without agent i's own action; its alternatives are then one stride apart.
        pair_column(terms, Some(inbox.to), inbox.trajectory, inbox.steps, scratch);
        let table = self.tables.told(inbox, sender);
        if actions == 2 {
            for (out, &z) in out.as_chunks_mut::<2>().0.iter_mut().zip(scratch.iter()) {
                out[0] += table[z as usize];
                out[1] += table[z as usize + stride];
            }
        } else {
            for (out, &z) in out.chunks_exact_mut(actions).zip(scratch.iter()) {
                for (b, out) in out.iter_mut().enumerate() {
                    *out += table[z as usize + b * stride];
                }
            }
        }
    }

    fn knows_alternatives(&self) -> bool {
        true
    }

    fn table(&self, agent: usize, which: usize) -> Option<&[f64]> {
        self.tables.all.row(agent).chunks_exact(self.index.size(agent)).nth(which)
    }
}

//! Sampled returns in place of a learnt Q.

use super::{
    Critic, CriticContext, CriticInput, CriticSettings, QValues, SampleRequest, StepsKeys, ValueReceiver,
};
use crate::base::parallel::{agent_blocks, for_each_agent};
use crate::base::section::Keys;
use crate::learn::shadow::{Signals, reward_column, weigh};
use crate::policy::Baseline;
use crate::utility::problem::Problem;
use crate::{Ragged, Result};

/// The settings of `montecarlo`.
#[derive(Debug)]
pub struct MonteCarloSettings {
    samples: StepsKeys,
}

impl MonteCarloSettings {
    pub(crate) fn read(keys: &mut Keys) -> Result<Self> {
        Ok(MonteCarloSettings { samples: keys.read()? })
    }
}

impl CriticSettings for MonteCarloSettings {
    fn build(&self, context: CriticContext<'_>) -> Result<Box<dyn Critic>> {
        Ok(Box::new(MonteCarlo::new(context.problem, self.batch_tail())))
    }

    fn knows_alternatives(&self) -> bool {
        false
    }

    fn baseline(&self) -> Baseline {
        Baseline::Mean
    }

    fn batch_tail(&self) -> usize {
        *self.samples.steps
    }
}

/// Q_j^k = Σ_{l ≥ k} γ^{l−k}·r_j(s_j^l, a_j^l) along the batch itself.
///
/// Unbiased for the *untruncated* Q up to γ^K: every batch trajectory is carried on for K steps beyond the horizon.
/// Uses agent j's own pairs only. It cannot tell alternatives, so it goes with the baselines `none` and `mean`.
#[derive(Debug)]
pub struct MonteCarlo {
    tail: usize,
    gamma: f64,
    actions: Vec<usize>,
    /// Row j is r_f + Σ_k μ_k·r_gk, laid out as the shadow rewards, and r_f alone.
    rewards: Ragged<f64>,
    objective: Ragged<f64>,
}

impl MonteCarlo {
    /// Returns that look K = `tail` steps beyond the horizon.
    pub fn new(problem: &Problem, tail: usize) -> Self {
        MonteCarlo {
            tail,
            gamma: problem.gamma,
            actions: problem.agents.iter().map(|agent| agent.space.actions).collect(),
            rewards: Ragged::zeros((0..problem.agents.len()).map(|j| problem.row_length(j))),
            objective: Ragged::zeros((0..problem.agents.len()).map(|j| problem.row_length(j))),
        }
    }
}

impl Critic for MonteCarlo {
    fn samples(&self) -> SampleRequest {
        SampleRequest { batch_tail: self.tail, ..SampleRequest::default() }
    }

    fn learn(&mut self, _evidence: CriticInput<'_>) -> Result<()> {
        Ok(())
    }

    fn values(&self) -> &dyn QValues {
        self
    }

    fn values_mut(&mut self) -> &mut dyn QValues {
        self
    }
}

impl QValues for MonteCarlo {
    fn set_multipliers(&mut self, signals: &Signals, mu: &Ragged<f64>) -> Option<(usize, f64)> {
        let blocks = agent_blocks(self.actions.len());
        let rows = self.rewards.split_rows_mut(&blocks).into_iter();
        let rows = rows.zip(self.objective.split_rows_mut(&blocks));
        for_each_agent(&blocks, rows, |(): &mut (), j, (rows, objectives)| {
            let (all, objective) = (signals.rewards.row(j), objectives.row_mut(j));
            objective.copy_from_slice(&all[..objective.len()]);
            weigh(all, mu.row(j), rows.row_mut(j));
        });
        (0..self.actions.len())
            .find_map(|j| self.rewards.row(j).iter().find(|r| !r.is_finite()).map(|&value| (j, value)))
    }

    fn add_taken(&self, sender: u32, inbox: &ValueReceiver<'_>, _scratch: &mut Vec<u32>, out: &mut [f64]) {
        let told = if inbox.counts_constraints(sender) { &self.rewards } else { &self.objective };
        let j = sender as usize;
        let (row, trajectory) = (told.row(j), inbox.trajectory);
        let mut rewards = Vec::new();
        reward_column(row, trajectory, j, self.actions[j], trajectory.steps(), &mut rewards);
        let mut value = 0.0;
        for (k, reward) in rewards.into_iter().enumerate().rev() {
            value *= self.gamma;
            value += reward;
            if k < inbox.steps {
                out[k] += value;
            }
        }
    }
}

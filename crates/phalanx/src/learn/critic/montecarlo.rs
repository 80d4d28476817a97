//! Sampled returns in place of a learnt Q.

use super::utility_rows::UtilityRows;
use super::{
    Critic, CriticContext, CriticInput, CriticSettings, QValues, SampleRequest, StepsKeys, ValueReceiver,
};
use crate::base::parallel::agent_blocks;
use crate::base::section::Keys;
use crate::learn::shadow::{Signals, reward_column};
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
/// Unbiased for the *untruncated* Q up to γ^K: every batch trajectory is carried on for K steps beyond the
/// horizon. Uses agent j's own pairs only. It cannot tell alternatives, so it goes with the baselines `none`
/// and `mean`.
#[derive(Debug)]
pub struct MonteCarlo {
    tail: usize,
    gamma: f64,
    actions: Vec<usize>,
    /// Shadow rewards.
    rewards: UtilityRows,
}

impl MonteCarlo {
    /// Returns that look K = `tail` steps beyond the horizon.
    pub fn new(problem: &Problem, tail: usize) -> Self {
        let actions = problem.agents.iter().map(|agent| agent.space.actions).collect();
        MonteCarlo { tail, gamma: problem.gamma, actions, rewards: UtilityRows::default() }
    }
}

impl Critic for MonteCarlo {
    fn samples(&self) -> SampleRequest {
        SampleRequest::batch(self.tail)
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
        self.rewards.all.clone_from(&signals.rewards);
        self.rewards.set_multipliers(mu, &agent_blocks(self.actions.len()))
    }

    fn add_taken(&self, sender: u32, inbox: &ValueReceiver<'_>, _scratch: &mut Vec<u32>, out: &mut [f64]) {
        let j = sender as usize;
        let (row, trajectory) = (self.rewards.told(inbox, sender), inbox.trajectory);
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

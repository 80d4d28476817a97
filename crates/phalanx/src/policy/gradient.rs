//! What a policy needs to know to form its gradient. Paper: eq:grad_estimate.

use serde::{Deserialize, Serialize};

use super::Receive;
use crate::neural::{Inputs, Training};
use crate::world::Trajectory;

/// What is subtracted from the summed Q values before they weigh a score. None of it changes the expected
/// gradient of a soft-max policy, except that `mean` contains the sample itself: a bias of the order 1/(B·H).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Baseline {
    /// Nothing: the literal estimator.
    None,
    /// The agent's own mean over the batch.
    Mean,
    /// The expectation over the agent's own action, everyone else's held: Σ_b π_i(b|x)·Σ_j Q_j(…, b, …).
    Counterfactual,
}

/// How samples are weighed.
#[derive(Debug, Clone)]
pub struct GradientSettings {
    /// Weight of step k: γ^k with the batch size, the scaling and 1/n in it.
    pub weights: Vec<f64>,
    /// What is subtracted.
    pub baseline: Baseline,
    /// Divide the sum that agent i receives by |N_i^{κ_q}| (the authors' scaling).
    pub neighbour_mean: bool,
    /// Share of agent i's own value in what it uses; the rest is that sum or mean.
    pub own_share: f64,
    /// Sum over all actions with their probabilities, Σ_b π(b|x)·A(b)·∇ log π(b|x), instead of the one taken.
    pub all_actions: bool,
    /// Divide what weighs the scores by its standard deviation over the agent's batch.
    pub normalise: bool,
    /// Weight of the entropy of π(·|x), added to what is maximised.
    pub entropy: f64,
}

impl GradientSettings {
    /// Steps of a trajectory that count.
    pub fn steps(&self, trajectory: &Trajectory) -> usize {
        trajectory.steps().min(self.weights.len())
    }

    /// Whether agents need Q at their alternative actions, or at the taken one only. The direct
    /// parameterisation always does: its score 1/π is unbounded, so its gradient is formed without it (errata
    /// 9).
    pub fn needs_alternatives(&self, is_direct: bool) -> bool {
        self.baseline == Baseline::Counterfactual || self.all_actions || is_direct
    }
}

/// What an agent's gradient is formed from.
#[derive(Clone, Copy)]
pub struct GradientInput<'a> {
    /// The agent.
    pub agent: usize,
    /// The trajectories of line 3.
    pub batch: &'a [Trajectory],
    /// What the agent receives along them.
    pub receive: &'a Receive<'a>,
    /// How samples are weighed.
    pub rule: &'a GradientSettings,
}

/// Buffers of one agent's gradient.
#[derive(Debug, Default)]
pub struct GradientScratch {
    pub(crate) values: Vec<f64>,
    pub(crate) pairs: Vec<u32>,
    pub(crate) laws: Vec<f64>,
    pub(crate) inputs: Inputs,
    pub(crate) training: Training,
    pub(crate) active: Vec<u32>,
    pub(crate) ends: Vec<usize>,
    pub(crate) seen: Vec<u8>,
    pub(super) observations: Vec<u32>,
    pub(super) visits: Vec<f64>,
    /// What an agent knew along the batch, where links are faulty.
    pub(super) known: Vec<Trajectory>,
}

//! The constants of Algorithm 1.

use crate::base::schedule::{EntropyBonus, Schedule};
use crate::learn::dual::DualSettings;
use crate::learn::optimizer::OptimizerKind;
use crate::policy::{Baseline, GradientSettings};
use crate::utility::problem::{Problem, Scaling};

/// The constants of Algorithm 1.
#[derive(Debug, Clone)]
pub struct Settings {
    /// T, which schedules refer to.
    pub iterations: usize,
    /// H.
    pub horizon: usize,
    /// B.
    pub batch: usize,
    /// κ_q: radius of truncated Q-functions.
    pub kappa_q: usize,
    /// κ_g ≤ κ_q: radius within which neighbours' constraints count.
    pub kappa_g: usize,
    /// Share of the running λ̃ that is kept per iteration; 0: the batch's own, as line 4 says.
    pub occupancy_average: f64,
    /// Line 7.
    pub dual: DualSettings,
    /// Start of every multiplier.
    pub mu_0: f64,
    /// Change of η_μ over the iterations.
    pub dual_schedule: Schedule,
    /// Line 8.
    pub baseline: Baseline,
    /// Whether the gradient sums over all actions instead of the one taken.
    pub all_actions: bool,
    /// Entropy bonus over the iterations.
    pub entropy: EntropyBonus,
    /// Line 9.
    pub optimizer: OptimizerKind,
    /// Largest norm of an agent's gradient.
    pub clip: f64,
    /// η_θ.
    pub eta_theta: f64,
    /// Whether step k counts γ^k in the gradient; else all steps that were lived count alike.
    pub discount: bool,
    /// Whether an agent's advantages are divided by their standard deviation.
    pub normalise: bool,
    /// Change of η_θ over the iterations.
    pub actor_schedule: Schedule,
    /// Θ_i as a box, for soft-max policies.
    pub theta_box: Option<[f64; 2]>,
}

impl Settings {
    /// How line 8 weighs samples, for a network of `agents` agents.
    pub(super) fn gradient(&self, problem: &Problem, agents: usize) -> GradientSettings {
        let mut weights = problem.occupancy_weights(self.horizon, self.batch);
        match problem.scaling {
            Scaling::Normalised => {}
            Scaling::Paper => weights.iter_mut().for_each(|w| *w /= agents as f64),
            Scaling::Authors => weights.fill(1.0 / self.batch as f64),
        }
        GradientSettings {
            weights,
            baseline: self.baseline,
            neighbour_mean: problem.scaling == Scaling::Authors,
            all_actions: self.all_actions,
            normalise: self.normalise,
            entropy: 0.0,
        }
    }
}

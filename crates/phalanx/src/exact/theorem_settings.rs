//! What the theorems ask for: step sizes, sample sizes, and bounds on critics and multipliers.
//!
//! Orders of magnitude to compare a run with, not settings for it: with the constants that can be proved,
//! step sizes come out many orders too small (errata 7).

use serde::Serialize;

use super::constants::{Constants, spread};
use super::input::EstimatorInput;
use crate::base::elementary::{cbrt, ln, pow, powi};
use crate::base::range::OpenUnit;
use crate::{Error, Ragged, Result};

/// Step sizes of Algorithm 1. Paper: thm:convergence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Steps {
    /// η_μ.
    pub eta_mu: f64,
    /// η_θ = 1/(L_θθ + 4 L_θμ² η_μ).
    pub eta_theta: f64,
}

impl Steps {
    /// η_μ = T^{1/3} for a run of `iterations` = T; the factor in the theorem's O(T^{1/3}) is taken as 1.
    /// Paper: thm:convergence.
    pub fn constant(constants: &Constants, iterations: usize) -> Self {
        Steps::new(constants, cbrt(iterations as f64))
    }

    fn new(constants: &Constants, eta_mu: f64) -> Self {
        Steps { eta_mu, eta_theta: constants.eta_theta(eta_mu) }
    }
}

/// Settings for an O(ε)-FOSP with probability 1 − δ, up to truncation. Paper: thm:sample_complexity.
///
/// Counts are whole numbers in floating point: small ε take them beyond any integer type.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SamplePlan {
    /// T = ε^−1.5.
    pub iterations: f64,
    /// η_μ = ε^−0.5, and the η_θ that goes with it.
    pub steps: Steps,
    /// B, H, δ₀ = δ/(2n(T+1)) and ε₀.
    pub estimator: EstimatorInput,
    /// The paper's H = log(1/ε), with which γ^{2H} is not ε² (errata 6).
    pub literal_horizon: f64,
    /// T (B H + 1/ε₀²): trajectories, and what assump:Q_estimation allows the critic, its constant taken as
    /// 1.
    pub samples: f64,
}

impl SamplePlan {
    /// The theorem's orders with the factor 1 in every O(·): ε₀ = √ε, B = log(1/δ₀) ε^−2, and
    /// H = log(1/ε)/log(1/γ), which makes γ^{2H} = ε² (errata 6).
    pub fn orders(constants: &Constants, epsilon: f64, delta: f64) -> Result<Self> {
        SamplePlan::new(constants, epsilon, delta, |delta0| EstimatorInput {
            batch: whole(ln(1.0 / delta0) / powi(epsilon, 2)),
            horizon: whole(ln(epsilon) / ln(constants.gamma)),
            delta0,
            eps0: epsilon.sqrt(),
        })
    }

    /// B, H and ε₀ that bring the errors of prop:estimators to where the proof needs them, ε_μ ≤ ε² and,
    /// without the truncation that no sample removes, ε_θ ≤ ε. Row i of `groups` is N_i^{κ_q}.
    ///
    /// ε₀ alone takes a quarter of ε_θ; H is the shortest with which the cut-off tails take at most a tenth
    /// of either; B is then the smallest that does. Paper: app:sec_proof_thm, eq:def_epsilon.
    pub fn explicit(constants: &Constants, groups: &Ragged<u32>, epsilon: f64, delta: f64) -> Result<Self> {
        let errors = |input: EstimatorInput| {
            let eps_theta = spread(groups) * constants.eps2(&input);
            (constants.eps_mu(&input) / powi(epsilon, 2)).max(eps_theta / epsilon)
        };
        SamplePlan::new(constants, epsilon, delta, |delta0| {
            let endless = EstimatorInput { batch: f64::INFINITY, horizon: f64::INFINITY, delta0, eps0: 1.0 };
            // Nothing is to be estimated where all rewards are 0.
            let share = errors(endless);
            let eps0 = if share > 0.0 { (0.25 / share).sqrt() } else { 1.0 };
            let cut = |horizon| errors(EstimatorInput { horizon, eps0: 0.0, ..endless });
            let horizon = first_whole(|horizon| cut(horizon) <= 0.1);
            // The concentration inequality behind the errors needs as large a batch (errata 18).
            let valid = 2.0 - 8.0 * ln(delta0);
            let batch = first_whole(|batch| {
                batch >= valid && errors(EstimatorInput { batch, horizon, delta0, eps0 }) <= 1.0
            });
            EstimatorInput { batch, horizon, delta0, eps0 }
        })
    }

    fn new(
        constants: &Constants,
        epsilon: f64,
        delta: f64,
        estimator: impl FnOnce(f64) -> EstimatorInput,
    ) -> Result<Self> {
        OpenUnit::check("epsilon", epsilon)?;
        OpenUnit::check("delta", delta)?;
        let iterations = whole(pow(epsilon, -1.5));
        let estimator = estimator(delta / (2.0 * constants.agents as f64 * (iterations + 1.0)));
        Ok(SamplePlan {
            iterations,
            steps: Steps::new(constants, pow(epsilon, -0.5)),
            literal_horizon: whole(ln(1.0 / epsilon)),
            samples: iterations * (estimator.batch * estimator.horizon + powi(estimator.eps0, -2)),
            estimator,
        })
    }
}

/// The setting in which temporal differences are run. Paper: prop:subroutine_complexity.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TdSetting {
    /// σ: from anywhere, every pair of the neighbourhood is met `k0` steps later with at least this
    /// probability.
    pub sigma: f64,
    /// k₀.
    pub k0: usize,
    /// γ.
    pub gamma: f64,
    /// M_r, largest entry of the shadow reward.
    pub reward_bound: f64,
    /// |N_i|.
    pub neighbours: usize,
    /// |S_i| |A_i|, the largest in the neighbourhood.
    pub pairs: usize,
    /// Probability with which the bound may fail.
    pub delta: f64,
    /// K.
    pub steps: usize,
}

/// Step sizes h/(k + k₁) and what K steps with them reach. Paper: prop:subroutine_complexity.
///
/// The bound is stated for the truncated Q-function at fixed values outside the neighbourhood, to which
/// temporal differences do not converge (errata 3); read it as distance to their own fixed point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TdBound {
    /// h, the smallest that is allowed.
    pub h: f64,
    /// k₁, the smallest that is allowed with this h.
    pub k1: f64,
    /// C_i.
    pub c: f64,
    /// C_i'.
    pub c_prime: f64,
    /// C_i/√(K + k₁) + C_i'/(K + k₁), in the ∞-norm.
    pub error: f64,
}

impl TdBound {
    /// Transcribes eq:Q_prop_difference.
    pub fn new(setting: &TdSetting) -> Result<Self> {
        let TdSetting { sigma, k0, gamma, reward_bound, neighbours, pairs, delta, steps } = *setting;
        OpenUnit::check("sigma", sigma)?;
        OpenUnit::check("delta", delta)?;
        if !(0.0..1.0).contains(&gamma) {
            let message = format!("{gamma}; at least 0 and less than 1 is needed");
            return Err(Error::config(crate::base::key::GAMMA, message));
        }
        for (field, count) in [("k0", k0), ("steps", steps), ("neighbours", neighbours), ("pairs", pairs)] {
            if count == 0 {
                return Err(Error::config(field, "0; at least 1 is needed"));
            }
        }
        let (k0, steps) = (k0 as f64, steps as f64);
        let slack = 1.0 - gamma.sqrt();
        let h = f64::max(2.0, 1.0 / slack) / sigma;
        let k1 = (2.0 * h).max(4.0 * sigma * h).max(k0);
        let noise = 4.0 * reward_bound / (1.0 - gamma) + 2.0 * reward_bound;
        let chances = ln(2.0 * k0 * powi(steps, 2) / delta) + neighbours as f64 * ln(pairs as f64);
        let c = 6.0 * noise / slack * (h * k0 / sigma * chances).sqrt();
        let start = 2.0 * reward_bound / (1.0 - gamma) * (k0 + k1);
        let c_prime = 2.0 / slack * f64::max(16.0 * noise * h * k0 / sigma, start);
        let error = c / (steps + k1).sqrt() + c_prime / (steps + k1);
        Ok(TdBound { h, k1, c, c_prime, error })
    }
}

/// The next whole number, at least 1; what is above one by rounding only is taken for it.
fn whole(x: f64) -> f64 {
    (x * (1.0 - 1e-12)).ceil().max(1.0)
}

/// The smallest whole number from 1 on that is `enough`, where all larger ones are too; infinite if none is.
fn first_whole(enough: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0f64, 1.0f64);
    while high.is_finite() && !enough(high) {
        (low, high) = (high, 2.0 * high);
    }
    loop {
        let middle = f64::floor(low + (high - low) / 2.0);
        if middle <= low || middle >= high {
            return high;
        }
        *(if enough(middle) { &mut high } else { &mut low }) = middle;
    }
}

#[cfg(test)]
mod tests {
    use super::super::decay::tests::{Reference, assert_close, reference};
    use super::*;

    fn ring() -> (Constants, Ragged<u32>) {
        let Reference { case, dynamics, .. } = reference("ring5_weak");
        (Constants::new(&case.problem, &dynamics, case.mu_bar).unwrap(), case.groups)
    }

    #[test]
    fn steps_shrink_as_the_run_grows() {
        let (constants, _) = ring();
        let steps = Steps::constant(&constants, 1000);
        assert_close("eta_mu", steps.eta_mu, 10.0, 1e-15);
        let expected = 1.0 / (constants.l_tt + 40.0 * constants.l_tm.powi(2));
        assert_close("eta_theta", steps.eta_theta / expected, 1.0, 1e-14);
    }

    #[test]
    fn orders_by_hand() {
        let (constants, _) = ring();
        let plan = SamplePlan::orders(&constants, 0.01, 0.1).unwrap();
        assert_eq!(plan.iterations, 1000.0);
        assert_close("eta_mu", plan.steps.eta_mu, 10.0, 1e-14);
        // γ = 0.9, n = 5: ln 100 / ln (1/0.9) = 43.7, δ₀ = 0.1/10010, ln(1/δ₀) = 11.513925…
        let EstimatorInput { batch, horizon, delta0, eps0 } = plan.estimator;
        assert_eq!((batch, horizon), (115140.0, 44.0));
        assert_close("delta0", delta0 * 100_100.0, 1.0, 1e-14);
        assert_close("eps0", eps0, 0.1, 1e-15);
        assert_eq!(plan.literal_horizon, 5.0);
        assert_close("samples", plan.samples / (1000.0 * (115140.0 * 44.0 + 100.0)), 1.0, 1e-14);
    }

    #[test]
    fn explicit_sizes_are_enough_and_no_larger_than_needed() {
        let (constants, groups) = ring();
        for epsilon in [0.5, 0.01, 1e-4] {
            let plan = SamplePlan::explicit(&constants, &groups, epsilon, 0.1).unwrap();
            let reaches = |input: &EstimatorInput| {
                constants.eps_mu(input) <= epsilon.powi(2)
                    && spread(&groups) * constants.eps2(input) <= epsilon
            };
            let input = plan.estimator;
            assert!(reaches(&input), "{epsilon}: {input:?}");
            // Batches are large: one trajectory less makes a difference below rounding.
            assert!(!reaches(&EstimatorInput { batch: input.batch * (1.0 - 1e-9), ..input }));
            assert!(!reaches(&EstimatorInput { horizon: input.horizon / 2.0, ..input }));
            let orders = SamplePlan::orders(&constants, epsilon, 0.1).unwrap();
            assert!(plan.samples > orders.samples);
        }
    }

    #[test]
    fn temporal_differences_by_hand() {
        // 1 − √γ = 1/2, h = 2/σ, k₁ = 2h, ε̄ = 4 · 1.5/0.75 + 2 · 1.5 = 11 and h k₀/σ = 96.
        let setting = TdSetting {
            sigma: 0.25,
            k0: 3,
            gamma: 0.25,
            reward_bound: 1.5,
            neighbours: 2,
            pairs: 4,
            delta: 0.5,
            steps: 84,
        };
        let bound = TdBound::new(&setting).unwrap();
        assert_eq!((bound.h, bound.k1), (8.0, 16.0));
        let chances = (12.0 * 84f64 * 84.0).ln() + 2.0 * 4f64.ln();
        assert_close("C", bound.c, 132.0 * (96.0 * chances).sqrt(), 1e-14);
        assert_close("C'", bound.c_prime, 4.0 * 16.0 * 11.0 * 96.0, 1e-14);
        assert_close("error", bound.error, bound.c / 10.0 + bound.c_prime / 100.0, 1e-14);
        let longer = TdBound::new(&TdSetting { steps: 84_000_000, ..setting }).unwrap();
        assert!(longer.error < bound.error / 100.0);
    }

    #[test]
    fn impossible_requests_are_named() {
        let (constants, groups) = ring();
        let message = |result: Result<SamplePlan>| result.unwrap_err().to_string();
        assert_eq!(
            message(SamplePlan::orders(&constants, 1.0, 0.1)),
            "epsilon: 1; more than 0 and less than 1 is needed"
        );
        assert_eq!(
            message(SamplePlan::explicit(&constants, &groups, 0.1, f64::NAN)),
            "delta: NaN; more than 0 and less than 1 is needed"
        );
        let setting = TdSetting {
            sigma: 0.25,
            k0: 0,
            gamma: 0.25,
            reward_bound: 1.0,
            neighbours: 1,
            pairs: 1,
            delta: 0.5,
            steps: 1,
        };
        assert_eq!(TdBound::new(&setting).unwrap_err().to_string(), "k0: 0; at least 1 is needed");
    }
}

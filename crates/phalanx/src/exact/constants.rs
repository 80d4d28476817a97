//! Uniform bounds on utilities, and the Lipschitz constants and estimation errors that the theorems are made
//! of. Paper: assump:utility, prop:F_theta_smooth, lemma:properties, prop:estimators.

use serde::Serialize;

use super::decay::Decay;
use super::dynamics::Dynamics;
use super::input::EstimatorInput;
use super::layout::Layout;
use crate::Ragged;
use crate::base::elementary::{ln, pow, powi};
use crate::utility::UtilityBounds;
use crate::utility::problem::Problem;

/// M_π, the bound on ‖∇_{θ_i} log π_i‖₂, for tabular soft-max policies: √2, not the general 2 (errata 13).
/// Direct policies have none (errata 9). Paper: assump:policy.
pub const SCORE_BOUND: f64 = std::f64::consts::SQRT_2;

/// The constants of a problem with soft-max policies and multipliers in [0, μ̄], names as in the paper.
///
/// The paper has one constraint per agent. With up to m of them the weight of all multipliers together is
/// taken as m μ̄ in `l_tt` and `m_theta`; `l_tm` and the errors of the estimators are the paper's for m = 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Constants {
    /// L_θ, smoothness of f and g in θ. Paper: prop:F_theta_smooth with ℓ_ψ,1 = √n for n agents (errata 13).
    pub l_theta: f64,
    /// L_θθ. Paper: lemma:properties (III).
    pub l_tt: f64,
    /// L_θμ. Paper: lemma:properties (III).
    pub l_tm: f64,
    /// M_θ, bound on ‖∇_θ L‖₂. Paper: lemma:properties (II).
    pub m_theta: f64,
    /// M_r in the ∞-norm, as lemma:truncated_grad means it (errata 17).
    pub m_r_inf: f64,
    /// M_r in the 2-norm, as lemma:properties (I) means it (errata 17).
    pub m_r_2: f64,
    /// L_λ. Paper: assump:utility.
    pub l_lambda: f64,
    /// M_π, [`SCORE_BOUND`].
    pub m_pi: f64,
    #[serde(skip)]
    pub(super) agents: usize,
    #[serde(skip)]
    pub(super) gamma: f64,
    #[serde(skip)]
    mu_bar: f64,
}

/// Errors of the estimates from one batch, squared from `eps2` on. Paper: prop:estimators, eq:def_epsilon.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimators {
    /// ε₁: occupancies, in the 2-norm.
    pub eps1: f64,
    /// ε₂: one agent's policy gradient, sampling.
    pub eps2: f64,
    /// ε₃: one agent's policy gradient, truncation.
    pub eps3: f64,
    /// ε_μ: the dual gradient of all agents.
    pub eps_mu: f64,
    /// ε_θ: the policy gradient of all agents.
    pub eps_theta: f64,
}

impl Constants {
    /// `None` if some utility has no uniform bound, or if μ̄ is infinite (Paper: assump:dual_variable).
    pub fn new(problem: &Problem, dynamics: &Dynamics, mu_bar: f64) -> Option<Self> {
        if mu_bar.is_infinite() {
            return None;
        }
        let mut bounds = UtilityBounds { reward_inf: 0.0, reward_2: 0.0, l_lambda: 0.0 };
        let joint = Layout::of_states(dynamics, 0..dynamics.agents());
        for (i, agent) in problem.agents.iter().enumerate() {
            let start = joint.marginal(&dynamics.start, &Layout::of_states(dynamics, [i]));
            for utility in agent.utilities() {
                bounds = bounds.larger(UtilityBounds::new(utility, agent.space, &start)?);
            }
        }
        let constraints = problem.agents.iter().map(|agent| agent.constraints.len()).max()?;
        let weight = 1.0 + constraints.max(1) as f64 * mu_bar;
        let n = problem.agents.len() as f64;
        let q = 1.0 - problem.gamma;
        let UtilityBounds { reward_inf, reward_2, l_lambda } = bounds;
        let l_theta = 4.0 * l_lambda * n / powi(q, 4)
            + 8.0 * n * reward_inf / powi(q, 3)
            + 2.0 * n * reward_inf / powi(q, 2);
        let l_tm = reward_2 * SCORE_BOUND / powi(q, 2);
        Some(Constants {
            l_theta,
            l_tt: weight * l_theta,
            l_tm,
            m_theta: n.sqrt() * weight * l_tm,
            m_r_inf: reward_inf,
            m_r_2: reward_2,
            l_lambda,
            m_pi: SCORE_BOUND,
            agents: problem.agents.len(),
            gamma: problem.gamma,
            mu_bar,
        })
    }

    /// η_θ = 1/(L_θθ + 4 L_θμ² η_μ). Paper: thm:convergence.
    pub fn eta_theta(&self, eta_mu: f64) -> f64 {
        1.0 / (self.l_tt + 4.0 * powi(self.l_tm, 2) * eta_mu)
    }

    /// All errors for tables over `groups` (row i is N_i^{κ_q}). `None` where [`Decay::truncation`] has no
    /// bound.
    pub fn estimators(
        &self,
        input: &EstimatorInput,
        groups: &Ragged<u32>,
        decay: &Decay,
        kappa_q: usize,
    ) -> Option<Estimators> {
        let eps2 = self.eps2(input);
        // ε₃ = 4 [(1+μ̄) M_π c₀ φ₀^κ_q/(1−γ)]².
        let q_error = decay.truncation(self.m_r_inf, kappa_q)?.q_error();
        let eps3 = 4.0 * powi((1.0 + self.mu_bar) * self.m_pi * q_error / (1.0 - self.gamma), 2);
        Some(Estimators {
            eps1: eps1(input, self.gamma),
            eps2,
            eps3,
            eps_mu: self.eps_mu(input),
            eps_theta: spread(groups) * eps2 + self.agents as f64 * eps3,
        })
    }

    /// ε_μ = (M_r ε₁)²/n.
    pub(super) fn eps_mu(&self, input: &EstimatorInput) -> f64 {
        powi(self.m_r_2 * eps1(input, self.gamma), 2) / self.agents as f64
    }

    /// ε₂ = 4 [(1+μ̄) M_r M_π/(1−γ)²]² [((1−γ) ε₀ + L_λ ε₁/M_r)² + (2 − 8 log δ₀)/B + γ^{2H}].
    pub(super) fn eps2(&self, input: &EstimatorInput) -> f64 {
        let q = 1.0 - self.gamma;
        // M_r is multiplied in: it is 0 where all utilities are constant.
        let critic = q * input.eps0 * self.m_r_2 + self.l_lambda * eps1(input, self.gamma);
        let actor = (2.0 - 8.0 * ln(input.delta0)) / input.batch + pow(self.gamma, 2.0 * input.horizon);
        let weight = (1.0 + self.mu_bar) * self.m_pi / powi(q, 2);
        4.0 * powi(weight, 2) * (powi(critic, 2) + powi(self.m_r_2, 2) * actor)
    }
}

/// ε₁ = √((4 + 2 γ^{2H} B − 16 log δ₀)/((1−γ)² B)), the error of an occupancy estimate in the 2-norm. B may
/// be infinite. Paper: eq:def_epsilon.
pub fn eps1(input: &EstimatorInput, gamma: f64) -> f64 {
    let drawn = (4.0 - 16.0 * ln(input.delta0)) / input.batch;
    let cut = 2.0 * pow(gamma, 2.0 * input.horizon);
    (drawn + cut).sqrt() / (1.0 - gamma)
}

/// Σ_i |N_i|²/n².
pub(super) fn spread(groups: &Ragged<u32>) -> f64 {
    groups.iter().map(|group| powi(group.len() as f64 / groups.rows() as f64, 2)).sum()
}

#[cfg(test)]
mod tests {
    use super::super::decay::tests::{REFERENCES, Reference, assert_number, reference};
    use super::*;

    #[test]
    fn agrees_with_the_reference() {
        for name in REFERENCES {
            let Reference { case, dynamics, output, .. } = reference(name);
            let (eta_mu, input) = (case.algorithm.unwrap().eta_mu, case.estimator.unwrap());
            let decay = Decay::new(&dynamics, case.problem.gamma);
            let constants = Constants::new(&case.problem, &dynamics, case.mu_bar);
            let estimators = constants
                .as_ref()
                .and_then(|constants| constants.estimators(&input, &case.groups, &decay, case.kappa_q));
            assert_number(name, Some(eps1(&input, case.problem.gamma)), &output["eps1"], 1e-9);
            let expected = &output["constants"];
            assert_eq!(constants.is_none(), expected.is_null(), "{name}");
            for (field, found) in [
                ("L_theta", constants.map(|c| c.l_theta)),
                ("L_tt", constants.map(|c| c.l_tt)),
                ("L_tm", constants.map(|c| c.l_tm)),
                ("M_theta", constants.map(|c| c.m_theta)),
                ("eta_theta", constants.map(|c| c.eta_theta(eta_mu))),
                ("M_r_inf", constants.map(|c| c.m_r_inf)),
                ("M_r_2", constants.map(|c| c.m_r_2)),
                ("L_lambda", constants.map(|c| c.l_lambda)),
            ] {
                assert_number(&format!("{name}, {field}"), found, &expected[field], 1e-9);
            }
            let expected = &output["estimators"];
            assert_eq!(estimators.is_none(), expected.is_null(), "{name}");
            for (field, found) in [
                ("eps1", estimators.map(|e| e.eps1)),
                ("eps2", estimators.map(|e| e.eps2)),
                ("eps3", estimators.map(|e| e.eps3)),
                ("eps_mu", estimators.map(|e| e.eps_mu)),
                ("eps_theta", estimators.map(|e| e.eps_theta)),
            ] {
                assert_number(&format!("{name}, {field}"), found, &expected[field], 1e-9);
            }
        }
    }
}

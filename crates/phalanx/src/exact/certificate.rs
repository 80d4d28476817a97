//! How far influence travels in the closed loop of transitions *and* policies: a bound on the truncation
//! error that holds for κ-hop policies. Errata 1; it stands in for lemma:truncated_grad, which looks at
//! transitions only.

use super::constants::SCORE_BOUND;
use super::decay::{Decay, largest_change, last_before};
use super::dynamics::Dynamics;
use super::layout::Layout;
use super::system::identity_minus;
use crate::Ragged;
use crate::base::elimination::Dense;
use crate::policy::Tabular;

/// Bounds on how much an agent's Q-function depends on what happens outside its group N_i^{κ_q}.
///
/// Two copies of the graph that differ at agent k can be coupled so that after t steps they differ at agent
/// i with probability at most (C^t)_ik: an agent's next state follows the states and actions of its parents,
/// and their actions follow the states that their policies read.
#[derive(Debug, Clone)]
pub struct Certificate {
    /// B as `[i][k]`: the most that agent k's state changes π_i, in the 1-norm.
    pub policy_influence: Vec<Vec<f64>>,
    /// C = (I + B_offdiag/2)(M/2) as `[i][k]`.
    pub closed_loop: Vec<Vec<f64>>,
    /// Spectral radius of γ C. There is a certificate iff it is below 1.
    pub spectral_radius: f64,
    /// q_i = Σ_{k ∉ N_i^{κ_q}} K_ik with K = (I − γ C)⁻¹ − I; `None` without a certificate.
    pub outside: Option<Vec<f64>>,
    gamma: f64,
    /// |S_i| |A_i|.
    cells: Vec<usize>,
}

impl Certificate {
    /// For `policy` in the world of `dynamics` and `decay`; row i of `groups` is N_i^{κ_q}.
    /// Time that of the entries of B, |S_k| · numbers in π_i each, and O(agents³).
    pub fn new(dynamics: &Dynamics, decay: &Decay, policy: &Tabular, groups: &Ragged<u32>) -> Self {
        let n = dynamics.agents();
        let policy_influence = policy_influence(dynamics, policy);
        let mut closed_loop = vec![vec![0.0; n]; n];
        for i in 0..n {
            for k in 0..n {
                let through = if i == k { 1.0 } else { policy_influence[i][k] / 2.0 };
                for (c, m) in closed_loop[i].iter_mut().zip(&decay.influence[k]) {
                    *c += through * m / 2.0;
                }
            }
        }
        let gamma = decay.gamma;
        let discounted = Dense::from_fn(n, n, |i, k| gamma * closed_loop[i][k]);
        let spectral_radius = spectral_radius(&discounted);
        let outside = (spectral_radius < 1.0).then(|| {
            // K as (I − γ C)⁻¹ γ C: subtracting I would cost the digits of small entries.
            let k = identity_minus(n, |i, k| discounted[(i, k)]).solve(discounted);
            let far = |i: usize| (0..n as u32).filter(move |j| !groups.row(i).contains(j));
            // From 0: the sum of no numbers would be −0.
            (0..n).map(|i| far(i).fold(0.0, |sum, j| sum + k[(i, j as usize)])).collect()
        });
        let cells = (0..n).map(|i| dynamics.cells(i)).collect();
        Certificate { policy_influence, closed_loop, spectral_radius, outside, gamma, cells }
    }

    /// |Q_h(z) − Q_h(z')| ≤ (max r_h − min r_h) q_i for every shadow reward h of agent i and all pairs z, z'
    /// that agree on its group: a row per agent, f_i first, then every g_ik. Row i of `rewards` is
    /// `[1 + m_i][S_i][A_i]`, as in [`Signals::rewards`](crate::learn::shadow::Signals::rewards).
    pub fn q_deviations(&self, rewards: &Ragged<f64>) -> Option<Ragged<f64>> {
        let outside = self.outside.as_ref()?;
        Some(Ragged::from_rows(outside.iter().enumerate().map(|(i, q)| {
            rewards.row(i).chunks_exact(self.cells[i]).map(move |reward| oscillation(reward) * q)
        })))
    }

    /// Bounds the 2-norm of every agent's error of the truncated policy gradient, with tables at fixed values
    /// outside the groups: M_π/(n(1−γ)) Σ_j [dev(f_j) + Σ_k μ_jk dev(g_jk)], dev as in
    /// [`Certificate::q_deviations`].
    pub fn gradient_error(&self, rewards: &Ragged<f64>, mu: &Ragged<f64>) -> Option<f64> {
        let deviations = self.q_deviations(rewards)?;
        let weighted = deviations.iter().zip(mu.iter()).map(|(deviations, mu)| {
            deviations.iter().zip(std::iter::once(&1.0).chain(mu)).map(|(d, weight)| weight * d).sum::<f64>()
        });
        let n = self.cells.len() as f64;
        Some(SCORE_BOUND / (n * (1.0 - self.gamma)) * weighted.sum::<f64>())
    }
}

/// max − min. Only this part of a shadow reward matters to a gradient (errata 17).
fn oscillation(reward: &[f64]) -> f64 {
    let low = reward.iter().copied().fold(f64::INFINITY, f64::min);
    let high = reward.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    high - low
}

/// B_ik = max ‖π_i(· | … s_k …) − π_i(· | … s_k' …)‖₁ over both states and all states of the others that π_i
/// reads; 0 where it does not read k.
fn policy_influence(dynamics: &Dynamics, policy: &Tabular) -> Vec<Vec<f64>> {
    let mut influence = vec![vec![0.0; dynamics.agents()]; dynamics.agents()];
    for (i, row) in influence.iter_mut().enumerate() {
        let read = || policy.observations().agents(i);
        let states = Layout::of_states(dynamics, read());
        for k in read() {
            row[k] = largest_change(policy.probabilities(i), &states, &Layout::of_states(dynamics, [k]));
        }
    }
    influence
}

/// Spectral radius of a nonnegative matrix, to rounding. O(agents³) times the digits.
///
/// By bisection on whether t I − A is a nonsingular M-matrix. Unlike the eigenvalues of a general solver,
/// which lose all but a k-th of the digits where k agents influence each other in one direction only (a
/// nilpotent block), its pivots are as accurate as the entries of A.
fn spectral_radius(matrix: &Dense) -> f64 {
    let largest_row_sum = (0..matrix.rows()).map(|i| matrix.row(i).iter().sum::<f64>()).fold(0.0, f64::max);
    // The radius is no larger than the row sums; twice that is clearly past it.
    last_before(0.0, 2.0 * largest_row_sum, |t| is_above_radius(matrix, t))
}

/// Whether t exceeds the spectral radius of A ≥ 0: iff elimination of t I − A, in any order and without
/// exchanges, meets positive pivots only. Literature: Berman and Plemmons, Nonnegative Matrices in the
/// Mathematical Sciences, chapter 6, theorem 2.3.
fn is_above_radius(matrix: &Dense, t: f64) -> bool {
    let n = matrix.rows();
    // A, from which t I is subtracted at the pivots: what is eliminated stays nonnegative, and only there
    // something cancels.
    let mut rest = matrix.clone();
    for k in 0..n {
        let pivot = t - rest[(k, k)];
        if pivot <= 0.0 {
            return false;
        }
        for i in k + 1..n {
            let factor = rest[(i, k)] / pivot;
            for j in k + 1..n {
                // Skipping zeros keeps 0 · ∞ out where a tiny t makes factors overflow.
                if factor != 0.0 && rest[(k, j)] != 0.0 {
                    rest[(i, j)] += factor * rest[(k, j)];
                }
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::decay::tests::{
        REFERENCES, Reference, assert_close, assert_matrix, assert_number, reference,
    };
    use super::*;

    #[test]
    fn agrees_with_the_reference() {
        for name in REFERENCES {
            let Reference { case, dynamics, rewards, output } = reference(name);
            let expected = &output["closed_loop"];
            let decay = Decay::new(&dynamics, case.problem.gamma);
            let certificate = Certificate::new(&dynamics, &decay, &case.policy, &case.groups);
            assert_matrix(name, &certificate.policy_influence, &expected["B"]);
            assert_matrix(name, &certificate.closed_loop, &expected["C"]);
            let radius = &expected["spectral_radius_gamma_C"];
            assert_number(name, Some(certificate.spectral_radius), radius, 1e-9);
            let objectives = certificate
                .q_deviations(&rewards)
                .map(|rows| rows.iter().map(|row| row[0]).collect::<Vec<_>>());
            for (field, found) in [("q", &certificate.outside), ("dQf_certified", &objectives)] {
                assert_eq!(found.is_none(), expected[field].is_null(), "{name}, {field}");
                for (i, x) in found.iter().flatten().enumerate() {
                    assert_number(&format!("{name}, {field}"), Some(*x), &expected[field][i], 1e-9);
                }
            }
            let error = certificate.gradient_error(&rewards, &case.mu);
            assert_number(&format!("{name}, grad_certified"), error, &expected["grad_certified"], 1e-9);
        }
    }

    /// What the certificate promises, against errors found by enumeration.
    #[test]
    fn holds_where_the_lemma_fails() {
        let Reference { case, dynamics, rewards, output } = reference("lemma_counterexample");
        let decay = Decay::new(&dynamics, case.problem.gamma);
        let certificate = Certificate::new(&dynamics, &decay, &case.policy, &case.groups);
        let errors: Vec<f64> = serde_json::from_value(output["grad_error_fixed"].clone()).unwrap();
        let worst = errors.into_iter().fold(0.0, f64::max);
        let best = decay.best(1.0, case.kappa_q).unwrap();
        assert!(worst > decay.lemma_bound(&best, 0, 0.0));
        assert!(worst <= certificate.gradient_error(&rewards, &case.mu).unwrap());
    }

    fn radius<const N: usize>(rows: [[f64; N]; N]) -> f64 {
        spectral_radius(&Dense::from_fn(N, N, |i, j| rows[i][j]))
    }

    #[test]
    fn radii_of_matrices_by_hand() {
        assert_eq!(radius([[0.0; 3]; 3]), 0.0);
        assert_close("diagonal", radius([[0.3, 0.0], [0.0, 0.9]]), 0.9, 1e-15);
        assert_close("swap", radius([[0.0, 1.0], [1.0, 0.0]]), 1.0, 1e-15);
        assert_close("full", radius([[1.0, 2.0], [3.0, 4.0]]), (5.0 + 33f64.sqrt()) / 2.0, 1e-15);
        // Two blocks, one of which feeds the other.
        let reducible =
            [[0.1, 0.2, 5.0, 7.0], [0.3, 0.4, 6.0, 8.0], [0.0, 0.0, 0.1, 0.2], [0.0, 0.0, 0.3, 0.4]];
        assert_close("reducible", radius(reducible), (0.5 + 0.33f64.sqrt()) / 2.0, 1e-15);
    }

    #[test]
    fn one_way_influence_has_radius_zero_whatever_the_order_of_agents() {
        // Along a line visited in the order 0, 7, 14, 5, …: nilpotent, but not triangular.
        let n = 16;
        let mut chain = Dense::from_fn(n, n, |_, _| 0.0);
        for k in 0..n - 1 {
            chain[(7 * k % n, 7 * (k + 1) % n)] = 1.0;
        }
        assert_eq!(spectral_radius(&chain), 0.0);
        // Closed by a faint link, it has the 16th roots of its strength as eigenvalues.
        chain[(7 * (n - 1) % n, 0)] = 1e-16;
        assert_close("faint", spectral_radius(&chain), 0.1, 1e-14);
    }
}

//! How the influence of agents on each other's transitions decays with distance, and what that says about
//! truncation. Paper: assump:decay_transition, lemma:truncated_grad.
//!
//! The assumption is about transitions only. Under κ-hop policies with κ > 0 the bounds here can fail (errata
//! 1); those of [`Certificate`](super::Certificate) take the policies into account and hold.

use serde::Serialize;

use super::constants::SCORE_BOUND;
use super::dynamics::Dynamics;
use super::layout::Layout;
use crate::base::elementary::{exp, ln, pow};

/// M, the χ(ω) that it gives, and for which ω the assumption holds. Paper: assump:decay_transition.
#[derive(Debug, Clone)]
pub struct Decay {
    /// M as `[i][j]`: the most that agent j's state and action change ℙ_i, in the 1-norm.
    pub influence: Vec<Vec<f64>>,
    /// γ.
    pub gamma: f64,
    /// χ(0), the largest row sum of M.
    pub chi_at_0: f64,
    /// What χ(ω) must stay below.
    pub two_over_gamma: f64,
    /// sup{ω : χ(ω) < 2/γ}. `None`: the assumption fails. Infinite: nobody influences anybody at a distance.
    pub omega_sup: Option<f64>,
    /// The agent whose row sum is χ(0), the first of several.
    pub binding: usize,
    /// d(i, j) as `[i][j]`, 0 where there is no path.
    distances: Vec<Vec<f64>>,
}

/// c₀ φ₀^κ_q, the lemma's bound on the truncation error of a Q-function, at one ω. Paper:
/// lemma:truncated_grad.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TruncationBound {
    /// ω.
    pub omega: f64,
    /// χ(ω).
    pub chi: f64,
    /// c₀ = 2 γ χ M_r / (2 − γ χ).
    pub c0: f64,
    /// φ₀ = e^−ω.
    pub phi0: f64,
    /// κ_q.
    pub kappa_q: usize,
}

impl TruncationBound {
    /// c₀ φ₀^κ_q.
    pub fn q_error(&self) -> f64 {
        self.c0 * pow(self.phi0, self.kappa_q as f64)
    }
}

impl Decay {
    /// γ in [0, 1). Time O(|S_j| |A_j| · numbers in ℙ_i) for every agent i and every parent j of it.
    pub fn new(dynamics: &Dynamics, gamma: f64) -> Self {
        let known = |row: Vec<Option<u32>>| row.into_iter().map(|d| f64::from(d.unwrap_or(0))).collect();
        let mut decay = Decay {
            influence: influence(dynamics),
            gamma,
            chi_at_0: 0.0,
            two_over_gamma: 2.0 / gamma,
            omega_sup: None,
            binding: 0,
            distances: dynamics.graph.distances().map(known).collect(),
        };
        for i in 0..dynamics.agents() {
            let (sum, _) = decay.row(i, 0.0);
            if sum > decay.chi_at_0 {
                (decay.chi_at_0, decay.binding) = (sum, i);
            }
        }
        decay.omega_sup = decay.find_omega_sup();
        decay
    }

    /// χ(ω) = max_i Σ_j e^{ω d(i, j)} M_ij. Agents without a path between them count as if at distance 0.
    pub fn chi(&self, omega: f64) -> f64 {
        self.chi_and_slope(omega).0
    }

    /// The bound at ω = `omega_sup` / 2, for shadow rewards of size at most `reward_bound` (M_r, largest
    /// entry). `None` unless `omega_sup` is a finite number.
    pub fn truncation(&self, reward_bound: f64, kappa_q: usize) -> Option<TruncationBound> {
        let omega_sup = self.omega_sup.filter(|omega| omega.is_finite())?;
        Some(self.at(omega_sup / 2.0, reward_bound, kappa_q))
    }

    /// The bound at the ω that makes it smallest. `None` unless `omega_sup` is a finite number.
    ///
    /// ω = 0 stands for the limit ω → 0, from which the bound may only grow.
    pub fn best(&self, reward_bound: f64, kappa_q: usize) -> Option<TruncationBound> {
        let omega_sup = self.omega_sup.filter(|omega| omega.is_finite())?;
        // ln(c₀ φ₀^κ) = ln χ − ln(2 − γ χ) − κ ω + constant is convex, since ln χ is, as a maximum of
        // log-sum-exps: the sign of its slope, 2 χ'/(χ (2 − γ χ)) − κ, changes once. A search on values would
        // find ω to half the digits only.
        let grows = |omega: f64| {
            let (chi, slope) = self.chi_and_slope(omega);
            2.0 * slope >= kappa_q as f64 * chi * (2.0 - self.gamma * chi)
        };
        let omega = if grows(0.0) { 0.0 } else { last_before(0.0, omega_sup, grows) };
        Some(self.at(omega, reward_bound, kappa_q))
    }

    /// The lemma's bound on the error of a truncated policy gradient, (1 + m ‖μ‖_∞) M_π c₀ φ₀^κ_q / (1 − γ),
    /// where m is the largest number of constraints of an agent (at least 1) and `mu_max` the largest
    /// multiplier. Paper: lemma:truncated_grad, which has m = 1.
    pub fn lemma_bound(&self, bound: &TruncationBound, constraints: usize, mu_max: f64) -> f64 {
        let weight = 1.0 + constraints.max(1) as f64 * mu_max;
        weight * SCORE_BOUND * bound.q_error() / (1.0 - self.gamma)
    }

    fn at(&self, omega: f64, reward_bound: f64, kappa_q: usize) -> TruncationBound {
        let chi = self.chi(omega);
        let c0 = 2.0 * self.gamma * chi * reward_bound / (2.0 - self.gamma * chi);
        TruncationBound { omega, chi, c0, phi0: exp(-omega), kappa_q }
    }

    /// Σ_j e^{ω d(i, j)} M_ij and its derivative in ω.
    fn row(&self, i: usize, omega: f64) -> (f64, f64) {
        let terms = self.influence[i].iter().zip(&self.distances[i]);
        terms.filter(|(m, _)| **m > 0.0).fold((0.0, 0.0), |(sum, slope), (m, d)| {
            let term = exp(omega * d) * m;
            (sum + term, slope + d * term)
        })
    }

    /// χ(ω) and its derivative to the right.
    fn chi_and_slope(&self, omega: f64) -> (f64, f64) {
        let rows = (0..self.influence.len()).map(|i| self.row(i, omega));
        rows.fold((0.0, 0.0), |largest, row| if row > largest { row } else { largest })
    }

    fn find_omega_sup(&self) -> Option<f64> {
        if self.chi_at_0 >= self.two_over_gamma {
            return None;
        }
        // One entry alone brings its row to 2/γ where e^{ω d} M_ij = 2/γ.
        let entries = self.influence.iter().flatten().zip(self.distances.iter().flatten());
        let alone = entries
            .filter(|(m, d)| **m > 0.0 && **d > 0.0)
            .map(|(m, d)| ln(self.two_over_gamma / m) / d)
            .fold(f64::INFINITY, f64::min);
        if alone.is_infinite() {
            return Some(f64::INFINITY);
        }
        Some(last_before(0.0, alone, |omega| self.chi(omega) >= self.two_over_gamma))
    }
}

/// M_ij = max ‖ℙ_i(· | … s_j, a_j …) − ℙ_i(· | … s_j', a_j' …)‖₁ over both pairs and all values of the other
/// parents; 0 where j is no parent of i.
fn influence(dynamics: &Dynamics) -> Vec<Vec<f64>> {
    let mut influence = vec![vec![0.0; dynamics.agents()]; dynamics.agents()];
    for (i, row) in influence.iter_mut().enumerate() {
        let pairs = Layout::of_pairs(dynamics, dynamics.parents_of(i));
        for j in dynamics.parents_of(i) {
            row[j] = largest_change(dynamics.laws.row(i), &pairs, &Layout::of_pairs(dynamics, [j]));
        }
    }
    influence
}

/// Largest ‖p − q‖₁ between two of the `laws`, one per entry of `layout`, whose entries differ in `varied`
/// alone.
pub(super) fn largest_change(laws: &[f64], layout: &Layout, varied: &Layout) -> f64 {
    let width = laws.len() / layout.size() as usize;
    let law = |row: u32| &laws[row as usize * width..][..width];
    let offsets = varied.positions_in(layout);
    let mut largest = 0.0;
    for first in layout.only(|var| !varied.contains(var)).positions_in(layout) {
        for (k, one) in offsets.iter().enumerate() {
            for other in &offsets[..k] {
                let pairs = law(first + one).iter().zip(law(first + other));
                largest = f64::max(largest, pairs.map(|(p, q)| (p - q).abs()).sum());
            }
        }
    }
    largest
}

/// The last number before `past` becomes true, by bisection to neighbouring doubles; `past` is false at `low`
/// and true at `high`.
pub(super) fn last_before(mut low: f64, mut high: f64, past: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return low;
        }
        *(if past(middle) { &mut high } else { &mut low }) = middle;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::Ragged;
    use crate::exact::Case;
    use crate::learn::shadow::Signals;
    use crate::world::{Line, Start, Table};

    pub const REFERENCES: [&str; 7] = [
        "grid2x3",
        "lemma_counterexample",
        "line3_entropy",
        "line4_mixed_utilities",
        "paper_line5",
        "ring5_weak",
        "star4_joint_rho",
    ];

    /// A reference model with what was computed for it by enumeration.
    pub struct Reference {
        pub case: Case,
        pub dynamics: Dynamics,
        /// Shadow rewards at the file's occupancies.
        pub rewards: Ragged<f64>,
        pub output: Value,
    }

    pub fn reference(name: &str) -> Reference {
        let path = format!("{}/tests/reference/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let case = Case::read(Path::new(&path)).unwrap();
        let mut file: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let output = file["output"].take();
        let lambda: Vec<Vec<f64>> = serde_json::from_value(output["lambda"].clone()).unwrap();
        let mut signals = Signals::new(&case.problem);
        signals.evaluate(&case.problem, &Ragged::from_rows(lambda), 1.0);
        Reference { dynamics: Dynamics::new(&case.world).unwrap(), rewards: signals.rewards, case, output }
    }

    /// |x − y| ≤ `tolerance` (1 + |y|).
    pub fn assert_close(what: &str, x: f64, y: f64, tolerance: f64) {
        assert!((x - y).abs() <= tolerance * (1.0 + y.abs()), "{what}: {x} is not {y}");
    }

    /// The same for tables and for numbers that may be missing (`null`), to 1e-9.
    pub fn assert_matrix(what: &str, found: &[Vec<f64>], expected: &Value) {
        let expected: Vec<Vec<f64>> = serde_json::from_value(expected.clone()).unwrap();
        assert_eq!(found.len(), expected.len(), "{what}");
        for (x, y) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert_close(what, *x, *y, 1e-9);
        }
    }

    pub fn assert_number(what: &str, found: Option<f64>, expected: &Value, tolerance: f64) {
        assert_eq!(found.is_some(), !expected.is_null(), "{what}: {found:?} is not {expected}");
        if let (Some(x), Some(y)) = (found, expected.as_f64()) {
            assert_close(what, x, y, tolerance);
        }
    }

    #[test]
    fn distances_agree_with_the_reference() {
        for name in REFERENCES {
            let reference = reference(name);
            let expected: Vec<Vec<i64>> = serde_json::from_value(reference.output["dist"].clone()).unwrap();
            let found: Vec<Vec<i64>> = reference
                .dynamics
                .graph
                .distances()
                .map(|row| row.iter().map(|d| d.map_or(-1, i64::from)).collect())
                .collect();
            assert_eq!(found, expected, "{name}");
        }
    }

    #[test]
    fn agrees_with_the_reference() {
        for name in REFERENCES {
            let Reference { case, dynamics, rewards, output } = reference(name);
            let expected = &output["decay"];
            let decay = Decay::new(&dynamics, case.problem.gamma);
            assert_matrix(name, &decay.influence, &expected["M"]);
            let reward_bound = rewards.data().iter().fold(0.0, |largest, r| f64::max(largest, r.abs()));
            let mu_max = case.mu.data().iter().copied().fold(0.0, f64::max);
            let constraints = case.mu.iter().map(<[f64]>::len).max().unwrap();
            let bound = decay.truncation(reward_bound, case.kappa_q);
            let best = decay.best(reward_bound, case.kappa_q);
            let lemma = bound.map(|bound| decay.lemma_bound(&bound, constraints, mu_max));
            for (field, found, tolerance) in [
                ("chi_at_0", Some(decay.chi_at_0), 1e-9),
                ("two_over_gamma", Some(decay.two_over_gamma), 1e-9),
                ("omega_sup", decay.omega_sup, 1e-9),
                ("M_r_point_inf", Some(reward_bound), 1e-9),
                ("omega", bound.map(|bound| bound.omega), 1e-9),
                ("chi", bound.map(|bound| bound.chi), 1e-9),
                ("c0", bound.map(|bound| bound.c0), 1e-9),
                ("phi0", bound.map(|bound| bound.phi0), 1e-9),
                ("lemma_bound", lemma, 1e-9),
                ("best_c0phi", best.map(|best| best.q_error()), 1e-9),
                ("best_omega", best.map(|best| best.omega), 1e-6),
            ] {
                assert_number(&format!("{name}, {field}"), found, &expected[field], tolerance);
            }
        }
    }

    fn line(agents: usize, mix: f64, gamma: f64) -> Decay {
        let world = Line::new(agents, Start::Uniform, mix).unwrap();
        Decay::new(&Dynamics::new(&world).unwrap(), gamma)
    }

    /// Errata 2: on the paper's line mixed with weight α, e^ω may grow to min{1/(γ(1−α)), 5/(γ(1−α)) − 5}.
    #[test]
    fn the_line_needs_mixing() {
        assert_eq!(line(4, 0.0, 0.99).omega_sup, None);
        assert_eq!(line(4, 0.157, 0.99).omega_sup, None);
        for (mix, gamma) in [(0.0, 0.7), (0.0, 0.82), (0.16, 0.99), (0.3, 0.99)] {
            let decay = line(4, mix, gamma);
            assert_eq!(decay.binding, 1);
            assert_close("chi_at_0", decay.chi_at_0, 2.4 * (1.0 - mix), 1e-14);
            let scale = gamma * (1.0 - mix);
            let expected = (1.0 / scale).min(5.0 / scale - 5.0).ln();
            assert_close("omega_sup", decay.omega_sup.unwrap(), expected, 1e-13);
        }
    }

    /// With e^ω = x, χ is the larger of 2 x (agent 0) and 2 + 0.4 x (agent 1) times 1 − α, and
    /// 2 χ' − κ χ (2 − γ χ) changes sign at the best ω.
    #[test]
    fn the_best_bound_by_hand() {
        // Where agent 1 has the larger row the sign changes at 0.6 x = χ (2 − 0.9 χ), χ = 1.5 + 0.3 x:
        // 0.081 x² + 0.81 x − 0.975 = 0.
        let smooth = line(4, 0.25, 0.9).best(3.0, 1).unwrap();
        let x = (-0.81 + (0.81f64.powi(2) + 4.0 * 0.081 * 0.975).sqrt()) / (2.0 * 0.081);
        assert_close("omega", smooth.omega, x.ln(), 1e-14);
        assert_close("chi", smooth.chi, 1.5 + 0.3 * x, 1e-14);
        assert_close("c0", smooth.c0, 5.4 * smooth.chi / (2.0 - 0.9 * smooth.chi), 1e-13);
        assert_close("phi0", smooth.phi0, 1.0 / x, 1e-14);
        // It jumps where agent 0 takes over, at x = 1.25.
        let kink = line(4, 0.3, 0.9).best(3.0, 1).unwrap();
        assert_close("omega", kink.omega, 1.25f64.ln(), 1e-14);
        // Nothing is gained by ω > 0 if φ₀ is raised to the power 0.
        let decay = line(4, 0.3, 0.9);
        let own = decay.best(3.0, 0).unwrap();
        assert_eq!((own.omega, own.chi), (0.0, decay.chi_at_0));
    }

    fn two_agents(edges: &str, parents: &str, transition: &str, gamma: f64) -> Decay {
        let model = format!(
            r#"{{"n": 2, "state_sizes": [2, 2], "action_sizes": [1, 1], "edges": {edges}, "parents": {parents},
                "transition": {transition}, "rho": {{"kind": "product", "local": [[1, 0], [1, 0]]}}}}"#
        );
        let world = Table::new(serde_json::from_str(&model).unwrap()).unwrap();
        Decay::new(&Dynamics::new(&world).unwrap(), gamma)
    }

    #[test]
    fn influence_without_distance_does_not_limit_omega() {
        // Each agent keeps its state.
        let apart = two_agents("[[0, 1]]", "[[0], [1]]", "[[1, 0, 0, 1], [1, 0, 0, 1]]", 0.9);
        assert_eq!(apart.influence, [[2.0, 0.0], [0.0, 2.0]]);
        assert_eq!(apart.omega_sup, Some(f64::INFINITY));
        assert!(apart.truncation(1.0, 1).is_none() && apart.best(1.0, 1).is_none());
        // Agent 0 copies agent 1 with probability 3/4, but no path links them.
        let unlinked =
            two_agents("[]", "[[0, 1], [1]]", "[[1, 0, 0.25, 0.75, 0.75, 0.25, 0, 1], [1, 0, 0, 1]]", 0.9);
        assert_eq!(unlinked.influence, [[0.5, 1.5], [0.0, 2.0]]);
        assert_eq!(unlinked.omega_sup, Some(f64::INFINITY));
        let linked = two_agents(
            "[[0, 1]]",
            "[[0, 1], [1]]",
            "[[1, 0, 0.25, 0.75, 0.75, 0.25, 0, 1], [1, 0, 0, 1]]",
            0.9,
        );
        assert_close("omega_sup", linked.omega_sup.unwrap(), ((2.0 / 0.9 - 0.5) / 1.5f64).ln(), 1e-14);
        // Myopic agents: χ may be anything.
        let myopic = line(3, 0.0, 0.0);
        assert_eq!((myopic.two_over_gamma, myopic.omega_sup), (f64::INFINITY, Some(f64::INFINITY)));
    }
}

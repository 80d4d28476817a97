//! What truncation costs: the error of the policy gradient by κ_q, as predicted, certified and measured.

use serde::Serialize;

use super::{Feasibility, Point};
use crate::base::elementary::powi;
use crate::exact::{Truncated, Truncation};
use crate::policy::Policy;
use crate::{Ragged, Result};

/// Most rows of the table.
const MOST_ROWS: usize = 6;

/// Most table entries that are read for one gradient: a few seconds.
const LARGEST_WORK: f64 = 3e8;

/// Errors of truncated policy gradients, largest over agents in the 2-norm. Paper: lemma:truncated_grad.
#[derive(Debug, Clone, Serialize)]
pub struct TruncationCheck {
    /// At which multipliers.
    pub multipliers: Multipliers,
    /// M_r: the largest entry of a shadow reward at this policy.
    pub reward_bound: f64,
    /// max_i ‖∇_{θ_i} L‖₂, to compare errors with.
    pub gradient: f64,
    /// By κ_q, from 0 towards the diameter.
    pub rows: Vec<TruncationRow>,
}

/// Where the multipliers come from at which gradients are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Multipliers {
    /// They were given, by a run, a file or `dual.mu_0`.
    Given,
    /// Those of the optimum.
    Optimal,
    /// All 1, because nothing better is known.
    Ones,
}

/// The errors at one κ_q.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TruncationRow {
    /// κ_q.
    pub kappa_q: usize,
    /// Agents in the largest neighbourhood.
    pub neighbours: usize,
    /// The lemma's bound at its best ω; it can be exceeded (errata 1). `None` if the decay assumption fails.
    pub predicted: Option<f64>,
    /// The closed-loop certificate's bound; `None` if there is none.
    pub certified: Option<f64>,
    /// Measured, with everybody else held at 0; `None` if the tables are too large.
    pub fixed: Option<f64>,
    /// Measured, with everybody else averaged.
    pub averaged: Option<f64>,
}

/// The multipliers at which gradients are compared: those given unless they are all 0, else the optimal ones.
pub(super) fn multipliers(point: &Point<'_>, feasibility: &Feasibility) -> (Multipliers, Ragged<f64>) {
    let given = point.subject.mu;
    if given.data().is_empty() || given.data().iter().any(|&mu| mu > 0.0) {
        return (Multipliers::Given, given.clone());
    }
    let optimal: Option<Vec<f64>> =
        feasibility.constraints.iter().map(|constraint| constraint.multiplier).collect();
    let (source, numbers) = match optimal {
        Some(optimal) => (Multipliers::Optimal, optimal),
        None => (Multipliers::Ones, vec![1.0; given.data().len()]),
    };
    let mut mu = given.clone();
    mu.data_mut().copy_from_slice(&numbers);
    (source, mu)
}

impl TruncationCheck {
    pub(super) fn new(point: &Point<'_>, multipliers: Multipliers, mu: &Ragged<f64>) -> Self {
        let whole = point.chain.action_values(point.values, mu);
        let truth = point.gradient(&whole);
        let none = Ragged::zeros_like(&truth);
        let rows = radii(point.sizes.diameter, point.subject.kappa_q);
        TruncationCheck {
            multipliers,
            reward_bound: point.reward_bound(),
            gradient: largest_distance(&truth, &none),
            rows: rows.map(|kappa_q| TruncationRow::new(point, kappa_q, mu, &truth)).collect(),
        }
    }
}

/// From 0 to the diameter, the one in use among them.
fn radii(diameter: usize, in_use: usize) -> impl Iterator<Item = usize> {
    let last = MOST_ROWS - 1;
    (0..=diameter.min(last))
        .map(move |kappa_q| if kappa_q == last { last.max(in_use.min(diameter)) } else { kappa_q })
}

impl TruncationRow {
    fn new(point: &Point<'_>, kappa_q: usize, mu: &Ragged<f64>, truth: &Ragged<f64>) -> Self {
        let groups = point.chain.system.dynamics.graph.neighbourhoods(kappa_q);
        let constraints = mu.iter().map(<[f64]>::len).max().unwrap_or(0);
        let largest_mu = mu.data().iter().copied().fold(0.0, f64::max);
        let bound = point.decay.best(point.reward_bound(), kappa_q).filter(|_| point.has_bounded_score());
        // The only errors left are tables that are too large.
        let quick = work(point, &groups) <= LARGEST_WORK;
        let measure = |kind| quick.then(|| measured(point, &groups, kind, mu, truth).ok()).flatten();
        TruncationRow {
            kappa_q,
            neighbours: groups.iter().map(<[u32]>::len).max().unwrap_or(0),
            predicted: bound.map(|bound| point.decay.lemma_bound(&bound, constraints, largest_mu)),
            certified: point.certified(&point.certificate(&groups), mu),
            fixed: measure(Truncation::Fixed),
            averaged: measure(Truncation::Averaged),
        }
    }
}

/// Entries that [`Chain::truncated_action_values`](crate::exact::Chain::truncated_action_values) reads: a
/// table row per joint state, for every receiver and sender.
fn work(point: &Point<'_>, groups: &Ragged<u32>) -> f64 {
    let actions = point.subject.policy.action_counts();
    let joint = |group: &[u32]| group.iter().map(|&k| actions[k as usize] as f64).product::<f64>();
    let sent = |receiver: &[u32]| receiver.iter().map(|&j| joint(groups.row(j as usize))).sum::<f64>();
    point.sizes.joint_states as f64 * groups.iter().map(sent).sum::<f64>()
}

fn measured(
    point: &Point<'_>,
    groups: &Ragged<u32>,
    kind: Truncation,
    mu: &Ragged<f64>,
    truth: &Ragged<f64>,
) -> Result<f64> {
    let tables = point.tables(groups, kind, &point.chain.state_occupancy)?;
    let cut = point.gradient(&point.chain.truncated_action_values(&tables, mu, groups));
    Ok(largest_distance(truth, &cut))
}

impl Point<'_> {
    /// Truncated Q tables over `groups`, averaged with the given weights of joint states where they average.
    pub(super) fn tables(
        &self,
        groups: &Ragged<u32>,
        kind: Truncation,
        weights: &[f64],
    ) -> Result<Ragged<f64>> {
        let truncated = Truncated::new(self.chain.system, self.subject.policy, groups, kind)?;
        Ok(truncated.tables(self.chain, self.values, weights))
    }

    /// ∇L; for direct policies less what is the same for all actions, which moves nothing on a simplex.
    fn gradient(&self, action_values: &Ragged<f64>) -> Ragged<f64> {
        self.chain.ascent(action_values, 1.0 / self.sizes.agents as f64)
    }
}

/// max_i ‖a_i − b_i‖₂.
fn largest_distance(a: &Ragged<f64>, b: &Ragged<f64>) -> f64 {
    let square = |(a, b): (&[f64], &[f64])| a.iter().zip(b).map(|(a, b)| powi(a - b, 2)).sum::<f64>();
    a.iter().zip(b.iter()).map(square).fold(0.0, f64::max).sqrt()
}

#[cfg(test)]
mod tests {
    use super::radii;

    #[test]
    fn rows_hold_the_radius_in_use() {
        let rows = |diameter, in_use| radii(diameter, in_use).collect::<Vec<_>>();
        assert_eq!(rows(0, 3), [0]);
        assert_eq!(rows(4, 1), [0, 1, 2, 3, 4]);
        assert_eq!(rows(9, 1), [0, 1, 2, 3, 4, 5]);
        assert_eq!(rows(9, 7), [0, 1, 2, 3, 4, 7]);
        assert_eq!(rows(9, 20), [0, 1, 2, 3, 4, 9]);
    }
}

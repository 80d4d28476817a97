//! Whether the constraints can be met, what that costs, and how large multipliers get.

use serde::Serialize;

use super::{Point, found};
use crate::exact::{largest_slacks, optimum, slater_point};
use crate::learn::agent_metrics::Violations;

/// With more joint pairs the program of every constraint alone is left out: they would take minutes together.
const QUICK_PAIRS: u128 = 1 << 14;

/// The constrained optimum over all policies, beside the policy at hand. Paper: eq:dec_prob,
/// lemma:boundedness_dual.
///
/// Multipliers are in the units of `dual.mu_max`: those of L = (1/n) Σ_i [f_i + Σ_k μ_ik g_ik], divided by
/// `shadow_scale` where a constraint has one.
#[derive(Debug, Clone, Serialize)]
pub struct Feasibility {
    /// Why something below is missing.
    pub notes: Vec<String>,
    /// F of the policy at hand.
    pub objective: f64,
    /// Its Σ max(0, −g).
    pub violation_total: f64,
    /// F*, an upper bound for κ-hop policies (errata 10).
    pub optimum: Option<f64>,
    /// F* − F: negative if the policy at hand gains by violating constraints.
    pub gap: Option<f64>,
    /// ξ = max over policies of the smallest g: positive if Slater's condition holds; `None` too without
    /// constraints.
    pub slater_margin: Option<f64>,
    /// No optimal multiplier is larger: n (F* − F of the Slater point)/ξ. Paper: lemma:boundedness_dual.
    pub dual_bound: Option<f64>,
    /// Upper end of U.
    pub mu_max: f64,
    /// Whether U is too small for an optimal multiplier.
    pub mu_max_too_small: Option<bool>,
    /// Whether every `largest_slack` is over all policies. Else it is over all occupancies of the right mass,
    /// whether the world lets them happen or not.
    pub slacks_over_policies: bool,
    /// Every g_ik.
    pub constraints: Vec<ConstraintCheck>,
}

/// One constraint.
#[derive(Debug, Clone, Serialize)]
pub struct ConstraintCheck {
    /// i.
    pub agent: usize,
    /// Its name.
    pub constraint: String,
    /// g_ik of the policy at hand.
    pub slack: f64,
    /// The largest g_ik if nothing else mattered.
    pub largest_slack: Option<f64>,
    /// μ*_ik.
    pub multiplier: Option<f64>,
}

impl Feasibility {
    pub(super) fn new(point: &Point<'_>) -> Self {
        let (subject, signals) = (point.subject, point.signals);
        let (dynamics, problem) = (&point.chain.system.dynamics, subject.problem);
        let mut notes = Vec::new();
        let slater = found(slater_point(dynamics, problem), &mut notes);
        let best = found(optimum(dynamics, problem), &mut notes);
        let pairs = point.sizes.joint_actions.saturating_mul(dynamics.joint_states as u128);
        let alone =
            (pairs <= QUICK_PAIRS).then(|| found(largest_slacks(dynamics, problem), &mut notes)).flatten();
        let mass = 1.0 / (1.0 - problem.gamma);
        let mut constraints = Vec::new();
        let mut largest_per_unit = 0f64;
        for (i, agent) in problem.agents.iter().enumerate() {
            for (k, constraint) in agent.constraints.iter().enumerate() {
                let range = || constraint.utility.range(agent.space, mass);
                let in_range =
                    || range().map(|range| constraint.bound.slack(constraint.bound.easiest(range)));
                // A constraint whose shadow reward is not used has no multiplier that would do.
                let unit = Some(1.0 / constraint.shadow.scale).filter(|unit| unit.is_finite() && *unit > 0.0);
                largest_per_unit = largest_per_unit.max(unit.unwrap_or(0.0));
                constraints.push(ConstraintCheck {
                    agent: i,
                    constraint: constraint.name.to_string(),
                    slack: signals.slack.row(i)[k],
                    largest_slack: alone.as_ref().map_or_else(in_range, |alone| Some(alone.row(i)[k])),
                    multiplier: best.as_ref().zip(unit).map(|(best, unit)| unit * best.multipliers.row(i)[k]),
                });
            }
        }
        let objective = signals.objective.iter().sum::<f64>() / signals.objective.len() as f64;
        let optimum = best.as_ref().map(|best| best.value);
        let mut feasibility = Feasibility {
            notes,
            objective,
            violation_total: Violations::from_slack(&signals.slack).total,
            optimum,
            gap: optimum.map(|optimum| optimum - objective),
            slater_margin: slater.as_ref().map(|slater| slater.margin).filter(|margin| margin.is_finite()),
            dual_bound: slater
                .zip(best)
                .and_then(|(slater, best)| slater.multiplier_bound(&best))
                .map(|bound| bound * largest_per_unit),
            mu_max: subject.mu_max,
            mu_max_too_small: None,
            slacks_over_policies: alone.is_some(),
            constraints,
        };
        let largest = feasibility.largest_multiplier().and_then(|largest| largest.multiplier);
        feasibility.mu_max_too_small = largest.map(|largest| largest > subject.mu_max);
        feasibility
    }

    /// The constraint with the largest multiplier.
    pub fn largest_multiplier(&self) -> Option<&ConstraintCheck> {
        let known = self.constraints.iter().filter(|constraint| constraint.multiplier.is_some());
        known.max_by(|a, b| a.multiplier.unwrap_or(0.0).total_cmp(&b.multiplier.unwrap_or(0.0)))
    }
}

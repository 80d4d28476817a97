//! Multipliers. Paper: alg:pdac line 7, eq:dual_update.

use serde::{Deserialize, Serialize};

use crate::base::fields::{Field, Fields};
use crate::base::range::{NonNegative, UpperEnd};
use crate::base::schedule::Schedule;
use crate::utility::problem::Problem;
use crate::{Error, Ragged, Result};

/// Which update.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DualKind {
    /// μ ← P_U(centre − η_μ·g): the paper's, without memory. Its limit violates an active constraint by
    /// (μ − centre)/η_μ (errata 4).
    Proximal,
    /// μ ← P_U(μ − η_μ·g): projected gradient descent.
    Descent,
    /// μ ← P_U(I − η_μ·g), I ← P_U(I − η_I·g): the integral term removes the proximal update's bias.
    Pi,
}

/// `[dual]`: step sizes and bounds of the update.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DualSettings {
    /// `proximal`, `descent` or `pi`.
    pub kind: DualKind,
    /// η_μ.
    pub eta_mu: NonNegative,
    /// η_I: integral gain of `pi`.
    pub eta_integral: NonNegative,
    /// U = [0, mu_max]; `inf` for none.
    pub mu_max: UpperEnd,
    /// Start of every multiplier.
    pub mu_0: NonNegative,
    /// μ₀ of the `proximal` term ‖μ − μ₀‖².
    pub centre: NonNegative,
    /// Slack that multipliers aim at: every g ≥ margin instead of g ≥ 0, against estimation noise. Violations
    /// are reported without it.
    pub margin: NonNegative,
    /// Change of η_μ (and the integral gain) over the iterations.
    pub schedule: Schedule,
    /// Factor on g, which follows from the scaling: 1/n in the paper's, else 1.
    #[serde(skip)]
    pub slack_factor: f64,
}

impl Default for DualSettings {
    fn default() -> Self {
        DualSettings {
            kind: DualKind::Pi,
            eta_mu: NonNegative(10.0),
            eta_integral: NonNegative(0.5),
            mu_max: UpperEnd(50.0),
            mu_0: NonNegative(0.0),
            centre: NonNegative(0.0),
            margin: NonNegative(0.0),
            schedule: Schedule::default(),
            slack_factor: 1.0,
        }
    }
}

/// Name of the key with the upper end of U.
pub const MU_MAX: &str = "dual.mu_max";

impl DualSettings {
    /// Whether multipliers start and are drawn to where they may be.
    pub fn check(&self) -> Result<()> {
        for (field, value) in [("dual.mu_0", *self.mu_0), ("dual.centre", *self.centre)] {
            if value > *self.mu_max {
                return Err(Error::config(field, format!("{value} is above {MU_MAX} = {}", *self.mu_max)));
            }
        }
        Ok(())
    }

    /// Multipliers that stay where they start: a step of length 0 around a centre stays there.
    pub fn held(self) -> Self {
        DualSettings { kind: DualKind::Proximal, eta_mu: NonNegative(0.0), centre: self.mu_0, ..self }
    }
}

/// The multipliers and what their update remembers.
#[derive(Debug, Clone, PartialEq)]
pub struct Dual {
    /// μ_ik, a row per agent.
    pub mu: Ragged<f64>,
    /// The integral term of `pi`.
    pub integral: Ragged<f64>,
    /// Slacks that single constraints aim at, on top of the margin of all; none if they are all 0.
    margins: Vec<f64>,
}

impl Dual {
    /// Starts every multiplier (and integral) at `mu_0`.
    pub fn new(constraints: &[usize], mu_0: f64) -> Self {
        let mut mu: Ragged<f64> = Ragged::zeros(constraints.iter().copied());
        mu.data_mut().fill(mu_0);
        Dual { integral: mu.clone(), mu, margins: Vec::new() }
    }

    /// With the margins of the constraints of `problem`.
    pub fn with_margins(self, problem: &Problem) -> Self {
        let constraints = || problem.agents.iter().flat_map(|agent| &agent.constraints);
        let has_margins = constraints().any(|constraint| constraint.margin != 0.0);
        let margins = constraints().filter(|_| has_margins).map(|constraint| constraint.margin);
        Dual { margins: margins.collect(), ..self }
    }

    /// What it remembers.
    pub(crate) fn fields(&mut self) -> Fields<'_> {
        vec![("dual.mu", Field::Rows(&mut self.mu)), ("dual.integral", Field::Rows(&mut self.integral))]
    }

    /// μ^{t+1} from g̃^t. Every agent uses its own g̃_ik and μ_ik only. `schedule` scales η_μ and η_I.
    pub fn update(&mut self, rule: &DualSettings, slack: &Ragged<f64>, schedule: f64) {
        let project = |mu: f64| mu.clamp(0.0, *rule.mu_max);
        let states = self.mu.data_mut().iter_mut().zip(self.integral.data_mut());
        for (place, ((mu, integral), &g)) in states.zip(slack.data()).enumerate() {
            let own = self.margins.get(place).copied().unwrap_or_default();
            let gradient = rule.slack_factor * (g - (*rule.margin + own));
            let step = schedule * *rule.eta_mu * gradient;
            match rule.kind {
                DualKind::Proximal => *mu = project(*rule.centre - step),
                DualKind::Descent => *mu = project(*mu - step),
                DualKind::Pi => {
                    *mu = project(*integral - step);
                    *integral = project(*integral - schedule * *rule.eta_integral * gradient);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(kind: DualKind, slacks: &[f64]) -> Vec<f64> {
        let rule = DualSettings {
            kind,
            eta_mu: NonNegative(2.0),
            eta_integral: NonNegative(0.5),
            mu_max: UpperEnd(3.0),
            centre: NonNegative(0.25),
            slack_factor: 0.5,
            ..DualSettings::default()
        };
        let mut dual = Dual::new(&[1], 1.0);
        slacks
            .iter()
            .map(|&g| {
                dual.update(&rule, &Ragged::from_rows([[g]]), 1.0);
                dual.mu.row(0)[0]
            })
            .collect()
    }

    #[test]
    fn a_margin_is_aimed_at() {
        let slacks = [0.5, 0.75, -0.25];
        let aim = |margin: f64| {
            let rule = DualSettings {
                kind: DualKind::Descent,
                eta_mu: NonNegative(1.0),
                mu_max: UpperEnd(9.0),
                margin: NonNegative(margin),
                ..DualSettings::default()
            };
            let mut dual = Dual::new(&[1], 1.0);
            slacks.map(|g| {
                dual.update(&rule, &Ragged::from_rows([[g]]), 1.0);
                dual.mu.row(0)[0]
            })
        };
        assert_eq!(aim(0.0), [0.5, 0.0, 0.25]);
        assert_eq!(aim(0.5), [1.0, 0.75, 1.5]);
    }

    #[test]
    fn each_update_by_hand() {
        let slacks = [-1.0, -1.0, 2.0, -8.0];
        assert_eq!(run(DualKind::Proximal, &slacks), [1.25, 1.25, 0.0, 3.0]);
        assert_eq!(run(DualKind::Descent, &slacks), [2.0, 3.0, 1.0, 3.0]);
        // I: 1, 1.25, 1.5, 1.0.
        assert_eq!(run(DualKind::Pi, &slacks), [2.0, 2.25, 0.0, 3.0]);
    }
}

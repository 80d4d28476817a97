//! What a typed configuration must satisfy before anything is built.

use super::{Algorithm, Config, CriticKind, CriticStep, StepRuleKind};
use crate::actor::Baseline;
use crate::exact::Truncation;
use crate::optimizer::OptimizerKind;
use crate::policy::Parameterisation;
use crate::schedule::Schedule;
use crate::{Error, Result};

impl Config {
    pub(super) fn check(&self) -> Result<()> {
        let at_least_one = [
            ("iterations", self.iterations),
            ("horizon", self.horizon),
            ("batch", self.batch),
            ("critic.steps", self.critic.steps),
            ("evaluation.episodes", self.evaluation.episodes),
        ];
        for (field, value) in at_least_one {
            if value == 0 {
                return Err(Error::config(field, "0; at least 1 is needed"));
            }
        }
        for (field, value, limit) in [
            ("iterations", self.iterations as u64, u64::from(u32::MAX)),
            ("batch", self.batch as u64, (1 << 24) - 2),
            ("evaluation.episodes", self.evaluation.episodes as u64, (1 << 24) - 2),
        ] {
            if value > limit {
                return Err(Error::config(field, format!("{value}; at most {limit} is possible")));
            }
        }
        if let Some(gamma) = self.gamma {
            check_gamma("gamma", gamma)?;
        }
        let not_negative = [
            ("policy.init_std", self.policy.init_std),
            ("dual.eta_mu", self.dual.eta_mu),
            ("dual.eta_integral", self.dual.eta_integral),
            ("dual.mu_0", self.dual.mu_0),
            ("dual.centre", self.dual.centre),
            ("actor.eta_theta", self.actor.eta_theta),
        ];
        for (field, value) in not_negative {
            if !(value.is_finite() && value >= 0.0) {
                return Err(Error::config(
                    field,
                    format!("{value}; a finite number of at least 0 is needed"),
                ));
            }
        }
        if self.dual.mu_max.is_nan() || self.dual.mu_max < 0.0 {
            return Err(Error::config("dual.mu_max", format!("{}; at least 0 is needed", self.dual.mu_max)));
        }
        for (field, value) in [("dual.mu_0", self.dual.mu_0), ("dual.centre", self.dual.centre)] {
            if value > self.dual.mu_max {
                return Err(Error::config(
                    field,
                    format!("{value} is above dual.mu_max = {}", self.dual.mu_max),
                ));
            }
        }
        if self.checkpoint.seconds.is_nan() || self.checkpoint.seconds < 0.0 {
            let message = format!("{}; at least 0 is needed", self.checkpoint.seconds);
            return Err(Error::config("checkpoint.seconds", message));
        }
        check_schedule("dual.schedule", self.dual.schedule)?;
        check_schedule("actor.schedule", self.actor.schedule)?;
        self.check_critic()?;
        self.check_exact()?;
        if let Some([low, high]) = self.policy.theta_box {
            if low > high || low == f64::INFINITY || high == f64::NEG_INFINITY {
                return Err(Error::config("policy.box", format!("[{low}, {high}] holds no number")));
            }
            if self.policy.kind == Parameterisation::Direct {
                return Err(Error::config(
                    "policy.box",
                    "is for `softmax`; `direct` is projected onto the simplex",
                ));
            }
        }
        Ok(())
    }

    /// What only the exact algorithm can do, or cannot.
    fn check_exact(&self) -> Result<()> {
        let exact = self.algorithm == Algorithm::Exact;
        if self.actor.rule != StepRuleKind::Constant {
            let rule = if self.actor.rule == StepRuleKind::Theorem { "theorem" } else { "local" };
            let needs = [
                ("algorithm", "exact", exact),
                ("actor.optimizer", "sgd", self.actor.optimizer == OptimizerKind::Sgd),
                ("policy.kind", "softmax", self.policy.kind == Parameterisation::Softmax),
                ("dual.mu_max", "finite", self.dual.mu_max.is_finite()),
            ];
            if let Some((key, value, _)) = needs.iter().find(|(_, _, met)| !met) {
                return Err(Error::config("actor.rule", format!("`{rule}` needs {key} = {value}")));
            }
        }
        if !exact && self.critic.kind == CriticKind::Exact && self.critic.truncation == Truncation::None {
            return Err(Error::config(
                "critic.truncation",
                "`none` is for algorithm = \"exact\"; a critic has tables over neighbourhoods: use fixed, averaged or td, \
                 with a larger kappa_q if less is to be cut off",
            ));
        }
        Ok(())
    }

    fn check_critic(&self) -> Result<()> {
        let critic = &self.critic;
        if !(critic.ridge > 0.0 && critic.ridge.is_finite()) {
            return Err(Error::config(
                "critic.ridge",
                format!("{}; a number above 0 is needed", critic.ridge),
            ));
        }
        for (field, value) in [("critic.h", critic.h), ("critic.k1", critic.k1)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::config(field, format!("{value}; a finite number above 0 is needed")));
            }
        }
        if critic.kind == CriticKind::Td {
            let (field, first) = match critic.step {
                CriticStep::Harmonic => ("critic.h / critic.k1", critic.h / critic.k1),
                CriticStep::Constant => ("critic.eta_q", critic.eta_q),
            };
            if !(first > 0.0 && first <= 1.0) {
                return Err(Error::config(
                    field,
                    format!("the first step is {first}; allowed is above 0, up to 1"),
                ));
            }
        }
        let baseline = self.actor.baseline;
        if critic.kind == CriticKind::Montecarlo {
            if baseline == Some(Baseline::Counterfactual) {
                return Err(Error::config(
                    "actor.baseline",
                    "`counterfactual` needs Q at other actions, which `montecarlo` cannot tell; use `mean` or `none`",
                ));
            }
            if self.policy.kind == Parameterisation::Direct {
                return Err(Error::config(
                    "policy.kind",
                    "`direct` needs Q at other actions, which `montecarlo` cannot tell; use `td` or `lstd`",
                ));
            }
        }
        Ok(())
    }
}

/// γ ∈ [0, 1).
pub(in crate::run) fn check_gamma(field: &str, gamma: f64) -> Result<()> {
    if (0.0..1.0).contains(&gamma) {
        return Ok(());
    }
    Err(Error::config(field, format!("{gamma}; a discount factor of at least 0 and below 1 is needed")))
}

fn check_schedule(field: &str, schedule: Schedule) -> Result<()> {
    match schedule {
        Schedule::Linear { hold, end } if !((0.0..=1.0).contains(&hold) && end >= 0.0 && end.is_finite()) => {
            Err(Error::config(field, format!("hold = {hold} must be in 0 to 1 and end = {end} at least 0")))
        }
        Schedule::Power { exponent } | Schedule::Total { exponent } if !exponent.is_finite() => {
            Err(Error::config(field, format!("exponent = {exponent} must be finite")))
        }
        _ => Ok(()),
    }
}

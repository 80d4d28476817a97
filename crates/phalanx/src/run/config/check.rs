//! What a typed configuration must satisfy before anything is built.

use super::{Algorithm, Config, CriticKind, CriticSolver, CriticStep, PolicyKind, StepRuleKind};
use crate::base::schedule::Schedule;
use crate::exact::Truncation;
use crate::learn::optimizer::OptimizerKind;
use crate::policy::Baseline;
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
            ("policy.output_gain", self.policy.output_gain),
            ("dual.eta_mu", self.dual.eta_mu),
            ("dual.eta_integral", self.dual.eta_integral),
            ("dual.mu_0", self.dual.mu_0),
            ("dual.centre", self.dual.centre),
            ("dual.margin", self.dual.margin),
            ("actor.eta_theta", self.actor.eta_theta),
            ("actor.entropy", self.actor.entropy),
            ("critic.learning_rate", self.critic.learning_rate),
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
        check_schedule("actor.entropy_schedule", self.actor.entropy_schedule)?;
        for (field, clip) in [("actor.clip", self.actor.clip), ("critic.clip", self.critic.clip)] {
            if clip.is_nan() || clip <= 0.0 {
                return Err(Error::config(
                    field,
                    format!("{clip}; a number above 0 is needed, `inf` for none"),
                ));
            }
        }
        if self.kappa_g > self.kappa_q {
            let message = format!("{} is above kappa_q = {}", self.kappa_g, self.kappa_q);
            return Err(Error::config("kappa_g", message));
        }
        let sampled_only = [
            ("kappa_g", self.kappa_g < self.kappa_q),
            ("occupancy_average", self.occupancy_average > 0.0),
            ("actor.normalise", self.actor.normalise),
            ("actor.discount", !self.actor.discount),
        ];
        if let Some((field, _)) =
            sampled_only.iter().find(|(_, set)| *set && self.algorithm == Algorithm::Exact)
        {
            return Err(Error::config(*field, "is for algorithm = \"primal-dual\""));
        }
        if self.kappa_g < self.kappa_q && self.critic.kind == CriticKind::Network && self.critic.merged {
            return Err(Error::config("kappa_g", "must be kappa_q with critic.merged: one network has both"));
        }
        self.check_critic()?;
        self.check_exact()?;
        self.check_layers()?;
        self.check_mappo()?;
        if let Some([low, high]) = self.policy.theta_box {
            if low > high || low == f64::INFINITY || high == f64::NEG_INFINITY {
                return Err(Error::config("policy.box", format!("[{low}, {high}] holds no number")));
            }
            if self.policy.kind == PolicyKind::Direct {
                return Err(Error::config(
                    "policy.box",
                    "is for `softmax`; `direct` is projected onto the simplex",
                ));
            }
        }
        Ok(())
    }

    /// MAPPO-Lagrangian's own keys, and what it takes over from others.
    fn check_mappo(&self) -> Result<()> {
        self.mappo.check()?;
        check_schedule("mappo.decay", self.mappo.decay)?;
        if self.algorithm == Algorithm::MappoL && self.policy.kind != PolicyKind::Network {
            return Err(Error::config("policy.kind", "algorithm = \"mappo-l\" needs `network`"));
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
                ("policy.kind", "softmax", self.policy.kind == PolicyKind::Softmax),
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

    /// What goes with linear and network models, and what they need.
    fn check_layers(&self) -> Result<()> {
        let (policy, critic) = (&self.policy, &self.critic);
        let tables = policy.kind.parameterisation().is_some();
        if !tables && (self.algorithm == Algorithm::Exact || critic.kind == CriticKind::Exact) {
            let message = "exact computations enumerate tables; use `softmax` or `direct`";
            return Err(Error::config("policy.kind", message));
        }
        if policy.theta_box.is_some() && policy.kind == PolicyKind::Network {
            return Err(Error::config("policy.box", "is for `softmax` and `linear`"));
        }
        let by_table = self.actor.all_actions || policy.kind == PolicyKind::Direct;
        if self.actor.normalise && (by_table || self.actor.baseline == Some(Baseline::Counterfactual)) {
            let message = "is for actors that look at the action taken alone: baseline `mean` or `none`, no \
                           `all_actions`, no `direct`";
            return Err(Error::config("actor.normalise", message));
        }
        if self.actor.entropy > 0.0 && policy.kind == PolicyKind::Direct {
            return Err(Error::config("actor.entropy", "is for soft-max policies; `direct` has none"));
        }
        if self.actor.entropy > 0.0 && self.algorithm == Algorithm::Exact {
            return Err(Error::config("actor.entropy", "is for algorithm = \"primal-dual\""));
        }
        let of_policy = (policy.kind == PolicyKind::Network, "policy", policy.embedding, policy.row_hidden);
        let networks = matches!(critic.kind, CriticKind::Network | CriticKind::Returns);
        let of_critic = (networks, "critic", critic.embedding, critic.row_hidden);
        let widths = [&policy.hidden, &critic.hidden];
        for ((used, section, embedding, row_hidden), hidden) in [of_policy, of_critic].into_iter().zip(widths)
        {
            let named = [("embedding".to_string(), embedding), ("row_hidden".to_string(), row_hidden)];
            let hidden = hidden.iter().enumerate().map(|(k, &width)| (format!("hidden.{k}"), width));
            let widest = 1 << 16;
            let possible = |width: usize| (1..=widest).contains(&width);
            let mut all = named.into_iter().chain(hidden);
            if let Some((key, width)) = all.find(|(_, width)| used && !possible(*width)) {
                let message = format!("{width}; a layer has 1 to {widest} units");
                return Err(Error::config(format!("{section}.{key}"), message));
            }
        }
        if critic.minibatch == 0
            && critic.kind == CriticKind::Network
            && critic.optimizer != OptimizerKind::Sgd
        {
            let message =
                "`adam` needs minibatches; set critic.minibatch above 0, or critic.optimizer = \"sgd\"";
            return Err(Error::config("critic.optimizer", message));
        }
        if critic.passes == 0 || critic.passes > u32::MAX as usize {
            let message = format!("{}; 1 to {} are possible", critic.passes, u32::MAX);
            return Err(Error::config("critic.passes", message));
        }
        let (_, chains) = self.chains();
        let most = (1 << 24) - 2 - self.batch;
        if matches!(critic.kind, CriticKind::Linear | CriticKind::Network) && chains > most {
            let (episode, steps) = (critic.episode, critic.steps);
            let message = format!("{episode} makes {chains} chains of critic.steps = {steps}");
            return Err(Error::config("critic.episode", format!("{message}; at most {most} are possible")));
        }
        Ok(())
    }

    /// Transitions of each chain of a linear or network critic, and their number: K altogether, rounded up.
    pub(in crate::run) fn chains(&self) -> (usize, usize) {
        let (steps, episode) = (self.critic.steps, self.critic.episode);
        let length = if episode == 0 { steps } else { episode.min(steps) };
        (length, steps.div_ceil(length.max(1)))
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
        if !(0.0..=1.0).contains(&critic.lambda) {
            return Err(Error::config("critic.lambda", format!("{}; allowed are 0 to 1", critic.lambda)));
        }
        if critic.kind == CriticKind::Returns && critic.minibatch == 0 {
            let message = "0; `returns` learns in minibatches of at least 1";
            return Err(Error::config("critic.minibatch", message));
        }
        let shares = [
            ("occupancy_average", self.occupancy_average, 1.0),
            ("critic.average", critic.average, 1.0),
            ("critic.polyak", critic.polyak, 1.0),
        ];
        for (field, share, below) in shares {
            if !(0.0..below).contains(&share) {
                return Err(Error::config(
                    field,
                    format!("{share}; a share of at least 0 and below 1 is needed"),
                ));
            }
        }
        let by_td = critic.kind == CriticKind::Linear && critic.solver == CriticSolver::Td;
        if critic.kind == CriticKind::Td || by_td {
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
        let sampled = match critic.kind {
            CriticKind::Montecarlo => Some("montecarlo"),
            CriticKind::Returns => Some("returns"),
            _ => None,
        };
        if let Some(kind) = sampled {
            let needs = format!("Q at other actions, which `{kind}` cannot tell");
            if baseline == Some(Baseline::Counterfactual) {
                let message = format!("`counterfactual` needs {needs}; use `mean` or `none`");
                return Err(Error::config("actor.baseline", message));
            }
            if self.actor.all_actions {
                let message = format!("needs {needs}; use another critic");
                return Err(Error::config("actor.all_actions", message));
            }
            if self.policy.kind == PolicyKind::Direct {
                let message = format!("`direct` needs {needs}; use `td` or `lstd`");
                return Err(Error::config("policy.kind", message));
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
        Schedule::Linear { hold, end, .. }
            if !((0.0..=1.0).contains(&hold) && end >= 0.0 && end.is_finite()) =>
        {
            Err(Error::config(field, format!("hold = {hold} must be in 0 to 1 and end = {end} at least 0")))
        }
        Schedule::Linear { hold, until, .. } if !((0.0..=1.0).contains(&until) && until >= hold) => {
            Err(Error::config(field, format!("until = {until} must be at least hold = {hold} and at most 1")))
        }
        Schedule::Power { exponent } | Schedule::Total { exponent } if !exponent.is_finite() => {
            Err(Error::config(field, format!("exponent = {exponent} must be finite")))
        }
        _ => Ok(()),
    }
}

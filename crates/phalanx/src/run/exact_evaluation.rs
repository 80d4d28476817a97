//! Exact evaluation of a policy, where the graph is small enough.

use serde::{Deserialize, Serialize};

use super::evaluate::Evaluator;
use super::outcome::number_or_null;
use crate::algorithm::mean_return;
use crate::base::error::ensure;
use crate::exact::{Domain, Dynamics, Stationarity, System};
use crate::learn::agent_metrics::Violations;
use crate::policy::{Policy, Tabular};
use crate::{Error, Ragged, Result};

/// Networks of more joint states are not evaluated exactly unless asked to: it would take longer than many a
/// run.
pub const QUICK_JOINT_SPACE: usize = 1 << 12;

/// Nor those where one expectation over next states takes more multiplications than this.
const QUICK_WORK: usize = 1 << 21;

/// Nor those where a whole episode does.
const QUICK_EPISODE: usize = 1 << 33;

/// What a policy is worth, without sampling error. Occupancies are those of the whole discounted future.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ExactEvaluation {
    /// Expected undiscounted return over an episode, mean over agents, if the world has the channel `reward`.
    #[serde(rename = "return")]
    pub return_: Option<f64>,
    /// F(θ).
    pub objective: f64,
    /// Σ max(0, −g).
    pub violation_total: f64,
    /// The largest violation.
    pub violation_max: f64,
    /// The mean violation.
    pub violation_mean: f64,
    /// 𝒳 of eq:metrics.
    #[serde(rename = "X", deserialize_with = "number_or_null")]
    pub x: f64,
    /// 𝒴.
    #[serde(rename = "Y", deserialize_with = "number_or_null")]
    pub y: f64,
    /// ℰ = 𝒳² + 𝒴².
    #[serde(rename = "E", deserialize_with = "number_or_null")]
    pub e: f64,
    /// λ_i; empty if the rest was read from a file.
    #[serde(skip)]
    pub occupancy: Ragged<f64>,
}

impl Evaluator {
    /// The policy evaluated exactly; none if it has no tables, or the graph is too large for that to be a
    /// matter of seconds at most. Fails where the equations cannot be solved, or have no finite solution.
    pub fn exact(&self) -> Result<Option<ExactEvaluation>> {
        let states = Dynamics::count_joint_states(self.world());
        let is_small = states.is_some_and(|states| states <= QUICK_JOINT_SPACE);
        let Some(policy) = self.policy().tabular().filter(|_| is_small) else { return Ok(None) };
        let Ok(system) = System::new(self.world(), self.problem(), policy) else { return Ok(None) };
        let (work, horizon) = (system.work(), self.config().horizon);
        if work > QUICK_WORK || work.saturating_mul(horizon) > QUICK_EPISODE {
            return Ok(None);
        }
        let found = self.exact_in(&system, policy)?;
        let ExactEvaluation { return_, objective, violation_total, x, y, e, .. } = found;
        let numbers = [return_.unwrap_or(0.0), objective, violation_total, x, y, e];
        ensure(numbers.iter().all(|x| x.is_finite()), || {
            Error::config(
                "utilities",
                "the exact values are beyond all numbers; use smaller rewards and scales",
            )
        })?;
        Ok(Some(found))
    }

    fn exact_in(&self, system: &System, policy: &Tabular) -> Result<ExactEvaluation> {
        let (world, mu, config) = (self.world(), self.mu(), self.config());
        let chain = system.under(policy)?;
        let signals = chain.signals(self.problem());
        let values = chain.values(&signals.rewards)?;
        let mut whole = chain.action_values(&values, mu);
        chain.add_event_values(self.problem(), mu, None, &mut whole);
        let gradient = chain.gradient(&whole, policy.parameterisation(), 1.0 / policy.agents() as f64);
        let domain = Domain::for_policy(policy, config.policy.theta_box());
        let Stationarity { x, y, e } =
            Stationarity::new(&gradient, domain, mu, &signals.slack, *config.dual.mu_max);
        let mut rewards = world.channels().iter().filter(|channel| channel.name == "reward");
        let return_ = rewards.any(|channel| channel.tables().is_some()).then(|| {
            let mut law = system.dynamics.start.to_vec();
            let mut visits = vec![0.0; law.len()];
            for _ in 0..config.horizon {
                visits.iter_mut().zip(&law).for_each(|(sum, p)| *sum += p);
                law = chain.advance(&law);
            }
            mean_return(world, &chain.local(&visits), 1.0)
        });
        let violations = Violations::from_slack(&signals.slack);
        Ok(ExactEvaluation {
            return_: return_.flatten(),
            objective: signals.objective.iter().sum::<f64>() / signals.objective.len() as f64,
            violation_total: violations.total,
            violation_max: violations.max,
            violation_mean: violations.mean,
            x,
            y,
            e,
            occupancy: chain.occupancy(),
        })
    }
}

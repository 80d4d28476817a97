//! Temporal-difference learning of truncated Q tables. Paper: alg:subroutine, eq:td_learning.

use serde::{Deserialize, Serialize};

use super::{
    Critic, CriticContext, CriticInput, CriticSettings, QTables, QValues, SampleRequest, StepsKeys,
    TableLearning,
};
use crate::base::fields::{Field, Fields};
use crate::base::range::Positive;
use crate::base::section::Keys;
use crate::learn::shadow::reward_column;
use crate::policy::columns::pair_column;
use crate::{Error, Result};

/// Which step sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StepKind {
    Harmonic,
    Constant,
}

/// Step sizes η_Q^k: keys of `[critic]` on TD (td, linear).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StepSettings {
    /// `harmonic` or `constant`.
    step: StepKind,
    /// h of the harmonic rule.
    h: Positive,
    /// k1 of the harmonic rule.
    k1: Positive,
    /// The constant rule's step.
    eta_q: f64,
}

impl Default for StepSettings {
    fn default() -> Self {
        StepSettings { step: StepKind::Harmonic, h: Positive(50.0), k1: Positive(100.0), eta_q: 0.3 }
    }
}

impl StepSettings {
    /// h/(k + k1), as in prop:subroutine_complexity; near-constant when h and k1 are large.
    pub fn harmonic(h: f64, k1: f64) -> Self {
        StepSettings { step: StepKind::Harmonic, h: Positive(h), k1: Positive(k1), ..Default::default() }
    }

    /// The same step throughout.
    pub fn constant(eta_q: f64) -> Self {
        StepSettings { step: StepKind::Constant, eta_q, ..Default::default() }
    }

    /// η_Q^k.
    pub fn step(&self, k: usize) -> f64 {
        match self.step {
            StepKind::Harmonic => *self.h / (k as f64 + *self.k1),
            StepKind::Constant => self.eta_q,
        }
    }

    /// Whether steps are at most 1, beyond which TD need not converge.
    pub(super) fn check(&self) -> Result<()> {
        let field = match self.step {
            StepKind::Harmonic => "critic.h / critic.k1",
            StepKind::Constant => "critic.eta_q",
        };
        let first = self.step(0);
        if first > 0.0 && first <= 1.0 {
            return Ok(());
        }
        Err(Error::config(field, format!("the first step is {first}; allowed is above 0, up to 1")))
    }
}

/// Where TD starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Start {
    /// From the last iteration's tables.
    #[default]
    Warm,
    /// From zero, as Algorithm 2 says.
    Cold,
}

/// Keys of `[critic]` on where TD starts (td).
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
struct StartKeys {
    /// `warm` or `cold`.
    start: Start,
}

/// The settings of `td`.
#[derive(Debug)]
pub struct TdSettings {
    samples: StepsKeys,
    from: StartKeys,
    sizes: StepSettings,
}

impl TdSettings {
    pub(crate) fn read(keys: &mut Keys) -> Result<Self> {
        Ok(TdSettings { samples: keys.read()?, from: keys.read()?, sizes: keys.read()? })
    }
}

impl CriticSettings for TdSettings {
    fn check(&self, _batch: usize, _is_exact: bool) -> Result<()> {
        self.sizes.check()
    }

    fn build(&self, context: CriticContext<'_>) -> Result<Box<dyn Critic>> {
        let CriticContext { world, problem, kappa_q, .. } = context;
        let tables = QTables::new(world, kappa_q, problem)?;
        let is_warm = self.from.start == Start::Warm;
        Ok(Box::new(Td::new(tables, *self.samples.steps, self.sizes, is_warm)))
    }
}

/// Algorithm 2: K updates along one trajectory from the uniform ρ₀.
///
/// It converges to the aggregated fixed point over (s, a)_{N_j^{κ_q}}, not to the paper's Q with outside
/// agents held fixed (errata 3).
#[derive(Debug)]
pub struct Td {
    tables: QTables,
    /// η_Q^0 … η_Q^{K−1}.
    steps: Vec<f64>,
    /// Start from the last iteration's tables instead of zero.
    warm: bool,
}

impl Td {
    /// TD on the given tables with K = `steps` updates an evaluation.
    pub fn new(tables: QTables, steps: usize, rule: StepSettings, warm: bool) -> Self {
        Td { tables, steps: (0..steps).map(|k| rule.step(k)).collect(), warm }
    }
}

/// One agent's columns.
#[derive(Default)]
struct TdWorkspace {
    pairs: Vec<u32>,
    own: Vec<u32>,
    column: Vec<f64>,
}

impl Critic for Td {
    fn samples(&self) -> SampleRequest {
        SampleRequest::chains(1, self.steps.len())
    }

    fn table_learning(&self) -> Option<TableLearning<'_>> {
        Some(TableLearning { tables: &self.tables, steps: &self.steps, is_warm: self.warm })
    }

    fn learn(&mut self, evidence: CriticInput<'_>) -> Result<()> {
        let (steps, warm, signals) = (&self.steps, self.warm, evidence.signals);
        self.tables.for_each_agent(|j, index, tables, TdWorkspace { pairs, own, column }| {
            if !warm {
                tables.fill(0.0);
            }
            let (rewards, actions, gamma) = (signals.rewards.row(j), signals.actions[j], signals.gamma);
            let cells = rewards.len() / (tables.len() / index.size(j));
            let mut first = 0;
            for trajectory in evidence.evaluation {
                let steps = &steps[first..];
                first += trajectory.transitions();
                pair_column(index.terms(j), None, trajectory, trajectory.steps(), pairs);
                own.clear();
                let own_pairs = trajectory.states(j).iter().zip(trajectory.actions(j));
                own.extend(own_pairs.map(|(&s, &a)| u32::from(s) * actions as u32 + u32::from(a)));
                for (q, reward) in tables.chunks_exact_mut(index.size(j)).zip(rewards.chunks_exact(cells)) {
                    if trajectory.channels() > 0 {
                        // What a step pays is then no table over the own pair, but one over the steps.
                        reward_column(reward, trajectory, j, actions, trajectory.steps(), column);
                        own.clear();
                        own.extend(0..column.len() as u32);
                        learn(q, column, pairs, own, steps, gamma, trajectory.ended());
                    } else {
                        learn(q, reward, pairs, own, steps, gamma, trajectory.ended());
                    }
                }
            }
        });
        Ok(())
    }

    fn fields(&mut self) -> Fields<'_> {
        if self.warm { vec![("critic", Field::Rows(&mut self.tables.tables.all))] } else { Vec::new() }
    }

    fn values(&self) -> &dyn QValues {
        &self.tables
    }

    fn values_mut(&mut self) -> &mut dyn QValues {
        &mut self.tables
    }
}

/// eq:td_learning for k = 1 … K: Q(z^{k−1}) += η^{k−1}·(r(z^{k−1}) + γ·Q(z^k) − Q(z^{k−1})).
///
/// `pairs` number (s, a) of the neighbourhood, `own` the agent's own pair, which its reward is a table of.
/// After the last pair of an episode that `ended` comes nothing: Q = 0.
pub fn learn(
    q: &mut [f64],
    reward: &[f64],
    pairs: &[u32],
    own: &[u32],
    steps: &[f64],
    gamma: f64,
    ended: bool,
) {
    for ((z, &own), &eta) in pairs.windows(2).zip(own).zip(steps) {
        let (now, next) = (z[0] as usize, z[1] as usize);
        let target = reward[own as usize] + gamma * q[next];
        q[now] += eta * (target - q[now]);
    }
    if let (true, Some(&last), Some(&own), Some(&eta)) =
        (ended, pairs.last(), own.last(), steps.get(pairs.len() - 1))
    {
        q[last as usize] += eta * (reward[own as usize] - q[last as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_by_hand() {
        let mut q = [0.0, 10.0];
        // z: 0 → 1 → 1 → 0, rewards 1 and 2 by own pair.
        learn(&mut q, &[1.0, 2.0], &[0, 1, 1, 0], &[0, 1, 0, 1], &[0.5, 0.25, 0.1], 0.9, false);
        let first = 0.5 * (1.0 + 0.9 * 10.0);
        let second = 10.0 + 0.25 * (2.0 + 0.9 * 10.0 - 10.0);
        let third = second + 0.1 * (1.0 + 0.9 * first - second);
        assert_eq!(q, [first, third]);
        // One more step, after which the episode ends.
        let mut ended = [0.0, 10.0];
        learn(&mut ended, &[1.0, 2.0], &[0, 1, 1, 0], &[0, 1, 0, 1], &[0.5, 0.25, 0.1, 0.2], 0.9, true);
        assert_eq!(ended, [first + 0.2 * (2.0 - first), third]);
    }

    #[test]
    fn step_rules() {
        let harmonic = StepSettings::harmonic(2.0, 4.0);
        assert_eq!([harmonic.step(0), harmonic.step(4)], [0.5, 0.25]);
        assert_eq!(StepSettings::constant(0.3).step(9), 0.3);
    }
}

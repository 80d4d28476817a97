//! Safety while learning: an agent that breaks a bound goes back towards its last safe policy.

use serde::{Deserialize, Serialize};

use crate::base::fields::{Field, Fields};
use crate::base::range::{Fraction, Share};
use crate::distributed::Halo;
use crate::graph::Graph;
use crate::policy::Policy;
use crate::{Ragged, Result};

/// What keeps agents safe while they learn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShieldKind {
    /// Multipliers alone.
    #[default]
    None,
    /// Back towards the last safe policy, until the bound holds again.
    Revert,
}

/// `[safety]`: what happens while learning.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SafetySettings {
    /// `none` or `revert`.
    pub shield: ShieldKind,
    /// Share of the running estimate of every slack that is kept at an iteration.
    pub shield_average: Share,
    /// Share of the way to the last safe policy that an agent goes back in an iteration.
    pub shield_rate: Fraction,
}

impl Default for SafetySettings {
    fn default() -> Self {
        SafetySettings { shield: ShieldKind::None, shield_average: Share(0.8), shield_rate: Fraction(0.5) }
    }
}

impl SafetySettings {
    /// Whether nothing here does anything.
    pub fn is_off(&self) -> bool {
        self.shield == ShieldKind::None
    }
}

/// Columns of the counts.
const HAS_SAFE: usize = 0;
const REVERTED: usize = 1;
const WAITED: usize = 2;

/// Name of the key that chooses a shield.
pub const SHIELD: &str = "safety.shield";

/// What a shield has done so far, for the run's report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShieldReport {
    /// Steps in which an agent went back, over all agents and iterations.
    pub reverted: u64,
    /// Steps in which one broke a bound and had no safe policy yet to go back to.
    pub waited: u64,
    /// Agents that have not had a safe policy yet.
    pub never_safe: u64,
}

/// The last safe policies.
#[derive(Debug)]
pub struct Shield {
    settings: SafetySettings,
    /// A running mean of θ_i where all slacks of agent i were at least 0.
    safe: Ragged<f64>,
    /// By agent: 1 if it had one, else 0; steps in which it went back; steps in which it had nothing to go
    /// back to.
    counts: Ragged<f64>,
    /// Running slacks, and the weight of what they are of.
    slack: Ragged<f64>,
    weight: f64,
    /// θ that the present batch was sampled with.
    sampled: Ragged<f64>,
}

impl Shield {
    /// None without a shield.
    pub fn new(settings: SafetySettings, theta: &Ragged<f64>, slack: &Ragged<f64>) -> Option<Self> {
        (settings.shield == ShieldKind::Revert).then(|| Shield {
            settings,
            safe: theta.clone(),
            counts: Ragged::zeros(std::iter::repeat_n(3, theta.rows())),
            slack: Ragged::zeros_like(slack),
            weight: 0.0,
            sampled: theta.clone(),
        })
    }

    /// Looks at the policy that the batch was sampled with, before line 9.
    pub fn observe(&mut self, theta: &Ragged<f64>, slack: &Ragged<f64>) {
        let keeps = *self.settings.shield_average;
        self.weight = keeps * self.weight + (1.0 - keeps);
        let running = self.slack.data_mut().iter_mut().zip(slack.data());
        running.for_each(|(sum, g)| *sum = keeps * *sum + (1.0 - keeps) * g);
        self.sampled.data_mut().copy_from_slice(theta.data());
        for i in 0..theta.rows() {
            // The running estimate speaks of earlier policies too: this one must have been seen to be safe
            // itself.
            if !self.is_safe(i) || slack.row(i).iter().any(|g| *g < 0.0) {
                continue;
            }
            // What is kept follows slowly, lest one lucky batch replace it.
            let had = std::mem::replace(&mut self.counts.row_mut(i)[HAS_SAFE], 1.0) != 0.0;
            let share = if had { 1.0 - keeps } else { 1.0 };
            let safe = self.safe.row_mut(i).iter_mut().zip(theta.row(i));
            safe.for_each(|(safe, x)| *safe += share * (x - *safe));
        }
    }

    fn is_safe(&self, agent: usize) -> bool {
        self.slack.row(agent).iter().all(|g| *g / self.weight >= 0.0)
    }

    /// After line 9: agents that break a bound go back instead of on.
    pub fn guard(&mut self, policy: &mut dyn Policy) {
        let rate = *self.settings.shield_rate;
        let mut has_changed = false;
        for i in 0..self.safe.rows() {
            if self.is_safe(i) {
                continue;
            }
            if self.counts.row(i)[HAS_SAFE] == 0.0 {
                self.counts.row_mut(i)[WAITED] += 1.0;
                continue;
            }
            self.counts.row_mut(i)[REVERTED] += 1.0;
            has_changed = true;
            let rows = self.sampled.row(i).iter().zip(self.safe.row(i));
            let theta = policy.theta_mut().row_mut(i).iter_mut().zip(rows);
            theta.for_each(|(x, (from, to))| *x = from + rate * (to - from));
        }
        if has_changed {
            policy.refresh();
        }
    }

    /// What it has done so far for the agents of all processes.
    pub fn report(&self, graph: &Graph, halo: &Halo) -> Result<ShieldReport> {
        let sum = |column: usize| graph.owned_agents().map(|i| self.counts.row(i)[column] as u64).sum();
        let own: [u64; 3] = [HAS_SAFE, REVERTED, WAITED].map(sum);
        let mut all = own;
        halo.fold(&mut all, |a, b| a + b)?;
        let [had, reverted, waited] = all;
        Ok(ShieldReport { reverted, waited, never_safe: graph.total() as u64 - had })
    }

    /// What it remembers.
    pub(crate) fn fields(&mut self) -> Fields<'_> {
        vec![
            ("shield.safe", Field::Rows(&mut self.safe)),
            ("shield.counts", Field::Rows(&mut self.counts)),
            ("shield.slack", Field::Rows(&mut self.slack)),
            ("shield.weight", Field::Numbers(std::slice::from_mut(&mut self.weight))),
        ]
    }
}

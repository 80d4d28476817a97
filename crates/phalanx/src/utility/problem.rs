//! What the agents want: local objectives and constraints. Paper: eq:dec_prob.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::elementary::powi;
use crate::utility::episode::{EpisodeEvent, Tail};
use crate::utility::group::Group;
use crate::utility::{Kind, LocalSpace, ScaledUtility};

/// Which reading of the paper's formulas is used. Every run names the one it used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scaling {
    /// λ̃ is rescaled to mass 1/(1−γ); linear and channel objectives are multiplied by 1−γ; the dual step
    /// acts on g and the actor on the sum over neighbours, both without 1/n; shadow rewards are centred by
    /// their occupancy mean (errata 5, 6, 16, 17).
    #[default]
    Normalised,
    /// The literal formulas: raw λ̃, 1/n in both updates, nothing centred.
    Paper,
    /// The authors' code: raw λ̃, dual step on g, Q averaged over the neighbourhood, no γ^k in the actor.
    Authors,
}

/// The side on which a utility must stay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// utility ≥ threshold.
    AtLeast(f64),
    /// utility ≤ threshold.
    AtMost(f64),
}

impl Bound {
    /// The threshold.
    pub fn threshold(self) -> f64 {
        match self {
            Bound::AtLeast(threshold) | Bound::AtMost(threshold) => threshold,
        }
    }

    /// g ≥ 0 from the utility's value; the algorithm needs this sign (errata 15).
    pub fn slack(self, value: f64) -> f64 {
        match self {
            Bound::AtLeast(threshold) => value - threshold,
            Bound::AtMost(threshold) => threshold - value,
        }
    }

    /// The end of a utility's range (smallest, largest) that satisfies it best.
    pub fn easiest(self, (smallest, largest): (f64, f64)) -> f64 {
        match self {
            Bound::AtLeast(_) => largest,
            Bound::AtMost(_) => smallest,
        }
    }

    /// Its name in configurations and tables.
    pub fn key(self) -> &'static str {
        match self {
            Bound::AtLeast(_) => "at_least",
            Bound::AtMost(_) => "at_most",
        }
    }

    /// dg/d(utility).
    pub fn sign(self) -> f64 {
        match self {
            Bound::AtLeast(_) => 1.0,
            Bound::AtMost(_) => -1.0,
        }
    }
}

/// One safety constraint of one agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    /// Its name in tables, e.g. `state_entropy`.
    pub name: Arc<str>,
    /// The utility that is bounded.
    pub utility: ScaledUtility,
    /// The bound.
    pub bound: Bound,
    /// What is made of its shadow reward.
    pub shadow: ShadowReward,
    /// Slack that its multiplier aims at, on top of `dual.margin`. Violations are reported without it.
    pub margin: f64,
    /// Number of the group whose sum is bounded, if it is not the utility alone.
    pub group: Option<usize>,
}

impl Constraint {
    /// Number of the agent's event that it bounds the probability of, if it does.
    pub fn event(&self) -> Option<usize> {
        match self.utility.kind {
            Kind::Episode { number, .. } => Some(number),
            _ => None,
        }
    }

    /// g_ik at an occupancy.
    pub fn slack(&self, occupancy: &[f64], space: LocalSpace) -> f64 {
        self.bound.slack(self.utility.value(occupancy, space))
    }
}

/// What is made of a shadow reward: `scale` times it, plus `shift` in every step. For the authors' scaling
/// only: they tuned both by hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ShadowReward {
    /// Factor.
    pub scale: f64,
    /// What every step pays beside it; where episodes end early, living longer is then worth something.
    pub shift: f64,
}

impl Default for ShadowReward {
    fn default() -> Self {
        ShadowReward { scale: 1.0, shift: 0.0 }
    }
}

/// One agent's objective and constraints.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentProblem {
    /// |S_i|, |A_i| and γ.
    pub space: LocalSpace,
    /// f_i.
    pub objective: ScaledUtility,
    /// What is made of its shadow reward.
    pub shadow: ShadowReward,
    /// g_ik ≥ 0.
    pub constraints: Vec<Constraint>,
    /// What the constraints on whole episodes are about.
    pub events: Vec<EpisodeEvent>,
    /// Bounds on the worst episodes, which are judged only.
    pub tails: Vec<Tail>,
}

impl AgentProblem {
    /// The objective, then every bounded utility.
    pub fn utilities(&self) -> impl Iterator<Item = &ScaledUtility> {
        std::iter::once(&self.objective).chain(self.constraints.iter().map(|constraint| &constraint.utility))
    }
}

/// The problem of all agents: maximise the mean of f_i subject to every g_ik ≥ 0.
#[derive(Debug, Clone)]
pub struct Problem {
    /// One entry per agent; those that want the same share it, see [`Interner`].
    pub agents: Vec<Arc<AgentProblem>>,
    /// γ.
    pub gamma: f64,
    /// How occupancies and steps are scaled.
    pub scaling: Scaling,
    /// Number of the world's channels that are recorded while simulating. Occupancy rows, and those of shadow
    /// rewards, have so many entries behind the cells: discounted totals, and their weights. Occupancy rows
    /// have the shares of episodes with events behind them.
    pub sampled_channels: usize,
    /// Whether episodes may end before the horizon, as those of joint worlds.
    pub episodic: bool,
    /// Whether occupancies are sums over the steps that were lived, as in the authors' code, not laws over
    /// them. The literal formulas leave them as they are anyway.
    pub raw_lives: bool,
    /// H: events of a whole episode are those of its first H steps.
    pub horizon: usize,
    /// Constraints of several agents together.
    pub groups: Vec<Group>,
}

/// Gives agents that want the same as one of the last few before them the same entry: in large graphs most
/// do.
#[derive(Debug, Default)]
pub struct Interner {
    distinct: Vec<Arc<AgentProblem>>,
}

impl Interner {
    /// The entry of an agent.
    pub fn entry(&mut self, agent: AgentProblem) -> Arc<AgentProblem> {
        const LOOKED_AT: usize = 8;
        let last = self.distinct.iter().rev().take(LOOKED_AT).find(|other| ***other == agent);
        last.cloned().unwrap_or_else(|| {
            let agent = Arc::new(agent);
            self.distinct.push(agent.clone());
            agent
        })
    }
}

impl Problem {
    /// Agent i's entry, to be changed for that agent alone.
    pub fn agent_mut(&mut self, agent: usize) -> &mut AgentProblem {
        Arc::make_mut(&mut self.agents[agent])
    }

    /// Entries of agent i's row of rewards: its cells, then the weights of sampled channels.
    pub fn row_length(&self, agent: usize) -> usize {
        self.agents[agent].space.cells() + self.sampled_channels
    }

    /// Entries of agent i's row of occupancies: its cells, the totals of sampled channels, then the shares of
    /// episodes in which its events happened.
    pub fn occupancy_length(&self, agent: usize) -> usize {
        self.row_length(agent) + self.agents[agent].events.len()
    }

    /// Whether an agent has a constraint on whole episodes.
    pub fn has_events(&self) -> bool {
        self.agents.iter().any(|agent| !agent.events.is_empty())
    }

    /// Whether occupancies are laws over the steps that were lived.
    pub fn rescales_lives(&self) -> bool {
        self.episodic && !self.raw_lives && self.scaling != Scaling::Paper
    }

    /// Number of constraints of all agents, and of their bounds on the worst episodes; at least 1.
    pub fn judged_count(&self) -> usize {
        let tails: usize = self.agents.iter().map(|agent| agent.tails.len()).sum();
        (self.constraint_count() + tails).max(1)
    }

    /// Number of constraints of all agents.
    pub fn constraint_count(&self) -> usize {
        self.agents.iter().map(|agent| agent.constraints.len()).sum()
    }

    /// γ^k for k < steps, times what makes λ̃ the occupancy of this scaling (errata 6), divided by the batch
    /// size.
    pub fn occupancy_weights(&self, steps: usize, batch: usize) -> Vec<f64> {
        let mut weights = Vec::with_capacity(steps);
        let mut power = 1.0;
        for _ in 0..steps {
            weights.push(power);
            power *= self.gamma;
        }
        let rescale = match self.scaling {
            Scaling::Normalised => 1.0 / ((1.0 - self.gamma) * weights.iter().sum::<f64>()),
            Scaling::Paper | Scaling::Authors => 1.0,
        };
        weights.iter_mut().for_each(|w| *w *= rescale / batch as f64);
        weights
    }

    /// Memory for a step of so many agents of a trajectory: a byte of state, one of action, and an f32 for
    /// each recorded reward.
    pub fn pair_bytes(&self, agents: usize) -> u128 {
        agents as u128 * (2 + 4 * self.sampled_channels as u128)
    }

    /// Total mass of λ̃ over `steps` steps in this scaling.
    pub fn mass(&self, steps: usize) -> f64 {
        match self.scaling {
            Scaling::Normalised => 1.0 / (1.0 - self.gamma),
            Scaling::Paper | Scaling::Authors => {
                (1.0 - powi(self.gamma, steps.min(i32::MAX as usize) as i32)) / (1.0 - self.gamma)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_have_the_mass_of_their_scaling() {
        for (scaling, mass) in [(Scaling::Normalised, 100.0), (Scaling::Paper, 71.528)] {
            let problem = Problem {
                agents: vec![],
                gamma: 0.99,
                scaling,
                sampled_channels: 0,
                episodic: false,
                raw_lives: false,
                horizon: 125,
                groups: Vec::new(),
            };
            let total: f64 = problem.occupancy_weights(125, 1).iter().sum();
            assert!((total - mass).abs() < 1e-2, "{total}");
            assert!((total - problem.mass(125)).abs() < 1e-10);
        }
    }
}

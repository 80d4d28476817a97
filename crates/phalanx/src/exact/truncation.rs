//! Truncated Q-functions, exactly. Paper: the definition before eq:truncated_grad; errata 3.
//!
//! Agent j's table over the pairs z = (s, a) of N_j^{κ_q} can mean four things, which a run chooses with
//! `critic.truncation`: the value with everybody else held at 0 (`fixed`, the paper's definition), the mean
//! over everybody else under the discounted occupancy (`averaged`), or what temporal differences on z
//! converge to (`td`); `none` takes the whole Q-function, which is no table over z.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::contraction::{Plan, Role, Workspace};
use super::layout::{Layout, Var, members};
use super::system::{Chain, System, Values, identity_minus};
use crate::base::elimination::Dense;
use crate::base::key::KAPPA_Q;
use crate::graph::indexing::StateIndex;
use crate::policy::{Policy, Tabular};
use crate::{Error, Ragged, Result};

/// Tables of more pairs than this have no temporal-difference fixed point here: it takes a dense solve of
/// that size.
pub const LARGEST_TD_TABLE: usize = 1100;

/// Which truncated Q-function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Truncation {
    /// Others at state 0 and action 0.
    #[default]
    Fixed,
    /// Mean over the others given z, under the discounted occupancy.
    Averaged,
    /// Fixed point of temporal differences on z, sampled from the discounted occupancy.
    Td,
    /// The whole Q-function: nothing is truncated.
    None,
}

/// Plans for every agent's table over the pairs of its group.
#[derive(Debug, Clone)]
pub struct Truncated {
    kind: Truncation,
    agents: Vec<Neighbourhood>,
}

/// One agent's group and how its table is found.
#[derive(Debug, Clone)]
struct Neighbourhood {
    agent: usize,
    group: Vec<usize>,
    pairs: usize,
    plan: Plan,
    /// For the two that average.
    average: Option<Average>,
}

/// Averages of a table over (s_C, a_N) given z, where C ⊇ N are the agents that it depends on.
#[derive(Debug, Clone)]
struct Average {
    /// Position in C of every joint state.
    from_joint: Vec<u32>,
    /// State part of z for every s_C.
    cells: Vec<u32>,
    /// Observations of the members of N for every s_C.
    observations: Vec<Vec<u32>>,
}

/// An average with the weights that it is taken with.
struct Weighted<'a> {
    average: &'a Average,
    /// Of every (s_C, a_N).
    weights: Vec<f64>,
    /// Of every pair, in total.
    totals: Vec<f64>,
}

impl Truncated {
    /// Makes the plans for tables over `groups` (a row per agent: N_j^{κ_q}).
    pub fn new(system: &System, policy: &Tabular, groups: &Ragged<u32>, kind: Truncation) -> Result<Self> {
        let make = |(agent, group)| Neighbourhood::new(system, policy.observations(), agent, group, kind);
        Ok(Truncated {
            kind,
            agents: members(groups).into_iter().enumerate().map(make).collect::<Result<_>>()?,
        })
    }

    /// Every agent's tables, row j as `[1 + m_j][∏ S][∏ A]`. `weights` are those of the joint states where an
    /// average is taken: [`Chain::state_occupancy`], unless another sampling law is meant.
    pub fn tables(&self, chain: &Chain<'_>, values: &Values, weights: &[f64]) -> Ragged<f64> {
        let rows = self.agents.par_iter().map(|own| self.own_tables(own.agent, chain, values, weights));
        Ragged::from_rows(rows.collect::<Vec<_>>())
    }

    /// Row j of them.
    pub(super) fn own_tables(
        &self,
        j: usize,
        chain: &Chain<'_>,
        values: &Values,
        weights: &[f64],
    ) -> Vec<f64> {
        let own = &self.agents[j];
        let (rewards, values) = values.of_agent(j, &chain.system.dynamics);
        let average = own.average.as_ref().map(|average| average.weigh(chain.policy, own, weights));
        match (self.kind, &average) {
            (Truncation::Td, Some(average)) => own.fixed_points(chain, &rewards, average),
            (_, average) => own.expectations(chain, &rewards, values, average.as_ref()),
        }
    }
}

impl Neighbourhood {
    fn new(
        system: &System,
        observations: &StateIndex,
        agent: usize,
        group: Vec<usize>,
        kind: Truncation,
    ) -> Result<Self> {
        let dynamics = &system.dynamics;
        let pairs = group.iter().try_fold(1usize, |size, &k| size.checked_mul(dynamics.cells(k)));
        let pairs = pairs.ok_or_else(|| {
            Error::config(KAPPA_Q, format!("the table of agent {agent} is too large to be numbered"))
        })?;
        if kind == Truncation::Td && pairs > LARGEST_TD_TABLE {
            let message = format!(
                "the neighbourhood of agent {agent} has {pairs} pairs; fixed points of temporal differences take at most \
                 {LARGEST_TD_TABLE}"
            );
            return Err(Error::config(KAPPA_Q, message));
        }
        let outside = if kind == Truncation::Fixed { Role::Pinned } else { Role::Follows };
        let mut seen = group.clone();
        seen.extend(group.iter().flat_map(|&k| observations.agents(k)));
        seen.sort_unstable();
        seen.dedup();
        let everyone: Vec<usize> = (0..dynamics.agents()).collect();
        let (targets, needed) = match kind {
            Truncation::Fixed => (&everyone, &group),
            Truncation::Averaged => (&everyone, &seen),
            // The next pair is drawn from the next states that the group's policies see.
            Truncation::Td => (&seen, &seen),
            Truncation::None => {
                return Err(Error::config("critic.truncation", "`none` has no tables over neighbourhoods"));
            }
        };
        let plan = Plan::new(dynamics, &system.laws, observations, &group, outside, targets, needed)?;
        let average = (kind != Truncation::Fixed).then(|| Average::new(system, observations, &group, &plan));
        Ok(Neighbourhood { agent, group, pairs, plan, average })
    }

    /// (s_j, a_j) as a cell of agent j's local tables, for every pair of the group.
    fn own_cells(&self, system: &System) -> Vec<u32> {
        let pairs = Layout::of_pairs(&system.dynamics, self.group.iter().copied());
        pairs.positions_in(&Layout::of_pairs(&system.dynamics, [self.agent]))
    }

    /// Rewards and the values that are expected behind them, two tables at a time.
    fn expectations(
        &self,
        chain: &Chain<'_>,
        rewards: &[&[f64]],
        values: &[Vec<f64>],
        average: Option<&Weighted<'_>>,
    ) -> Vec<f64> {
        let own = self.own_cells(chain.system);
        let prepared = self.plan.prepare(&chain.system.laws, chain.policy);
        let mut workspace = Workspace::<2>::default();
        let mut tables = Vec::with_capacity(rewards.len() * self.pairs);
        for (rewards, values) in rewards.chunks(2).zip(values.chunks(2)) {
            let lane = |s: usize, l: usize| values.get(l).map_or(0.0, |v| v[s]);
            let both: Vec<[f64; 2]> = (0..values[0].len()).map(|s| [lane(s, 0), lane(s, 1)]).collect();
            prepared.apply(&both, &mut workspace);
            let means = average.map(|average| average.means(&workspace.now));
            let ahead = means.as_ref().unwrap_or(&workspace.now);
            for (l, reward) in rewards.iter().enumerate() {
                let here = own.iter().zip(ahead);
                tables
                    .extend(here.map(|(&cell, ahead)| reward[cell as usize] + chain.system.gamma * ahead[l]));
            }
        }
        if let Some(Weighted { totals, .. }) = average {
            // A pair that never occurs has no mean; its value is 0, as in a table never updated.
            let never = tables.chunks_exact_mut(self.pairs).flat_map(|t| t.iter_mut().zip(totals));
            never.filter(|(_, total)| **total == 0.0).for_each(|(value, _)| *value = 0.0);
        }
        tables
    }

    /// What temporal differences converge to: (I − γP̄)⁻¹ r, 0 at pairs that never occur.
    fn fixed_points(&self, chain: &Chain<'_>, rewards: &[&[f64]], average: &Weighted<'_>) -> Vec<f64> {
        let own = self.own_cells(chain.system);
        let next = self.next_pairs(chain, average);
        let rhs = Dense::from_fn(self.pairs, rewards.len(), |z, h| {
            if average.totals[z] > 0.0 { rewards[h][own[z] as usize] } else { 0.0 }
        });
        let matrix = identity_minus(self.pairs, |z, t| chain.system.gamma * next[z * self.pairs + t]);
        let solution = matrix.solve(rhs);
        (0..rewards.len()).flat_map(|h| (0..self.pairs).map(move |z| (z, h))).map(|at| solution[at]).collect()
    }

    /// P̄ as `[z][z']`, the law of the next pair given z.
    fn next_pairs(&self, chain: &Chain<'_>, average: &Weighted<'_>) -> Vec<f64> {
        const LANES: usize = 8;
        let prepared = self.plan.prepare(&chain.system.laws, chain.policy);
        let next_weight = self.next_pair_given_state(chain);
        let mut next = vec![0.0; self.pairs * self.pairs];
        let mut workspace = Workspace::<LANES>::default();
        // State part of z for every joint next state of the targets.
        let next_states = self.group.iter().map(|&k| Var::Next(k));
        let input = self.plan.input.positions_in(&Layout::new(&chain.system.dynamics, next_states));
        let joint_actions = next_weight.len() / input.len();
        for first in (0..self.pairs).step_by(LANES) {
            let width = LANES.min(self.pairs - first);
            // P(z' | s'): the state part must fit, the actions follow the policies.
            let indicator = |s: usize| {
                std::array::from_fn(|l| {
                    let z = first + l;
                    let fits = l < width && input[s] as usize == z / joint_actions;
                    if fits { next_weight[s * joint_actions + z % joint_actions] } else { 0.0 }
                })
            };
            prepared.apply(&(0..input.len()).map(indicator).collect::<Vec<[f64; LANES]>>(), &mut workspace);
            for (z, mean) in average.means(&workspace.now).iter().enumerate() {
                next[z * self.pairs + first..][..width].copy_from_slice(&mean[..width]);
            }
        }
        next
    }

    /// ∏_{k ∈ N} π_k(a_k | s'), as `[joint next state of the targets][∏ A_N]`.
    fn next_pair_given_state(&self, chain: &Chain<'_>) -> Vec<f64> {
        let observed = |&k: &usize| {
            let seen = chain.policy.observations().agents(k).map(Var::Next);
            self.plan.input.positions_in(&Layout::new(&chain.system.dynamics, seen))
        };
        let observed: Vec<Vec<u32>> = self.group.iter().map(observed).collect();
        let (mut out, mut law) = (Vec::new(), Vec::new());
        for s in 0..self.plan.input.size() as usize {
            joint_law(chain.policy, &self.group, |k| observed[k][s], &mut law);
            out.extend_from_slice(&law);
        }
        out
    }
}

impl Average {
    fn new(system: &System, observations: &StateIndex, group: &[usize], plan: &Plan) -> Self {
        let context = plan.output.only(|var| matches!(var, Var::State(_)));
        let observed =
            |&k: &usize| context.positions_in(&Layout::of_states(&system.dynamics, observations.agents(k)));
        Average {
            from_joint: system.joint.positions_in(&context),
            cells: context.positions_in(&Layout::of_states(&system.dynamics, group.iter().copied())),
            observations: group.iter().map(observed).collect(),
        }
    }

    /// With the given weights of joint states.
    fn weigh(&self, policy: &Tabular, own: &Neighbourhood, of_joint: &[f64]) -> Weighted<'_> {
        let mut marginal = vec![0.0; self.cells.len()];
        for (&place, weight) in self.from_joint.iter().zip(of_joint) {
            marginal[place as usize] += weight;
        }
        let (mut weights, mut totals, mut law) = (Vec::new(), vec![0.0; own.pairs], Vec::new());
        for (s, (weight, &cell)) in marginal.iter().zip(&self.cells).enumerate() {
            joint_law(policy, &own.group, |k| self.observations[k][s], &mut law);
            law.iter_mut().for_each(|p| *p *= weight);
            let row = &mut totals[cell as usize * law.len()..][..law.len()];
            row.iter_mut().zip(&law).for_each(|(total, w)| *total += w);
            weights.extend_from_slice(&law);
        }
        Weighted { average: self, weights, totals }
    }
}

impl Weighted<'_> {
    /// The mean of `table` at every pair; 0 where a pair has no weight.
    fn means<const L: usize>(&self, table: &[[f64; L]]) -> Vec<[f64; L]> {
        let cells = &self.average.cells;
        let actions = table.len() / cells.len();
        let mut means = vec![[0.0; L]; self.totals.len()];
        let rows = self.weights.chunks_exact(actions).zip(table.chunks_exact(actions));
        for (&cell, (weights, values)) in cells.iter().zip(rows) {
            let row = &mut means[cell as usize * actions..][..actions];
            for ((mean, w), value) in row.iter_mut().zip(weights).zip(values) {
                for l in 0..L {
                    mean[l] += w * value[l];
                }
            }
        }
        for (mean, &total) in means.iter_mut().zip(&self.totals) {
            if total > 0.0 {
                mean.iter_mut().for_each(|m| *m /= total);
            }
        }
        means
    }
}

/// ∏_k π_k(a_k | observation of k) over the joint actions of `group`, given the observations of its members.
pub(super) fn joint_law(
    policy: &Tabular,
    group: &[usize],
    observation: impl Fn(usize) -> u32,
    law: &mut Vec<f64>,
) {
    law.clear();
    law.push(1.0);
    for (k, &agent) in group.iter().enumerate() {
        let actions = policy.actions(agent);
        let own = &policy.probabilities(agent)[observation(k) as usize * actions..][..actions];
        let before = law.len();
        law.resize(before * actions, 0.0);
        for x in (0..before).rev() {
            let p = law[x];
            for (b, q) in own.iter().enumerate() {
                law[x * actions + b] = p * q;
            }
        }
    }
}

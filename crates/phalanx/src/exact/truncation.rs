//! Truncated Q-functions, exactly. Paper: the definition before eq:truncated_grad; errata 3.
//!
//! Agent j's table over the pairs z = (s, a) of N_j^{κ_q} can mean four things, which a run chooses with
//! `critic.truncation`: the value with everybody else held at 0 (`fixed`, the paper's definition), the mean over
//! everybody else under the discounted occupancy (`averaged`), or what temporal differences on z converge to (`td`);
//! `none` takes the whole Q-function, which is no table over z.

use phalanx_solvers::{Lu, Mat};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::contraction::{Layout, Plan, Role, Var, Workspace, pair_layout};
use super::system::{Chain, System, states_of};
use crate::graph::indexing::StateIndex;
use crate::policy::Tabular;
use crate::{Error, Ragged, Result};

/// Tables of more pairs than this have no temporal-difference fixed point here: it takes a dense solve of that size.
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
    actions: Vec<usize>,
}

impl Truncated {
    /// Makes the plans for tables over `groups` (a row per agent: N_j^{κ_q}).
    pub fn new(system: &System, policy: &Tabular, groups: &Ragged<u32>, kind: Truncation) -> Result<Self> {
        let groups: Vec<Vec<usize>> =
            groups.iter().map(|group| group.iter().map(|&k| k as usize).collect()).collect();
        let make = |(agent, group)| Neighbourhood::new(system, policy.observations(), agent, group, kind);
        Ok(Truncated { kind, agents: groups.into_iter().enumerate().map(make).collect::<Result<_>>()? })
    }

    /// Every agent's tables, row j as `[1 + m_j][∏ S][∏ A]`, from its shadow rewards and the values V_h of
    /// [`Chain::values`]. `weights` are those of the joint states where an average is taken:
    /// [`Chain::state_occupancy`], unless another sampling law is meant.
    pub fn tables(
        &self,
        chain: &Chain<'_>,
        rewards: &Ragged<f64>,
        values: &[Vec<f64>],
        weights: &[f64],
    ) -> Result<Ragged<f64>> {
        let mut first = vec![0];
        for j in 0..self.agents.len() {
            first.push(first[j] + rewards.row(j).len() / chain.system.dynamics.cells(j));
        }
        let rows = self.agents.par_iter().enumerate().map(|(j, neighbourhood)| {
            let values = &values[first[j]..first[j + 1]];
            neighbourhood.tables(chain, self.kind, j, rewards.row(j), values, weights)
        });
        Ok(Ragged::from_rows(rows.collect::<Result<Vec<_>>>()?))
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
        let n = dynamics.agents();
        let pairs = group
            .iter()
            .try_fold(1usize, |size, &k| size.checked_mul(dynamics.states[k] * dynamics.actions[k]));
        let pairs = pairs.ok_or_else(|| {
            Error::config(
                crate::base::key::KAPPA_Q,
                format!("the table of agent {agent} is too large to be numbered"),
            )
        })?;
        if kind == Truncation::Td && pairs > LARGEST_TD_TABLE {
            let message = format!(
                "the neighbourhood of agent {agent} has {pairs} pairs; fixed points of temporal differences take at most \
                 {LARGEST_TD_TABLE}"
            );
            return Err(Error::config(crate::base::key::KAPPA_Q, message));
        }
        let outside = if kind == Truncation::Fixed { Role::Pinned } else { Role::Follows };
        let mut roles = vec![outside; n];
        group.iter().for_each(|&k| roles[k] = Role::Free);
        let mut seen: Vec<usize> = group.clone();
        for &k in &group {
            seen.extend(observations.terms(k).iter().map(|term| term.agent as usize));
        }
        seen.sort_unstable();
        seen.dedup();
        let everyone: Vec<usize> = (0..n).collect();
        let (targets, needed) = match kind {
            Truncation::Fixed => (&everyone, &group),
            Truncation::Averaged => (&everyone, &seen),
            // The next pair is drawn from the next states that the group's policies see.
            Truncation::Td => (&seen, &seen),
            Truncation::None => {
                return Err(Error::config("critic.truncation", "`none` has no tables over neighbourhoods"));
            }
        };
        let plan = Plan::new(dynamics, &system.laws, observations, &roles, targets, needed)?;
        let average = (kind != Truncation::Fixed).then(|| Average::new(system, observations, &group, &plan));
        Ok(Neighbourhood { group, pairs, plan, average })
    }

    fn tables(
        &self,
        chain: &Chain<'_>,
        kind: Truncation,
        agent: usize,
        rewards: &[f64],
        values: &[Vec<f64>],
        weights: &[f64],
    ) -> Result<Vec<f64>> {
        let system = chain.system;
        // (s_j, a_j) as a cell of agent j's local tables, for every pair of the group.
        let pairs = pair_layout(&system.dynamics, &self.group);
        let own = pairs.positions_in(&pair_layout(&system.dynamics, &[agent]));
        let cells = system.dynamics.cells(agent);
        let rewards: Vec<&[f64]> = rewards.chunks_exact(cells).collect();
        let at_pairs = |table: &[f64]| own.iter().map(|&cell| table[cell as usize]).collect::<Vec<_>>();
        let gamma = system.gamma;
        match (kind, &self.average) {
            (Truncation::Td, Some(average)) => {
                let (weight, next) = self.next_pairs(chain, average, weights);
                let matrix = Mat::from_fn(self.pairs, self.pairs, |z, t| {
                    f64::from(u8::from(z == t)) - gamma * next[z * self.pairs + t]
                });
                let visited = |z: usize| weight[z] > 0.0;
                let rhs = Mat::from_fn(self.pairs, rewards.len(), |z, h| {
                    if visited(z) { rewards[h][own[z] as usize] } else { 0.0 }
                });
                let solution = Lu::new(matrix.as_ref()).solve(&rhs);
                Ok((0..rewards.len())
                    .flat_map(|h| (0..self.pairs).map(move |z| (z, h)))
                    .map(|at| solution[at])
                    .collect())
            }
            (_, average) => {
                let prepared = self.plan.prepare(&system.laws, chain.policy);
                let mut workspace = Workspace::<2>::default();
                let mut tables = Vec::with_capacity(rewards.len() * self.pairs);
                let weight = average.as_ref().map(|average| {
                    let marginal = average.marginal(weights);
                    (average.weigh(chain.policy, &self.group, &marginal), average)
                });
                for (pair, values) in rewards.chunks(2).zip(values.chunks(2)) {
                    let lane = |s: usize, l: usize| values.get(l).map_or(0.0, |v| v[s]);
                    let both: Vec<[f64; 2]> =
                        (0..values[0].len()).map(|s| [lane(s, 0), lane(s, 1)]).collect();
                    prepared.apply(&both, &mut workspace);
                    let ahead = match &weight {
                        None => workspace.now.clone(),
                        Some((weight, average)) => average.means(weight, &workspace.now, self.pairs),
                    };
                    for (l, reward) in pair.iter().enumerate() {
                        let here = at_pairs(reward).into_iter().zip(&ahead);
                        tables.extend(here.map(|(r, ahead)| r + gamma * ahead[l]));
                    }
                }
                if let Some((weight, average)) = &weight {
                    // A pair that never occurs has no mean; its value is 0, as in a table never updated.
                    let sums = average.sums(weight, self.pairs);
                    let never = tables.chunks_exact_mut(self.pairs).flat_map(|t| t.iter_mut().zip(&sums));
                    never.filter(|(_, sum)| **sum == 0.0).for_each(|(value, _)| *value = 0.0);
                }
                Ok(tables)
            }
        }
    }

    /// Weights of the pairs, and P̄[z][z'], the law of the next pair given z.
    fn next_pairs(&self, chain: &Chain<'_>, average: &Average, weights: &[f64]) -> (Vec<f64>, Vec<f64>) {
        const LANES: usize = 8;
        let (system, policy) = (chain.system, chain.policy);
        let prepared = self.plan.prepare(&system.laws, policy);
        let weight = average.weigh(policy, &self.group, &average.marginal(weights));
        let next_weight = self.next_pair_given_state(chain);
        let joint_actions: usize = average.actions.iter().product();
        let mut next = vec![0.0; self.pairs * self.pairs];
        let mut workspace = Workspace::<LANES>::default();
        // State part of z for every joint next state of the targets.
        let next_states = self.group.iter().map(|&k| (Var::Next(k), system.dynamics.states[k]));
        let input = self.plan.input.positions_in(&Layout::new(next_states.collect()));
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
            for (z, mean) in average.means(&weight, &workspace.now, self.pairs).iter().enumerate() {
                next[z * self.pairs + first..][..width].copy_from_slice(&mean[..width]);
            }
        }
        (average.sums(&weight, self.pairs), next)
    }

    /// ∏_{k ∈ N} π_k(a_k | s'), as `[joint next state of the targets][∏ A_N]`.
    fn next_pair_given_state(&self, chain: &Chain<'_>) -> Vec<f64> {
        let (system, policy) = (chain.system, chain.policy);
        let observed: Vec<Vec<u32>> = self
            .group
            .iter()
            .map(|&k| {
                let terms = policy.observations().terms(k).iter();
                let vars =
                    terms.map(|t| (Var::Next(t.agent as usize), system.dynamics.states[t.agent as usize]));
                self.plan.input.positions_in(&Layout::new(vars.collect()))
            })
            .collect();
        let size = observed.first().map_or(1, Vec::len);
        let mut out = Vec::new();
        let mut law = Vec::new();
        for s in 0..size {
            joint_law(policy, &self.group, |k| observed[k][s], &mut law);
            out.extend_from_slice(&law);
        }
        out
    }
}

impl Average {
    fn new(system: &System, observations: &StateIndex, group: &[usize], plan: &Plan) -> Self {
        let dynamics = &system.dynamics;
        let inside: Vec<usize> = plan
            .output
            .vars()
            .filter_map(|var| match var {
                Var::State(i) => Some(i),
                Var::Action(_) | Var::Next(_) => None,
            })
            .collect();
        let context = states_of(dynamics, &inside);
        let observed = |&k: &usize| {
            let agents: Vec<usize> = observations.terms(k).iter().map(|term| term.agent as usize).collect();
            context.positions_in(&states_of(dynamics, &agents))
        };
        let cells = context.positions_in(&states_of(dynamics, group));
        Average {
            from_joint: system.joint.positions_in(&context),
            cells,
            observations: group.iter().map(observed).collect(),
            actions: group.iter().map(|&k| dynamics.actions[k]).collect(),
        }
    }

    fn marginal(&self, weights: &[f64]) -> Vec<f64> {
        let mut marginal = vec![0.0; self.cells.len()];
        for (&place, weight) in self.from_joint.iter().zip(weights) {
            marginal[place as usize] += weight;
        }
        marginal
    }

    /// Weight of every (s_C, a_N).
    fn weigh(&self, policy: &Tabular, group: &[usize], marginal: &[f64]) -> Vec<f64> {
        let mut out = Vec::new();
        let mut law = Vec::new();
        for (s, weight) in marginal.iter().enumerate() {
            joint_law(policy, group, |k| self.observations[k][s], &mut law);
            out.extend(law.iter().map(|p| weight * p));
        }
        out
    }

    /// Total weight of every pair.
    fn sums(&self, weight: &[f64], pairs: usize) -> Vec<f64> {
        let actions: usize = self.actions.iter().product();
        let mut sums = vec![0.0; pairs];
        for (&cell, weights) in self.cells.iter().zip(weight.chunks_exact(actions)) {
            let row = &mut sums[cell as usize * actions..][..actions];
            row.iter_mut().zip(weights).for_each(|(sum, w)| *sum += w);
        }
        sums
    }

    /// Weighted mean of `table` at every pair; 0 where a pair has no weight.
    fn means<const L: usize>(&self, weight: &[f64], table: &[[f64; L]], pairs: usize) -> Vec<[f64; L]> {
        let actions: usize = self.actions.iter().product();
        let mut means = vec![[0.0; L]; pairs];
        let rows = weight.chunks_exact(actions).zip(table.chunks_exact(actions));
        for (&cell, (weights, values)) in self.cells.iter().zip(rows) {
            let row = &mut means[cell as usize * actions..][..actions];
            for ((mean, w), value) in row.iter_mut().zip(weights).zip(values) {
                for l in 0..L {
                    mean[l] += w * value[l];
                }
            }
        }
        for (mean, sum) in means.iter_mut().zip(self.sums(weight, pairs)) {
            if sum > 0.0 {
                mean.iter_mut().for_each(|m| *m /= sum);
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

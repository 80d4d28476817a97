//! Policy gradients of the Lagrangian, exactly. Paper: eq:grad_lagrangian, eq:truncated_grad.

use rayon::prelude::*;

use super::contraction::Workspace;
use super::layout::{Layout, members};
use super::system::{Chain, Values};
use crate::Ragged;
use crate::learn::shadow::weighed;
use crate::policy::{Parameterisation, Policy};

impl Chain<'_> {
    /// Σ_s d(s)·E[W | s, a_i = b] for every agent, observation and action, with W = Σ_j (Q_{f_j} + Σ_k
    /// μ_jk·Q_{g_jk}) whole: n times the gradient with respect to directly parameterised policies.
    pub fn action_values(&self, values: &Values, mu: &Ragged<f64>) -> Ragged<f64> {
        let (system, policy) = (self.system, self.policy);
        let dynamics = &system.dynamics;
        let n = dynamics.agents();
        let gamma = system.gamma;
        let weights: Ragged<f64> =
            Ragged::from_rows(mu.iter().map(|mu| std::iter::once(1.0).chain(mu.iter().copied())));
        let expected = self.expected_rewards(&values.rewards);
        let mut ahead = vec![[0.0]; dynamics.joint_states];
        for (weight, values) in weights.data().iter().zip(&values.from_states) {
            ahead.iter_mut().zip(values).for_each(|(sum, v)| sum[0] += weight * v);
        }
        let rows = (0..n).into_par_iter().map(|i| {
            let actions = dynamics.actions[i];
            let mine = weights.offsets()[i]..weights.offsets()[i + 1];
            let own = weighed(values.rewards.row(i), mu.row(i));
            // What the others collect now does not depend on a_i, but belongs to W.
            let mut others = vec![0.0; dynamics.joint_states];
            for (h, (weight, expected)) in weights.data().iter().zip(&expected).enumerate() {
                if !mine.contains(&h) {
                    others.iter_mut().zip(expected).for_each(|(sum, r)| *sum += weight * r);
                }
            }
            let mut workspace = Workspace::<1>::default();
            system.own_action[i].prepare(&system.laws, policy).apply(&ahead, &mut workspace);
            let mut sums = vec![0.0; policy.theta().row(i).len()];
            for (s, d) in self.state_occupancy.iter().enumerate() {
                let (seen, state) = (system.observations[i][s] as usize, system.own_states[i][s] as usize);
                for b in 0..actions {
                    let w = others[s] + own[state * actions + b] + gamma * workspace.now[s * actions + b][0];
                    sums[seen * actions + b] += d * w;
                }
            }
            sums
        });
        Ragged::from_rows(rows.collect::<Vec<_>>())
    }

    /// The same with truncated tables: W = Σ_{j ∈ N_i} (Q̂_{f_j} + Σ_k μ_jk·Q̂_{g_jk}), N_i the groups that
    /// the `tables` (row j as `[1 + m_j][∏ S][∏ A]`) are over.
    pub fn truncated_action_values(
        &self,
        tables: &Ragged<f64>,
        mu: &Ragged<f64>,
        groups: &Ragged<u32>,
    ) -> Ragged<f64> {
        let (system, policy) = (self.system, self.policy);
        let dynamics = &system.dynamics;
        let n = dynamics.agents();
        let weighted: Vec<Vec<f64>> = tables.iter().zip(mu.iter()).map(|(q, mu)| weighed(q, mu)).collect();
        let groups = members(groups);
        let states = |group: &Vec<usize>| Layout::of_states(dynamics, group.iter().copied());
        let cells: Vec<Vec<u32>> =
            groups.iter().map(|group| system.joint.positions_in(&states(group))).collect();
        let rows = (0..n).into_par_iter().map(|i| {
            let actions = dynamics.actions[i];
            let mut sums = vec![0.0; policy.theta().row(i).len()];
            let mut table = Vec::new();
            for &j in &groups[i] {
                let group = &groups[j];
                let joint: usize = group.iter().map(|&k| dynamics.actions[k]).product();
                for (s, d) in self.state_occupancy.iter().enumerate() {
                    table.clear();
                    table.extend_from_slice(&weighted[j][cells[j][s] as usize * joint..][..joint]);
                    average_over_others(self, group, i, s, &mut table);
                    let row = &mut sums[system.observations[i][s] as usize * actions..][..actions];
                    row.iter_mut().zip(&table).for_each(|(sum, w)| *sum += d * w);
                }
            }
            sums
        });
        Ragged::from_rows(rows.collect::<Vec<_>>())
    }

    /// The gradient from what [`Chain::action_values`] or [`Chain::truncated_action_values`] give, which is
    /// that of a directly parameterised policy; times `factor` (1/n for L itself).
    pub fn gradient(
        &self,
        action_values: &Ragged<f64>,
        parameterisation: Parameterisation,
        factor: f64,
    ) -> Ragged<f64> {
        match parameterisation {
            Parameterisation::Direct => {
                self.by_law(action_values, |_, row| row.iter_mut().for_each(|w| *w *= factor))
            }
            Parameterisation::Softmax => self.by_law(action_values, |law, row| {
                let mean = expectation(law, row);
                row.iter_mut().zip(law).for_each(|(w, p)| *w = factor * p * (*w - mean));
            }),
        }
    }

    /// The same as a direction to go in. For direct policies every row is less its mean under the policy, as
    /// in sampled runs: as good a direction on a simplex, but Adam would follow a common shift of a row.
    pub fn ascent(&self, action_values: &Ragged<f64>, factor: f64) -> Ragged<f64> {
        match self.policy.parameterisation() {
            kind @ Parameterisation::Softmax => self.gradient(action_values, kind, factor),
            Parameterisation::Direct => self.by_law(action_values, |law, row| {
                let mean = expectation(law, row);
                row.iter_mut().for_each(|w| *w = factor * (*w - mean));
            }),
        }
    }

    /// `table` with `change` made to the row of every law.
    fn by_law(&self, table: &Ragged<f64>, change: impl Fn(&[f64], &mut [f64])) -> Ragged<f64> {
        let mut table = table.clone();
        for (i, &actions) in self.policy.action_counts().iter().enumerate() {
            let laws = self.policy.probabilities(i).chunks_exact(actions);
            table.row_mut(i).chunks_exact_mut(actions).zip(laws).for_each(|(row, law)| change(law, row));
        }
        table
    }
}

fn expectation(law: &[f64], values: &[f64]) -> f64 {
    law.iter().zip(values).map(|(p, x)| p * x).sum()
}

/// From a table over the joint actions of `group` to one over agent i's, the others averaged under the policy
/// in joint state `s`.
fn average_over_others(chain: &Chain<'_>, group: &[usize], agent: usize, s: usize, table: &mut Vec<f64>) {
    // Values of the members still to come, and of those already dealt with that are kept (agent i's).
    let mut kept = 1;
    for &k in group.iter().rev() {
        let law = chain.law(k, s);
        let actions = law.len();
        if k == agent {
            kept = actions;
            continue;
        }
        let blocks = table.len() / (actions * kept);
        for block in 0..blocks {
            for x in 0..kept {
                let at = |b: usize| (block * actions + b) * kept + x;
                let mean: f64 = law.iter().enumerate().map(|(b, p)| p * table[at(b)]).sum();
                table[block * kept + x] = mean;
            }
        }
        table.truncate(blocks * kept);
    }
}

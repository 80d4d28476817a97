//! Policies that look less far. Paper: prop:khop_policy.

use serde::Serialize;

use crate::policy::Tabular;
use crate::{Ragged, Result};

use super::system::{Chain, System};

/// A policy cut to a smaller radius, and what that changes.
#[derive(Debug, Clone, Serialize)]
pub struct Induced {
    /// The smaller radius.
    pub kappa: usize,
    /// Largest ‖π_i(·|s) − π_i(·|s')‖₁ for s, s' that agree within it.
    pub policy_gap: f64,
    /// ‖λ_i of the cut policy − λ_i‖₁, by agent.
    #[serde(rename = "l1")]
    pub distance: Vec<f64>,
    /// n·gap/(1−γ)², which the proposition says is not exceeded.
    pub bound: f64,
}

impl Induced {
    /// Cuts the policy of `chain` to radius `kappa`: states farther away count as 0.
    pub fn new(system: &System, chain: &Chain<'_>, kappa: usize) -> Result<Self> {
        let near = system.dynamics.graph.neighbourhoods(kappa);
        let (policy, policy_gap) = cut(chain.policy, &near, &system.dynamics.states);
        let cut_chain = system.under(&policy)?;
        let (before, after) = (chain.occupancy(), cut_chain.occupancy());
        let difference = |(a, b): (&[f64], &[f64])| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>();
        let n = policy.agents() as f64;
        Ok(Induced {
            kappa,
            policy_gap,
            distance: before.iter().zip(after.iter()).map(difference).collect(),
            bound: n * policy_gap / (1.0 - system.gamma).powi(2),
        })
    }
}

/// The policy with states outside `near` at 0, and how much it ever depends on them.
fn cut(policy: &Tabular, near: &Ragged<u32>, states: &[usize]) -> (Tabular, f64) {
    let mut gap = 0.0f64;
    let mut theta = policy.theta().clone();
    for i in 0..policy.agents() {
        let actions = policy.actions(i);
        let terms = policy.observations().terms(i);
        let far = terms.iter().filter(|term| !near.row(i).contains(&term.agent));
        let far: Vec<(usize, usize)> =
            far.map(|term| (term.stride as usize, states[term.agent as usize])).collect();
        let rows = policy.observations().size(i);
        let with_far_at_zero =
            |row: usize| far.iter().fold(row, |row, &(stride, size)| row - (row / stride % size) * stride);
        // Rows that agree within the radius, all of them under the one with zeros outside.
        let mut groups: Vec<Vec<usize>> = vec![Vec::new(); rows];
        for row in 0..rows {
            groups[with_far_at_zero(row)].push(row);
        }
        let law = |row: usize| &policy.probabilities(i)[row * actions..][..actions];
        for group in &groups {
            for (k, &a) in group.iter().enumerate() {
                for &b in &group[k + 1..] {
                    gap = gap.max(law(a).iter().zip(law(b)).map(|(p, q)| (p - q).abs()).sum());
                }
            }
        }
        for row in 0..rows {
            let from = with_far_at_zero(row) * actions;
            let parameters = policy.theta().row(i)[from..from + actions].to_vec();
            theta.row_mut(i)[row * actions..][..actions].copy_from_slice(&parameters);
        }
    }
    let mut cut = policy.clone();
    cut.update(|own| *own = theta);
    (cut, gap)
}

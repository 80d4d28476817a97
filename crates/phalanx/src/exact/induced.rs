//! Policies that look less far. Paper: prop:khop_policy.

use serde::Serialize;

use crate::base::elementary::powi;
use crate::policy::{Policy, Tabular};
use crate::{Ragged, Result};

use super::decay::largest_change;
use super::dynamics::Dynamics;
use super::layout::Layout;
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
        let (policy, policy_gap) = cut(chain.policy, &near, &system.dynamics);
        let cut_chain = system.under(&policy)?;
        let (before, after) = (chain.occupancy(), cut_chain.occupancy());
        let difference = |(a, b): (&[f64], &[f64])| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>();
        let n = policy.agents() as f64;
        Ok(Induced {
            kappa,
            policy_gap,
            distance: before.iter().zip(after.iter()).map(difference).collect(),
            bound: n * policy_gap / powi(1.0 - system.gamma, 2),
        })
    }
}

/// The policy with states outside `near` at 0, and how much it ever depends on them.
fn cut(policy: &Tabular, near: &Ragged<u32>, dynamics: &Dynamics) -> (Tabular, f64) {
    let mut gap = 0.0f64;
    let mut theta = policy.theta().clone();
    for i in 0..policy.agents() {
        let read = || policy.observations().agents(i);
        let is_near = |j: usize| near.row(i).contains(&(j as u32));
        let states = Layout::of_states(dynamics, read());
        let far = Layout::of_states(dynamics, read().filter(|&j| !is_near(j)));
        gap = gap.max(largest_change(policy.probabilities(i), &states, &far));
        let actions = policy.actions(i);
        let offsets = far.positions_in(&states);
        for first in states.only(|var| !far.contains(var)).positions_in(&states) {
            let at_zero = first as usize * actions..(first as usize + 1) * actions;
            for offset in &offsets {
                theta.row_mut(i).copy_within(at_zero.clone(), (first + offset) as usize * actions);
            }
        }
    }
    let mut cut = policy.clone();
    cut.update(|own| *own = theta);
    (cut, gap)
}

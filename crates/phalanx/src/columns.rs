//! Joint indices along a trajectory: the step-by-step numbering of what a neighbourhood did.

use multiversion::multiversion;

use crate::indexing::{PairTerm, StateTerm};
use crate::rollout::Trajectory;

/// The index of a group's joint state at each of the first `steps` steps.
pub fn state_column(terms: &[StateTerm], trajectory: &Trajectory, steps: usize, out: &mut Vec<u32>) {
    out.clear();
    out.resize(steps, 0);
    for term in terms {
        add_states(out, &trajectory.states(term.agent as usize)[..steps], term.stride);
    }
}

/// The index of a group's joint state and action at each of the first `steps` steps.
pub fn pair_column(
    terms: impl Iterator<Item = PairTerm>,
    trajectory: &Trajectory,
    steps: usize,
    out: &mut Vec<u32>,
) {
    out.clear();
    out.resize(steps, 0);
    for term in terms {
        let agent = term.agent as usize;
        let (states, actions) = (&trajectory.states(agent)[..steps], &trajectory.actions(agent)[..steps]);
        add_pairs(out, states, actions, term.state_stride, term.action_stride);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx2"))]
fn add_states(out: &mut [u32], states: &[u8], stride: u32) {
    for (out, &s) in out.iter_mut().zip(states) {
        *out += stride * u32::from(s);
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx2"))]
fn add_pairs(out: &mut [u32], states: &[u8], actions: &[u8], state_stride: u32, action_stride: u32) {
    for ((out, &s), &a) in out.iter_mut().zip(states).zip(actions) {
        *out += state_stride * u32::from(s) + action_stride * u32::from(a);
    }
}

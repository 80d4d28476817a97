//! Joint indices along a trajectory: the step-by-step numbering of what a neighbourhood did.

use multiversion::multiversion;

use crate::graph::indexing::{PairTerm, StateTerm, add_pairs, add_states};
use crate::world::Trajectory;

/// The index of a group's joint state at each of the first `steps` steps.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx2"))]
pub fn state_column(terms: &[StateTerm], trajectory: &Trajectory, steps: usize, out: &mut Vec<u32>) {
    out.resize(steps, 0);
    for (k, term) in terms.iter().enumerate() {
        let states = &trajectory.states(term.agent as usize)[..steps];
        add_states(out, states, term.stride, k == 0);
    }
}

/// The index of a group's joint state and action at each of the first `steps` steps, as if the agent `held`,
/// if any, had always chosen action 0.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx2"))]
pub fn pair_column(
    terms: &[PairTerm],
    held: Option<usize>,
    trajectory: &Trajectory,
    steps: usize,
    out: &mut Vec<u32>,
) {
    out.resize(steps, 0);
    for (k, term) in terms.iter().enumerate() {
        let agent = term.agent as usize;
        let action_stride = if held == Some(agent) { 0 } else { term.action_stride };
        let (states, actions) = (&trajectory.states(agent)[..steps], &trajectory.actions(agent)[..steps]);
        add_pairs(out, states, actions, [term.state_stride, action_stride], k == 0);
    }
}

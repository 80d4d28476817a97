//! Joint indices along a trajectory: the step-by-step numbering of what a neighbourhood did.

use crate::indexing::{PairTerm, StateTerm, add_pairs, add_states};
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

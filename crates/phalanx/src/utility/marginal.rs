//! How often something happens: cells of a table that are counted together.

use std::fmt::Debug;
use std::iter::StepBy;
use std::ops::Range;

use super::LocalSpace;

/// Groups of cells. Entropies and norms are functions of the sums of an occupancy measure over them.
pub trait Marginal: Debug + Clone + Copy + PartialEq + Default + Send + Sync {
    /// How many groups there are.
    fn groups(space: LocalSpace) -> usize;

    /// The cells of a group, ascending.
    fn cells(group: usize, space: LocalSpace) -> StepBy<Range<usize>>;

    /// The least probability of a group at the start, given the law of the first state; none if not known.
    fn least(start: &[f64]) -> Option<f64> {
        let _ = start;
        None
    }

    /// The sum over every group.
    fn sums(occupancy: &[f64], space: LocalSpace) -> impl Iterator<Item = f64> {
        (0..Self::groups(space)).map(move |group| Self::cells(group, space).map(|cell| occupancy[cell]).sum())
    }

    /// Writes `slope(group, sum over the group)` into every cell of the group.
    fn write(occupancy: &[f64], space: LocalSpace, out: &mut [f64], slope: impl Fn(usize, f64) -> f64) {
        for (group, sum) in Self::sums(occupancy, space).enumerate() {
            let value = slope(group, sum);
            Self::cells(group, space).for_each(|cell| out[cell] = value);
        }
    }
}

/// Σ_a λ(s, a): how often each state is seen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct States;

/// Σ_s λ(s, a): how often each action is taken.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Actions;

/// λ(s, a) itself.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pairs;

impl Marginal for States {
    fn groups(space: LocalSpace) -> usize {
        space.states
    }

    fn cells(state: usize, space: LocalSpace) -> StepBy<Range<usize>> {
        (state * space.actions..(state + 1) * space.actions).step_by(1)
    }

    fn least(start: &[f64]) -> Option<f64> {
        Some(start.iter().copied().fold(f64::INFINITY, f64::min))
    }
}

impl Marginal for Actions {
    fn groups(space: LocalSpace) -> usize {
        space.actions
    }

    fn cells(action: usize, space: LocalSpace) -> StepBy<Range<usize>> {
        (action..space.cells()).step_by(space.actions)
    }
}

impl Marginal for Pairs {
    fn groups(space: LocalSpace) -> usize {
        space.cells()
    }

    fn cells(cell: usize, _: LocalSpace) -> StepBy<Range<usize>> {
        (cell..cell + 1).step_by(1)
    }
}

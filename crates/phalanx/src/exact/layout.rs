//! How tables over states and actions of several agents are laid out.

use std::collections::BTreeSet;

use super::dynamics::Dynamics;
use crate::Ragged;

/// An index of a table. Tables are laid out with states first, then actions, then next states, each by agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Var {
    /// s_i.
    State(usize),
    /// a_i.
    Action(usize),
    /// s'_i.
    Next(usize),
}

/// Which indices a table has, the last one fastest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Layout {
    pub(super) vars: Vec<(Var, usize)>,
}

impl Layout {
    /// The given indices, in the order of [`Var`].
    pub fn new(dynamics: &Dynamics, vars: impl IntoIterator<Item = Var>) -> Self {
        let vars: BTreeSet<Var> = vars.into_iter().collect();
        let size = |var| match var {
            Var::State(i) | Var::Next(i) => dynamics.states[i],
            Var::Action(i) => dynamics.actions[i],
        };
        Layout { vars: vars.into_iter().map(|var| (var, size(var))).collect() }
    }

    /// States of `agents`.
    pub fn of_states(dynamics: &Dynamics, agents: impl IntoIterator<Item = usize>) -> Self {
        Layout::new(dynamics, agents.into_iter().map(Var::State))
    }

    /// States and actions of `agents`: how a table over their pairs is laid out.
    pub fn of_pairs(dynamics: &Dynamics, agents: impl IntoIterator<Item = usize>) -> Self {
        Layout::new(dynamics, agents.into_iter().flat_map(|i| [Var::State(i), Var::Action(i)]))
    }

    /// Number of entries, which may be more than can be had.
    pub fn size(&self) -> f64 {
        self.vars.iter().map(|&(_, size)| size as f64).product()
    }

    /// The indices that `keep` holds for.
    pub fn only(&self, keep: impl Fn(Var) -> bool) -> Layout {
        Layout { vars: self.vars.iter().copied().filter(|&(var, _)| keep(var)).collect() }
    }

    /// Whether `var` is an index.
    pub fn contains(&self, var: Var) -> bool {
        self.vars.binary_search_by_key(&var, |&(var, _)| var).is_ok()
    }

    /// Without `var`.
    pub fn without(&self, var: Var) -> Layout {
        self.only(|other| other != var)
    }

    /// The indices of both.
    pub fn union(&self, other: &Layout) -> Layout {
        let mut vars = [&self.vars[..], &other.vars[..]].concat();
        vars.sort_unstable();
        vars.dedup();
        Layout { vars }
    }

    /// The agents whose action is an index.
    pub fn acting(&self) -> impl Iterator<Item = usize> {
        self.vars.iter().filter_map(|&(var, _)| if let Var::Action(i) = var { Some(i) } else { None })
    }

    /// What one unit of `var` adds to a position; 0 if the table does not have it.
    pub fn stride(&self, var: Var) -> usize {
        match self.vars.iter().position(|&(v, _)| v == var) {
            Some(k) => self.vars[k + 1..].iter().map(|&(_, size)| size).product(),
            None => 0,
        }
    }

    /// For every entry of this layout, where its values lie in a table laid out as `other`. Indices that
    /// `other` does not have are ignored, those that it has beside are 0.
    pub fn positions_in(&self, other: &Layout) -> Vec<u32> {
        let mut positions = vec![0u32];
        for &(var, size) in &self.vars {
            let stride = other.stride(var) as u32;
            positions =
                positions.iter().flat_map(|&p| (0..size as u32).map(move |x| p + x * stride)).collect();
        }
        positions
    }

    /// Sums of a table that is laid out like this over the indices that `onto` does not have.
    pub fn marginal(&self, table: &[f64], onto: &Layout) -> Vec<f64> {
        let mut sums = vec![0.0; onto.size() as usize];
        for (place, x) in self.positions_in(onto).into_iter().zip(table) {
            sums[place as usize] += x;
        }
        sums
    }
}

/// The agents of every group.
pub fn members(groups: &Ragged<u32>) -> Vec<Vec<usize>> {
    groups.iter().map(|group| group.iter().map(|&k| k as usize).collect()).collect()
}

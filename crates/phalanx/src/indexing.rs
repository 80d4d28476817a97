//! Numbering of joint values of several agents: mixed radix, smallest agent id most significant.
//!
//! The order is that of the exported tables: an index over agents k1 < k2 < … is
//! `((x_k1)·|X_k2| + x_k2)·|X_k3| + …`, and a table over states and actions is `[states][actions]`.

use crate::{Error, Ragged, Result};

/// Tables larger than this are refused: they would never be filled by samples.
pub const LARGEST_TABLE: u64 = 1 << 24;

/// One agent's contribution to a joint index over states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateTerm {
    /// The agent whose state is read.
    pub agent: u32,
    /// What one unit of that state adds to the index.
    pub stride: u32,
}

/// For every group of agents, the index of their joint *state*.
#[derive(Debug, Clone)]
pub struct StateIndex {
    terms: Ragged<StateTerm>,
    sizes: Vec<u32>,
}

impl StateIndex {
    /// Row i of `groups` lists the agents (ascending) that index i reads; `states[j]` = |S_j|.
    ///
    /// `what` names the radius in the message when a table would be too large.
    pub fn new(groups: &Ragged<u32>, states: &[usize], what: &str) -> Result<Self> {
        let mut terms = Ragged::with_capacity(groups.rows());
        let mut sizes = Vec::with_capacity(groups.rows());
        for (i, group) in groups.iter().enumerate() {
            let size = product(group, states);
            check_size(size, i, group.len(), what)?;
            let mut stride = size;
            terms.push_row(group.iter().map(|&agent| {
                stride /= states[agent as usize] as u64;
                StateTerm { agent, stride: stride as u32 }
            }));
            sizes.push(size as u32);
        }
        Ok(StateIndex { terms, sizes })
    }

    /// Number of joint values of group `i`.
    #[inline]
    pub fn size(&self, i: usize) -> usize {
        self.sizes[i] as usize
    }

    /// The terms of group `i`.
    #[inline]
    pub fn terms(&self, i: usize) -> &[StateTerm] {
        self.terms.row(i)
    }

    /// The index of group `i` in the joint state `states`; reads the group's entries only.
    #[inline]
    pub fn index(&self, i: usize, states: &[u8]) -> usize {
        let mut index = 0;
        for term in self.terms.row(i) {
            index += term.stride * u32::from(states[term.agent as usize]);
        }
        index as usize
    }
}

/// One agent's contribution to a joint index over states and actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PairTerm {
    /// The agent whose state and action are read.
    pub agent: u32,
    /// What one unit of its state adds to the index.
    pub state_stride: u32,
    /// What one unit of its action adds to the index.
    pub action_stride: u32,
}

/// For every group of agents, the index of their joint state *and* action.
#[derive(Debug, Clone)]
pub struct PairIndex {
    terms: Ragged<PairTerm>,
    sizes: Vec<u32>,
}

impl PairIndex {
    /// As [`StateIndex::new`], for tables over `[joint state][joint action]`.
    pub fn new(groups: &Ragged<u32>, states: &[usize], actions: &[usize], what: &str) -> Result<Self> {
        let mut terms = Ragged::with_capacity(groups.rows());
        let mut sizes = Vec::with_capacity(groups.rows());
        for (i, group) in groups.iter().enumerate() {
            let action_size = product(group, actions);
            let size = product(group, states).saturating_mul(action_size);
            check_size(size, i, group.len(), what)?;
            let (mut state_stride, mut action_stride) = (size, action_size);
            terms.push_row(group.iter().map(|&agent| {
                state_stride /= states[agent as usize] as u64;
                action_stride /= actions[agent as usize] as u64;
                PairTerm { agent, state_stride: state_stride as u32, action_stride: action_stride as u32 }
            }));
            sizes.push(size as u32);
        }
        Ok(PairIndex { terms, sizes })
    }

    /// Number of joint values of group `i`.
    #[inline]
    pub fn size(&self, i: usize) -> usize {
        self.sizes[i] as usize
    }

    /// The terms of group `i`.
    #[inline]
    pub fn terms(&self, i: usize) -> &[PairTerm] {
        self.terms.row(i)
    }

    /// The index of group `i` in the joint state and action; reads the group's entries only.
    #[inline]
    pub fn index(&self, i: usize, states: &[u8], actions: &[u8]) -> usize {
        let mut index = 0;
        for term in self.terms.row(i) {
            let agent = term.agent as usize;
            index += term.state_stride * u32::from(states[agent]) + term.action_stride * u32::from(actions[agent]);
        }
        index as usize
    }

    /// Groups as lists of agents.
    pub fn members(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        self.terms.row(i).iter().map(|term| term.agent as usize)
    }
}

fn product(group: &[u32], sizes: &[usize]) -> u64 {
    group.iter().fold(1, |product: u64, &agent| product.saturating_mul(sizes[agent as usize] as u64))
}

fn check_size(size: u64, agent: usize, members: usize, what: &str) -> Result<()> {
    if size <= LARGEST_TABLE {
        return Ok(());
    }
    Err(Error::config(
        what,
        format!(
            "agent {agent} reads {members} agents, so its table would have {} entries (at most {LARGEST_TABLE} \
             are allowed); choose a smaller radius",
            if size == u64::MAX { "over 10^19".to_string() } else { size.to_string() }
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smallest_id_is_most_significant() {
        let groups = Ragged::from_rows([vec![0, 2], vec![1]]);
        let index = StateIndex::new(&groups, &[2, 3, 4], "kappa").unwrap();
        assert_eq!((index.size(0), index.size(1)), (8, 3));
        assert_eq!(index.index(0, &[1, 9, 3]), 4 + 3);
        let pairs = PairIndex::new(&groups, &[2, 3, 4], &[3, 2, 5], "kappa_q").unwrap();
        assert_eq!(pairs.size(0), 8 * 15);
        assert_eq!(pairs.index(0, &[1, 9, 3], &[2, 9, 4]), (4 + 3) * 15 + 2 * 5 + 4);
    }

    #[test]
    fn too_large_a_table_says_how_large() {
        let groups = Ragged::from_rows([(0..30).collect::<Vec<u32>>()]);
        let error = StateIndex::new(&groups, &[2; 30], "kappa").unwrap_err().to_string();
        assert!(error.contains("kappa") && error.contains("1073741824"), "{error}");
    }
}

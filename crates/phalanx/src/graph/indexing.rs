//! Numbering of joint values of several agents: mixed radix, smallest agent id most significant.
//!
//! The order is that of the exported tables: an index over agents k1 < k2 < … is
//! `((x_k1)·|X_k2| + x_k2)·|X_k3| + …`, and a table over states and actions is `[states][actions]`.

use std::ops::Range;

use multiversion::multiversion;

use crate::base::error::ensure;
use crate::base::limits::check_memory;
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

/// For every group of agents, the index of their joint values.
#[derive(Debug, Clone)]
pub struct JointIndex<T> {
    terms: Ragged<T>,
    sizes: Vec<u32>,
    runs: Vec<Range<usize>>,
}

/// For every group of agents, the index of their joint *state*.
pub type StateIndex = JointIndex<StateTerm>;

/// For every group of agents, the index of their joint state *and* action.
pub type PairIndex = JointIndex<PairTerm>;

impl<T> JointIndex<T> {
    /// `table` gives the number of joint values of a group and its terms; `follows` says whether a term is
    /// that of the next agent.
    fn build<'a, R: Iterator<Item = T>>(
        groups: &'a Ragged<u32>,
        what: &str,
        table: impl Fn(&'a [u32]) -> (u64, R),
        follows: impl Fn(&T, &T) -> bool,
    ) -> Result<Self> {
        let mut terms = Ragged::with_capacity(groups.rows());
        let mut sizes = Vec::with_capacity(groups.rows());
        for (i, group) in groups.iter().enumerate() {
            let (size, row) = table(group);
            check_size(size, i, group.len(), what)?;
            terms.push_row(row);
            sizes.push(size as u32);
        }
        check_total(&sizes, what)?;
        let runs = runs(&terms, follows);
        Ok(JointIndex { terms, sizes, runs })
    }

    /// Number of joint values of group `i`.
    #[inline]
    pub fn size(&self, i: usize) -> usize {
        self.sizes[i] as usize
    }

    /// The terms of group `i`.
    #[inline]
    pub fn terms(&self, i: usize) -> &[T] {
        self.terms.row(i)
    }
}

impl StateIndex {
    /// Row i of `groups` lists the agents (ascending) that index i reads; `states[j]` = |S_j|.
    ///
    /// `what` names the radius in the message when a table would be too large.
    pub fn new(groups: &Ragged<u32>, states: &[usize], what: &str) -> Result<Self> {
        let table = |group| {
            let size = product(group, states);
            let mut stride = size;
            let terms = group.iter().map(move |&agent| {
                stride /= states[agent as usize] as u64;
                StateTerm { agent, stride: stride as u32 }
            });
            (size, terms)
        };
        JointIndex::build(groups, what, table, |a, b| (a.stride, a.agent + 1) == (b.stride, b.agent))
    }

    /// The agents of group `i`.
    pub fn agents(&self, i: usize) -> impl Iterator<Item = usize> {
        self.terms(i).iter().map(|term| term.agent as usize)
    }

    /// The indices of the groups in `groups` in the joint state `states`. Reads the groups' entries only.
    pub fn fill(&self, groups: Range<usize>, states: &[u8], out: &mut [u32]) {
        fill_states(self, groups, states, out);
    }
}

impl PairIndex {
    /// As [`StateIndex::new`], for tables over `[joint state][joint action]`.
    pub fn new(groups: &Ragged<u32>, states: &[usize], actions: &[usize], what: &str) -> Result<Self> {
        let table = |group| {
            let action_size = product(group, actions);
            let size = product(group, states).saturating_mul(action_size);
            let (mut state_stride, mut action_stride) = (size, action_size);
            let terms = group.iter().map(move |&agent| {
                state_stride /= states[agent as usize] as u64;
                action_stride /= actions[agent as usize] as u64;
                PairTerm { agent, state_stride: state_stride as u32, action_stride: action_stride as u32 }
            });
            (size, terms)
        };
        JointIndex::build(groups, what, table, |a, b| {
            (a.state_stride, a.action_stride, a.agent + 1) == (b.state_stride, b.action_stride, b.agent)
        })
    }

    /// The indices of the groups in `groups` in the joint state and action. Reads the groups' entries only.
    pub fn fill(&self, groups: Range<usize>, states: &[u8], actions: &[u8], out: &mut [u32]) {
        fill_pairs(self, groups, states, actions, out);
    }
}

/// Consecutive groups that are shifted copies of one another, as along a line or a row of a grid: their
/// indices can be computed side by side.
fn runs<T>(terms: &Ragged<T>, follows: impl Fn(&T, &T) -> bool) -> Vec<Range<usize>> {
    let is_shifted = |before: &[T], after: &[T]| {
        before.len() == after.len() && before.iter().zip(after).all(|(a, b)| follows(a, b))
    };
    let mut runs: Vec<Range<usize>> = Vec::new();
    for i in 0..terms.rows() {
        match runs.last_mut() {
            Some(run) if is_shifted(terms.row(i - 1), terms.row(i)) => run.end = i + 1,
            _ => runs.push(i..i + 1),
        }
    }
    runs
}

/// Runs below this length are not worth vector instructions.
const SHORT_RUN: usize = 8;

/// Every run that meets `groups`, cut to it, and its place in an array over `groups`.
#[inline(always)]
fn runs_within(
    runs: &[Range<usize>],
    groups: Range<usize>,
) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let first = runs.partition_point(|run| run.end <= groups.start);
    runs[first..].iter().take_while(move |run| run.start < groups.end).map(move |run| {
        let part = run.start.max(groups.start)..run.end.min(groups.end);
        (part.clone(), part.start - groups.start..part.end - groups.start)
    })
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx2"))]
fn fill_states(index: &StateIndex, groups: Range<usize>, states: &[u8], out: &mut [u32]) {
    let terms = &index.terms;
    for (run, place) in runs_within(&index.runs, groups) {
        // An empty group has one joint value: number 0.
        if run.len() < SHORT_RUN || terms.row(run.start).is_empty() {
            for (m, out) in out[place].iter_mut().enumerate() {
                let value = |term: &StateTerm| term.stride * u32::from(states[term.agent as usize + m]);
                *out = terms.row(run.start).iter().map(value).sum();
            }
            continue;
        }
        for (k, term) in terms.row(run.start).iter().enumerate() {
            let first = term.agent as usize;
            add_states(&mut out[place.clone()], &states[first..first + run.len()], term.stride, k == 0);
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx2"))]
fn fill_pairs(index: &PairIndex, groups: Range<usize>, states: &[u8], actions: &[u8], out: &mut [u32]) {
    let terms = &index.terms;
    for (run, place) in runs_within(&index.runs, groups) {
        if terms.row(run.start).is_empty() {
            out[place.clone()].fill(0);
        }
        for (k, term) in terms.row(run.start).iter().enumerate() {
            let all = term.agent as usize..term.agent as usize + run.len();
            let strides = [term.state_stride, term.action_stride];
            add_pairs(&mut out[place.clone()], &states[all.clone()], &actions[all], strides, k == 0);
        }
    }
}

/// out[m] += stride·states[m], from zero if `fresh`. Eight at a time: small graphs have no longer runs.
#[inline(always)]
pub(crate) fn add_states(out: &mut [u32], states: &[u8], stride: u32, fresh: bool) {
    let (out, out_rest) = out.as_chunks_mut::<8>();
    let (states, states_rest) = states.as_chunks::<8>();
    for (out, states) in out.iter_mut().zip(states) {
        for (out, &s) in out.iter_mut().zip(states) {
            *out = if fresh { 0 } else { *out } + stride * u32::from(s);
        }
    }
    for (out, &s) in out_rest.iter_mut().zip(states_rest) {
        *out = if fresh { 0 } else { *out } + stride * u32::from(s);
    }
}

/// out[m] += strides[0]·states[m] + strides[1]·actions[m], from zero if `fresh`.
#[inline(always)]
pub(crate) fn add_pairs(out: &mut [u32], states: &[u8], actions: &[u8], strides: [u32; 2], fresh: bool) {
    let pairs = out.iter_mut().zip(states).zip(actions);
    if fresh {
        for ((out, &s), &a) in pairs {
            *out = strides[0] * u32::from(s) + strides[1] * u32::from(a);
        }
    } else {
        for ((out, &s), &a) in pairs {
            *out += strides[0] * u32::from(s) + strides[1] * u32::from(a);
        }
    }
}

fn product(group: &[u32], sizes: &[usize]) -> u64 {
    group.iter().fold(1, |product: u64, &agent| product.saturating_mul(sizes[agent as usize] as u64))
}

fn check_size(size: u64, agent: usize, members: usize, what: &str) -> Result<()> {
    ensure(size <= LARGEST_TABLE, || {
        let size = if size == u64::MAX { "over 10^19".to_string() } else { size.to_string() };
        let message = format!(
            "agent {agent} reads {members} agents, so its table would have {size} entries (at most \
             {LARGEST_TABLE} are allowed); let it read fewer"
        );
        Error::config(what, message)
    })
}

/// All agents' tables together; a table is kept several times over (parameters, moments, utilities).
fn check_total(sizes: &[u32], what: &str) -> Result<()> {
    const COPIES: u128 = 4;
    let total: u128 = sizes.iter().map(|&size| u128::from(size)).sum();
    check_memory(COPIES * size_of::<f64>() as u128 * total, what, &format!("tables of {total} entries"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Graph;

    #[test]
    fn smallest_id_is_most_significant() {
        let groups = Ragged::from_rows([vec![0, 2], vec![1]]);
        let index = StateIndex::new(&groups, &[2, 3, 4], "kappa").unwrap();
        assert_eq!((index.size(0), index.size(1)), (8, 3));
        let mut found = [0];
        index.fill(0..1, &[1, 9, 3], &mut found);
        assert_eq!(found, [4 + 3]);
        let pairs = PairIndex::new(&groups, &[2, 3, 4], &[3, 2, 5], "kappa_q").unwrap();
        assert_eq!(pairs.size(0), 8 * 15);
        pairs.fill(0..1, &[1, 9, 3], &[2, 9, 4], &mut found);
        assert_eq!(found, [(4 + 3) * 15 + 2 * 5 + 4]);
    }

    #[test]
    fn runs_of_shifted_groups_give_what_each_group_alone_gives() {
        for graph in [Graph::line(40), Graph::grid(5, 8), Graph::random_geometric(40, 0.25, 3)] {
            let groups = graph.unwrap().neighbourhoods(1);
            let (states, actions) = ([2; 40], [3; 40]);
            let index = StateIndex::new(&groups, &states, "kappa").unwrap();
            let mut joint = [0; 40];
            for (i, s) in joint.iter_mut().enumerate() {
                *s = (i * i % 7 % 2) as u8;
            }
            let alone: Vec<u32> = (0..40)
                .map(|i| index.terms(i).iter().map(|t| t.stride * u32::from(joint[t.agent as usize])).sum())
                .collect();
            for range in [0..40, 3..21, 39..40] {
                let mut found = vec![9; range.len()];
                index.fill(range.clone(), &joint, &mut found);
                assert_eq!(found, alone[range]);
            }
            if let Ok(pairs) = PairIndex::new(&groups, &states, &actions, "kappa_q") {
                let mut found = [0; 40];
                pairs.fill(0..40, &joint, &joint, &mut found);
                for i in 0..40 {
                    let terms = pairs.terms(i).iter();
                    let sum: u32 = terms
                        .map(|t| (t.state_stride + t.action_stride) * u32::from(joint[t.agent as usize]))
                        .sum();
                    assert_eq!(found[i], sum);
                }
            }
        }
    }

    #[test]
    fn too_large_a_table_says_how_large() {
        let groups = Ragged::from_rows([(0..30).collect::<Vec<u32>>()]);
        let error = StateIndex::new(&groups, &[2; 30], "kappa").unwrap_err().to_string();
        assert!(error.contains("kappa") && error.contains("1073741824"), "{error}");
    }
}

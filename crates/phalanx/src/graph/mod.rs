//! Agents on an undirected graph.
//!
//! Links say who talks to whom; hop distances on them decide how far an agent looks
//! ([`Graph::neighbourhoods`]). The constructors for standard shapes and random graphs are in `generate`
//! and `social`, the reader for user-supplied graphs in `edge_list`.

mod config;
mod edge_list;
mod generate;
pub mod indexing;
mod neighbourhood;
mod partition;
mod social;
mod sub_graph;

use std::sync::Arc;

use crate::base::error::{Error, Result};
use crate::base::ragged::Ragged;

pub use config::GraphConfig;
pub(crate) use config::NETWORK_KIND;
pub use partition::{Partition, PartitionPart};
use sub_graph::SubGraph;

/// Agents are numbered with 32 bits; the last number is kept free so that "agent + 1" always fits.
const MAX_AGENTS: usize = u32::MAX as usize;

/// An undirected graph whose nodes are the agents `0..agents()`.
///
/// Without self loops or repeated links; memory is linear in agents plus links.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// Row i holds the agents linked to agent i, ascending. Symmetric.
    adjacency: Ragged<u32>,
    /// Where these agents stand in a larger graph, if they are a part of one.
    part: Option<Arc<SubGraph>>,
    /// Groups of agents that a file has names for.
    groups: Arc<[(String, Vec<u32>)]>,
    /// The kind of every agent of the whole graph, where a file says it; else empty.
    kinds: Arc<[u16]>,
}

impl Graph {
    /// The graph of `agents` agents with the given links.
    ///
    /// Direction does not matter, self loops are ignored and repeated links count once. Fails when there is
    /// no agent, when there are more than `u32::MAX`, or when a link names an agent outside `0..agents`.
    /// Time O(agents + links · log(largest degree)), memory O(agents + links).
    pub fn from_edges(agents: usize, edges: impl IntoIterator<Item = (usize, usize)>) -> Result<Graph> {
        check_agents(agents)?;
        let mut links = Vec::new();
        for (k, (a, b)) in edges.into_iter().enumerate() {
            let largest = a.max(b);
            if largest >= agents {
                let message = format!("edge {k} joins agent {largest}, but agents are 0 to {}", agents - 1);
                return Err(Error::config("edges", message));
            }
            links.push((a as u32, b as u32));
        }
        Ok(Graph::from_links(agents, &links))
    }

    /// The graph of links whose ends are already known to be below `agents`.
    fn from_links(agents: usize, links: &[(u32, u32)]) -> Graph {
        let proper = links.iter().filter(|(a, b)| a != b);
        let mut adjacency = group_by_row(agents, proper.flat_map(|&(a, b)| [(a, b), (b, a)]));
        let mut repeated = false;
        for i in 0..agents {
            let row = adjacency.row_mut(i);
            row.sort_unstable();
            repeated |= row.windows(2).any(|pair| pair[0] == pair[1]);
        }
        Graph {
            adjacency: if repeated { without_repeats(&adjacency) } else { adjacency },
            part: None,
            groups: Arc::default(),
            kinds: Arc::default(),
        }
    }

    /// The agents of a group that the graph's file has a name for, ascending.
    pub fn group(&self, name: &str) -> Option<&[u32]> {
        self.groups.iter().find(|(known, _)| known == name).map(|(_, agents)| &agents[..])
    }

    /// The kind of every agent of the whole graph, from 0 in the order in which its file names them; empty if
    /// it does not.
    pub fn kinds(&self) -> &[u16] {
        &self.kinds
    }

    /// Names of all such groups.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().map(|(name, _)| name.as_str())
    }

    /// Number of agents, at least 1.
    pub fn agents(&self) -> usize {
        self.adjacency.rows()
    }

    /// Number of links, each counted once.
    pub fn edge_count(&self) -> usize {
        self.adjacency.data().len() / 2
    }

    /// The agents linked to agent `i`, ascending and without `i` itself. O(1).
    ///
    /// # Panics
    /// When `i` is not below [`Graph::agents`].
    #[inline]
    pub fn neighbours(&self, i: usize) -> &[u32] {
        self.adjacency.row(i)
    }
}

/// Refuses numbers of agents that the 32-bit numbering cannot hold.
fn check_agents(agents: usize) -> Result<()> {
    if (1..=MAX_AGENTS).contains(&agents) {
        return Ok(());
    }
    Err(Error::config("network.agents", format!("{agents} agents given, allowed are 1 to {MAX_AGENTS}")))
}

/// Collects `(row, value)` entries by row, keeping their order within a row. Linear (counting sort).
fn group_by_row(rows: usize, entries: impl Iterator<Item = (u32, u32)> + Clone) -> Ragged<u32> {
    let mut lengths = vec![0usize; rows];
    for (row, _) in entries.clone() {
        lengths[row as usize] += 1;
    }
    let mut grouped = Ragged::zeros(lengths.iter().copied());
    let mut filled = lengths;
    filled.fill(0);
    for (row, value) in entries {
        let row = row as usize;
        grouped.row_mut(row)[filled[row]] = value;
        filled[row] += 1;
    }
    grouped
}

/// A copy of ascending rows in which every value is kept once. Linear.
fn without_repeats(rows: &Ragged<u32>) -> Ragged<u32> {
    Ragged::from_rows(rows.iter().map(|row| row.chunk_by(|a, b| a == b).map(|run| run[0])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_ascending_without_loops_or_repeats() {
        let graph = Graph::from_edges(5, [(3, 1), (1, 0), (0, 1), (2, 2), (1, 3), (4, 1)]).unwrap();
        assert_eq!(graph.agents(), 5);
        assert_eq!(graph.edge_count(), 3);
        let rows: Vec<&[u32]> = (0..5).map(|i| graph.neighbours(i)).collect();
        assert_eq!(rows, [&[1][..], &[0, 3, 4], &[], &[1], &[1]]);
    }

    #[test]
    fn repeats_do_not_change_a_network() {
        let once = Graph::from_edges(4, [(0, 1), (2, 3), (0, 3)]).unwrap();
        let twice = Graph::from_edges(4, [(3, 0), (1, 0), (0, 1), (3, 2), (0, 3)]).unwrap();
        assert_eq!(once, twice);
    }

    #[test]
    fn an_agent_may_be_alone() {
        let graph = Graph::from_edges(1, []).unwrap();
        assert_eq!((graph.agents(), graph.edge_count()), (1, 0));
        assert!(graph.neighbours(0).is_empty());
    }

    #[test]
    fn unusable_input_is_named() {
        let message = |agents, edges: &[(usize, usize)]| {
            Graph::from_edges(agents, edges.iter().copied()).unwrap_err().to_string()
        };
        assert_eq!(message(10, &[(0, 1), (12, 3)]), "edges: edge 1 joins agent 12, but agents are 0 to 9");
        assert_eq!(message(10, &[(0, 10)]), "edges: edge 0 joins agent 10, but agents are 0 to 9");
        assert_eq!(message(0, &[]), "network.agents: 0 agents given, allowed are 1 to 4294967295");
        assert_eq!(
            message(1 << 32, &[]),
            "network.agents: 4294967296 agents given, allowed are 1 to 4294967295"
        );
    }
}

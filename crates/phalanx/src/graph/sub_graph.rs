//! A part of a graph: the agents that one process simulates, and those of others that it must know of.

use std::ops::Range;
use std::sync::Arc;

use super::Graph;
use crate::Ragged;
use crate::base::parallel::{blocks_of, runs_of};

/// How the agents of a part are numbered in the whole graph.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SubGraph {
    /// Number in the whole graph of every agent here, ascending: what is in order here is in order there.
    ids: Vec<u32>,
    /// Agents here that belong to this process, as ascending runs. The others are ghosts: copies of somebody
    /// else's.
    own: Vec<Range<usize>>,
    /// Agents of the whole graph.
    total: usize,
}

impl Graph {
    /// The agents `ids` (ascending) with the links among them; those that are `owned` belong to this process.
    ///
    /// An agent that is owned has all its neighbours up to the depth to which ghosts were taken along. Those
    /// of a ghost may be missing.
    pub fn part(&self, ids: Vec<u32>, owned: impl Fn(u32) -> bool) -> Graph {
        debug_assert!(ids.is_sorted());
        let number = |id: u32| ids.binary_search(&id).ok().map(|i| i as u32);
        let links = |&id: &u32| {
            let known = self.neighbours(id as usize).iter().filter_map(|&other| number(other));
            known.collect::<Vec<u32>>()
        };
        let adjacency = Ragged::from_rows(ids.iter().map(links));
        let own = runs_of((0..ids.len()).filter(|&i| owned(ids[i])));
        Graph {
            adjacency,
            part: Some(Arc::new(SubGraph { ids, own, total: self.total() })),
            groups: self.groups.clone(),
            kinds: self.kinds.clone(),
        }
    }

    /// Number of agent `i` in the whole graph: the one that users see, and that random numbers are keyed
    /// by.
    #[inline]
    pub fn global_id(&self, i: usize) -> u32 {
        self.part.as_ref().map_or(i as u32, |part| part.ids[i])
    }

    /// Numbers in the whole graph of all agents here; none if this is the whole.
    pub fn ids(&self) -> Option<&[u32]> {
        self.part.as_ref().map(|part| &part.ids[..])
    }

    /// The numbers in the whole graph, if they follow each other.
    pub fn contiguous_ids(&self) -> Range<usize> {
        match self.ids() {
            None => 0..self.agents(),
            Some(ids) => match (ids.first(), ids.last()) {
                (Some(&first), Some(&last)) if (last - first) as usize + 1 == ids.len() => {
                    first as usize..last as usize + 1
                }
                _ => 0..0,
            },
        }
    }

    /// Agents of the whole graph.
    pub fn total(&self) -> usize {
        self.part.as_ref().map_or(self.agents(), |part| part.total)
    }

    /// Agents that belong to this process, as ascending runs: all, if this is the whole graph.
    pub fn owned(&self) -> Vec<Range<usize>> {
        let everybody = || std::iter::once(0..self.agents()).collect();
        self.part.as_ref().map_or_else(everybody, |part| part.own.clone())
    }

    /// Those agents one by one, ascending.
    pub fn owned_agents(&self) -> impl Iterator<Item = usize> {
        self.owned().into_iter().flatten()
    }

    /// From the first to the last of those agents, ghosts in between included.
    pub fn owned_span(&self) -> Range<usize> {
        let own = self.owned();
        own.first().map_or(0, |run| run.start)..own.last().map_or(0, |run| run.end)
    }

    /// Those agents in pieces to hand to threads.
    pub fn work_blocks(&self) -> Vec<Range<usize>> {
        blocks_of(&self.owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_knows_its_numbers_and_links() {
        let ring = Graph::ring(10).unwrap();
        let part = ring.part(vec![0, 1, 4, 5, 6, 9], |id| [0, 5, 6].contains(&id));
        assert_eq!((part.agents(), part.total(), part.global_id(3)), (6, 10, 5));
        assert_eq!(part.owned(), [0..1, 3..5]);
        assert_eq!((part.owned_span(), part.owned_agents().collect::<Vec<_>>()), (0..5, vec![0, 3, 4]));
        let rows: Vec<&[u32]> = (0..6).map(|i| part.neighbours(i)).collect();
        assert_eq!(rows, [&[1, 5][..], &[0], &[3], &[2, 4], &[3], &[0]]);
        assert!(part.contiguous_ids().is_empty());
        assert_eq!(ring.part(vec![3, 4, 5], |id| id == 4).contiguous_ids(), 3..6);
        assert_eq!((ring.contiguous_ids(), ring.owned_span(), ring.global_id(7)), (0..10, 0..10, 7));
    }
}

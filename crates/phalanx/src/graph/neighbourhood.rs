//! Hop distances and κ-hop neighbourhoods, by breadth-first search.

use std::collections::VecDeque;
use std::ops::Range;

use rayon::prelude::*;

use super::Graph;
use crate::base::ragged::Ragged;

/// Agents searched as one piece of parallel work, at least.
const MIN_BLOCK: usize = 1024;

/// Pieces of parallel work, at most. Each may need its own array over all agents, so their number is
/// bounded to keep that cost linear in the number of agents.
const MAX_BLOCKS: usize = 256;

/// A neighbourhood larger than this share of all agents is put in order by going through all agents.
const DENSE_SHARE: usize = 16;

impl Graph {
    /// Hop distance from agent `i` to every agent; `None` where there is no path. O(agents + links).
    ///
    /// # Panics
    /// When `i` is not below [`Graph::agents`].
    pub fn distances_from(&self, i: usize) -> Vec<Option<u32>> {
        let mut distances = vec![None; self.agents()];
        distances[i] = Some(0);
        let mut reached = VecDeque::from([(i as u32, 0)]);
        while let Some((agent, distance)) = reached.pop_front() {
            for &neighbour in self.neighbours(agent as usize) {
                let known = &mut distances[neighbour as usize];
                if known.is_none() {
                    *known = Some(distance + 1);
                    reached.push_back((neighbour, distance + 1));
                }
            }
        }
        distances
    }

    /// [`Graph::distances_from`] every agent.
    pub fn distances(&self) -> impl Iterator<Item = Vec<Option<u32>>> {
        (0..self.agents()).map(|i| self.distances_from(i))
    }

    /// The κ-hop neighbourhoods: row i is N_i^κ = {j : d(i, j) ≤ κ}, ascending, `i` included.
    ///
    /// Memory is linear in the total size of the rows. Time is that of listing the links of the agents closer
    /// than κ hops to each agent, for bounded degrees linear in the total size too, and of sorting each row.
    /// Runs on rayon's current thread pool; the result does not depend on the number of threads.
    pub fn neighbourhoods(&self, kappa: usize) -> Ragged<u32> {
        match kappa {
            0 => Ragged::from_rows((0..self.agents() as u32).map(|i| [i])),
            1 => self.closed_neighbourhoods(),
            _ => self.searched_neighbourhoods(kappa),
        }
    }

    /// κ = 1 needs no search: the neighbours with the agent itself put in its place.
    fn closed_neighbourhoods(&self) -> Ragged<u32> {
        let mut closed = Ragged::zeros(self.adjacency.iter().map(|row| row.len() + 1));
        for (i, neighbours) in self.adjacency.iter().enumerate() {
            let before = neighbours.partition_point(|&j| (j as usize) < i);
            let row = closed.row_mut(i);
            row[..before].copy_from_slice(&neighbours[..before]);
            row[before] = i as u32;
            row[before + 1..].copy_from_slice(&neighbours[before..]);
        }
        closed
    }

    fn searched_neighbourhoods(&self, kappa: usize) -> Ragged<u32> {
        let agents = self.agents();
        let size = agents.div_ceil(MAX_BLOCKS).max(MIN_BLOCK);
        let blocks: Vec<Ragged<u32>> = (0..agents.div_ceil(size))
            .into_par_iter()
            .map_init(
                || Search::new(self),
                |search, b| search.block(b * size..agents.min((b + 1) * size), kappa),
            )
            .collect();
        let mut rows = Ragged::zeros(blocks.iter().flat_map(|block| block.iter().map(<[u32]>::len)));
        let mut rest = rows.data_mut();
        // By value: a block is freed as soon as it is copied, so that the peak stays near one copy of
        // everything.
        for block in blocks {
            let (here, after) = rest.split_at_mut(block.data().len());
            here.copy_from_slice(block.data());
            rest = after;
        }
        rows
    }
}

/// Breadth-first search from one agent after another, without clearing anything in between.
struct Search<'a> {
    graph: &'a Graph,
    /// 1 + the agent whose search last reached this agent. 0, for never, lets the operating system hand out
    /// the array lazily: a search that stays local touches little of it.
    reached_by: Vec<u32>,
    /// What the current search has reached, in order of distance.
    reached: Vec<u32>,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph) -> Self {
        Search { graph, reached_by: vec![0; graph.agents()], reached: Vec::new() }
    }

    /// The neighbourhoods of consecutive agents.
    fn block(&mut self, sources: Range<usize>, kappa: usize) -> Ragged<u32> {
        let mut block = Ragged::with_capacity(sources.len());
        sources.for_each(|source| block.push_row(self.within(source, kappa).iter().copied()));
        block
    }

    /// The agents at most `kappa` hops from `source`, ascending.
    fn within(&mut self, source: usize, kappa: usize) -> &[u32] {
        let agents = self.graph.agents();
        let mark = source as u32 + 1;
        self.reached.clear();
        self.reached.push(source as u32);
        self.reached_by[source] = mark;
        let mut frontier = 0;
        'search: for _ in 0..kappa {
            let end = self.reached.len();
            if frontier == end {
                break;
            }
            for k in frontier..end {
                // On dense graphs most links lead to agents already reached: stop when nobody is left.
                if self.reached.len() == agents {
                    break 'search;
                }
                for &neighbour in self.graph.neighbours(self.reached[k] as usize) {
                    let last = &mut self.reached_by[neighbour as usize];
                    if *last != mark {
                        *last = mark;
                        self.reached.push(neighbour);
                    }
                }
            }
            frontier = end;
        }
        self.put_in_order(mark);
        &self.reached
    }

    fn put_in_order(&mut self, mark: u32) {
        let agents = self.graph.agents();
        if self.reached.len() > agents / DENSE_SHARE {
            self.reached.clear();
            let marks = self.reached_by.iter().zip(0..agents as u32);
            self.reached.extend(marks.filter(|&(&last, _)| last == mark).map(|(_, agent)| agent));
        } else {
            self.reached.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ragged: &Ragged<u32>) -> Vec<Vec<u32>> {
        ragged.iter().map(<[u32]>::to_vec).collect()
    }

    #[test]
    fn pieces_of_a_network_do_not_reach_each_other() {
        let graph = Graph::from_edges(4, [(0, 1), (1, 2)]).unwrap();
        let expected = [
            [Some(0), Some(1), Some(2), None],
            [Some(1), Some(0), Some(1), None],
            [Some(2), Some(1), Some(0), None],
            [None, None, None, Some(0)],
        ];
        assert!(graph.distances().eq(expected));
    }

    /// The definition, one search per agent.
    fn by_definition(graph: &Graph, kappa: usize) -> Ragged<u32> {
        Ragged::from_rows((0..graph.agents()).map(|i| {
            let near = |d: Option<u32>| d.is_some_and(|d| d as usize <= kappa);
            let distances = graph.distances_from(i);
            (0..graph.agents() as u32).filter(move |&j| near(distances[j as usize])).collect::<Vec<_>>()
        }))
    }

    #[test]
    fn distances_on_two_components() {
        let graph = Graph::from_edges(6, [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5)]).unwrap();
        assert_eq!(graph.distances_from(0), [Some(0), Some(1), Some(2), Some(1), None, None]);
        assert_eq!(graph.distances_from(5), [None, None, None, None, Some(1), Some(0)]);
    }

    #[test]
    fn neighbourhoods_of_a_line() {
        let line = Graph::line(4).unwrap();
        assert_eq!(rows(&line.neighbourhoods(0)), [[0], [1], [2], [3]]);
        assert_eq!(rows(&line.neighbourhoods(1)), [vec![0, 1], vec![0, 1, 2], vec![1, 2, 3], vec![2, 3]]);
        assert_eq!(
            rows(&line.neighbourhoods(2)),
            [vec![0, 1, 2], vec![0, 1, 2, 3], vec![0, 1, 2, 3], vec![1, 2, 3]]
        );
        assert_eq!(rows(&line.neighbourhoods(usize::MAX)), vec![vec![0, 1, 2, 3]; 4]);
    }

    #[test]
    fn neighbourhoods_are_the_definition_on_random_networks() {
        for seed in 0..6 {
            let n = 60 + 40 * seed as usize;
            for graph in [
                Graph::erdos_renyi(n, 1.5 / n as f64, seed).unwrap(),
                Graph::erdos_renyi(n, 4.0 / n as f64, seed).unwrap(),
                Graph::erdos_renyi(n, 0.5, seed).unwrap(),
                Graph::random_geometric(n, 0.1, seed).unwrap(),
            ] {
                for kappa in [0, 1, 2, 3, n] {
                    assert_eq!(graph.neighbourhoods(kappa), by_definition(&graph, kappa), "{seed} {kappa}");
                }
            }
        }
    }

    /// More agents than one block holds.
    #[test]
    fn threads_do_not_change_neighbourhoods() {
        let graph = Graph::erdos_renyi(5_000, 0.0006, 1).unwrap();
        let with_threads = |count| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap();
            pool.install(|| graph.neighbourhoods(3))
        };
        let alone = with_threads(1);
        assert_eq!(alone, with_threads(2));
        assert_eq!(alone, with_threads(3));
        assert_eq!(alone, by_definition(&graph, 3));
    }

    #[test]
    fn a_million_agents() {
        let n = 1_000_000;
        let neighbourhoods = Graph::line(n).unwrap().neighbourhoods(2);
        assert_eq!(neighbourhoods.rows(), n);
        // Five each, except for what the two ends miss on either side: 2 + 1.
        assert_eq!(neighbourhoods.data().len(), 5 * n - 6);
        assert_eq!(neighbourhoods.row(0), [0, 1, 2]);
        assert_eq!(neighbourhoods.row(500_000), [499_998, 499_999, 500_000, 500_001, 500_002]);
        assert_eq!(neighbourhoods.row(n - 1), [999_997, 999_998, 999_999]);
    }
}

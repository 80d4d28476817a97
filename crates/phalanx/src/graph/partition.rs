//! Agents distributed over processes.

use std::collections::BTreeMap;

use super::Graph;
use crate::base::parallel::FOLD;
use crate::{Error, Result};

/// Who owns which agent: blocks of equal size of an order in which neighbours stand close together.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    /// Agents in that order, and the place of every agent in it; none if it is the order of their numbers.
    order: Option<Order>,
    /// First place of every process, and the end.
    bounds: Vec<usize>,
}

#[derive(Debug, Clone, PartialEq)]
struct Order {
    agents: Vec<u32>,
    places: Vec<u32>,
}

/// What one process holds.
#[derive(Debug, Clone, PartialEq)]
pub struct PartitionPart {
    /// Its own agents and those whose states it must know, ascending. Where these nearly follow each other,
    /// all in between too.
    pub ids: Vec<u32>,
    /// Agents of others that it must know, ascending, by owner.
    pub ghosts: Vec<(usize, Vec<u32>)>,
}

/// Least agents of a process, in groups of [`FOLD`], for its borders to be moved to those of a group.
const WORTH_ALIGNING: usize = 32;

/// Another order must cut this share of the links, or less, that the order of numbers cuts.
const WORTH_ORDERING: f64 = 0.8;

impl Partition {
    /// Partitions the agents of `graph`. Time and memory O(agents + links).
    pub fn new(graph: &Graph, processes: usize) -> Result<Self> {
        let agents = graph.agents();
        if !(1..=agents).contains(&processes) {
            let message =
                format!("{processes} processes for {agents} agents; every process needs one at least");
            return Err(Error::argument("mpi", message));
        }
        let even = |r: usize| (r as u128 * agents as u128 / processes as u128) as usize;
        let mut bounds: Vec<usize> = (0..=processes).map(even).collect();
        let natural = Partition { order: None, bounds: bounds.clone() };
        let cut = natural.cut(graph);
        // Each border of a line or of a grid cuts few links; there is nothing to be gained.
        if processes > 1 && cut * 50 > graph.edge_count() {
            let order = cuthill_mckee(graph);
            let mut places = vec![0; agents];
            order.iter().enumerate().for_each(|(place, &agent)| places[agent as usize] = place as u32);
            let ordered = Partition { order: Some(Order { agents: order, places }), bounds: bounds.clone() };
            if (ordered.cut(graph) as f64) < WORTH_ORDERING * cut as f64 {
                return Ok(ordered);
            }
        }
        if agents / processes >= WORTH_ALIGNING * FOLD {
            let inner = 1..processes;
            inner.for_each(|r| bounds[r] = (bounds[r] + FOLD / 2) / FOLD * FOLD);
        }
        Ok(Partition { order: None, bounds })
    }

    /// One process for all agents.
    pub(crate) fn single(agents: usize) -> Self {
        Partition { order: None, bounds: vec![0, agents] }
    }

    /// Number of processes.
    pub fn processes(&self) -> usize {
        self.bounds.len() - 1
    }

    /// The process that owns an agent.
    pub fn owner(&self, agent: u32) -> usize {
        let place = self.order.as_ref().map_or(agent, |order| order.places[agent as usize]) as usize;
        self.bounds.partition_point(|&bound| bound <= place) - 1
    }

    /// The agents of a process, ascending.
    pub fn agents(&self, process: usize) -> Vec<u32> {
        let places = self.bounds[process]..self.bounds[process + 1];
        match &self.order {
            None => places.map(|agent| agent as u32).collect(),
            Some(order) => {
                let mut agents = order.agents[places].to_vec();
                agents.sort_unstable();
                agents
            }
        }
    }

    /// Whether every process owns whole groups of 256 consecutive agents.
    pub fn is_aligned(&self) -> bool {
        let inner = &self.bounds[1..self.bounds.len() - 1];
        self.order.is_none() && inner.iter().all(|bound| bound.is_multiple_of(FOLD))
    }

    /// What a process holds if it must know everybody within `depth` hops of its agents, and their `parents`.
    pub fn part(
        &self,
        graph: &Graph,
        process: usize,
        depth: usize,
        parents: impl Fn(usize) -> Vec<u32>,
    ) -> PartitionPart {
        let own = self.agents(process);
        let mut known = vec![false; graph.agents()];
        own.iter().for_each(|&i| known[i as usize] = true);
        let mut is_new = |j: u32| !std::mem::replace(&mut known[j as usize], true);
        let (mut frontier, mut ghosts) = (own.clone(), Vec::new());
        for _ in 0..depth {
            let around = frontier.iter().flat_map(|&i| graph.neighbours(i as usize)).copied();
            frontier = around.filter(|&j| is_new(j)).collect();
            ghosts.extend_from_slice(&frontier);
        }
        ghosts.extend(own.iter().flat_map(|&i| parents(i as usize)).filter(|&j| is_new(j)));
        ghosts.sort_unstable();
        let mut by_owner: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for &j in &ghosts {
            by_owner.entry(self.owner(j)).or_default().push(j);
        }
        let mut ids = own;
        ids.extend(ghosts);
        ids.sort_unstable();
        if let (Some(&first), Some(&last)) = (ids.first(), ids.last())
            && (last - first) as usize <= ids.len() + ids.len() / 8 + 64
        {
            ids = (first..=last).collect();
        }
        PartitionPart { ids, ghosts: by_owner.into_iter().collect() }
    }

    /// Links between agents of different processes.
    fn cut(&self, graph: &Graph) -> usize {
        let between = |i: usize| {
            let owner = self.owner(i as u32);
            let others = graph.neighbours(i).iter().filter(|&&j| (j as usize) < i);
            others.filter(|&&j| self.owner(j) != owner).count()
        };
        (0..graph.agents()).map(between).sum()
    }
}

/// The order of Cuthill and McKee: breadth first, from an agent at the edge of each component, neighbours
/// with few links first.
fn cuthill_mckee(graph: &Graph) -> Vec<u32> {
    let mut order = Vec::with_capacity(graph.agents());
    let (mut seen, mut probed) = (vec![false; graph.agents()], vec![false; graph.agents()]);
    for root in 0..graph.agents() as u32 {
        if !seen[root as usize] {
            // Far from anywhere is at the edge.
            let mut component = Vec::new();
            search(graph, root, &mut probed, &mut component);
            let edge = component.last().copied().unwrap_or(root);
            search(graph, edge, &mut seen, &mut order);
        }
    }
    order
}

/// Adds everybody who can be reached from `root`, breadth first.
fn search(graph: &Graph, root: u32, seen: &mut [bool], order: &mut Vec<u32>) {
    let mut at = order.len();
    seen[root as usize] = true;
    order.push(root);
    while at < order.len() {
        let first = order.len();
        for &j in graph.neighbours(order[at] as usize) {
            if !std::mem::replace(&mut seen[j as usize], true) {
                order.push(j);
            }
        }
        order[first..].sort_by_key(|&j| graph.neighbours(j as usize).len());
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_one_owner_and_shares_are_even() {
        for graph in [
            Graph::line(103).unwrap(),
            Graph::grid(9, 12).unwrap(),
            Graph::random_geometric(300, 0.1, 3).unwrap(),
            Graph::erdos_renyi(200, 0.02, 4).unwrap(),
        ] {
            let n = graph.agents();
            for processes in [1, 2, 3, 7] {
                let partition = Partition::new(&graph, processes).unwrap();
                let mut all = Vec::new();
                for process in 0..processes {
                    let agents = partition.agents(process);
                    assert!(agents.iter().all(|&agent| partition.owner(agent) == process));
                    assert!((n / processes..=n / processes + 1).contains(&agents.len()));
                    all.extend(agents);
                }
                all.sort_unstable();
                assert!(all.iter().copied().eq(0..n as u32));
            }
        }
        let message = Partition::new(&Graph::line(3).unwrap(), 4).unwrap_err().to_string();
        assert_eq!(message, "mpi: 4 processes for 3 agents; every process needs one at least");
    }

    #[test]
    fn neighbours_stay_together_whatever_their_numbers() {
        // A line whose agents are numbered crosswise: the order of numbers cuts nearly every link.
        let n = 1000;
        let scrambled = |i: usize| i * 387 % n;
        let graph = Graph::from_edges(n, (1..n).map(|i| (scrambled(i - 1), scrambled(i)))).unwrap();
        assert_eq!(Partition::new(&graph, 4).unwrap().cut(&graph), 3);
        let geometric = Graph::random_geometric(2000, 0.05, 1).unwrap();
        let partition = Partition::new(&geometric, 4).unwrap();
        assert!(partition.cut(&geometric) * 10 < geometric.edge_count());
        // A grid is as it should be.
        assert!(Partition::new(&Graph::grid(40, 40).unwrap(), 4).unwrap().order.is_none());
    }

    #[test]
    fn ghosts_are_who_is_near_and_parents() {
        let graph = Graph::line(20).unwrap();
        let partition = Partition::new(&graph, 2).unwrap();
        let share = partition.part(&graph, 0, 2, |i| vec![i as u32, if i == 3 { 19 } else { 0 }]);
        assert_eq!(share.ghosts, [(1, vec![10, 11, 19])]);
        assert!(share.ids.iter().copied().eq(0..20), "{:?}", share.ids);
        let line = Graph::line(400).unwrap();
        let share = Partition::new(&line, 2).unwrap().part(&line, 1, 1, |i| vec![i as u32, 0]);
        assert_eq!(share.ghosts, [(0, vec![0, 199])]);
        assert_eq!((share.ids.len(), share.ids[0], share.ids[1]), (202, 0, 199));
    }

    #[test]
    fn large_shares_hold_whole_groups() {
        let graph = Graph::line(50_000).unwrap();
        let partition = Partition::new(&graph, 3).unwrap();
        assert!(partition.is_aligned());
        assert!(Partition::new(&graph, 1).unwrap().is_aligned());
        assert!(!Partition::new(&Graph::line(1000).unwrap(), 3).unwrap().is_aligned());
    }
}

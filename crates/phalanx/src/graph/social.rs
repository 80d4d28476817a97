//! Random graphs that look like contacts among people: close-knit with short cuts, or with hubs.
//!
//! Literature: Watts, Strogatz, "Collective dynamics of small-world networks", Nature 393, 1998. Barabási,
//! Albert, "Emergence of scaling in random networks", Science 286, 1999.

use std::collections::HashSet;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::{Agents, GraphSettings};
use super::generate::{PLACE, room_for_links};
use super::{Graph, check_agents};
use crate::base::error::{Error, Result};
use crate::base::stream::{Sequence, Stream};

impl Graph {
    /// A ring in which everybody is linked to the `neighbours` nearest, half of them on each side, and in
    /// which every link is moved with probability `rewire`: one end stays, the other becomes anybody not yet
    /// linked to it (Watts & Strogatz).
    ///
    /// The number of links stays agents · neighbours / 2. `neighbours` is even and below the number of
    /// agents. Expected time and memory O(agents · neighbours).
    pub fn small_world(agents: usize, neighbours: usize, rewire: f64, seed: u64) -> Result<Graph> {
        check_agents(agents)?;
        if neighbours == 0 || !neighbours.is_multiple_of(2) || neighbours >= agents {
            let message =
                format!("{neighbours} given, allowed are even numbers from 2 to below {agents} agents");
            return Err(Error::config("network.neighbours", message));
        }
        if !(0.0..=1.0).contains(&rewire) {
            let message = format!("{rewire} given, allowed are numbers from 0 to 1");
            return Err(Error::config("network.rewire", message));
        }
        let half = neighbours / 2;
        let expected = agents as f64 * half as f64;
        let mut links = room_for_links("network.neighbours", neighbours as f64, expected)?;
        links
            .extend((0..agents).flat_map(|i| (1..=half).map(move |d| (i as u32, ((i + d) % agents) as u32))));
        if rewire == 0.0 {
            return Ok(Graph::from_links(agents, &links));
        }
        // Asked for membership only: its order never matters.
        let mut taken: HashSet<(u32, u32)> = links.iter().map(|&(a, b)| ordered(a, b)).collect();
        let mut degrees = vec![neighbours as u32; agents];
        let stream = Stream::new(seed);
        for (i, own) in links.chunks_exact_mut(half).enumerate() {
            let mut numbers = stream.sequence(PLACE, i as u32);
            for (here, there) in own {
                // Whoever knows everybody has nobody to turn to.
                if numbers.uniform() >= rewire || degrees[i] as usize == agents - 1 {
                    continue;
                }
                let other = loop {
                    let other = below(&mut numbers, agents) as u32;
                    if other != *here && !taken.contains(&ordered(*here, other)) {
                        break other;
                    }
                };
                taken.remove(&ordered(*here, *there));
                taken.insert(ordered(*here, other));
                degrees[*there as usize] -= 1;
                degrees[other as usize] += 1;
                *there = other;
            }
        }
        Ok(Graph::from_links(agents, &links))
    }

    /// A graph that grows: after `links` + 1 agents who all know each other, everybody who comes is linked
    /// to `links` different agents who are there, each chosen with a probability in proportion to how many
    /// links it has (Barabási & Albert). Early agents become hubs: degrees k are about as frequent as k⁻³.
    ///
    /// `links` is at least 1 and below the number of agents. A larger graph extends a smaller one with the
    /// same seed. Expected time and memory O(agents · links), up to the few draws that hit the same agent
    /// twice.
    pub fn scale_free(agents: usize, links: usize, seed: u64) -> Result<Graph> {
        check_agents(agents)?;
        if links == 0 || links >= agents {
            let message = format!("{links} given, allowed are numbers from 1 to below {agents} agents");
            return Err(Error::config("network.links", message));
        }
        let per_agent = links;
        let mut links = room_for_links("network.links", per_agent as f64, agents as f64 * per_agent as f64)?;
        let first = per_agent + 1;
        links.extend((0..first as u32).flat_map(|i| (0..i).map(move |j| (j, i))));
        let stream = Stream::new(seed);
        let mut chosen: Vec<u32> = Vec::with_capacity(per_agent);
        for newcomer in first..agents {
            let mut numbers = stream.sequence(PLACE, newcomer as u32);
            chosen.clear();
            while chosen.len() < per_agent {
                // Either end of any link: whoever has more links is met more often.
                let end = below(&mut numbers, 2 * links.len());
                let (a, b) = links[end / 2];
                let other = if end.is_multiple_of(2) { a } else { b };
                if !chosen.contains(&other) {
                    chosen.push(other);
                }
            }
            links.extend(chosen.iter().map(|&other| (other, newcomer as u32)));
        }
        Ok(Graph::from_links(agents, &links))
    }
}

/// The keys of `[network]` beside `kind = "small_world"`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SmallWorld {
    /// Links of each agent in the ring that it starts from.
    neighbours: usize,
    /// Probability that a link is moved.
    rewire: f64,
    /// Seed of the random graph (default 0: the graph does not change with the run's seed).
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

impl GraphSettings for SmallWorld {
    fn build(&self, agents: Agents<'_>, _: &dyn Fn(&Path) -> PathBuf) -> Result<Graph> {
        let seed = self.seed.unwrap_or(0);
        Graph::small_world(agents.needed()?, self.neighbours, self.rewire, seed)
    }
}

/// The keys of `[network]` beside `kind = "scale_free"`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScaleFree {
    /// Links that every new agent makes.
    links: usize,
    /// Seed of the random graph (default 0: the graph does not change with the run's seed).
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

impl GraphSettings for ScaleFree {
    fn build(&self, agents: Agents<'_>, _: &dyn Fn(&Path) -> PathBuf) -> Result<Graph> {
        Graph::scale_free(agents.needed()?, self.links, self.seed.unwrap_or(0))
    }
}

fn ordered(a: u32, b: u32) -> (u32, u32) {
    (a.min(b), a.max(b))
}

/// Uniform on `0..count`.
fn below(numbers: &mut Sequence, count: usize) -> usize {
    // The product of 53 bits may round up to the count.
    ((numbers.uniform() * count as f64) as usize).min(count - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn degrees(graph: &Graph) -> Vec<usize> {
        (0..graph.agents()).map(|i| graph.neighbours(i).len()).collect()
    }

    fn is_connected(graph: &Graph) -> bool {
        graph.distances_from(0).iter().all(Option::is_some)
    }

    /// Mean share of pairs of neighbours that are linked.
    fn clustering(graph: &Graph) -> f64 {
        let linked = |&a: &u32, &b: &u32| graph.neighbours(a as usize).binary_search(&b).is_ok();
        let share = |i: usize| {
            let row = graph.neighbours(i);
            let pairs = row.len() * row.len().saturating_sub(1);
            let found: usize = row.iter().map(|a| row.iter().filter(|b| linked(a, b)).count()).sum();
            if pairs == 0 { 0.0 } else { found as f64 / pairs as f64 }
        };
        (0..graph.agents()).map(share).sum::<f64>() / graph.agents() as f64
    }

    fn mean_distance(graph: &Graph) -> f64 {
        let total: u32 = graph.distances_from(0).into_iter().flatten().sum();
        f64::from(total) / (graph.agents() - 1) as f64
    }

    #[test]
    fn a_small_world_without_rewiring_is_a_ring() {
        assert_eq!(Graph::small_world(7, 2, 0.0, 1).unwrap(), Graph::ring(7).unwrap());
        let wide = Graph::small_world(10, 4, 0.0, 1).unwrap();
        assert_eq!(wide.neighbours(0), [1, 2, 8, 9]);
        assert_eq!(degrees(&wide), [4; 10]);
        // The most that everybody can have.
        assert_eq!(Graph::small_world(5, 4, 0.7, 1).unwrap(), Graph::complete(5).unwrap());
    }

    #[test]
    fn rewiring_moves_links_and_loses_none() {
        for (rewire, seed) in [(0.1, 1), (0.5, 2), (1.0, 3)] {
            let graph = Graph::small_world(2_000, 6, rewire, seed).unwrap();
            assert_eq!(graph.edge_count(), 6_000);
            // Everybody keeps the links that are its own to move.
            assert!(degrees(&graph).iter().all(|&degree| degree >= 3));
            let kept = (0..2_000).flat_map(|i| (1..=3).map(move |d| (i, ((i + d) % 2_000) as u32)));
            let kept = kept.filter(|(i, j)| graph.neighbours(*i).binary_search(j).is_ok()).count();
            let sigma = (6_000.0 * rewire * (1.0 - rewire)).sqrt();
            // A link may be moved to where another one was.
            assert!((kept as f64 - 6_000.0 * (1.0 - rewire)).abs() < 4.0 * sigma + 30.0, "{rewire}: {kept}");
        }
    }

    /// What the model is known for: a few moved links make ways short and leave circles of friends as they
    /// are.
    #[test]
    fn a_small_world_is_small_and_close_knit() {
        let [ring, small, random] =
            [0.0, 0.05, 1.0].map(|rewire| Graph::small_world(1_000, 10, rewire, 4).unwrap());
        assert!((clustering(&ring) - 2.0 / 3.0).abs() < 1e-12);
        assert!(clustering(&small) > 0.5 && clustering(&random) < 0.03, "{}", clustering(&random));
        assert!(mean_distance(&small) < 0.2 * mean_distance(&ring));
        assert!(is_connected(&small));
    }

    #[test]
    fn a_scale_free_network_has_hubs() {
        let (n, links) = (20_000, 3);
        let graph = Graph::scale_free(n, links, 1).unwrap();
        assert_eq!(graph.edge_count(), links * (links + 1) / 2 + (n - links - 1) * links);
        assert!(is_connected(&graph));
        let degrees = degrees(&graph);
        assert_eq!(degrees.iter().min(), Some(&links));
        // The largest is about links·√n, where a graph of independent links would have some 20.
        assert!(*degrees.iter().max().unwrap() > 200);
        // The share with degree k tends to 2m(m + 1)/(k(k + 1)(k + 2)); with at least k, to m(m + 1)/(k(k +
        // 1)).
        for k in [3usize, 6, 12, 24, 48] {
            let expected = (links * (links + 1)) as f64 / (k * (k + 1)) as f64;
            let share = degrees.iter().filter(|&&degree| degree >= k).count() as f64 / n as f64;
            assert!((share / expected - 1.0).abs() < 0.15, "{k}: {share}, not {expected}");
        }
    }

    #[test]
    fn small_scale_free_networks() {
        assert_eq!(Graph::scale_free(2, 1, 1).unwrap(), Graph::line(2).unwrap());
        assert_eq!(Graph::scale_free(4, 3, 1).unwrap(), Graph::complete(4).unwrap());
        // With one link each it is a tree.
        let tree = Graph::scale_free(50, 1, 2).unwrap();
        assert!(tree.edge_count() == 49 && is_connected(&tree));
    }

    #[test]
    fn the_seed_decides_and_threads_do_not() {
        let with_threads = |count: usize, seed: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build().unwrap();
            pool.install(|| {
                [Graph::small_world(3_000, 8, 0.2, seed).unwrap(), Graph::scale_free(3_000, 4, seed).unwrap()]
            })
        };
        assert_eq!(with_threads(1, 7), with_threads(3, 7));
        let (seven, eight) = (with_threads(1, 7), with_threads(1, 8));
        assert!(seven.iter().zip(&eight).all(|(a, b)| a != b));
    }

    #[test]
    fn a_million_agents_with_friends() {
        let n = 1_000_000;
        assert_eq!(Graph::small_world(n, 6, 0.1, 1).unwrap().edge_count(), 3 * n);
        assert_eq!(Graph::scale_free(n, 2, 1).unwrap().edge_count(), 3 + 2 * (n - 3));
    }

    #[test]
    fn unusable_settings_are_named() {
        let message = |graph: Result<Graph>| graph.map(|_| ()).unwrap_err().to_string();
        for neighbours in [0, 3, 10, 12, usize::MAX - 1] {
            assert_eq!(
                message(Graph::small_world(10, neighbours, 0.1, 1)),
                format!(
                    "network.neighbours: {neighbours} given, allowed are even numbers from 2 to below 10 agents"
                )
            );
        }
        for (rewire, shown) in [(-0.1, "-0.1"), (1.5, "1.5"), (f64::NAN, "NaN")] {
            assert_eq!(
                message(Graph::small_world(10, 2, rewire, 1)),
                format!("network.rewire: {shown} given, allowed are numbers from 0 to 1")
            );
        }
        for links in [0, 10, usize::MAX] {
            assert_eq!(
                message(Graph::scale_free(10, links, 1)),
                format!("network.links: {links} given, allowed are numbers from 1 to below 10 agents")
            );
        }
        assert!(message(Graph::small_world(0, 2, 0.1, 1)).starts_with("network.agents"));
        assert!(message(Graph::scale_free(0, 2, 1)).starts_with("network.agents"));
    }
}

//! Standard shapes and random graphs.
//!
//! Literature: Batagelj, Brandes, "Efficient generation of large random networks", Physical Review E 71,
//! 2005.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::config::{Agents, GraphSettings};
use super::{Graph, MAX_AGENTS, check_agents, group_by_row};
use crate::base::elementary::{ln, ln_1p, powi};
use crate::base::error::{Error, Result, ensure};
use crate::base::limits::check_memory;
use crate::base::ragged::Ragged;
use crate::base::stream::{Place, Purpose, Stream};

/// Where random graphs take their numbers from: they are drawn once, before any iteration.
pub(super) const PLACE: Place = Place { purpose: Purpose::Graph, iteration: 0, trajectory: 0 };

impl Graph {
    /// Agents in a row, each linked to the next. O(agents).
    pub fn line(agents: usize) -> Result<Graph> {
        Graph::from_edges(agents, (1..agents).map(|i| (i - 1, i)))
    }

    /// A line whose ends are linked too; one agent has no link, two agents have one. O(agents).
    pub fn ring(agents: usize) -> Result<Graph> {
        // For one agent this is a self loop and for two a repeated link, which `from_edges` takes out.
        Graph::from_edges(agents, (0..agents).map(|i| (i, (i + 1) % agents)))
    }

    /// A rectangle of agents numbered row by row, each linked to those left, right, above and below.
    /// O(rows · columns).
    pub fn grid(rows: usize, columns: usize) -> Result<Graph> {
        for (field, value) in [("network.rows", rows), ("network.columns", columns)] {
            ensure(value > 0, || Error::config(field, "0 given, at least 1 is needed"))?;
        }
        let Some(agents) = rows.checked_mul(columns).filter(|&agents| agents <= MAX_AGENTS) else {
            let message =
                format!("{rows} rows of {columns} agents given, allowed are {MAX_AGENTS} agents in all");
            return Err(Error::config("network.rows", message));
        };
        let right = (0..agents).filter(|i| (i + 1) % columns != 0).map(|i| (i, i + 1));
        let below = (columns..agents).map(|i| (i - columns, i));
        Graph::from_edges(agents, right.chain(below))
    }

    /// The grid of exactly `agents` agents with the most rows that are no more than its columns; a line where
    /// `agents` is prime. O(agents).
    pub fn squarest_grid(agents: usize) -> Result<Graph> {
        check_agents(agents)?;
        let rows = (1..=agents.isqrt()).rev().find(|&rows| agents.is_multiple_of(rows)).unwrap_or(1);
        Graph::grid(rows, agents / rows)
    }

    /// Agent 0 linked to all others. O(agents).
    pub fn star(agents: usize) -> Result<Graph> {
        Graph::from_edges(agents, (1..agents).map(|i| (0, i)))
    }

    /// Everybody linked to everybody. O(agents²), fails when that does not fit in memory.
    pub fn complete(agents: usize) -> Result<Graph> {
        check_agents(agents)?;
        // A list of links takes as much memory as the rows below, which have no way to report that it is
        // lacking.
        drop(room_for_links("network.agents", agents as f64, pairs(agents))?);
        let mut adjacency = Ragged::zeros(std::iter::repeat_n(agents - 1, agents));
        for i in 0..agents as u32 {
            let others = (0..i).chain(i + 1..agents as u32);
            for (slot, other) in adjacency.row_mut(i as usize).iter_mut().zip(others) {
                *slot = other;
            }
        }
        Ok(Graph { adjacency, part: None, groups: Default::default(), kinds: Default::default() })
    }

    /// Agents at uniform random points of the unit square, linked when closer than `radius`.
    ///
    /// The expected number of links is about agents² · π · radius² / 2. An agent's point depends on the
    /// seed and its number only, so with the same seed and radius a larger graph extends a smaller one.
    /// Expected time and memory O(agents + links).
    pub fn random_geometric(agents: usize, radius: f64, seed: u64) -> Result<Graph> {
        check_agents(agents)?;
        if !(radius.is_finite() && radius > 0.0) {
            let message = format!("{radius} given, allowed are finite numbers above 0");
            return Err(Error::config("network.radius", message));
        }
        let points = random_points(agents, seed);
        let expected = (std::f64::consts::PI * radius * radius).min(1.0) * pairs(agents);
        let mut links = room_for_links("network.radius", radius, expected)?;
        let cells = Cells::new(&points, radius);
        for (i, &point) in points.iter().enumerate() {
            cells.for_each_near(point, |j| {
                if (j as usize) < i && closer_than(radius, point, points[j as usize]) {
                    links.push((j, i as u32));
                }
            });
        }
        Ok(Graph::from_links(agents, &links))
    }

    /// Every pair of agents linked with the given probability, independently.
    ///
    /// The expected number of links is agents · (agents − 1) · probability / 2. Jumps from link to link
    /// over the pairs that are not linked (Batagelj & Brandes 2005). Expected time and memory
    /// O(agents + links).
    pub fn erdos_renyi(agents: usize, probability: f64, seed: u64) -> Result<Graph> {
        check_agents(agents)?;
        if !(0.0..=1.0).contains(&probability) {
            let message = format!("{probability} given, allowed are numbers from 0 to 1");
            return Err(Error::config("network.probability", message));
        }
        if probability == 1.0 {
            return Graph::complete(agents);
        }
        let mut links = room_for_links("network.probability", probability, probability * pairs(agents))?;
        if probability > 0.0 {
            let mut numbers = Stream::new(seed).sequence(PLACE, 0);
            let log_unlinked = ln_1p(-probability);
            // The pairs in order are (1, 0), (2, 0), (2, 1), (3, 0), …; the candidate is (later, earlier),
            // where `earlier` may run past the end of its row until it is brought back.
            let (mut later, mut earlier) = (1u64, 0u64);
            loop {
                // The number of unlinked pairs before the next link is geometric. The cast saturates, which
                // is still past the last pair.
                let skipped = (ln(1.0 - numbers.uniform()) / log_unlinked) as u64;
                earlier = earlier.saturating_add(skipped);
                while later < agents as u64 && earlier >= later {
                    earlier -= later;
                    later += 1;
                }
                if later >= agents as u64 {
                    break;
                }
                links.push((earlier as u32, later as u32));
                earlier += 1;
            }
        }
        Ok(Graph::from_links(agents, &links))
    }
}

/// The keys of `[network]` beside `kind = "grid"`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grid {
    rows: usize,
    columns: usize,
}

impl GraphSettings for Grid {
    fn build(&self, agents: Agents<'_>, _: &dyn Fn(&Path) -> PathBuf) -> Result<Graph> {
        let Grid { rows, columns } = *self;
        let all = rows as u128 * columns as u128;
        if let Some(n) = agents.known.filter(|&n| n as u128 != all) {
            let message = format!("{rows} × {columns} columns make {all} agents, but the world has {n}");
            return Err(Error::config("network.rows", message));
        }
        check_memory(256 * all, "network.rows", &format!("{rows} × {columns} columns, {all} agents,"))?;
        Graph::grid(rows, columns)
    }
}

/// The keys of `[network]` beside `kind = "geometric"`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Geometric {
    /// Distance within which agents are linked.
    radius: f64,
    /// Seed of the random graph (default 0: the graph does not change with the run's seed).
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

impl GraphSettings for Geometric {
    fn build(&self, agents: Agents<'_>, _: &dyn Fn(&Path) -> PathBuf) -> Result<Graph> {
        Graph::random_geometric(agents.needed()?, self.radius, self.seed.unwrap_or(0))
    }
}

/// The keys of `[network]` beside `kind = "erdos_renyi"`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ErdosRenyi {
    /// Probability of every link.
    probability: f64,
    /// Seed of the random graph (default 0: the graph does not change with the run's seed).
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

impl GraphSettings for ErdosRenyi {
    fn build(&self, agents: Agents<'_>, _: &dyn Fn(&Path) -> PathBuf) -> Result<Graph> {
        Graph::erdos_renyi(agents.needed()?, self.probability, self.seed.unwrap_or(0))
    }
}

/// Number of pairs of different agents.
fn pairs(agents: usize) -> f64 {
    0.5 * agents as f64 * (agents as f64 - 1.0)
}

/// An empty list of links with room for `expected` of them, or an error that blames the setting for their
/// number.
///
/// Asking beforehand turns most hopeless settings into a message instead of an aborted process.
pub(super) fn room_for_links(field: &str, value: f64, expected: f64) -> Result<Vec<(u32, u32)>> {
    let mut links = Vec::new();
    match links.try_reserve_exact(expected.ceil() as usize) {
        Ok(()) => Ok(links),
        Err(_) => Err(Error::config(
            field,
            format!(
                "{value} gives about {expected:.1e} links, which do not fit in memory; use a smaller value"
            ),
        )),
    }
}

/// One point of the unit square per agent.
fn random_points(agents: usize, seed: u64) -> Vec<[f64; 2]> {
    let stream = Stream::new(seed);
    (0..agents as u32)
        .map(|i| {
            let mut numbers = stream.sequence(PLACE, i);
            [numbers.uniform(), numbers.uniform()]
        })
        .collect()
}

/// Whether two points are linked.
fn closer_than(radius: f64, a: [f64; 2], b: [f64; 2]) -> bool {
    powi(a[0] - b[0], 2) + powi(a[1] - b[1], 2) < powi(radius, 2)
}

/// The unit square cut into equal cells, no narrower than the radius: whoever is closer than the radius is
/// in the same cell or a touching one.
struct Cells {
    per_side: usize,
    /// Row `y · per_side + x` holds the points in cell (x, y).
    members: Ragged<u32>,
}

impl Cells {
    fn new(points: &[[f64; 2]], radius: f64) -> Self {
        // No more cells than points, or empty cells would dominate the cost.
        let width = radius.max(1.0 / (points.len() as f64).sqrt());
        // A hair wider than that, so that rounding cannot put a pair two cells apart.
        let per_side = ((1.0 - 1e-9) / width).max(1.0) as usize;
        let placed = points.iter().zip(0u32..).map(|(&point, i)| {
            let [x, y] = cell_of(point, per_side);
            ((y * per_side + x) as u32, i)
        });
        Cells { per_side, members: group_by_row(per_side * per_side, placed) }
    }

    /// Calls `visit` with every point in the cell of `point` and the touching ones.
    fn for_each_near(&self, point: [f64; 2], mut visit: impl FnMut(u32)) {
        let [xs, ys] = cell_of(point, self.per_side)
            .map(|centre| centre.saturating_sub(1)..(centre + 2).min(self.per_side));
        for y in ys {
            for x in xs.clone() {
                self.members.row(y * self.per_side + x).iter().for_each(|&j| visit(j));
            }
        }
    }
}

fn cell_of(point: [f64; 2], per_side: usize) -> [usize; 2] {
    // A coordinate just below 1 may round up to the number of cells.
    point.map(|x| ((x * per_side as f64) as usize).min(per_side - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(graph: Result<Graph>) -> Vec<(u32, u32)> {
        let graph = graph.unwrap();
        let mut edges = Vec::new();
        for i in 0..graph.agents() as u32 {
            let later = graph.neighbours(i as usize).iter().filter(|&&j| j > i);
            edges.extend(later.map(|&j| (i, j)));
        }
        assert_eq!(edges.len(), graph.edge_count());
        edges
    }

    #[test]
    fn lines_and_rings() {
        assert_eq!(edges(Graph::line(1)), []);
        assert_eq!(edges(Graph::line(4)), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(edges(Graph::ring(1)), []);
        assert_eq!(edges(Graph::ring(2)), [(0, 1)]);
        assert_eq!(edges(Graph::ring(3)), [(0, 1), (0, 2), (1, 2)]);
        assert_eq!(edges(Graph::ring(4)), [(0, 1), (0, 3), (1, 2), (2, 3)]);
    }

    #[test]
    fn grids() {
        // 0 1 2
        // 3 4 5
        assert_eq!(edges(Graph::grid(2, 3)), [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)]);
        assert_eq!(Graph::grid(1, 5).unwrap(), Graph::line(5).unwrap());
        assert_eq!(Graph::grid(5, 1).unwrap(), Graph::line(5).unwrap());
        assert_eq!(edges(Graph::grid(1, 1)), []);
        assert_eq!(Graph::grid(30, 40).unwrap().edge_count(), 29 * 40 + 30 * 39);
        assert_eq!(Graph::squarest_grid(12).unwrap(), Graph::grid(3, 4).unwrap());
        assert_eq!(Graph::squarest_grid(25).unwrap(), Graph::grid(5, 5).unwrap());
        assert_eq!(Graph::squarest_grid(7).unwrap(), Graph::line(7).unwrap());
        assert!(Graph::squarest_grid(0).is_err());
    }

    #[test]
    fn stars_and_complete_networks() {
        assert_eq!(edges(Graph::star(1)), []);
        assert_eq!(edges(Graph::star(4)), [(0, 1), (0, 2), (0, 3)]);
        assert_eq!(edges(Graph::complete(1)), []);
        assert_eq!(edges(Graph::complete(4)), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]);
    }

    #[test]
    fn geometric_networks_are_their_definition() {
        let n = 300;
        for (seed, radius) in
            [(0, 0.001), (1, 0.05), (2, 0.1), (3, 1.0 / 3.0), (4, 0.5), (5, 0.9), (6, 1e300)]
        {
            let points = random_points(n, seed);
            let all = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
            let close = all.filter(|&(i, j)| closer_than(radius, points[i], points[j]));
            let defined = Graph::from_edges(n, close).unwrap();
            assert_eq!(Graph::random_geometric(n, radius, seed).unwrap(), defined, "radius {radius}");
        }
        assert_eq!(Graph::random_geometric(n, 1.5, 0).unwrap(), Graph::complete(n).unwrap());
        assert_eq!(Graph::random_geometric(n, 1e-300, 0).unwrap().edge_count(), 0);
    }

    #[test]
    fn geometric_points_fill_the_square() {
        let points = random_points(40_000, 3);
        for quarter in 0..4 {
            let inside = |p: &&[f64; 2]| (p[0] >= 0.5) as usize + 2 * (p[1] >= 0.5) as usize == quarter;
            let share = points.iter().filter(inside).count() as f64 / points.len() as f64;
            assert!((share - 0.25).abs() < 0.01, "{share}");
        }
    }

    #[test]
    fn erdos_renyi_has_the_expected_number_of_links() {
        for (n, probability) in [(2_000, 0.001), (1_000, 0.02), (400, 0.5), (300, 0.99)] {
            let runs = 20;
            let total: usize =
                (0..runs).map(|seed| Graph::erdos_renyi(n, probability, seed).unwrap().edge_count()).sum();
            let trials = runs as f64 * pairs(n);
            let sigma = (trials * probability * (1.0 - probability)).sqrt();
            let error = total as f64 - trials * probability;
            assert!(error.abs() < 4.0 * sigma, "n {n}, p {probability}: off by {} sigma", error / sigma);
        }
    }

    /// The jumps must not favour the first or the last pairs of the enumeration.
    #[test]
    fn erdos_renyi_links_every_pair_equally_often() {
        let (n, probability, runs) = (6, 0.3, 4_000);
        let mut counts = [[0u32; 6]; 6];
        for seed in 0..runs {
            for (i, j) in edges(Graph::erdos_renyi(n, probability, seed)) {
                counts[i as usize][j as usize] += 1;
            }
        }
        let sigma = (runs as f64 * probability * (1.0 - probability)).sqrt();
        for i in 0..n {
            for j in i + 1..n {
                let error = f64::from(counts[i][j]) - runs as f64 * probability;
                assert!(error.abs() < 4.0 * sigma, "pair ({i}, {j}): off by {} sigma", error / sigma);
            }
        }
    }

    #[test]
    fn erdos_renyi_at_the_ends_of_its_range() {
        assert_eq!(edges(Graph::erdos_renyi(50, 0.0, 1)), []);
        assert_eq!(edges(Graph::erdos_renyi(50, 1e-300, 1)), []);
        assert_eq!(edges(Graph::erdos_renyi(1, 0.5, 1)), []);
        assert_eq!(Graph::erdos_renyi(50, 1.0, 1).unwrap(), Graph::complete(50).unwrap());
        let nearly_one = 1.0 - f64::EPSILON / 2.0;
        assert_eq!(Graph::erdos_renyi(50, nearly_one, 1).unwrap(), Graph::complete(50).unwrap());
    }

    #[test]
    fn the_seed_decides_a_random_network() {
        let geometric = |seed| Graph::random_geometric(500, 0.08, seed).unwrap();
        assert_eq!(geometric(7), geometric(7));
        assert_ne!(geometric(7), geometric(8));
        let uniform = |seed| Graph::erdos_renyi(500, 0.01, seed).unwrap();
        assert_eq!(uniform(7), uniform(7));
        assert_ne!(uniform(7), uniform(8));
    }

    #[test]
    fn a_million_agents_at_random() {
        let n = 1_000_000;
        let uniform = Graph::erdos_renyi(n, 4.0 / n as f64, 1).unwrap();
        assert!((uniform.edge_count() as f64 - 2e6).abs() < 4.0 * 2e6f64.sqrt(), "{}", uniform.edge_count());
        let geometric = Graph::random_geometric(n, (4.0 / (std::f64::consts::PI * 1e6)).sqrt(), 1).unwrap();
        // The border takes some links away.
        assert!((1.98e6..2.01e6).contains(&(geometric.edge_count() as f64)), "{}", geometric.edge_count());
    }

    #[test]
    fn unusable_settings_are_named() {
        let message = |graph: Result<Graph>| graph.unwrap_err().to_string();
        for graph in [
            Graph::line(0),
            Graph::ring(0),
            Graph::star(0),
            Graph::complete(0),
            Graph::random_geometric(0, 0.1, 1),
            Graph::erdos_renyi(0, 0.1, 1),
        ] {
            assert_eq!(message(graph), "network.agents: 0 agents given, allowed are 1 to 4294967295");
        }
        assert_eq!(message(Graph::grid(0, 3)), "network.rows: 0 given, at least 1 is needed");
        assert_eq!(message(Graph::grid(3, 0)), "network.columns: 0 given, at least 1 is needed");
        for rows in [1 << 20, usize::MAX] {
            assert_eq!(
                message(Graph::grid(rows, 1 << 20)),
                format!(
                    "network.rows: {rows} rows of 1048576 agents given, allowed are 4294967295 agents in all"
                )
            );
        }
        for (radius, shown) in
            [(0.0, "0"), (-1.0, "-1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")]
        {
            assert_eq!(
                message(Graph::random_geometric(5, radius, 1)),
                format!("network.radius: {shown} given, allowed are finite numbers above 0")
            );
        }
        for (probability, shown) in [(-0.1, "-0.1"), (1.5, "1.5"), (f64::NAN, "NaN")] {
            assert_eq!(
                message(Graph::erdos_renyi(5, probability, 1)),
                format!("network.probability: {shown} given, allowed are numbers from 0 to 1")
            );
        }
        assert_eq!(
            message(Graph::complete(MAX_AGENTS)),
            "network.agents: 4294967295 gives about 9.2e18 links, \
             which do not fit in memory; use a smaller value"
        );
    }
}

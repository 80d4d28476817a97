//! Maximum-weight matching of a sparse bipartite graph.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A matching of greatest weight, with prices that prove it.
///
/// All prices are at least 0, `left_price[i] + right_price[j]` is at least the weight of every edge (i, j),
/// and all prices together are the weight of the matching: no matching can weigh more (weak duality), up to
/// rounding.
#[derive(Debug, Clone, PartialEq)]
pub struct Matching {
    /// The number of the edge that node i on the left is matched by, if it is.
    pub edge: Vec<Option<usize>>,
    /// One per node on the left.
    pub left_price: Vec<f64>,
    /// One per node on the right.
    pub right_price: Vec<f64>,
}

/// An edge: node on the left, node on the right, weight.
pub type Edge = (usize, usize, f64);

/// The matching of greatest total weight between `left` and `right` nodes; nodes may stay alone, and edges of
/// weight 0 or less are never used. Weights must be finite.
///
/// Nodes on the left join one after the other, each along a cheapest augmenting path: it takes a free node on
/// the right, or one whose present partner moves on to another, …, or somebody on the way gives up its own.
/// Dijkstra on reduced costs finds the path and looks no further than it must. At most O(left · edges · log
/// edges), and far less where paths are short. Ties are broken by the numbers of nodes and edges.
///
/// Literature: Crouse, "On implementing 2D rectangular assignment algorithms", IEEE Transactions on Aerospace
/// and Electronic Systems 52, 2016; Jonker, Volgenant, "A shortest augmenting path algorithm for dense and
/// sparse linear assignment problems", Computing 38, 1987.
pub fn maximum_weight_matching(left: usize, right: usize, edges: &[Edge]) -> Matching {
    let mut edges_of = vec![Vec::new(); left];
    for (number, &(i, _, weight)) in edges.iter().enumerate() {
        if weight > 0.0 {
            edges_of[i].push(number);
        }
    }
    let mut search = Search {
        edges,
        edges_of,
        matching: Matching {
            edge: vec![None; left],
            left_price: vec![0.0; left],
            right_price: vec![0.0; right],
        },
        partner: vec![None; right],
        label: vec![Label::UNSEEN; right],
        seen: Vec::new(),
        settled: Vec::new(),
        heap: BinaryHeap::new(),
    };
    (0..left).for_each(|i| search.join(i));
    search.matching
}

struct Search<'a> {
    edges: &'a [Edge],
    edges_of: Vec<Vec<usize>>,
    matching: Matching,
    /// Who on the left has a node on the right.
    partner: Vec<Option<usize>>,
    label: Vec<Label>,
    /// Nodes on the right with a label.
    seen: Vec<usize>,
    /// Nodes on the right whose distance is final and whose partner was asked to move on.
    settled: Vec<usize>,
    heap: BinaryHeap<Reached>,
}

/// The cheapest way known to a node on the right.
#[derive(Clone, Copy)]
struct Label {
    distance: f64,
    edge: usize,
    is_final: bool,
}

impl Label {
    const UNSEEN: Label = Label { distance: f64::INFINITY, edge: usize::MAX, is_final: false };
}

/// How a path ends.
#[derive(Clone, Copy)]
enum End {
    /// At a free node on the right.
    Free(usize),
    /// With a node on the left that stays alone from now on.
    Alone(usize),
}

impl Search<'_> {
    /// Adds node `new` on the left.
    fn join(&mut self, new: usize) {
        let (mut i, mut distance) = (new, 0.0);
        let (mut end, mut end_distance) = (End::Alone(new), f64::INFINITY);
        loop {
            // Staying alone costs what node i gains at present.
            let alone = distance + self.matching.left_price[i];
            if alone < end_distance {
                (end, end_distance) = (End::Alone(i), alone);
            }
            self.look_from(i, distance);
            let Some(reached) = self.nearest().filter(|reached| reached.distance < end_distance) else {
                break;
            };
            distance = reached.distance;
            match self.partner[reached.node] {
                None => {
                    (end, end_distance) = (End::Free(reached.node), distance);
                    break;
                }
                Some(partner) => {
                    self.settled.push(reached.node);
                    i = partner;
                }
            }
        }
        self.reprice(new, end_distance);
        self.augment(end);
        self.forget();
    }

    /// Improves the labels of the nodes that i could have instead.
    fn look_from(&mut self, i: usize, distance: f64) {
        for &number in &self.edges_of[i] {
            let (_, j, weight) = self.edges[number];
            let label = &mut self.label[j];
            if label.is_final {
                continue;
            }
            let through = distance + self.matching.left_price[i] + self.matching.right_price[j] - weight;
            if through < label.distance {
                if label.distance == f64::INFINITY {
                    self.seen.push(j);
                }
                *label = Label { distance: through, edge: number, is_final: false };
                self.heap.push(Reached { distance: through, node: j });
            }
        }
    }

    /// The nearest node that is not final yet; it becomes so.
    fn nearest(&mut self) -> Option<Reached> {
        while let Some(reached) = self.heap.pop() {
            let label = &mut self.label[reached.node];
            if !label.is_final {
                label.is_final = true;
                return Some(reached);
            }
        }
        None
    }

    /// Keeps reduced costs at 0 or more everywhere, and at 0 along the path.
    fn reprice(&mut self, new: usize, end_distance: f64) {
        self.matching.left_price[new] -= end_distance;
        for &j in &self.settled {
            let rise = end_distance - self.label[j].distance;
            self.matching.right_price[j] += rise;
            if let Some(i) = self.partner[j] {
                self.matching.left_price[i] -= rise;
            }
        }
    }

    /// Everybody along the path moves on, from its end back to the new node, which has no edge yet.
    fn augment(&mut self, end: End) {
        let mut free = match end {
            End::Free(j) => j,
            End::Alone(i) => {
                let Some(edge) = self.matching.edge[i].take() else { return };
                self.matching.left_price[i] = 0.0;
                self.edges[edge].1
            }
        };
        loop {
            let number = self.label[free].edge;
            let i = self.edges[number].0;
            self.partner[free] = Some(i);
            match self.matching.edge[i].replace(number) {
                Some(before) => free = self.edges[before].1,
                None => return,
            }
        }
    }

    fn forget(&mut self) {
        self.seen.drain(..).for_each(|j| self.label[j] = Label::UNSEEN);
        self.settled.clear();
        self.heap.clear();
    }
}

/// A node on the right in the heap, nearest first.
#[derive(Clone, Copy)]
struct Reached {
    distance: f64,
    node: usize,
}

impl Ord for Reached {
    fn cmp(&self, other: &Self) -> Ordering {
        other.distance.total_cmp(&self.distance).then(other.node.cmp(&self.node))
    }
}

impl PartialOrd for Reached {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Reached {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Reached {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::stream::{Place, Purpose, Stream};

    fn weight(matching: &Matching, edges: &[Edge]) -> f64 {
        matching.edge.iter().flatten().map(|&number| edges[number].2).sum()
    }

    /// Edges are used by their own nodes, nobody on the right twice, and the prices prove the weight.
    fn check(matching: &Matching, right: usize, edges: &[Edge]) {
        let mut taken = vec![false; right];
        for (i, number) in matching.edge.iter().enumerate() {
            if let &Some(number) = number {
                let (left, j, _) = edges[number];
                assert_eq!(left, i);
                assert!(!std::mem::replace(&mut taken[j], true), "{j} is taken twice");
            }
        }
        let scale = edges.iter().fold(1.0f64, |scale, edge| scale.max(edge.2.abs()));
        let slack = 1e-10 * scale;
        for &(i, j, weight) in edges {
            assert!(matching.left_price[i] + matching.right_price[j] >= weight - slack, "edge {i} – {j}");
        }
        let prices = || matching.left_price.iter().chain(&matching.right_price);
        assert!(prices().all(|&price| price >= -slack));
        let total: f64 = prices().sum();
        assert!((total - weight(matching, edges)).abs() <= slack * (1.0 + edges.len() as f64));
    }

    /// The greatest weight by trying everything.
    fn brute_force(left: usize, edges: &[Edge], from: usize, taken: u64) -> f64 {
        if from == left {
            return 0.0;
        }
        let own = edges.iter().filter(|&&(i, j, _)| i == from && taken >> j & 1 == 0);
        let with = own.map(|&(_, j, weight)| weight + brute_force(left, edges, from + 1, taken | 1 << j));
        with.fold(brute_force(left, edges, from + 1, taken), f64::max)
    }

    fn any_graph(weights: impl Strategy<Value = f64>) -> impl Strategy<Value = (usize, usize, Vec<Edge>)> {
        (1usize..7, 1usize..7, prop::collection::vec((0usize..7, 0usize..7, weights), 0..20)).prop_map(
            |(left, right, edges)| {
                (left, right, edges.into_iter().map(|(i, j, w)| (i % left, j % right, w)).collect())
            },
        )
    }

    proptest! {
        #[test]
        fn nothing_weighs_more((left, right, edges) in any_graph(-1.0..3.0)) {
            let matching = maximum_weight_matching(left, right, &edges);
            check(&matching, right, &edges);
            let best = brute_force(left, &edges, 0, 0);
            prop_assert!((weight(&matching, &edges) - best).abs() < 1e-12, "{matching:?}, but {best}");
        }

        /// Whole numbers: ties, repeated edges, weights of 0.
        #[test]
        fn nothing_weighs_more_with_ties((left, right, edges) in any_graph((-1i32..4).prop_map(f64::from))) {
            let matching = maximum_weight_matching(left, right, &edges);
            check(&matching, right, &edges);
            prop_assert_eq!(weight(&matching, &edges), brute_force(left, &edges, 0, 0));
            prop_assert!(matching.edge.iter().flatten().all(|&number| edges[number].2 > 0.0));
        }
    }

    /// The second node takes the first one's place, and the first moves on, though either alone would stay.
    #[test]
    fn somebody_moves_on_or_gives_up() {
        let matched = |edges: &[Edge]| maximum_weight_matching(2, 2, edges).edge;
        assert_eq!(matched(&[(0, 0, 3.0), (0, 1, 2.0), (1, 0, 2.0)]), [Some(1), Some(2)]);
        assert_eq!(matched(&[(0, 0, 3.0), (1, 0, 5.0)]), [None, Some(1)]);
        assert_eq!(matched(&[(0, 0, 3.0), (1, 0, 2.0)]), [Some(0), None]);
        assert!(maximum_weight_matching(0, 0, &[]).edge.is_empty());
    }

    /// A hundred rows of a hundred nodes, each with an edge to the four corners around it: equal weights,
    /// where all paths tie, and weights that all differ. The prices are the proof, and the test would not end
    /// if paths were long.
    #[test]
    fn large_grids_are_matched_with_proof() {
        const SIDE: usize = 100;
        let place = Place { purpose: Purpose::Graph, iteration: 0, trajectory: 0 };
        let mut words = Stream::new(4).sequence(place, 0);
        let mut edges: Vec<Edge> = Vec::new();
        for (row, column) in (0..SIDE).flat_map(|row| (0..SIDE).map(move |column| (row, column))) {
            for (down, right) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let (r, c) = ((row + down).wrapping_sub(1), (column + right).wrapping_sub(1));
                if r < SIDE - 1 && c < SIDE - 1 {
                    edges.push((row * SIDE + column, r * (SIDE - 1) + c, words.uniform()));
                }
            }
        }
        let (left, right) = (SIDE * SIDE, (SIDE - 1) * (SIDE - 1));
        let matching = maximum_weight_matching(left, right, &edges);
        check(&matching, right, &edges);
        edges.iter_mut().for_each(|edge| edge.2 = 0.7);
        let matching = maximum_weight_matching(left, right, &edges);
        check(&matching, right, &edges);
        assert_eq!(matching.edge.iter().flatten().count(), right);
    }
}

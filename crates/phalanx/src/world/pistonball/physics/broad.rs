//! Which segments come near the ball, in the order in which the original meets them.
//!
//! Chipmunk keeps what moves (pistons and ball) and what does not (walls) in two binary trees of boxes. The
//! boxes of what moves are *fat*, so that small moves leave the tree alone; who leaves its box gets a new one
//! and a new place. Two that overlap are a pair. In each step the tree is walked, first children first, and
//! of every pair the one that comes later in the tree reports it; who got a new place in this step while
//! looking around from there, anyone else from its list of pairs, the newest first. Only pairs with the ball
//! matter here, and that leaves:
//!
//! - a re-insertion changes the order of no two other leaves, so a pair keeps its reporter as long as it
//!   lives;
//! - the ball reports walls and pistons before it in the tree, then pistons after it report themselves, in
//!   tree order;
//! - the order changes only if the ball or a piston near it got a new place in this step, or the ball in the
//!   step before.

use super::contact::Capsule;
use super::{Vector, WALLS, max, min};

/// A box grows by this share of its size on each side: 0.1 in single precision, as the original has it.
const MARGIN: f64 = 0.1_f32 as f64;
/// And by the way of so many seconds.
const AHEAD: f64 = 0.1_f32 as f64;

/// A box; y grows downwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Bounds {
    /// Of a disc.
    pub fn around(centre: Vector, radius: f64) -> Self {
        Bounds {
            left: centre.x - radius,
            top: centre.y - radius,
            right: centre.x + radius,
            bottom: centre.y + radius,
        }
    }

    pub fn overlaps(self, other: Bounds) -> bool {
        self.left <= other.right
            && other.left <= self.right
            && self.top <= other.bottom
            && other.top <= self.bottom
    }

    fn contains(self, other: Bounds) -> bool {
        self.left <= other.left
            && self.right >= other.right
            && self.top <= other.top
            && self.bottom >= other.bottom
    }

    fn union(self, other: Bounds) -> Bounds {
        Bounds {
            left: min(self.left, other.left),
            top: min(self.top, other.top),
            right: max(self.right, other.right),
            bottom: max(self.bottom, other.bottom),
        }
    }

    fn area(self) -> f64 {
        (self.right - self.left) * (self.bottom - self.top)
    }

    /// Twice the distance of the centres, across plus down.
    fn distance(self, other: Bounds) -> f64 {
        (self.left + self.right - other.left - other.right).abs()
            + (self.top + self.bottom - other.top - other.bottom).abs()
    }

    /// With room for moves of something at `velocity`.
    fn fat(self, velocity: Vector) -> Bounds {
        let (x, y) = ((self.right - self.left) * MARGIN, (self.bottom - self.top) * MARGIN);
        let ahead = velocity.times(AHEAD);
        Bounds {
            left: self.left + min(-x, ahead.x),
            top: self.top + min(-y, ahead.y),
            right: self.right + max(x, ahead.x),
            bottom: self.bottom + max(y, ahead.y),
        }
    }
}

/// No node.
const NONE: usize = usize::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    bounds: Bounds,
    parent: usize,
    /// Of an inner node.
    children: [usize; 2],
}

impl Node {
    const LOOSE: Node = Node {
        bounds: Bounds { left: 0.0, top: 0.0, right: 0.0, bottom: 0.0 },
        parent: NONE,
        children: [NONE; 2],
    };
}

/// A binary tree of boxes. Leaves come first among its nodes; an inner node's box is the union of its
/// children's.
#[derive(Debug, Clone)]
struct Tree {
    nodes: Vec<Node>,
    leaves: usize,
    root: usize,
    /// An inner node that is not in use.
    spare: usize,
}

impl Tree {
    /// With a leaf for each of `boxes`, inserted in their order.
    fn new(boxes: &[Bounds]) -> Self {
        let leaves = boxes.len();
        let mut nodes = Vec::with_capacity(2 * leaves);
        nodes.resize(leaves, Node::LOOSE);
        let mut tree = Tree { nodes, leaves, root: NONE, spare: NONE };
        boxes.iter().enumerate().for_each(|(leaf, &bounds)| tree.insert(leaf, bounds));
        tree
    }

    fn bounds(&self, leaf: usize) -> Bounds {
        self.nodes[leaf].bounds
    }

    /// Puts `child` in the place of `old` below `parent`, or at the root.
    fn replace(&mut self, parent: usize, old: usize, child: usize) {
        self.nodes[child].parent = parent;
        if parent == NONE {
            self.root = child;
        } else {
            let place = usize::from(self.nodes[parent].children[1] == old);
            self.nodes[parent].children[place] = child;
        }
    }

    /// Inserts `leaf` where the boxes grow least.
    fn insert(&mut self, leaf: usize, bounds: Bounds) {
        self.nodes[leaf].bounds = bounds;
        if self.root == NONE {
            return self.replace(NONE, NONE, leaf);
        }
        let mut at = self.root;
        while at >= self.leaves {
            let [a, b] = self.nodes[at].children;
            self.nodes[at].bounds = self.nodes[at].bounds.union(bounds);
            let (a_bounds, b_bounds) = (self.nodes[a].bounds, self.nodes[b].bounds);
            let mut cost_a = b_bounds.area() + a_bounds.union(bounds).area();
            let mut cost_b = a_bounds.area() + b_bounds.union(bounds).area();
            if cost_a == cost_b {
                (cost_a, cost_b) = (a_bounds.distance(bounds), b_bounds.distance(bounds));
            }
            at = if cost_b < cost_a { b } else { a };
        }
        let inner = if self.spare == NONE {
            self.nodes.push(Node::LOOSE);
            self.nodes.len() - 1
        } else {
            std::mem::replace(&mut self.spare, NONE)
        };
        self.replace(self.nodes[at].parent, at, inner);
        self.nodes[inner].children = [leaf, at];
        self.nodes[inner].bounds = bounds.union(self.nodes[at].bounds);
        self.nodes[leaf].parent = inner;
        self.nodes[at].parent = inner;
    }

    /// Takes `leaf`, not the only one, out: its sibling moves up.
    fn remove(&mut self, leaf: usize) {
        let parent = self.nodes[leaf].parent;
        let [a, b] = self.nodes[parent].children;
        let sibling = if a == leaf { b } else { a };
        let mut above = self.nodes[parent].parent;
        self.replace(above, parent, sibling);
        self.spare = parent;
        while above != NONE {
            let [a, b] = self.nodes[above].children;
            let bounds = self.nodes[a].bounds.union(self.nodes[b].bounds);
            if bounds == self.nodes[above].bounds {
                // Nor does any box further up change.
                break;
            }
            self.nodes[above].bounds = bounds;
            above = self.nodes[above].parent;
        }
    }

    /// Gives `leaf` other bounds, and the place that fits them.
    fn relocate(&mut self, leaf: usize, bounds: Bounds) {
        self.remove(leaf);
        self.insert(leaf, bounds);
    }

    /// Visits the leaves below `node` whose boxes overlap `bounds`, in tree order.
    fn overlapping(&self, node: usize, bounds: Bounds, visit: &mut impl FnMut(usize)) {
        if !self.nodes[node].bounds.overlaps(bounds) {
            return;
        }
        if node < self.leaves {
            return visit(node);
        }
        let [a, b] = self.nodes[node].children;
        self.overlapping(a, bounds, visit);
        self.overlapping(b, bounds, visit);
    }

    /// Visits the leaves before `leaf` that overlap it, in the order in which one that climbs from it meets
    /// them.
    fn overlapping_before(&self, leaf: usize, visit: &mut impl FnMut(usize)) {
        let (bounds, mut from) = (self.nodes[leaf].bounds, leaf);
        while self.nodes[from].parent != NONE {
            let parent = self.nodes[from].parent;
            let [a, b] = self.nodes[parent].children;
            if from == b {
                self.overlapping(a, bounds, visit);
            }
            from = parent;
        }
    }
}

/// Sizes of the original's hash table, which it walks to see who left its box.
const TABLE_SIZES: [usize; 14] = [5, 13, 23, 47, 97, 193, 389, 769, 1543, 3079, 6151, 12_289, 24_593, 49_157];

/// The trees, and the segments near the ball.
#[derive(Debug, Clone)]
pub(super) struct Broad {
    /// The pistons, and after them the ball.
    movers: Tree,
    walls: Tree,
    table_size: usize,
    /// Pistons that moved since the last step, and for each piston whether it is among them.
    moved: Vec<usize>,
    has_moved: Vec<bool>,
    /// Pistons that got a new place in this step.
    relocated: Vec<usize>,
    /// Segments that the ball reports, the newest last.
    reported: Vec<usize>,
    /// Pistons after it that overlap its box, in tree order.
    after: Vec<usize>,
    /// Segments near the ball, in the order of the step.
    candidates: Vec<usize>,
    /// Whether they stay the same until somebody gets a new place.
    settled: bool,
}

impl Broad {
    /// Of walls and pistons, and a ball at `ball`.
    pub fn new(segments: &[Capsule], ball: Bounds) -> Self {
        let (walls, pistons) = segments.split_at(WALLS);
        let walls: Vec<Bounds> = walls.iter().map(|wall| wall.bounds).collect();
        let movers = pistons.iter().map(|piston| piston.bounds).chain([ball]);
        let movers: Vec<Bounds> = movers.map(|bounds| bounds.fat(Vector::ZERO)).collect();
        // Nothing is allocated later.
        let list = || Vec::with_capacity(segments.len());
        let mut broad = Broad {
            table_size: TABLE_SIZES.into_iter().find(|&size| size > movers.len()).unwrap_or(usize::MAX),
            movers: Tree::new(&movers),
            walls: Tree::new(&walls),
            moved: list(),
            has_moved: vec![false; pistons.len()],
            relocated: list(),
            reported: list(),
            after: list(),
            candidates: list(),
            settled: false,
        };
        broad.look_around();
        broad
    }

    /// A piston has moved.
    pub fn moved(&mut self, piston: usize) {
        if !self.has_moved[piston] {
            self.has_moved[piston] = true;
            self.moved.push(piston);
        }
    }

    /// The segments near the ball in this step; it is at `ball` and has `velocity`.
    pub fn update(&mut self, segments: &[Capsule], ball: Bounds, velocity: Vector) -> &[usize] {
        let ball_leaf = self.has_moved.len();
        let table_size = self.table_size;
        let turn = |leaf: usize| (WALLS + leaf) % table_size;
        let ball_leaves = !self.movers.bounds(ball_leaf).contains(ball);
        let mut ball_waits = ball_leaves;
        self.relocated.clear();
        self.moved.sort_unstable_by_key(|&piston| turn(piston));
        for &piston in &self.moved {
            self.has_moved[piston] = false;
            let bounds = segments[WALLS + piston].bounds;
            if self.movers.bounds(piston).contains(bounds) {
                continue;
            }
            if ball_waits && turn(ball_leaf) < turn(piston) {
                self.movers.relocate(ball_leaf, ball.fat(velocity));
                ball_waits = false;
            }
            self.movers.relocate(piston, bounds.fat(Vector::ZERO));
            self.relocated.push(piston);
        }
        self.moved.clear();
        if ball_waits {
            self.movers.relocate(ball_leaf, ball.fat(velocity));
        }
        if ball_leaves {
            self.look_around();
        } else if self.pairs_changed(ball_leaf) {
            self.reported.retain(|segment| *segment < WALLS || !self.relocated.contains(&(segment - WALLS)));
            self.walk();
            self.settle();
        } else if !self.settled {
            self.settle();
        }
        &self.candidates
    }

    /// Whether a piston that got a new place was near the ball or is now.
    fn pairs_changed(&self, ball_leaf: usize) -> bool {
        let ball = self.movers.bounds(ball_leaf);
        self.relocated.iter().any(|&piston| {
            self.movers.bounds(piston).overlaps(ball) || self.candidates.contains(&(WALLS + piston))
        })
    }

    /// Walks the tree: pistons in new places before the ball get onto its list, and those after it are found.
    fn walk(&mut self) {
        let ball_leaf = self.has_moved.len();
        self.after.clear();
        let (mut met_ball, bounds) = (false, self.movers.bounds(ball_leaf));
        self.movers.overlapping(self.movers.root, bounds, &mut |leaf| {
            if leaf == ball_leaf {
                met_ball = true;
            } else if met_ball {
                self.after.push(WALLS + leaf);
            } else if self.relocated.contains(&leaf) {
                self.reported.push(WALLS + leaf);
            }
        });
    }

    /// The ball is in a new place: it looks around from there, at the walls and up the tree.
    fn look_around(&mut self) {
        let ball_leaf = self.has_moved.len();
        self.reported.clear();
        self.walk();
        self.candidates.clear();
        let bounds = self.movers.bounds(ball_leaf);
        self.walls.overlapping(self.walls.root, bounds, &mut |wall| {
            self.candidates.push(wall);
            self.reported.push(wall);
        });
        self.movers.overlapping_before(ball_leaf, &mut |piston| {
            self.candidates.push(WALLS + piston);
            // Otherwise it has put itself onto the list already.
            if !self.relocated.contains(&piston) {
                self.reported.push(WALLS + piston);
            }
        });
        self.candidates.extend_from_slice(&self.after);
        self.settled = false;
    }

    /// The ball stays in its place: it goes by its list.
    fn settle(&mut self) {
        self.candidates.clear();
        self.candidates.extend(self.reported.iter().rev());
        self.candidates.extend_from_slice(&self.after);
        self.settled = true;
    }
}

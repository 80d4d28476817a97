//! Where the junctions of a town lie and which roads join them.

use super::{Irregular, TownSettings};
use crate::geometry::Point;
use crate::random::MersenneTwister;

/// East, north, west, south: the sides of a junction.
pub(super) const SIDES: usize = 4;
const STEPS: [(isize, isize); SIDES] = [(1, 0), (0, 1), (-1, 0), (0, -1)];
/// Roads that a junction keeps in an irregular town.
const FEWEST_ARMS: usize = 3;

/// The opposite side.
pub(super) const fn opposite(side: usize) -> usize {
    (side + 2) % SIDES
}

/// A place in the grid: a junction, or an entrance at its border.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Column and row; junctions count from 1, as in the common benchmarks.
    pub column: usize,
    pub row: usize,
    pub point: Point,
    pub is_junction: bool,
    /// The node at the other end of the road on each side.
    pub arms: [Option<usize>; SIDES],
}

impl Node {
    pub fn arm_count(&self) -> usize {
        self.arms.iter().flatten().count()
    }
}

/// Junctions and entrances.
#[derive(Clone, Debug)]
pub(super) struct Town {
    pub nodes: Vec<Node>,
}

impl Town {
    pub fn new(settings: &TownSettings) -> Self {
        let (columns, rows) = (settings.columns + 2, settings.rows + 2);
        let places = |count: usize, lengths: &[f64]| {
            let mut at = 0.0;
            let mut places = vec![at];
            for length in lengths.iter().cycle().take(count - 1) {
                at += length;
                places.push(at);
            }
            places
        };
        let (xs, ys) = (places(columns, &settings.lengths_east), places(rows, &settings.lengths_north));
        let mut nodes = Vec::new();
        let mut numbers = vec![None; columns * rows];
        for column in 0..columns {
            for row in 0..rows {
                let inside = [(1..columns - 1).contains(&column), (1..rows - 1).contains(&row)];
                if inside[0] || inside[1] {
                    numbers[column * rows + row] = Some(nodes.len());
                    let point = Point::new(xs[column], ys[row]);
                    let is_junction = inside[0] && inside[1];
                    nodes.push(Node { column, row, point, is_junction, arms: [None; SIDES] });
                }
            }
        }
        for number in 0..nodes.len() {
            for side in 0..SIDES {
                let (x, y) = STEPS[side];
                let column = nodes[number].column.checked_add_signed(x).filter(|&c| c < columns);
                let row = nodes[number].row.checked_add_signed(y).filter(|&r| r < rows);
                let Some((column, row)) = column.zip(row) else { continue };
                if let Some(other) = numbers[column * rows + row]
                    && (nodes[number].is_junction || nodes[other].is_junction)
                {
                    nodes[number].arms[side] = Some(other);
                }
            }
        }
        let mut town = Self { nodes };
        if let Some(irregular) = settings.irregular {
            town.make_irregular(settings, irregular);
        }
        town
    }

    fn make_irregular(&mut self, settings: &TownSettings, irregular: Irregular) {
        let mut random = MersenneTwister::new(settings.seed);
        let lengths = settings.lengths_east.iter().chain(&settings.lengths_north);
        let reach = lengths.copied().fold(f64::INFINITY, f64::min) * irregular.shift;
        for node in self.nodes.iter_mut().filter(|node| node.is_junction) {
            let mut shift = || reach * (2.0 * uniform(&mut random) - 1.0);
            node.point = node.point + Point::new(shift(), shift());
        }
        for number in 0..self.nodes.len() {
            for side in 0..SIDES {
                // Each road is tried once, from its western or southern end.
                let Some(other) = self.nodes[number].arms[side].filter(|&other| other > number) else {
                    continue;
                };
                if uniform(&mut random) < irregular.missing {
                    self.try_to_remove(number, side, other);
                }
            }
        }
        self.drop_lonely();
    }

    /// Takes a road away unless a junction would have too few or a part of the town be cut off.
    fn try_to_remove(&mut self, number: usize, side: usize, other: usize) {
        let too_few = |node: &Node| node.is_junction && node.arm_count() <= FEWEST_ARMS;
        if too_few(&self.nodes[number]) || too_few(&self.nodes[other]) {
            return;
        }
        self.nodes[number].arms[side] = None;
        self.nodes[other].arms[opposite(side)] = None;
        let both_inside = self.nodes[number].is_junction && self.nodes[other].is_junction;
        let last_entrance =
            !both_inside && !self.nodes.iter().any(|node| !node.is_junction && node.arm_count() > 0);
        if last_entrance || (both_inside && !self.is_reachable(number, other)) {
            self.nodes[number].arms[side] = Some(other);
            self.nodes[other].arms[opposite(side)] = Some(number);
        }
    }

    fn is_reachable(&self, from: usize, to: usize) -> bool {
        let mut seen = vec![false; self.nodes.len()];
        let mut open = vec![from];
        while let Some(number) = open.pop() {
            if number == to {
                return true;
            }
            if !std::mem::replace(&mut seen[number], true) {
                open.extend(self.nodes[number].arms.iter().flatten());
            }
        }
        false
    }

    /// Takes away entrances without a road.
    fn drop_lonely(&mut self) {
        let mut kept = 0;
        let mut numbers = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let stays = node.arm_count() > 0;
            numbers.push(stays.then_some(kept));
            kept += usize::from(stays);
        }
        self.nodes.retain(|node| node.arm_count() > 0);
        for arm in self.nodes.iter_mut().flat_map(|node| &mut node.arms) {
            *arm = arm.and_then(|other| numbers[other]);
        }
    }
}

/// A number from 0 to 1, 1 excluded.
pub(super) fn uniform(random: &mut MersenneTwister) -> f64 {
    let (high, low) = (u64::from(random.draw()), u64::from(random.draw()));
    ((high << 32 | low) >> 11) as f64 / (1u64 << 53) as f64
}

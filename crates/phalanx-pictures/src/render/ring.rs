//! Rings around agents: whether their constraints hold.

use super::film::Entry;
use super::shape::{Pen, Point, Shape};
use crate::plot::canvas::Colour;

/// The line around an agent; none if it has no constraints.
pub fn ring_pen(kept: Option<bool>) -> Option<Pen> {
    Some(match kept? {
        true => Pen::new(Colour::of_series(1).tint(0.7), 1.6),
        false => Pen::new(Colour::ALARM, 2.0),
    })
}

/// A ring of the given radius.
pub fn ring(centre: Point, radius: f32, kept: Option<bool>) -> Option<Shape> {
    ring_pen(kept).map(|pen| Shape::Disc { centre, radius, fill: None, outline: Some(pen) })
}

/// What rings mean, if there are any.
pub fn ring_legend(kept: &[Option<bool>]) -> Vec<Entry> {
    let entry = |kept, label| Entry { sign: ring((0.0, 0.0), 6.5, Some(kept)).into_iter().collect(), label };
    if kept.iter().all(Option::is_none) {
        return Vec::new();
    }
    vec![entry(true, "constraints kept so far"), entry(false, "constraint broken so far")]
}

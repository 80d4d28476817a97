//! Marks at the ends of curves: side by side where one would hide another.

use super::style;
use phalanx_pictures::plot::Point;
use phalanx_pictures::plot::canvas::{Colour, Layer, Mark, Panel, Shape};

/// What a series ends with.
#[derive(Debug, Clone, Copy)]
pub struct ClosingMark {
    /// Number of the series, by which it has its colour.
    pub number: usize,
    /// Where it is.
    pub point: Point,
    /// Its shape.
    pub mark: Mark,
}

/// About the size of a mark, as a share of the width and of the height of a panel.
const WIDTH: f64 = 0.013;
const HEIGHT: f64 = 0.055;

/// The marks of a panel that has these curves. A mark where another one is already moves to its right.
pub fn side_by_side(mut marks: Vec<ClosingMark>, curves: &[Layer]) -> Vec<Layer> {
    let points = || curves.iter().flat_map(points_of).chain(marks.iter().map(|it| it.point));
    let [left, right] = range(points().map(|point| point.0));
    let [low, high] = range(points().map(|point| point.1));
    let (width, height) = (WIDTH * (right - left), HEIGHT * (high - low));
    for k in 1..marks.len() {
        let (earlier, later) = marks.split_at_mut(k);
        let point = &mut later[0].point;
        // Half a mark may be hidden by rounding, no more.
        let hides = |other: &ClosingMark, (x, y): Point| {
            (other.point.0 - x).abs() < 0.9 * width && (other.point.1 - y).abs() < height
        };
        while width > 0.0 && earlier.iter().any(|other| hides(other, *point)) {
            point.0 += width;
        }
    }
    let layer = |ClosingMark { number, point, mark }| Layer {
        shape: Shape::Marks { points: vec![point], mark },
        colour: style(number).0,
        label: String::new(),
    };
    marks.into_iter().map(layer).collect()
}

/// Lets all panels reach as far to the right as one of them does.
pub fn align(panels: &mut [Panel]) {
    let points = panels.iter().flat_map(|panel| &panel.layers).flat_map(points_of);
    let [_, right] = range(points.map(|point| point.0));
    if right.is_finite() {
        let reach = Layer { shape: Shape::Reach(right), colour: Colour::QUIET, label: String::new() };
        panels.iter_mut().for_each(|panel| panel.layers.push(reach.clone()));
    }
}

/// All that a curve or a band goes through.
fn points_of(layer: &Layer) -> Vec<Point> {
    match &layer.shape {
        Shape::Line { points, .. } | Shape::Dashes(points) | Shape::Marks { points, .. } => points.clone(),
        Shape::Band(spans) | Shape::Bars(spans) => {
            spans.iter().flat_map(|span| [(span.x, span.low), (span.x, span.high)]).collect()
        }
        Shape::ZeroLine | Shape::BelowZero | Shape::Reach(_) => Vec::new(),
    }
}

/// The smallest and the largest of numbers.
pub fn range(values: impl IntoIterator<Item = f64>) -> [f64; 2] {
    let ends = [f64::INFINITY, f64::NEG_INFINITY];
    values.into_iter().fold(ends, |[low, high], value| [low.min(value), high.max(value)])
}

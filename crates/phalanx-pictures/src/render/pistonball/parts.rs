//! What the pictures of Pistonball are made of: pistons, the ball, and the bars below them.

use phalanx::run::Verdict;

use crate::plot::canvas::Colour;
use crate::render::shape::{Pen, Point, Shape};

/// Rows of the small print below a piston, in pixels.
pub const LAW_HEIGHT: f32 = 34.0;
pub const SIGN_HEIGHT: f32 = 12.0;
pub const MARGIN_HEIGHT: f32 = 30.0;

/// A piston: a rod from its head down to the floor.
#[derive(Debug, Clone, Copy)]
pub struct Piston {
    /// Ends of the middle line of the head, and its radius.
    pub left: Point,
    pub right: f32,
    pub radius: f32,
    pub floor: f32,
    pub is_under_ball: bool,
}

impl Piston {
    pub fn shapes(&self) -> Vec<Shape> {
        let Piston { left: (left, y), right, radius, floor, is_under_ball } = *self;
        let colour = if is_under_ball { Colour::of_series(0) } else { Colour::QUIET.tint(0.62) };
        let width = right - left;
        let rod = Shape::filled((left + 0.08 * width, y), (0.84 * width, floor - y), colour.tint(0.3));
        // A thick line with round ends is what the ball touches.
        vec![rod, Shape::line((left, y), (right, y), Pen::new(colour, 2.0 * radius))]
    }
}

/// The ball, with a spoke that shows how it has turned.
pub fn ball((x, y): Point, radius: f32, angle: f32) -> Vec<Shape> {
    let colour = Colour::of_series(4);
    let edge = (0.05 * radius).clamp(1.2, 2.5);
    let rim = (x + (radius - edge) * angle.cos(), y + (radius - edge) * angle.sin());
    let disc = |radius, fill| Shape::dot((x, y), radius, fill);
    vec![
        disc(radius, colour),
        disc(radius - edge, colour.tint(0.35)),
        Shape::line((x, y), rim, Pen::new(colour, edge)),
        disc(1.8 * edge, colour),
    ]
}

/// Where the ball was, the earliest first: fainter the longer ago.
pub fn trail(places: &[Point]) -> Vec<Shape> {
    let colour = |k: usize| Colour::of_series(4).tint(0.15 + 0.4 * (k + 1) as f64 / places.len() as f64);
    let dot = |(k, &centre): (usize, &Point)| Shape::dot(centre, 2.5, colour(k));
    let lines = places.windows(2).enumerate();
    let lines = lines.map(|(k, ends)| Shape::line(ends[0], ends[1], Pen::new(colour(k), 1.2)));
    lines.chain(places.iter().enumerate().map(dot)).collect()
}

/// Probabilities of down, still and up as three bars with a sign below each; the action taken is dark. `at`
/// is the middle of the upper edge.
pub fn law((x, y): Point, width: f32, law: &[f32; 3], taken: u8) -> Vec<Shape> {
    let bar = (0.22 * width).clamp(1.0, 11.0).round();
    let mut shapes = bars((x, y), (bar, LAW_HEIGHT), law, taken);
    shapes.extend((0..law.len()).map(|action| {
        let middle = (bar_middle(x, bar, action), y + LAW_HEIGHT + 0.5 * SIGN_HEIGHT);
        sign(middle, 0.42 * bar, action, bar_colour(action, taken))
    }));
    shapes
}

/// The bars alone, each of the given width and height.
pub fn bars((x, y): Point, (width, height): Point, law: &[f32; 3], taken: u8) -> Vec<Shape> {
    let bar = |action, share: f32, fill| {
        let left = (bar_middle(x, width, action) - 0.5 * width).floor();
        Shape::filled((left, y + height * (1.0 - share)), (width, height * share), fill)
    };
    let both = |(action, share): (usize, &f32)| {
        let fill = bar_colour(action, taken);
        [bar(action, 1.0, Colour::QUIET.tint(0.1)), bar(action, share.clamp(0.0, 1.0), fill)]
    };
    law.iter().enumerate().flat_map(both).collect()
}

fn bar_middle(x: f32, width: f32, action: usize) -> f32 {
    x + (action as f32 - 1.0) * (1.3 * width).round()
}

fn bar_colour(action: usize, taken: u8) -> Colour {
    Colour::QUIET.tint(if action == usize::from(taken) { 1.0 } else { 0.38 })
}

/// A triangle that points down or up, or a stroke.
pub fn sign((x, y): Point, half: f32, action: usize, colour: Colour) -> Shape {
    let down = match action {
        0 => half,
        2 => -half,
        _ => return Shape::line((x - half, y), (x + half, y), Pen::new(colour, 1.6)),
    };
    Shape::Area { points: vec![(x - half, y - down), (x + half, y - down), (x, y + down)], fill: colour }
}

/// A margin as a bar on a line, above it if the estimate keeps the bound and below if not, in the colour of
/// the verdict: `zero` is the middle of the line, and `height` that of the bar, negative below.
pub fn margin((x, zero): Point, width: f32, height: f32, verdict: Verdict) -> Vec<Shape> {
    let bar = 2.0 * (0.18 * width).clamp(1.0, 10.0).round();
    let line = 0.5 * (0.86 * width).min(40.0);
    let fill = match verdict {
        Verdict::Safe => Colour::of_series(1),
        Verdict::Unsafe => Colour::ALARM,
        Verdict::Undecided => Colour::QUIET.tint(0.7),
    };
    vec![
        Shape::filled((x - 0.5 * bar, zero - height.max(0.0)), (bar, height.abs()), fill),
        Shape::line((x - line, zero), (x + line, zero), Pen::new(Colour::QUIET.tint(0.5), 1.0)),
    ]
}

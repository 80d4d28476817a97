//! Pictures of Pistonball: the ball on its pistons, and below each what it may do and how safe that is.

mod parts;
#[cfg(test)]
mod tests;
mod window;

use phalanx::world::pistonball::physics::{BALL_RADIUS, COLUMN, HEIGHT, LOWEST, MOVE, WALL};

use super::film::{Entry, Film, WIDEST};
use super::shape::{Anchor, Point, Shape};
use crate::plot::canvas::{Colour, text_width};
use parts::{LAW_HEIGHT, MARGIN_HEIGHT, Piston, SIGN_HEIGHT};

pub use window::{drawn, windows};

/// An episode of Pistonball, or of the pistons around the ball if there are many.
#[derive(Debug, Clone)]
pub struct PistonballFilm {
    /// Pistons of the whole game.
    pub pistons: usize,
    /// One entry a step; all have the same number of pistons.
    pub steps: Vec<PistonballStep>,
    /// Whether the ball arrives with the last step.
    pub is_solved: bool,
    pub margins: Margins,
}

/// How far the policy is from its bounds.
#[derive(Debug, Clone)]
pub enum Margins {
    /// There are no bounds.
    None,
    /// They have no values, or these would take too long.
    LeftOut,
    /// As estimated.
    Known {
        /// The smallest of each piston's constraints, negative if one is broken.
        of_pistons: Vec<Option<f64>>,
        /// Episodes over which they were estimated.
        episodes: usize,
    },
}

impl Margins {
    /// One entry a piston, or none.
    fn values(&self) -> &[Option<f64>] {
        match self {
            Margins::Known { of_pistons, .. } => of_pistons,
            Margins::None | Margins::LeftOut => &[],
        }
    }

    /// What bars have to show: the lowest value, or 0, and the highest, or 0.
    fn range(&self) -> (f64, f64) {
        let values = self.values().iter().flatten();
        values.fold((0.0, 0.0), |(low, high), &value| (value.min(low), value.max(high)))
    }
}

/// One step: what is seen before the pistons move.
#[derive(Debug, Clone, Default)]
pub struct PistonballStep {
    /// The first piston that is drawn; the others follow.
    pub first: usize,
    /// From 0, all the way down.
    pub levels: Vec<u8>,
    /// 0 down, 1 still, 2 up.
    pub actions: Vec<u8>,
    /// Their probabilities.
    pub laws: Vec<[f32; 3]>,
    /// Centre of the ball, in the units of the world.
    pub ball: Point,
    pub angle: f32,
    /// Reward up to and including this step, mean over all pistons.
    pub reward: f64,
}

impl PistonballStep {
    /// Whether the ball lies on the piston below its middle, or nearly so.
    fn is_held(&self) -> bool {
        let column = ((f64::from(self.ball.0) - WALL) / COLUMN).max(0.0) as usize;
        let level = column.checked_sub(self.first).and_then(|k| self.levels.get(k));
        let head = 0.125 * COLUMN;
        level.is_some_and(|&level| {
            let top = LOWEST - MOVE * f64::from(level) - head;
            f64::from(self.ball.1) + BALL_RADIUS >= top - MOVE
        })
    }
}

/// Largest size of a unit of the world, in pixels.
const LARGEST: f32 = 1.5;
/// Of the walls this much is drawn, in units of the world; the rest is empty.
const WALL_DRAWN: f32 = 12.0;
/// y of the inner edge of the bottom wall.
const FLOOR: f32 = (HEIGHT - WALL) as f32;
/// At least from here on downwards the world is drawn; the ball is seldom higher.
const USUAL_TOP: f32 = 325.0;
/// Room above the ball, in units of the world.
const ABOVE: f32 = 8.0;
/// The bottom wall, with the pistons' numbers on it, in pixels.
const NUMBERS_HEIGHT: f32 = 19.0;
/// Between the rows of the small print, and the room of the margins in digits.
const GAP: f32 = 8.0;
const DIGITS_HEIGHT: f32 = 14.0;
const SMALL: f32 = 10.0;
/// Earlier places of the ball that are drawn.
const TRAIL: usize = 8;

impl PistonballFilm {
    fn drawn(&self) -> usize {
        drawn(self.pistons)
    }

    /// Distance between pistons: whole pixels, so that all look alike.
    fn pitch(&self) -> f32 {
        let columns = self.drawn() as f32 + 2.0 * WALL_DRAWN / COLUMN as f32;
        (WIDEST / columns).min(LARGEST * COLUMN as f32).floor()
    }

    /// Pixels a unit of the world.
    fn scale(&self) -> f32 {
        self.pitch() / COLUMN as f32
    }

    /// y of the world at the upper edge: the ball stays in the picture.
    fn top(&self) -> f32 {
        let highest = self.steps.iter().map(|step| step.ball.1).fold(f32::INFINITY, f32::min);
        (highest - BALL_RADIUS as f32 - ABOVE).clamp(0.0, USUAL_TOP)
    }

    /// A place of the world in a picture whose first piston is `first`.
    fn place(&self, first: usize, (x, y): Point) -> Point {
        let left = (WALL + COLUMN * first as f64) as f32 - WALL_DRAWN;
        ((x - left) * self.scale(), (y - self.top()) * self.scale())
    }

    /// y of the floor, and of the rows of the small print below it.
    fn floor(&self) -> f32 {
        ((FLOOR - self.top()) * self.scale()).round()
    }

    fn law_y(&self) -> f32 {
        self.floor() + NUMBERS_HEIGHT + GAP
    }

    fn margin_y(&self) -> f32 {
        self.law_y() + LAW_HEIGHT + SIGN_HEIGHT + GAP
    }

    /// The margins in digits, if they have room.
    fn digits(&self) -> Option<Vec<String>> {
        let (low, high) = self.margins.range();
        let largest = high.max(-low);
        let decimals = (2 - i32::from(largest >= 9.995) - i32::from(largest >= 99.95)) as usize;
        let write = |margin: &Option<f64>| {
            margin.map_or(String::new(), |margin| format!("{margin:+.decimals$}").replace('-', "−"))
        };
        let digits: Vec<String> = self.margins.values().iter().map(write).collect();
        let widest = digits.iter().map(|text| text_width(text, SMALL as u32) as f32).fold(0.0, f32::max);
        (widest + 2.0 <= self.pitch()).then_some(digits)
    }

    fn walls(&self, first: usize) -> Vec<Shape> {
        let (width, _) = self.size();
        let wall =
            |corner, size| Shape::Box { corner, size, fill: Some(Colour::QUIET.tint(0.8)), outline: None };
        let thickness = (WALL_DRAWN * self.scale()).floor();
        let mut shapes = vec![
            Shape::Box {
                corner: (0.0, 0.0),
                size: (width, self.floor()),
                fill: Some(Colour::QUIET.tint(0.05)),
                outline: None,
            },
            wall((0.0, self.floor()), (width, NUMBERS_HEIGHT)),
        ];
        // Pistons that are not drawn have no wall beside them.
        if first == 0 {
            shapes.push(wall((0.0, 0.0), (thickness, self.floor() + 1.0)));
        }
        if first + self.drawn() == self.pistons {
            shapes.push(wall((width - thickness, 0.0), (thickness, self.floor() + 1.0)));
        }
        let ceiling = (WALL as f32 - self.top()) * self.scale();
        if ceiling > 0.0 {
            shapes.push(wall((0.0, 0.0), (width, ceiling)));
        }
        shapes
    }

    /// A piston, from the first one drawn.
    fn piston(&self, step: &PistonballStep, k: usize) -> Piston {
        let radius = 0.125 * COLUMN as f32;
        let left = (WALL + COLUMN * (step.first + k) as f64) as f32;
        let right = left + COLUMN as f32;
        let y = (LOWEST - MOVE * f64::from(step.levels[k])) as f32;
        let (x, reach) = (step.ball.0, BALL_RADIUS as f32);
        // A little narrower than it is, so that neighbours are told apart.
        let hair = 0.6;
        Piston {
            left: self.place(step.first, (left + radius + hair, y)),
            right: self.place(step.first, (right - radius - hair, y)).0,
            radius: radius * self.scale(),
            floor: self.floor(),
            is_under_ball: left < x + reach && right > x - reach,
        }
    }

    /// What is written below a piston, from the first one drawn.
    fn small_print(&self, step: &PistonballStep, k: usize, digits: Option<&Vec<String>>) -> Vec<Shape> {
        let number = step.first + k;
        let middle = (WALL + COLUMN * (number as f64 + 0.5)) as f32;
        let x = self.place(step.first, (middle, FLOOR)).0.round();
        let text = |y, content: &str, colour| Shape::Text {
            at: (x, y),
            content: content.into(),
            size: SMALL,
            bold: false,
            anchor: Anchor::Middle,
            colour,
        };
        let mut shapes = vec![text(self.floor() + 13.0, &number.to_string(), Colour::PAPER)];
        shapes.extend(parts::law((x, self.law_y()), self.pitch(), &step.laws[k], step.actions[k]));
        if let Some(margin) = self.margins.values().get(number).copied().flatten() {
            let (low, high) = self.margins.range();
            let height = |value: f64| (value / (high - low).max(f64::MIN_POSITIVE)) as f32 * MARGIN_HEIGHT;
            let zero = (self.margin_y() + height(high)).floor();
            shapes.extend(parts::margin((x, zero), self.pitch(), height(margin)));
            if let Some(digits) = digits {
                let colour = if margin < 0.0 { Colour::ALARM } else { Colour::QUIET };
                let y = self.margin_y() + MARGIN_HEIGHT + DIGITS_HEIGHT - 2.0;
                shapes.push(text(y, &digits[number], colour));
            }
        }
        shapes
    }
}

impl Film for PistonballFilm {
    fn steps(&self) -> usize {
        self.steps.len()
    }

    fn size(&self) -> (f32, f32) {
        let width = (COLUMN as f32 * self.drawn() as f32 + 2.0 * WALL_DRAWN) * self.scale();
        let height = match (&self.margins, self.digits()) {
            (Margins::None | Margins::LeftOut, _) => self.law_y() + LAW_HEIGHT + SIGN_HEIGHT,
            (Margins::Known { .. }, None) => self.margin_y() + MARGIN_HEIGHT,
            (Margins::Known { .. }, Some(_)) => self.margin_y() + MARGIN_HEIGHT + DIGITS_HEIGHT,
        };
        (width, height)
    }

    fn draw(&self, number: usize) -> Vec<Shape> {
        let step = &self.steps[number];
        let mut shapes = self.walls(step.first);
        shapes.extend((0..step.levels.len()).flat_map(|k| self.piston(step, k).shapes()));
        let (width, _) = self.size();
        let places: Vec<Point> = self.steps[number.saturating_sub(TRAIL)..=number]
            .iter()
            .map(|earlier| self.place(step.first, earlier.ball))
            .filter(|(x, _)| (0.0..=width).contains(x))
            .collect();
        shapes.extend(parts::trail(&places));
        let radius = BALL_RADIUS as f32 * self.scale();
        shapes.extend(parts::ball(self.place(step.first, step.ball), radius, step.angle));
        let digits = self.digits();
        let small_print = |k| self.small_print(step, k, digits.as_ref());
        shapes.extend((0..step.levels.len()).flat_map(small_print));
        shapes
    }

    fn status(&self, step: usize) -> String {
        let PistonballStep { ball, reward, .. } = &self.steps[step];
        let solved = if self.is_solved && step + 1 == self.steps.len() { ": solved" } else { "" };
        format!("return {reward:.2}, ball at x = {:.0}{solved}", ball.0).replace('-', "−")
    }

    fn legend(&self) -> Vec<Entry> {
        let piston = Piston { left: (-6.0, -2.0), right: 6.0, radius: 3.0, floor: 8.0, is_under_ball: true };
        let law = parts::bars((0.0, -8.0), (5.0, 15.0), &[0.3, 0.45, 0.8], 2);
        let mut entries = vec![
            Entry { sign: parts::ball((0.0, 0.0), 8.0, -0.9), label: "ball" },
            Entry { sign: parts::trail(&[(-9.0, 3.0), (0.0, 0.0), (9.0, 2.0)]), label: "where it was" },
            Entry { sign: piston.shapes(), label: "piston under the ball" },
            Entry { sign: law, label: "probabilities of down, still, up; dark: taken" },
        ];
        if matches!(self.margins, Margins::Known { .. }) {
            let bar = |x, height| parts::margin((x, 0.0), 11.0, height);
            let sign =
                [(-5.0, 7.0), (5.0, -7.0)].into_iter().flat_map(|(x, height)| bar(x, height)).collect();
            entries.push(Entry { sign, label: "margin: bound kept, broken" });
        }
        entries
    }

    fn note(&self) -> Option<String> {
        let mut notes = Vec::new();
        if self.drawn() < self.pistons {
            notes.push(format!("{} of {} pistons, around the ball", self.drawn(), self.pistons));
        }
        match &self.margins {
            Margins::None => {}
            Margins::LeftOut => notes.push("margins to the bounds are left out".into()),
            Margins::Known { episodes, .. } => {
                notes.push(format!("margins: those of the policy, over {episodes} episodes"));
            }
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    /// The ball at the right, in the middle and at the left; and where pistons of the right half hold it highest.
    fn moments(&self) -> Vec<(&'static str, usize)> {
        let last = self.steps.len().saturating_sub(1);
        let middle = (WALL + 0.5 * COLUMN * self.pistons as f64) as f32;
        let is_left = |step: &PistonballStep| step.ball.0 <= middle;
        let crossing = self.steps.iter().position(is_left).unwrap_or(last / 2);
        let is_held = |(_, step): &(usize, &PistonballStep)| step.ball.0 > middle && step.is_held();
        let right = self.steps.iter().enumerate().filter(is_held);
        let raised = right.min_by(|(_, a), (_, b)| a.ball.1.total_cmp(&b.ball.1)).map_or(0, |(k, _)| k);
        vec![("start", 0), ("middle", crossing), ("end", last), ("raised", raised)]
    }
}

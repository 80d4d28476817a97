//! Pictures of Pistonball: the ball on its pistons, and below each what it may do and how safe that is.

mod parts;
mod stage;
#[cfg(test)]
mod tests;
mod window;

use phalanx::run::Verdict;
use phalanx::world::pistonball::physics::{BALL_RADIUS, COLUMN, LOWEST, MOVE, WALL};

use super::film::{Entry, Film};
use super::shape::{Anchor, Point, Shape};
use crate::plot::canvas::Colour;
use crate::plot::text::text_width;
use parts::{LAW_HEIGHT, MARGIN_HEIGHT, Piston, SIGN_HEIGHT};
use stage::BOTTOM;

pub use stage::Stage;
pub use window::{drawn, page, windows};

/// An episode of Pistonball, or of the pistons around the ball if there are many.
#[derive(Debug, Clone)]
pub struct PistonballFilm {
    /// Pistons of the whole game.
    pub pistons: usize,
    /// One entry per step; all have the same number of pistons.
    pub steps: Vec<PistonballStep>,
    /// Whether the ball arrives with the last step.
    pub is_solved: bool,
    pub margins: Margins,
}

/// How far a piston is from its bound, and what may be said of it.
#[derive(Debug, Clone, Copy)]
pub struct Margin {
    /// Estimated; negative on the wrong side.
    pub slack: f64,
    /// Of all the piston's constraints.
    pub verdict: Verdict,
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
        /// That of each piston's constraint with the least slack.
        of_pistons: Vec<Option<Margin>>,
        /// Episodes over which they were estimated.
        episodes: usize,
    },
}

impl Margins {
    /// One entry per piston, or none.
    fn values(&self) -> &[Option<Margin>] {
        match self {
            Margins::Known { of_pistons, .. } => of_pistons,
            Margins::None | Margins::LeftOut => &[],
        }
    }

    /// What bars have to show: the lowest value, or 0, and the highest, or 0.
    fn range(&self) -> (f64, f64) {
        let values = self.values().iter().flatten();
        values.fold((0.0, 0.0), |(low, high), margin| (margin.slack.min(low), margin.slack.max(high)))
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
/// At least from here on downwards the world is drawn; the ball is seldom higher.
const USUAL_TOP: f32 = 325.0;
/// Room above the ball, in units of the world.
const ABOVE: f32 = 8.0;
/// Between the rows of the small print, and the room of the margins in digits.
const GAP: f32 = 8.0;
const DIGITS_HEIGHT: f32 = 14.0;
const SMALL: f32 = 10.0;
/// Earlier places of the ball that are drawn.
const TRAIL: usize = 8;

impl PistonballFilm {
    /// The game from a piston on: high enough for the ball to stay in the picture.
    fn stage(&self, first: usize) -> Stage {
        let highest = self.steps.iter().map(|step| step.ball.1).fold(f32::INFINITY, f32::min);
        let top = (highest - BALL_RADIUS as f32 - ABOVE).clamp(0.0, USUAL_TOP);
        Stage::new(self.pistons, first, top, LARGEST)
    }

    /// The margins in digits, if they have room.
    fn digits(&self, pitch: f32) -> Option<Vec<String>> {
        let (low, high) = self.margins.range();
        let largest = high.max(-low);
        let decimals = (2 - i32::from(largest >= 9.995) - i32::from(largest >= 99.95)) as usize;
        let write = |margin: &Option<Margin>| {
            margin.map_or(String::new(), |Margin { slack, .. }| {
                format!("{slack:+.decimals$}").replace('-', "−")
            })
        };
        let digits: Vec<String> = self.margins.values().iter().map(write).collect();
        let widest = digits.iter().map(|text| text_width(text, SMALL as u32) as f32).fold(0.0, f32::max);
        (widest + 2.0 <= pitch).then_some(digits)
    }

    /// What is written below the pistons.
    fn small_print(&self, stage: &Stage, step: &PistonballStep) -> Vec<Shape> {
        let digits = self.digits(stage.pitch);
        let (low, high) = self.margins.range();
        let height = |value: f64| (value / (high - low).max(f64::MIN_POSITIVE)) as f32 * MARGIN_HEIGHT;
        let mut shapes = Vec::new();
        for (k, (law, &action)) in step.laws.iter().zip(&step.actions).enumerate() {
            let number = step.first + k;
            let (x, floor) = stage.foot(k);
            let text = |y, content: &str, colour| Shape::text((x, y), content, SMALL, Anchor::Middle, colour);
            shapes.push(text(floor + 13.0, &number.to_string(), Colour::PAPER));
            shapes.extend(parts::law((x, law_y(stage)), stage.pitch, law, action));
            if let Some(margin) = self.margins.values().get(number).copied().flatten() {
                let zero = (margin_y(stage) + height(high)).floor();
                shapes.extend(parts::margin((x, zero), stage.pitch, height(margin.slack), margin.verdict));
                let colour = if margin.verdict == Verdict::Unsafe { Colour::ALARM } else { Colour::QUIET };
                let y = margin_y(stage) + MARGIN_HEIGHT + DIGITS_HEIGHT - 2.0;
                shapes.extend(digits.as_ref().map(|digits| text(y, &digits[number], colour)));
            }
        }
        shapes
    }
}

/// y of the rows of the small print.
fn law_y(stage: &Stage) -> f32 {
    stage.floor() + BOTTOM + GAP
}

fn margin_y(stage: &Stage) -> f32 {
    law_y(stage) + LAW_HEIGHT + SIGN_HEIGHT + GAP
}

impl Film for PistonballFilm {
    fn steps(&self) -> usize {
        self.steps.len()
    }

    fn size(&self) -> (f32, f32) {
        let stage = self.stage(0);
        let height = match (&self.margins, self.digits(stage.pitch)) {
            (Margins::None | Margins::LeftOut, _) => law_y(&stage) + LAW_HEIGHT + SIGN_HEIGHT,
            (Margins::Known { .. }, None) => margin_y(&stage) + MARGIN_HEIGHT,
            (Margins::Known { .. }, Some(_)) => margin_y(&stage) + MARGIN_HEIGHT + DIGITS_HEIGHT,
        };
        (stage.width(), height)
    }

    fn draw(&self, number: usize) -> Vec<Shape> {
        let step = &self.steps[number];
        let stage = self.stage(step.first);
        let mut shapes = stage.walls();
        shapes.extend(stage.pistons(&step.levels, step.ball.0));
        let places: Vec<Point> = self.steps[number.saturating_sub(TRAIL)..=number]
            .iter()
            .map(|earlier| stage.place(earlier.ball))
            .filter(|(x, _)| (0.0..=stage.width()).contains(x))
            .collect();
        shapes.extend(parts::trail(&places));
        shapes.extend(stage.ball(step.ball, step.angle));
        shapes.extend(self.small_print(&stage, step));
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
            for (verdict, height, label) in [
                (Verdict::Safe, 7.0, "margin of a safe piston"),
                (Verdict::Unsafe, -7.0, "unsafe"),
                (Verdict::Undecided, 4.0, "undecided"),
            ] {
                entries.push(Entry { sign: parts::margin((0.0, 0.0), 14.0, height, verdict), label });
            }
        }
        entries
    }

    fn note(&self) -> Option<String> {
        let mut notes = Vec::new();
        let drawn = drawn(self.pistons);
        if drawn < self.pistons {
            notes.push(format!("{drawn} of {} pistons, around the ball", self.pistons));
        }
        match &self.margins {
            Margins::None => {}
            Margins::LeftOut => notes.push("margins to the bounds are left out".into()),
            Margins::Known { episodes, .. } => {
                notes.push(format!(
                    "margins: estimates over {episodes} episodes; verdicts with 99 % confidence"
                ));
            }
        }
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    /// The ball at the right, in the middle and at the left; and where pistons of the right half hold it
    /// highest.
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

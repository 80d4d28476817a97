//! The game itself on paper: walls, pistons and the ball, without what is written below them.

use phalanx::world::pistonball::physics::{BALL_RADIUS, COLUMN, HEIGHT, LOWEST, MOVE, WALL};

use super::parts::{self, Piston};
use super::window::drawn;
use crate::plot::canvas::Colour;
use crate::render::film::WIDEST;
use crate::render::shape::{Point, Shape};

/// Which part of the game is drawn, and how large.
#[derive(Debug, Clone, Copy)]
pub struct Stage {
    /// Pistons of the whole game.
    pistons: usize,
    /// The first piston that is drawn; so many follow as [`drawn`] says.
    first: usize,
    /// Distance between pistons: whole pixels, so that all look alike.
    pub pitch: f32,
    /// y of the world at the upper edge.
    top: f32,
}

/// Of the walls this much is drawn, in units of the world; the rest is empty.
const WALL_DRAWN: f32 = 12.0;
/// y of the inner edge of the bottom wall.
const FLOOR: f32 = (HEIGHT - WALL) as f32;
/// Radius of a piston's head.
const HEAD: f32 = 0.125 * COLUMN as f32;
/// y of the upper edge of the ceiling as it is drawn.
const CEILING: f32 = WALL as f32 - WALL_DRAWN;
/// The bottom wall, in pixels.
pub const BOTTOM: f32 = 19.0;

impl Stage {
    /// The game from y = `top` of the world downwards, with at most `largest` pixels per unit of the world.
    pub fn new(pistons: usize, first: usize, top: f32, largest: f32) -> Stage {
        let columns = drawn(pistons) as f32 + 2.0 * WALL_DRAWN / COLUMN as f32;
        let pitch = (WIDEST / columns).min(largest * COLUMN as f32).floor();
        Stage { pistons, first, pitch, top }
    }

    /// The game from its ceiling downwards, with at most one pixel per unit of the world.
    pub fn whole(pistons: usize, first: usize) -> Stage {
        Stage::new(pistons, first, CEILING, 1.0)
    }

    /// Pixels per unit of the world.
    pub fn scale(&self) -> f32 {
        self.pitch / COLUMN as f32
    }

    /// Width of the drawing.
    pub fn width(&self) -> f32 {
        (COLUMN as f32 * drawn(self.pistons) as f32 + 2.0 * WALL_DRAWN) * self.scale()
    }

    /// Height of the drawing, down to the lower edge of the bottom wall.
    pub fn height(&self) -> f32 {
        self.floor() + BOTTOM
    }

    /// y of the floor in the drawing; below it is the bottom wall.
    pub fn floor(&self) -> f32 {
        ((FLOOR - self.top) * self.scale()).round()
    }

    /// A place of the world in the drawing.
    pub fn place(&self, (x, y): Point) -> Point {
        let left = (WALL + COLUMN * self.first as f64) as f32 - WALL_DRAWN;
        ((x - left) * self.scale(), (y - self.top) * self.scale())
    }

    /// The middle of a piston's column on the floor, from the first one drawn.
    pub fn foot(&self, k: usize) -> Point {
        let middle = (WALL + COLUMN * ((self.first + k) as f64 + 0.5)) as f32;
        (self.place((middle, FLOOR)).0.round(), self.floor())
    }

    pub fn walls(&self) -> Vec<Shape> {
        let (width, floor) = (self.width(), self.floor());
        let wall = |corner, size| Shape::filled(corner, size, Colour::QUIET.tint(0.8));
        let thickness = (WALL_DRAWN * self.scale()).floor();
        let mut shapes = vec![
            Shape::filled((0.0, 0.0), (width, floor), Colour::QUIET.tint(0.05)),
            wall((0.0, floor), (width, BOTTOM)),
        ];
        // Pistons that are not drawn have no wall beside them.
        if self.first == 0 {
            shapes.push(wall((0.0, 0.0), (thickness, floor + 1.0)));
        }
        if self.first + drawn(self.pistons) == self.pistons {
            shapes.push(wall((width - thickness, 0.0), (thickness, floor + 1.0)));
        }
        let ceiling = (WALL as f32 - self.top) * self.scale();
        if ceiling > 0.0 {
            shapes.push(wall((0.0, 0.0), (width, ceiling)));
        }
        shapes
    }

    /// A piston, from the first one drawn, on a level from 0, with the ball at `ball_x`.
    pub fn piston(&self, k: usize, level: u8, ball_x: f32) -> Piston {
        let left = (WALL + COLUMN * (self.first + k) as f64) as f32;
        let right = left + COLUMN as f32;
        let y = (LOWEST - MOVE * f64::from(level)) as f32;
        let reach = BALL_RADIUS as f32;
        // A little narrower than it is, so that neighbours are told apart.
        let hair = 0.6;
        Piston {
            left: self.place((left + HEAD + hair, y)),
            right: self.place((right - HEAD - hair, y)).0,
            radius: HEAD * self.scale(),
            floor: self.floor(),
            is_under_ball: left < ball_x + reach && right > ball_x - reach,
        }
    }

    /// Pistons on their levels, from the first one drawn.
    pub fn pistons(&self, levels: &[u8], ball_x: f32) -> Vec<Shape> {
        let piston = |(k, &level): (usize, &u8)| self.piston(k, level, ball_x).shapes();
        levels.iter().enumerate().flat_map(piston).collect()
    }

    /// The ball at a place of the world.
    pub fn ball(&self, ball: Point, angle: f32) -> Vec<Shape> {
        parts::ball(self.place(ball), BALL_RADIUS as f32 * self.scale(), angle)
    }

    /// The signs of actions on the bottom wall, from the first piston drawn.
    pub fn signs(&self, actions: &[u8]) -> Vec<Shape> {
        let half = (0.14 * self.pitch).clamp(2.0, 5.0);
        let sign = |(k, &action): (usize, &u8)| {
            let (x, floor) = self.foot(k);
            parts::sign((x, floor + 0.5 * BOTTOM), half, usize::from(action), Colour::PAPER)
        };
        actions.iter().enumerate().map(sign).collect()
    }
}

//! The physics of Pistonball: one ball against pistons and walls, double for double that of PettingZoo.
//!
//! The game runs on a general physics library (pymunk, which is Chipmunk). Only a small part of it ever acts
//! here, and that part is written out in three files: `broad` finds the segments near the ball, and in which
//! order; `contact` those that touch it; `solver` what they do to it. The solver passes over the contacts one
//! after another, so their order changes the result, and a ball between pistons is chaotic: a different last
//! digit becomes another game within an episode. So every expression keeps the grouping of the original, and
//! nothing may be fused or reordered.
//!
//! Units are pixels, seconds and radians; x grows to the right and **y grows downwards**.

mod broad;
mod contact;
mod f64x2;
mod solver;

use broad::{Bounds, Broad};
use contact::{Capsule, Contacts};
use solver::Motion;

/// Height of the image; the width depends on the number of pistons, see [`width`].
pub const HEIGHT: f64 = 560.0;
/// Thickness of the walls as drawn; the ball touches a segment along their inner edge.
pub const WALL: f64 = 40.0;
/// Width of a piston's column.
pub const COLUMN: f64 = 40.0;
/// y of a piston that is all the way down.
pub const LOWEST: f64 = 491.0;
/// y of a piston that is all the way up.
pub const HIGHEST: f64 = 427.0;
/// How far a piston moves at most in a step.
pub const MOVE: f64 = 4.0;
/// Heights that a piston can take by whole moves.
pub const LEVELS: usize = 17;
/// Radius of the ball.
pub const BALL_RADIUS: f64 = 40.0;
/// Duration of a physics step.
pub const STEP: f64 = 0.05;

/// y of the inner edge of the bottom wall.
const FLOOR: f64 = HEIGHT - WALL;
/// Segments have round ends and this radius.
const WALL_RADIUS: f64 = 1.0;
const PISTON_RADIUS: f64 = 5.0;
/// Length of a piston's flat top.
const PISTON_LENGTH: f64 = 30.0;
/// Pull on the ball, downwards.
const GRAVITY: f64 = 750.0;
/// Segments are numbered: top, left, bottom, right wall, then the pistons.
const WALLS: usize = 4;

/// Width of the image with `pistons` pistons.
pub const fn width(pistons: usize) -> f64 {
    2.0 * WALL + COLUMN * pistons as f64
}

/// The ball's state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ball {
    /// Centre.
    pub x: f64,
    /// Centre, downwards.
    pub y: f64,
    /// Velocity in pixels per second.
    pub vx: f64,
    /// Velocity, downwards.
    pub vy: f64,
    /// Angle, not wrapped.
    pub angle: f64,
    /// Angular velocity.
    pub omega: f64,
}

/// A point or a direction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Vector {
    x: f64,
    y: f64,
}

impl Vector {
    const ZERO: Vector = Vector { x: 0.0, y: 0.0 };

    fn add(self, other: Vector) -> Vector {
        Vector { x: self.x + other.x, y: self.y + other.y }
    }

    fn sub(self, other: Vector) -> Vector {
        Vector { x: self.x - other.x, y: self.y - other.y }
    }

    fn times(self, factor: f64) -> Vector {
        Vector { x: self.x * factor, y: self.y * factor }
    }

    fn dot(self, other: Vector) -> f64 {
        self.x * other.x + self.y * other.y
    }

    fn cross(self, other: Vector) -> f64 {
        self.x * other.y - self.y * other.x
    }

    /// Turned by a quarter.
    fn perpendicular(self) -> Vector {
        Vector { x: -self.y, y: self.x }
    }
}

/// The smaller one; the second if they compare equal, which tells 0 from −0 as the original does.
fn min(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The larger one; the second if they compare equal.
fn max(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// A ball, pistons and walls.
///
/// ```
/// use phalanx::world::pistonball::physics::{Ball, Physics};
///
/// let ball = Ball { x: 120.0, y: 400.0, vx: 0.0, vy: 0.0, angle: 0.0, omega: 0.0 };
/// let mut physics = Physics::new(&[491.0, 483.0, 491.0], ball);
/// for _ in 0..20 {
///     physics.advance(|piston| if piston == 1 { 1.0 } else { 0.0 });
/// }
/// assert_eq!(physics.heights(), [491.0, 427.0, 491.0]);
/// assert!(physics.ball().y < 400.0);
/// ```
#[derive(Debug, Clone)]
pub struct Physics {
    heights: Vec<f64>,
    /// Walls and pistons by their number.
    segments: Vec<Capsule>,
    position: Vector,
    angle: f64,
    motion: Motion,
    /// Moves the ball out of what it overlaps in the next step, without giving it speed.
    correction: Motion,
    broad: Broad,
    contacts: Contacts,
}

impl Physics {
    /// Pistons at `heights` (their y) and a ball, touching nothing yet.
    ///
    /// # Panics
    /// Without a piston.
    pub fn new(heights: &[f64], ball: Ball) -> Self {
        assert!(!heights.is_empty(), "no piston");
        let pistons = heights.iter().enumerate().map(|(i, &y)| piston(i, y));
        let segments: Vec<Capsule> = walls(heights.len()).into_iter().chain(pistons).collect();
        let position = Vector { x: ball.x, y: ball.y };
        Physics {
            heights: heights.to_vec(),
            position,
            angle: ball.angle,
            motion: Motion { velocity: Vector { x: ball.vx, y: ball.vy }, omega: ball.omega },
            correction: Motion::default(),
            broad: Broad::new(&segments, Bounds::around(position, BALL_RADIUS)),
            contacts: Contacts::new(segments.len()),
            segments,
        }
    }

    /// y of every piston, from left to right.
    pub fn heights(&self) -> &[f64] {
        &self.heights
    }

    /// The ball as it is now.
    pub fn ball(&self) -> Ball {
        let Motion { velocity, omega } = self.motion;
        let Vector { x, y } = self.position;
        Ball { x, y, vx: velocity.x, vy: velocity.y, angle: self.angle, omega }
    }

    /// Moves a piston up by `up` times [`MOVE`], −1 to 1, as far as its way goes.
    ///
    /// It has no speed while it moves: it pushes the ball by overlapping it.
    pub fn move_piston(&mut self, piston: usize, up: f64) {
        let y = max(HIGHEST, min(LOWEST, self.heights[piston] - MOVE * up));
        if y != self.heights[piston] {
            self.heights[piston] = y;
            self.segments[WALLS + piston] = self::piston(piston, y);
            self.broad.moved(piston);
        }
    }

    /// One physics step, of [`STEP`] seconds.
    pub fn step(&mut self) {
        // The position moves on with the velocity of the step before.
        self.position = self.position.add(self.motion.velocity.add(self.correction.velocity).times(STEP));
        self.angle += (self.motion.omega + self.correction.omega) * STEP;
        self.correction = Motion::default();
        let bounds = Bounds::around(self.position, BALL_RADIUS);
        let candidates = self.broad.update(&self.segments, bounds, self.motion.velocity);
        self.contacts.find(&self.segments, candidates, self.position, bounds);
        self.motion.velocity = self.motion.velocity.add(Vector { x: 0.0, y: GRAVITY }.times(STEP));
        solver::solve(&mut self.motion, &mut self.correction, self.contacts.touching_mut());
        self.contacts.remember();
    }

    /// One step of the game: from left to right, each piston moves by `up` of it and a physics step follows.
    pub fn advance(&mut self, up: impl Fn(usize) -> f64) {
        for piston in 0..self.heights.len() {
            self.move_piston(piston, up(piston));
            self.step();
        }
    }

    /// What touched the ball in the last physics step, in the order of the solver: `T`, `L`, `B`, `R` for the
    /// walls and `P9` for a piston, as in the reference files.
    pub fn touching(&self) -> impl Iterator<Item = String> {
        self.contacts.touching().iter().map(|contact| match contact.segment.checked_sub(WALLS) {
            Some(piston) => format!("P{piston}"),
            None => ["T", "L", "B", "R"][contact.segment].to_string(),
        })
    }
}

/// The segments along the inner edges: top, left, bottom, right.
fn walls(pistons: usize) -> [Capsule; WALLS] {
    let (left, right, top, bottom) = (WALL, width(pistons) - WALL, WALL, FLOOR);
    let wall = |from: [f64; 2], to: [f64; 2]| {
        let (from, to) = (Vector { x: from[0], y: from[1] }, Vector { x: to[0], y: to[1] });
        Capsule::new(from, to, WALL_RADIUS, Vector::ZERO)
    };
    [
        wall([left, top], [right, top]),
        wall([left, top], [left, bottom]),
        wall([left, bottom], [right, bottom]),
        wall([right, top], [right, bottom]),
    ]
}

fn piston(number: usize, y: f64) -> Capsule {
    let from = Vector { x: WALL + PISTON_RADIUS + COLUMN * number as f64, y };
    Capsule::new(from, Vector { x: from.x + PISTON_LENGTH, y }, PISTON_RADIUS, from)
}

//! What the contacts do to the ball: impulses, found by passing over the contacts again and again.

use super::contact::Contact;
use super::{BALL_RADIUS, STEP, Vector, max, min};

const MASS: f64 = 0.75;
const INVERSE_MASS: f64 = 1.0 / MASS;
/// A disc's moment of inertia is m·r²/2.
const INVERSE_MOMENT: f64 = 1.0 / (0.5 * MASS * BALL_RADIUS * BALL_RADIUS);
/// Friction of the ball times that of the segments. Nothing bounces: the segments' elasticity is 0.
const FRICTION: f64 = 0.3 * 0.64;
/// Overlap that is left alone: 0.1 in single precision, as the original has it.
const SLOP: f64 = 0.1_f32 as f64;
/// Share of the remaining overlap that a step corrects: 1 − 0.0001^[`STEP`].
const CORRECTED: f64 = 0.369_042_655_519_806_75;
/// Passes over the contacts.
const PASSES: usize = 10;

/// Velocity and angular velocity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Motion {
    pub velocity: Vector,
    pub omega: f64,
}

impl Motion {
    pub const ZERO: Motion = Motion { velocity: Vector::ZERO, omega: 0.0 };

    /// Velocity of the segments, which stand still, relative to the ball's point at `arm`.
    fn relative(self, arm: Vector) -> Vector {
        self.velocity.add(Vector { x: -arm.y * self.omega, y: arm.x * self.omega }).neg()
    }

    /// The ball pushes with `impulse` at `arm`, and gets as much back.
    fn push(&mut self, arm: Vector, impulse: Vector) {
        let back = impulse.neg();
        self.velocity = self.velocity.add(back.times(INVERSE_MASS));
        self.omega += INVERSE_MOMENT * arm.cross(back);
    }
}

/// A contact's constants and what it has done so far in this step.
struct Row<'a> {
    contact: &'a mut Contact,
    /// Inverse of the ball's inverse mass as felt along and across the normal.
    normal_mass: f64,
    tangent_mass: f64,
    /// Speed at which the overlap shall be left.
    bias: f64,
    /// Accumulated correcting impulse.
    corrected: f64,
}

impl Row<'_> {
    fn new(contact: &mut Contact) -> Row<'_> {
        let mass = |direction| {
            let lever = contact.arm.cross(direction);
            1.0 / (INVERSE_MASS + INVERSE_MOMENT * lever * lever)
        };
        let (normal_mass, tangent_mass) = (mass(contact.normal), mass(contact.normal.perpendicular()));
        let bias = -CORRECTED * min(0.0, contact.gap + SLOP) / STEP;
        Row { contact, normal_mass, tangent_mass, bias, corrected: 0.0 }
    }

    /// Impulse of `along` the normal and `across` it.
    fn impulse(&self, along: f64, across: f64) -> Vector {
        let n = self.contact.normal;
        Vector { x: n.x * along - n.y * across, y: n.x * across + n.y * along }
    }
}

/// Changes the ball's `motion` so that it moves into no segment, and sets the `correction` of its position.
pub(super) fn solve(motion: &mut Motion, correction: &mut Motion, contacts: &mut [Contact]) {
    let mut rows: Vec<Row> = contacts.iter_mut().map(Row::new).collect();
    for row in rows.iter().filter(|row| row.contact.lasting) {
        motion.push(row.contact.arm, row.impulse(row.contact.push, row.contact.friction));
    }
    for _ in 0..PASSES {
        for row in &mut rows {
            let Contact { normal, arm, push, friction, .. } = *row.contact;
            let relative = motion.relative(arm);
            let leaving = correction.relative(arm).dot(normal);
            let corrected = max(row.corrected + (row.bias - leaving) * row.normal_mass, 0.0);
            let new_push = max(push - relative.dot(normal) * row.normal_mass, 0.0);
            let most = FRICTION * new_push;
            let sliding = relative.dot(normal.perpendicular());
            let new_friction = min(max(friction - sliding * row.tangent_mass, -most), most);
            correction.push(arm, normal.times(corrected - row.corrected));
            motion.push(arm, row.impulse(new_push - push, new_friction - friction));
            row.corrected = corrected;
            (row.contact.push, row.contact.friction) = (new_push, new_friction);
        }
    }
}

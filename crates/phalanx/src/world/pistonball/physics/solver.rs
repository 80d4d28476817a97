//! What the contacts do to the ball: impulses, found by passing over the contacts again and again.

use super::contact::{Contact, Impulses, MOST_CONTACTS};
use super::f64x2::F64x2;
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
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Motion {
    pub velocity: Vector,
    pub omega: f64,
}

/// Changes the ball's `motion` so that it moves into no segment, and sets the `correction` of its position.
///
/// Each contact in turn sets its impulses right as if it were alone, ten times over.
pub(super) fn solve(motion: &mut Motion, correction: &mut Motion, contacts: &mut [Contact]) {
    let mut state = State {
        x: F64x2::new(motion.velocity.x, 0.0),
        y: F64x2::new(motion.velocity.y, 0.0),
        omega: F64x2::new(motion.omega, 0.0),
    };
    match contacts {
        [] => {}
        [one] => state.pass_over_one(one),
        [first, second] => state.pass_over([first, second]),
        [first, second, third] => state.pass_over([first, second, third]),
        _ => state.pass_over_many(contacts),
    }
    let State { x, y, omega } = state;
    *motion = Motion { velocity: Vector { x: x.first(), y: y.first() }, omega: omega.first() };
    *correction = Motion { velocity: Vector { x: x.second(), y: y.second() }, omega: omega.second() };
}

/// Motion (first) and correction (second). They obey the same equations, but the correction knows no friction
/// and aims at another speed.
#[derive(Clone, Copy)]
struct State {
    x: F64x2,
    y: F64x2,
    omega: F64x2,
}

/// A contact as the solver needs it: what is the same for both stands there twice.
#[derive(Clone, Copy)]
struct Row {
    normal_x: F64x2,
    normal_y: F64x2,
    arm_x: F64x2,
    arm_y: F64x2,
    /// The ball's mass as felt along the normal and across it.
    normal_mass: F64x2,
    tangent_mass: f64,
    /// Speed along the normal to be had in the end: 0, and out of the overlap for the correction.
    bias: F64x2,
    /// Impulses so far, along the normal and across it.
    push: F64x2,
    friction: f64,
}

impl Row {
    #[inline(always)]
    fn new(contact: &Contact) -> Self {
        let Contact { normal, arm, gap, impulses, .. } = *contact;
        let mass = |direction| {
            let lever = arm.cross(direction);
            1.0 / (INVERSE_MASS + INVERSE_MOMENT * lever * lever)
        };
        Row {
            normal_x: F64x2::splat(normal.x),
            normal_y: F64x2::splat(normal.y),
            arm_x: F64x2::splat(arm.x),
            arm_y: F64x2::splat(arm.y),
            normal_mass: F64x2::splat(mass(normal)),
            tangent_mass: mass(normal.perpendicular()),
            bias: F64x2::new(0.0, -CORRECTED * min(0.0, gap + SLOP) / STEP),
            push: F64x2::new(impulses.push, 0.0),
            friction: impulses.friction,
        }
    }

    #[inline(always)]
    fn impulses(&self) -> Impulses {
        Impulses { push: self.push.first(), friction: self.friction }
    }
}

impl State {
    /// The ball pushes with impulses of `along` the normal and `across` it, and gets as much back.
    #[inline(always)]
    fn push(&mut self, row: &Row, along: F64x2, across: f64) {
        let across = F64x2::new(across, 0.0);
        let x = row.normal_x.mul(along).sub(row.normal_y.mul(across));
        let y = row.normal_x.mul(across).add(row.normal_y.mul(along));
        let turn = row.arm_x.mul(y).sub(row.arm_y.mul(x));
        self.x = self.x.sub(x.mul(F64x2::splat(INVERSE_MASS)));
        self.y = self.y.sub(y.mul(F64x2::splat(INVERSE_MASS)));
        self.omega = self.omega.sub(turn.mul(F64x2::splat(INVERSE_MOMENT)));
    }

    /// A contact that was there before starts with its impulses of then.
    #[inline(always)]
    fn start(&mut self, contact: &Contact) -> Row {
        let row = Row::new(contact);
        if contact.lasting {
            self.push(&row, row.push, row.friction);
        }
        row
    }

    /// One contact sets its impulses right.
    #[inline(always)]
    fn act(&mut self, row: &mut Row) {
        // Velocity of the ball's point of contact. The original has that of the segment seen from there, its
        // negative.
        let x = self.x.sub(row.arm_y.mul(self.omega));
        let y = self.y.add(row.arm_x.mul(self.omega));
        let closing = x.mul(row.normal_x).add(y.mul(row.normal_y));
        let excess = row.bias.add(closing);
        let push = row.push.add(excess.mul(row.normal_mass)).max(F64x2::splat(0.0));
        let sliding = y.first() * row.normal_x.first() - x.first() * row.normal_y.first();
        let mut friction = row.friction + sliding * row.tangent_mass;
        let most = FRICTION * push.first();
        if friction.abs() > most {
            // Kept from the optimiser as a branch: the processor guesses it and goes on before `most` is
            // known.
            friction = std::hint::black_box(min(max(friction, -most), most));
        }
        self.push(row, push.sub(row.push), friction - row.friction);
        (row.push, row.friction) = (push, friction);
    }

    #[inline(always)]
    fn pass_over<const N: usize>(&mut self, contacts: [&mut Contact; N]) {
        let mut rows = contacts.each_ref().map(|contact| self.start(contact));
        for _ in 0..PASSES {
            for row in &mut rows {
                self.act(row);
            }
        }
        for (contact, row) in contacts.into_iter().zip(&rows) {
            contact.impulses = row.impulses();
        }
    }

    /// A contact that is alone is soon done: nothing changes any more, or the last digits go to and fro.
    fn pass_over_one(&mut self, contact: &mut Contact) {
        let mut row = self.start(contact);
        let (mut two_before, mut before) = ((row, *self), (row, *self));
        let mut left = PASSES;
        while left > 0 {
            self.act(&mut row);
            left -= 1;
            let (then_row, then) = two_before;
            let same = row.push.same(then_row.push)
                && row.friction == then_row.friction
                && self.omega.same(then.omega)
                && self.x.same(then.x)
                && self.y.same(then.y);
            if same {
                // Two more passes would change nothing.
                left %= 2;
            }
            (two_before, before) = (before, (row, *self));
        }
        contact.impulses = row.impulses();
    }

    /// As [`State::pass_over`]; so many contacts are rare.
    #[cold]
    fn pass_over_many(&mut self, contacts: &mut [Contact]) {
        let mut rows = [Row::new(&contacts[0]); MOST_CONTACTS];
        let rows = &mut rows[..contacts.len()];
        for (row, contact) in rows.iter_mut().zip(&*contacts) {
            *row = self.start(contact);
        }
        for _ in 0..PASSES {
            for row in &mut *rows {
                self.act(row);
            }
        }
        for (contact, row) in contacts.iter_mut().zip(rows) {
            contact.impulses = row.impulses();
        }
    }
}

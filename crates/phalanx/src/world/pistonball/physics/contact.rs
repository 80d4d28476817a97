//! Which segments touch the ball, and what is remembered of each.

use super::broad::Bounds;
use super::{BALL_RADIUS, PISTON_RADIUS, Vector};

/// A segment with a radius.
#[derive(Debug, Clone, Copy)]
pub(super) struct Capsule {
    from: Vector,
    along: Vector,
    radius: f64,
    /// Where its body is: contact points are kept relative to it.
    body: Vector,
    pub bounds: Bounds,
}

impl Capsule {
    /// A segment between two points of which the first is not right of or below the second.
    pub fn new(from: Vector, to: Vector, radius: f64, body: Vector) -> Self {
        let bounds = Bounds {
            left: from.x - radius,
            top: from.y - radius,
            right: to.x + radius,
            bottom: to.y + radius,
        };
        Capsule { from, along: to.sub(from), radius, body, bounds }
    }
}

/// A segment and the ball touching each other.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Contact {
    pub segment: usize,
    /// Unit vector from the ball to the segment.
    pub normal: Vector,
    /// From the ball's centre to the point where it touches.
    pub arm: Vector,
    /// Distance of the two points of contact along the normal; negative if they overlap.
    pub gap: f64,
    /// Whether the same contact was there in the step before: only then it starts with the push of that step.
    pub lasting: bool,
    pub impulses: Impulses,
}

/// What a contact has done to the ball, accumulated.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Impulses {
    /// Along the normal.
    pub push: f64,
    /// Across it.
    pub friction: f64,
}

/// The ball is wide enough for three pistons, and there are four walls.
pub(super) const MOST_CONTACTS: usize = 7;
/// A contact lost for fewer steps than this is remembered.
const MEMORY: u64 = 3;
/// Step number of a contact that never was.
const NEVER: u64 = 0;

/// Impulses of the last contact with a segment, and the step in which it was.
#[derive(Debug, Clone, Copy)]
struct Record {
    impulses: Impulses,
    step: u64,
}

/// The contacts of the last step and the records of those before.
#[derive(Debug, Clone)]
pub(super) struct Contacts {
    touching: [Contact; MOST_CONTACTS],
    count: usize,
    /// By segment.
    records: Vec<Record>,
    /// Number of the step. The first comes so late that `NEVER` is out of memory.
    step: u64,
}

impl Contacts {
    /// None yet, with any of `segments` segments.
    pub fn new(segments: usize) -> Self {
        Contacts {
            touching: [Contact::default(); MOST_CONTACTS],
            count: 0,
            records: vec![Record { impulses: Impulses::default(), step: NEVER }; segments],
            step: NEVER + MEMORY,
        }
    }

    pub fn touching(&self) -> &[Contact] {
        &self.touching[..self.count]
    }

    pub fn touching_mut(&mut self) -> &mut [Contact] {
        &mut self.touching[..self.count]
    }

    /// Begins a step: finds the candidates that touch the ball at `position`, in their order.
    pub fn find(&mut self, segments: &[Capsule], candidates: &[usize], position: Vector, bounds: Bounds) {
        self.step += 1;
        self.count = 0;
        for &segment in candidates {
            let capsule = &segments[segment];
            if !capsule.bounds.overlaps(bounds) {
                continue;
            }
            let Some(mut contact) = touch(capsule, position) else { continue };
            let record = self.records[segment];
            // Lost for a step or two and found again, a contact goes on with the impulses it had, but does
            // not start with them: so does the original.
            let age = self.step - record.step;
            contact.segment = segment;
            contact.lasting = age == 1;
            if age <= MEMORY {
                contact.impulses = record.impulses;
            }
            self.touching[self.count] = contact;
            self.count += 1;
        }
    }

    /// Ends a step: keeps the impulses for the next ones.
    pub fn remember(&mut self) {
        for contact in &self.touching[..self.count] {
            self.records[contact.segment] = Record { impulses: contact.impulses, step: self.step };
        }
    }
}

/// The contact of the ball at `position` with `capsule`, if they touch.
fn touch(capsule: &Capsule, position: Vector) -> Option<Contact> {
    let Capsule { from, along, radius, body, .. } = *capsule;
    let (ahead, length) = (along.dot(position.sub(from)), along.dot(along));
    // Most contacts are with an end, which takes no division.
    let closest = if ahead <= 0.0 {
        from
    } else if ahead >= length {
        from.add(along)
    } else {
        from.add(along.times(ahead / length))
    };
    let to_closest = closest.sub(position);
    let (reach, squared) = (BALL_RADIUS + radius, to_closest.dot(to_closest));
    (squared < reach * reach).then(|| {
        // A ball right on a segment leaves it sideways. It never gets there by itself.
        let normal = if squared > 0.0 {
            to_closest.times(1.0 / squared.sqrt())
        } else {
            along.perpendicular().times(-1.0 / along.dot(along).sqrt())
        };
        let arm = position.add(normal.times(BALL_RADIUS)).sub(position);
        let other_arm = closest.add(normal.times(-radius)).sub(body);
        let gap = other_arm.sub(arm).add(body.sub(position)).dot(normal);
        Contact { normal, arm, gap, ..Contact::default() }
    })
}

// Three pistons at most: the ball's reach, twice the sum of the radii, spans fewer than four of them.
const _: () = assert!(2.0 * (BALL_RADIUS + PISTON_RADIUS) + super::PISTON_LENGTH <= 3.0 * super::COLUMN);

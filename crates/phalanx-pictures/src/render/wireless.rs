//! Pictures of the wireless access grid: users, the access points between them, and who sends where.

use super::film::{Entry, Film, WIDEST, ring_legend, ring_pen};
use super::shape::{Anchor, CROSS, Pen, Point, Shape, TICK};
use crate::plot::canvas::Colour;

/// An episode of the grid, or of the upper left part of a large one. Users are numbered row by row; an access
/// point stands between every four users.
#[derive(Debug, Clone)]
pub struct WirelessFilm {
    /// Rows and columns of users that are drawn: at least 1, at most [`MOST_A_SIDE`].
    pub rows: usize,
    pub columns: usize,
    /// Rows and columns of the whole grid.
    pub grid: (usize, usize),
    /// One entry per step.
    pub steps: Vec<WirelessStep>,
}

/// One step; an entry per user that is drawn.
#[derive(Debug, Clone, Default)]
pub struct WirelessStep {
    /// The packets before anything is sent, one entry a slot, the earliest deadline first.
    pub queues: Vec<Vec<bool>>,
    /// What each user does; none: it sends nothing. Empty if nobody has acted.
    pub sends: Vec<Option<Sending>>,
    /// How probable that was. Empty if it is not known.
    pub chances: Vec<f32>,
    /// Whether the user's constraints hold for this episode so far; none if it has none. Or empty.
    pub kept: Vec<Option<bool>>,
    /// Packets delivered and users that collided, in the whole grid, up to and including this step.
    pub delivered: usize,
    pub collided: usize,
}

/// A transmission.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sending {
    pub to: Corner,
    pub outcome: Outcome,
}

/// Which of the access points around a user: steps to the right and down.
pub type Corner = Point;

/// The corners in the order of the wireless world's actions, the first of which does nothing.
pub const CORNERS: [Corner; 4] = [(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)];

/// What becomes of a transmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The packet has arrived.
    Delivered,
    /// Somebody else sent to the same access point.
    Collided,
    /// The access point failed to process it.
    Failed,
    /// There was no packet to send; the access point was occupied all the same, alone.
    Empty,
    /// There is no access point at this corner.
    NoAccessPoint,
}

impl Outcome {
    fn pen(self) -> Pen {
        match self {
            Outcome::Delivered => Pen::new(Colour::of_series(1), 3.0),
            Outcome::Collided => Pen::new(Colour::of_series(4), 3.0),
            Outcome::Failed => Pen::new(Colour::QUIET.tint(0.7), 2.2),
            Outcome::Empty | Outcome::NoAccessPoint => {
                Pen { dashed: true, ..Pen::new(Colour::QUIET.tint(0.55), 1.8) }
            }
        }
    }
}

/// The row of probabilities below the queues.
const CHANCE_HEIGHT: f32 = 11.0;

/// Users side by side that are drawn at most.
pub const MOST_A_SIDE: usize = 20;

/// A user; its edge says whether its constraints hold.
fn disc(centre: Point, radius: f32, kept: Option<bool>) -> Shape {
    let outline = Some(ring_pen(kept).unwrap_or(Pen::new(Colour::QUIET.tint(0.7), 1.2)));
    Shape::Disc { centre, radius, fill: Some(Colour::of_series(3).tint(0.3)), outline }
}

/// An access point by what it received.
fn access_point(centre: Point, side: f32, received: Option<Outcome>) -> Vec<Shape> {
    let quiet = Pen::new(Colour::QUIET.tint(0.7), 1.2);
    let (fill, sign) = match received {
        Some(Outcome::Delivered) => (Colour::of_series(1), Some(TICK)),
        Some(Outcome::Collided) => (Colour::of_series(4), Some(CROSS)),
        Some(Outcome::Failed) => (Colour::QUIET.tint(0.45), None),
        _ => (Colour::QUIET.tint(0.12), None),
    };
    let outline = if sign.is_some() { Pen::new(fill, 1.2) } else { quiet };
    let mut shapes = vec![Shape::square(centre, side, Some(fill), Some(outline))];
    let pen = Pen::new(Colour::PAPER, 0.12 * side);
    shapes.extend(sign.into_iter().flat_map(|sign| Shape::sign(sign, centre, 0.5 * side, pen)));
    shapes
}

/// A queue in a row of slots below a place, of the given width altogether.
fn slots((x, y): Point, width: f32, queue: &[bool]) -> Vec<Shape> {
    let side = (width / queue.len().max(1) as f32).min(11.0);
    let left = x - 0.5 * side * queue.len() as f32;
    let slot = |(k, &packet): (usize, &bool)| {
        let fill = if packet { Colour::of_series(0) } else { Colour::PAPER };
        let pen = Pen::new(if packet { Colour::of_series(0) } else { Colour::QUIET.tint(0.6) }, 1.0);
        let inner = (side - 2.5).max(1.0);
        Shape::square((left + (k as f32 + 0.5) * side, y + 0.5 * side), inner, Some(fill), Some(pen))
    };
    queue.iter().enumerate().map(slot).collect()
}

impl WirelessFilm {
    /// Distance between neighbours.
    fn pitch(&self) -> f32 {
        (WIDEST / self.columns.max(1) as f32).min(112.0)
    }

    fn radius(&self) -> f32 {
        0.155 * self.pitch()
    }

    /// Whether numbers and probabilities can be read.
    fn has_room(&self) -> bool {
        self.radius() >= 11.0
    }

    /// Whether there are probabilities to read.
    fn has_chances(&self) -> bool {
        self.has_room() && self.steps.first().is_some_and(|step| !step.chances.is_empty())
    }

    fn access_side(&self) -> f32 {
        0.19 * self.pitch()
    }

    /// The centre of a user.
    pub fn centre(&self, user: usize) -> Point {
        let (row, column) = (user / self.columns, user % self.columns);
        ((column as f32 + 0.5) * self.pitch(), (row as f32 + 0.27) * self.pitch())
    }

    /// The centre of the access point below and to the right of the user in that row and column.
    fn access_centre(&self, row: usize, column: usize) -> Point {
        let (x, y) = self.centre(row * self.columns + column);
        (x + 0.5 * self.pitch(), y + 0.5 * self.pitch())
    }

    /// Row and column of the access point at a corner of a user, if it is drawn.
    fn access_at(&self, user: usize, (right, down): Corner) -> Option<(usize, usize)> {
        let (row, column) = (user / self.columns, user % self.columns);
        let row = if down < 0.0 { row.checked_sub(1)? } else { row };
        let column = if right < 0.0 { column.checked_sub(1)? } else { column };
        (row + 1 < self.rows && column + 1 < self.columns).then_some((row, column))
    }

    /// What each access point that is drawn received, row by row.
    fn received(&self, step: &WirelessStep) -> Vec<Option<Outcome>> {
        let across = self.columns.saturating_sub(1);
        let mut received = vec![None; self.rows.saturating_sub(1) * across];
        for (user, sending) in step.sends.iter().enumerate() {
            let Some(Sending { to, outcome }) = sending else { continue };
            if let Some((row, column)) = self.access_at(user, *to) {
                received[row * across + column] = Some(*outcome);
            }
        }
        received
    }

    /// The arrow of a transmission; a short stroke into nothing where there is no access point.
    fn arrow(&self, user: usize, Sending { to: (right, down), outcome }: Sending) -> Vec<Shape> {
        let (x, y) = self.centre(user);
        let at = |distance: f32| (x + right * distance, y + down * distance);
        let pen = Pen { width: outcome.pen().width * (self.pitch() / 112.0).max(0.5), ..outcome.pen() };
        // Along the diagonal: from the ring around the user to the corner of the access point.
        let from = at((self.radius() + 5.0) * std::f32::consts::FRAC_1_SQRT_2);
        if outcome == Outcome::NoAccessPoint {
            return vec![Shape::line(from, at(0.24 * self.pitch()), pen)];
        }
        let tip = 0.5 * (self.pitch() - self.access_side()) - 2.0;
        Shape::arrow(from, at(tip), pen)
    }
}

impl Film for WirelessFilm {
    fn steps(&self) -> usize {
        self.steps.len()
    }

    fn size(&self) -> (f32, f32) {
        // Below the last row are its queues, or strokes to access points that are not there.
        let chance = if self.has_chances() { CHANCE_HEIGHT } else { 0.0 };
        let below = (0.425 * self.pitch() + 19.0 + chance).max(0.53 * self.pitch());
        (self.columns as f32 * self.pitch(), (self.rows.max(1) - 1) as f32 * self.pitch() + below)
    }

    fn draw(&self, step: usize) -> Vec<Shape> {
        let step = &self.steps[step];
        let (radius, across) = (self.radius(), self.columns.saturating_sub(1));
        let mut shapes = Vec::new();
        // Who can reach whom, at the back.
        for user in 0..step.queues.len() {
            for corner in CORNERS {
                if let Some((row, column)) = self.access_at(user, corner) {
                    let pen = Pen::new(Colour::QUIET.tint(0.22), 1.0);
                    shapes.push(Shape::line(self.centre(user), self.access_centre(row, column), pen));
                }
            }
        }
        for (k, received) in self.received(step).into_iter().enumerate() {
            let centre = self.access_centre(k / across, k % across);
            shapes.extend(access_point(centre, self.access_side(), received));
        }
        for (user, queue) in step.queues.iter().enumerate() {
            let (x, y) = self.centre(user);
            shapes.push(disc((x, y), radius, step.kept.get(user).copied().flatten()));
            shapes.extend(slots((x, y + radius + 6.0), 2.0 * radius + 4.0, queue));
            if self.has_room() {
                let text = |y, content: String, size| {
                    Shape::text((x, y), content, size, Anchor::Middle, Colour::QUIET)
                };
                shapes.push(text(y + 4.0, user_number(user, self).to_string(), 11.0));
                let chance = step.chances.get(user).map(|chance| format!("{chance:.2}"));
                let below = y + radius + 17.0 + CHANCE_HEIGHT;
                shapes.extend(chance.map(|chance| text(below, chance, 9.5)));
            }
        }
        for (user, sending) in step.sends.iter().enumerate() {
            shapes.extend(sending.iter().flat_map(|sending| self.arrow(user, *sending)));
        }
        shapes
    }

    fn status(&self, step: usize) -> String {
        let WirelessStep { delivered, collided, .. } = self.steps[step];
        format!("{delivered} delivered, {collided} collided")
    }

    fn legend(&self) -> Vec<Entry> {
        let arrow = |outcome: Outcome, label| Entry {
            sign: Shape::arrow((-11.0, 0.0), (11.0, 0.0), Pen { width: 2.4, ..outcome.pen() }),
            label,
        };
        let mut entries = vec![
            Entry { sign: vec![disc((0.0, 0.0), 6.5, None)], label: "user" },
            Entry { sign: access_point((0.0, 0.0), 12.0, None), label: "access point" },
            Entry {
                sign: slots((0.0, -5.5), 22.0, &[true, false]),
                label: "packet, empty slot (earliest deadline first)",
            },
            arrow(Outcome::Delivered, "delivered"),
            arrow(Outcome::Collided, "collision"),
            arrow(Outcome::Failed, "failed by chance"),
            arrow(Outcome::Empty, "queue empty, or no access point"),
        ];
        if self.has_chances() {
            let sign = vec![Shape::text((0.0, 4.0), "0.9", 9.5, Anchor::Middle, Colour::QUIET)];
            entries.push(Entry { sign, label: "probability of what is done" });
        }
        entries.extend(self.steps.first().into_iter().flat_map(|step| ring_legend(&step.kept)));
        entries
    }

    fn note(&self) -> Option<String> {
        let (rows, columns) = self.grid;
        ((rows, columns) != (self.rows, self.columns))
            .then(|| format!("the first {} × {} of {rows} × {columns} users", self.rows, self.columns))
    }

    /// Two steps one after the other, as in the paper.
    fn moments(&self) -> Vec<(&'static str, usize)> {
        let last = self.steps.len().saturating_sub(1);
        // The queues of the first steps are those of the start.
        let first = last.min(self.steps.len() / 2);
        vec![("first", first.min(last.saturating_sub(1))), ("second", (first + 1).min(last))]
    }
}

/// A drawn user's number in the whole grid.
fn user_number(user: usize, film: &WirelessFilm) -> usize {
    user / film.columns * film.grid.1 + user % film.columns
}

/// An invented episode on a grid, for tests: the rules of the world, with numbers of no meaning.
#[cfg(test)]
pub fn invented(rows: usize, columns: usize, deadline: usize, steps: usize) -> WirelessFilm {
    let mut word = 0x2545_f491_4f6c_dd1du64;
    let mut draw = |below: u64| {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        (word >> 33) % below
    };
    let mut film = WirelessFilm { rows, columns, grid: (rows, columns), steps: Vec::new() };
    let mut queues: Vec<Vec<bool>> =
        (0..rows * columns).map(|_| (0..deadline).map(|_| draw(2) == 0).collect()).collect();
    let (mut delivered, mut collided) = (0, 0);
    for step in 0..steps {
        let choices: Vec<Option<Corner>> =
            queues.iter().map(|_| CORNERS.get(draw(7) as usize).copied()).collect();
        let target = |user: usize, film: &WirelessFilm| choices[user].and_then(|c| film.access_at(user, c));
        let mut sends = Vec::new();
        for (user, &choice) in choices.iter().enumerate() {
            let place = target(user, &film);
            let alone = (0..choices.len()).all(|other| other == user || target(other, &film) != place);
            let works = draw(5) > 0;
            let outcome = match (place, alone, queues[user].contains(&true)) {
                (None, ..) => Outcome::NoAccessPoint,
                (_, false, _) => Outcome::Collided,
                (_, true, false) => Outcome::Empty,
                _ if works => Outcome::Delivered,
                _ => Outcome::Failed,
            };
            sends.push(choice.map(|to| Sending { to, outcome }));
        }
        let count =
            |wanted| sends.iter().flatten().filter(|sending: &&Sending| sending.outcome == wanted).count();
        delivered += count(Outcome::Delivered);
        collided += count(Outcome::Collided);
        let kept = (0..queues.len()).map(|user| Some((user + step) % 6 != 0)).collect();
        film.steps.push(WirelessStep {
            queues: queues.clone(),
            sends: sends.clone(),
            chances: vec![0.25; queues.len()],
            kept,
            delivered,
            collided,
        });
        for (queue, sending) in queues.iter_mut().zip(sends) {
            if sending.is_some_and(|sending| sending.outcome == Outcome::Delivered)
                && let Some(first) = queue.iter_mut().find(|packet| **packet)
            {
                *first = false;
            }
            queue.remove(0);
            queue.push(draw(2) == 0);
        }
    }
    film
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPPER_LEFT: Corner = (-1.0, -1.0);
    const UPPER_RIGHT: Corner = (1.0, -1.0);
    const LOWER_LEFT: Corner = (-1.0, 1.0);
    const LOWER_RIGHT: Corner = (1.0, 1.0);

    #[test]
    fn access_points_are_between_four_users() {
        let film = invented(5, 5, 3, 1);
        let corners = [(0, LOWER_RIGHT), (1, LOWER_LEFT), (5, UPPER_RIGHT), (6, UPPER_LEFT)];
        for (user, corner) in corners {
            assert_eq!(film.access_at(user, corner), Some((0, 0)));
            let ((x, y), (ax, ay)) = (film.centre(user), film.access_centre(0, 0));
            let (right, down) = corner;
            assert!(((ax - x) * right - 56.0).abs() < 1e-3 && ((ay - y) * down - 56.0).abs() < 1e-3);
        }
        for (user, corner) in [(0, UPPER_RIGHT), (4, LOWER_RIGHT), (24, LOWER_RIGHT)] {
            assert_eq!(film.access_at(user, corner), None);
        }
    }

    #[test]
    fn everything_stays_in_the_picture() {
        for (rows, columns) in [(1, 1), (1, 7), (5, 5), (3, 9), (MOST_A_SIDE, MOST_A_SIDE)] {
            let film = invented(rows, columns, 3, 4);
            let (width, height) = film.size();
            assert!(width <= WIDEST + 0.01);
            for shape in (0..4).flat_map(|step| film.draw(step)) {
                assert!(shape.is_within((width, height)), "{rows} × {columns}: {shape:?}");
            }
        }
    }

    #[test]
    fn an_access_point_shows_what_it_received() {
        let mut film = invented(2, 2, 2, 1);
        let sending = |to, outcome| Some(Sending { to, outcome });
        film.steps[0].sends = vec![sending(LOWER_RIGHT, Outcome::Collided), None, None, None];
        assert_eq!(film.received(&film.steps[0]), [Some(Outcome::Collided)]);
        film.steps[0].sends[0] = sending(UPPER_LEFT, Outcome::NoAccessPoint);
        assert_eq!(film.received(&film.steps[0]), [None]);
    }

    #[test]
    fn users_of_a_part_keep_their_numbers() {
        let film = WirelessFilm { grid: (30, 30), ..invented(20, 20, 2, 1) };
        assert_eq!((user_number(19, &film), user_number(20, &film)), (19, 30));
        assert_eq!(film.note().unwrap(), "the first 20 × 20 of 30 × 30 users");
    }
}

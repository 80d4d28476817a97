//! Pictures of a platoon: the lane with its vehicles, and below each its headway, speed and action.

use super::film::{Entry, Film, WIDEST};
use super::shape::{Anchor, CROSS, Pen, Point, Shape};
use crate::plot::canvas::Colour;

/// Vehicles that are drawn.
pub const MOST_VEHICLES: usize = 12;

/// Seconds of a step.
pub const SECONDS: f32 = 0.1;
/// A headway below this is a collision.
const CRASH: f32 = 1.0;
/// Metres of lane that are drawn per vehicle.
const METRES: f32 = 31.0;
/// Lengths on the lane, in metres.
const VEHICLE: f32 = 4.5;
const BEHIND_LEADER: f32 = 8.0;
/// Distance of the marks in the middle of the lane.
const MARKS: f32 = 10.0;
/// In pixels.
const LANE: f32 = 44.0;
const TABLE: f32 = 62.0;
/// Below this headway a vehicle is drawn as one in danger, above the other as one that lags.
const NEAR: f32 = 10.0;
const FAR: f32 = 30.0;

/// An episode of a platoon, or of its first vehicles if there are many.
#[derive(Debug, Clone)]
pub struct PlatoonFilm {
    /// Vehicles of the whole platoon.
    pub vehicles: usize,
    pub steps: Vec<PlatoonStep>,
}

/// One step; an entry per vehicle that is drawn, from the front.
#[derive(Debug, Clone, Default)]
pub struct PlatoonStep {
    /// Metres that the leader has driven since the start.
    pub driven: f32,
    pub headways: Vec<f32>,
    pub speeds: Vec<f32>,
    /// Empty if nobody has acted.
    pub actions: Vec<u8>,
    /// What has been earned so far, in a few words.
    pub status: String,
}

impl PlatoonStep {
    /// All vehicles as the world shows them: the leader's speed, then headway, speed and acceleration each.
    pub fn of_shared(shared: &[f32]) -> Self {
        let rows = shared.get(1..).unwrap_or_default().as_chunks::<3>().0;
        let headways: Vec<f32> = rows.iter().map(|[headway, ..]| *headway).collect();
        PlatoonStep { speeds: rows.iter().map(|[_, speed, _]| *speed).collect(), headways, ..Self::default() }
    }

    /// The first vehicles alone.
    pub fn of_first(mut self, most: usize) -> Self {
        self.headways.truncate(most);
        self.speeds.truncate(most);
        self.actions.truncate(most);
        self
    }
}

impl PlatoonFilm {
    fn drawn(&self) -> usize {
        self.steps.first().map_or(1, |step| step.headways.len()).max(1)
    }

    /// Pixels per metre.
    fn scale(&self) -> f32 {
        WIDEST / (self.drawn() as f32 * METRES + BEHIND_LEADER).max(120.0)
    }

    fn width(&self) -> f32 {
        WIDEST
    }

    /// Middle of a vehicle's column in the table, the first one on the right, as on the lane.
    fn column(&self, vehicle: usize) -> f32 {
        let pitch = (self.width() / self.drawn() as f32).min(120.0);
        self.width() - pitch * (vehicle as f32 + 0.5)
    }
}

fn colour(headway: f32) -> Colour {
    match headway {
        h if h < NEAR => Colour::ALARM,
        h if h > FAR => Colour::of_series(3),
        _ => Colour::of_series(0),
    }
}

/// A vehicle whose front bumper is at `front`.
fn vehicle((front, y): Point, length: f32, fill: Colour) -> Shape {
    Shape::filled((front - length, y - 7.0), (length, 14.0), fill)
}

/// What an action looks at: a dot for the own headway, a stroke for the vehicle ahead; neither for no gain.
fn action_sign((x, y): Point, action: u8) -> Vec<Shape> {
    let pen = |is_on: bool| if is_on { Colour::of_series(4) } else { Colour::QUIET.tint(0.25) };
    vec![
        Shape::dot((x - 7.0, y), 3.4, pen(action & 1 == 1)),
        Shape::line((x + 2.0, y), (x + 12.0, y), Pen::new(pen(action & 2 == 2), 3.0)),
    ]
}

impl Film for PlatoonFilm {
    fn steps(&self) -> usize {
        self.steps.len()
    }

    fn size(&self) -> (f32, f32) {
        (self.width(), LANE + TABLE)
    }

    fn draw(&self, step: usize) -> Vec<Shape> {
        let PlatoonStep { driven, headways, speeds, actions, .. } = &self.steps[step];
        let (width, scale, y) = (self.width(), self.scale(), LANE / 2.0);
        let edge = Pen::new(Colour::QUIET.tint(0.6), 1.4);
        let mut shapes = vec![Shape::filled((0.0, 0.0), (width, LANE), Colour::QUIET.tint(0.12))];
        shapes.extend([0.0, LANE].map(|y| Shape::line((0.0, y), (width, y), edge)));
        // The camera keeps the leader in its place; the road goes by.
        let mut mark = width - scale * (driven % MARKS);
        while mark > 0.0 {
            let start = (mark - scale * 0.4 * MARKS).max(0.0);
            shapes.push(Shape::line((start, y + 13.0), (mark, y + 13.0), Pen::new(Colour::PAPER, 1.6)));
            mark -= scale * MARKS;
        }
        let length = scale * VEHICLE;
        let mut front = width - 4.0;
        shapes.push(vehicle((front, y), length, Colour::INK));
        for (i, (&headway, &speed)) in headways.iter().zip(speeds).enumerate() {
            // A headway is from bumper to bumper.
            front -= length + scale * headway;
            let colour = colour(headway);
            if front - length >= 0.0 {
                shapes.push(vehicle((front, y), length, colour));
                if headway < CRASH {
                    let at = (front, y);
                    shapes.extend(Shape::sign(CROSS, at, 16.0, Pen::new(Colour::INK, 2.4)));
                }
            }
            let (x, text) = (self.column(i), LANE + 20.0);
            let write = |dy: f32, words: String, colour| {
                Shape::text((x, text + dy), words, 12.0, Anchor::Middle, colour)
            };
            shapes.push(write(0.0, format!("{headway:.1} m"), colour));
            shapes.push(write(16.0, format!("{speed:.1} m/s"), Colour::QUIET));
            shapes.extend(actions.get(i).into_iter().flat_map(|&a| action_sign((x, text + 30.0), a)));
        }
        shapes
    }

    fn status(&self, step: usize) -> String {
        self.steps[step].status.clone()
    }

    fn legend(&self) -> Vec<Entry> {
        let car = |colour| vec![vehicle((8.0, 0.0), 16.0, colour)];
        vec![
            Entry { sign: car(Colour::INK), label: "leader" },
            Entry { sign: car(colour(20.0)), label: "vehicle" },
            Entry { sign: car(colour(5.0)), label: "headway below 10 m" },
            Entry { sign: car(colour(40.0)), label: "above 30 m" },
            Entry { sign: action_sign((0.0, 0.0), 1), label: "acts by its headway" },
            Entry { sign: action_sign((0.0, 0.0), 2), label: "by the speed ahead" },
        ]
    }

    fn note(&self) -> Option<String> {
        let drawn = self.drawn();
        (drawn < self.vehicles).then(|| format!("the first {drawn} of {} vehicles", self.vehicles))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn film(headway: f32, vehicles: usize) -> PlatoonFilm {
        let step = PlatoonStep {
            driven: 33.0,
            headways: vec![headway; vehicles],
            speeds: vec![15.0; vehicles],
            actions: vec![3; vehicles],
            ..PlatoonStep::default()
        };
        PlatoonFilm { vehicles, steps: vec![step] }
    }

    #[test]
    fn everything_stays_in_the_picture() {
        for vehicles in [1, 2, 8, MOST_VEHICLES] {
            for headway in [0.5, 20.0, 300.0] {
                let film = film(headway, vehicles);
                assert!(
                    film.draw(0).iter().all(|shape| shape.is_within(film.size())),
                    "{vehicles} {headway}"
                );
            }
        }
    }

    #[test]
    fn vehicles_do_not_overlap_and_a_crash_is_marked() {
        let film = film(20.0, 8);
        let fronts: Vec<f32> = (film.draw(0).iter())
            .filter_map(|shape| match shape {
                Shape::Box { corner, size, .. } if size.1 == 14.0 => Some(corner.0),
                _ => None,
            })
            .collect();
        assert_eq!(fronts.len(), 9);
        let length = film.scale() * VEHICLE;
        assert!(fronts.windows(2).all(|pair| pair[0] - pair[1] > length), "{fronts:?}");
        let mut crashed = film;
        crashed.steps[0].headways[2] = 0.5;
        let lines = |film: &PlatoonFilm| {
            film.draw(0)
                .iter()
                .filter(|shape| matches!(shape, Shape::Line { pen, .. } if pen.width == 2.4))
                .count()
        };
        assert_eq!(lines(&crashed), 2);
    }
}

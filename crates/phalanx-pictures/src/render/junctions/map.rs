//! Roads on paper: where lanes, stop lines and vehicles are drawn.
//!
//! A lane is 4 m wide and a road some hundred metres long: to scale, lanes would be narrower than a pixel.
//! They are drawn as wide as is needed to tell them apart, to the right of their road's middle, and end where
//! the widened crossing begins. Along a lane lengths stay in proportion.

use phalanx_junctions::{Junction, Network, Turn};

use crate::plot::canvas::Colour;
use crate::render::film::WIDEST;
use crate::render::shape::{Pen, Point, Shape};

/// Tallest drawing.
const TALLEST: f32 = 840.0;
/// Room around the roads, for numbers.
const AROUND: f32 = 12.0;
/// Widths of lanes, and the share of the distance between neighbours that makes one: junctions that are close
/// to each other must not overlap.
const NARROWEST_LANE: f32 = 2.4;
const WIDEST_LANE: f32 = 4.4;
const LANE_SHARE: f32 = 0.024;
/// Width in metres of a lane whose road has no other to compare with.
const USUAL_LANE: f32 = 3.5;
/// Between a crossing and the circle around it.
const CLEAR: f32 = 3.0;
/// Most of a lane that a crossing may take at either end.
const MOST_TAKEN: f32 = 0.3;
/// Pieces of the curve from a lane to a lane.
const CURVE_PIECES: usize = 8;
/// Distance between neighbours from which on junctions have their numbers beside them.
const NUMBERED: f32 = 42.0;

/// A road network as it is drawn.
#[derive(Debug, Clone)]
pub struct RoadMap {
    pub size: Point,
    pub junctions: Vec<Crossing>,
    /// Per drivable: lanes, then links.
    paths: Vec<Path>,
    lanes: usize,
    /// Width of a lane.
    pub gap: f32,
    /// Pixels per metre.
    scale: f32,
    /// Smallest distance between neighbours.
    pub nearest: f32,
    /// Whether there is room for numbers.
    pub is_numbered: bool,
}

/// A junction with signals.
#[derive(Debug, Clone)]
pub struct Crossing {
    pub centre: Point,
    /// Of a circle around its stop lines.
    pub radius: f32,
    pub approaches: Vec<Approach>,
}

/// A lane before a junction.
#[derive(Debug, Clone)]
pub struct Approach {
    pub lane: usize,
    /// Movements from it that signals are about: all, but for right turns if there are others.
    pub movements: Vec<usize>,
}

/// A polyline.
#[derive(Debug, Clone)]
struct Path {
    points: Vec<Point>,
}

impl Path {
    fn length(&self) -> f32 {
        self.points.windows(2).map(|piece| distance(piece[0], piece[1])).sum()
    }

    /// The place at a share of the length, and where it heads.
    fn at(&self, share: f32) -> (Point, Point) {
        let mut left = share.clamp(0.0, 1.0) * self.length();
        let mut found = (self.points[0], (1.0, 0.0));
        for piece in self.points.windows(2) {
            let length = distance(piece[0], piece[1]);
            if length <= 0.0 {
                continue;
            }
            let heading = ((piece[1].0 - piece[0].0) / length, (piece[1].1 - piece[0].1) / length);
            let on = left.min(length);
            found = ((piece[0].0 + heading.0 * on, piece[0].1 + heading.1 * on), heading);
            left -= length;
            if left <= 0.0 {
                break;
            }
        }
        found
    }

    /// The part between two distances from its beginning.
    fn part(&self, from: f32, to: f32) -> Path {
        let length = self.length().max(f32::MIN_POSITIVE);
        let mut points = vec![self.at(from / length).0];
        let mut passed = 0.0;
        for piece in self.points.windows(2) {
            passed += distance(piece[0], piece[1]);
            if passed > from && passed < to {
                points.push(piece[1]);
            }
        }
        points.push(self.at(to / length).0);
        Path { points }
    }

    /// The same so far to the right of its direction; y points down.
    fn beside(&self, offset: f32) -> Path {
        let heading = |piece: &[Point]| {
            let length = distance(piece[0], piece[1]);
            (length > 0.0).then(|| ((piece[1].0 - piece[0].0) / length, (piece[1].1 - piece[0].1) / length))
        };
        let mut headings: Vec<Point> = self.points.windows(2).filter_map(heading).collect();
        headings.push(headings.last().copied().unwrap_or((1.0, 0.0)));
        let (mut piece, mut before) = (0, self.points[0]);
        let aside = |&point: &Point| {
            piece += usize::from(distance(before, point) > 0.0);
            before = point;
            // At a bend, the mean of both directions.
            let (a, b) = (headings[piece.saturating_sub(1)], headings[piece]);
            let (x, y) = (a.0 + b.0, a.1 + b.1);
            let norm = x.hypot(y).max(f32::EPSILON);
            (point.0 - offset * y / norm, point.1 + offset * x / norm)
        };
        Path { points: self.points.iter().map(aside).collect() }
    }
}

fn distance(a: Point, b: Point) -> f32 {
    (a.0 - b.0).hypot(a.1 - b.1)
}

/// The curve from the end of a lane to the beginning of another.
fn link(from: &Path, to: &Path) -> Path {
    let ((a, out), (b, into)) = (from.at(1.0), to.at(0.0));
    let reach = 0.5 * distance(a, b);
    let (m, n) = ((a.0 + out.0 * reach, a.1 + out.1 * reach), (b.0 - into.0 * reach, b.1 - into.1 * reach));
    let bezier = |k: usize| {
        let t = k as f32 / CURVE_PIECES as f32;
        let weights = [(1.0 - t).powi(3), 3.0 * t * (1.0 - t).powi(2), 3.0 * t * t * (1.0 - t), t.powi(3)];
        let sum = |of: fn(&Point) -> f32| weights.iter().zip([a, m, n, b]).map(|(w, p)| w * of(&p)).sum();
        (sum(|p| p.0), sum(|p| p.1))
    };
    Path { points: (0..=CURVE_PIECES).map(bezier).collect() }
}

impl RoadMap {
    /// The map of a network; O(lanes + links).
    pub fn new(network: &Network) -> Self {
        let places = network.intersections().iter().map(|there| there.point);
        let places = places.chain((0..network.lane_count()).flat_map(|lane| network.shape(lane).to_vec()));
        let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
        for point in places {
            for (axis, x) in [point.x, point.y].into_iter().enumerate() {
                (low[axis], high[axis]) = (low[axis].min(x), high[axis].max(x));
            }
        }
        let [width, height] = [0, 1].map(|axis| (high[axis] - low[axis]).max(1.0) as f32);
        let room = |whole: f32| whole - 2.0 * AROUND;
        let scale = (room(WIDEST) / width).min(room(TALLEST) / height);
        // North is up.
        let place =
            |x: f64, y: f64| (AROUND + (x - low[0]) as f32 * scale, AROUND + (high[1] - y) as f32 * scale);
        let lane_width = lane_width(network);
        let centre = |junction: &Junction| {
            let point = network.intersections()[junction.intersection].point;
            place(point.x, point.y)
        };
        let centres: Vec<Point> = network.junctions().iter().map(centre).collect();
        let nearest = nearest(network, &centres);
        let gap = (lane_width * scale).max((LANE_SHARE * nearest).clamp(NARROWEST_LANE, WIDEST_LANE));
        let halves = half_widths(network, gap);
        let mut paths = Vec::with_capacity(network.drivable_count());
        for road in network.roads() {
            // How much more than in the file the crossings at both ends take.
            let taken = [road.start, road.end].map(|intersection| {
                let there = &network.intersections()[intersection];
                there.junction.map_or(0.0, |k| (halves[k] - there.width as f32 * scale).max(0.0))
            });
            for (k, lane) in road.lanes.clone().enumerate() {
                let shape = network.shape(lane).iter().map(|point| place(point.x, point.y));
                let aside = (k as f32 + 0.5) * (gap - lane_width * scale);
                let path = Path { points: shape.collect() }.beside(aside);
                let length = path.length();
                let [from, to] = taken.map(|taken| taken.min(MOST_TAKEN * length));
                paths.push(path.part(from, length - to));
            }
        }
        for drivable in network.lane_count()..network.drivable_count() {
            let (from, to) = network.link_lanes(drivable);
            paths.push(link(&paths[from], &paths[to]));
        }
        let junctions = network.junctions().iter().zip(&halves).zip(centres);
        let junctions = junctions.map(|((junction, half), centre)| {
            let reach = network.intersections()[junction.intersection].width as f32 * scale;
            let radius = half.max(reach).hypot(*half) + CLEAR;
            Crossing { centre, radius, approaches: approaches(junction) }
        });
        let (width, height) = (width * scale + 2.0 * AROUND, height * scale + 2.0 * AROUND);
        RoadMap {
            size: (width, height),
            junctions: junctions.collect(),
            paths,
            lanes: network.lane_count(),
            gap,
            scale,
            nearest,
            is_numbered: nearest >= NUMBERED,
        }
    }

    /// Roads without anybody on them.
    pub fn roads(&self) -> Vec<Shape> {
        let colour = Colour::QUIET.tint(0.17);
        let round = |there: &Crossing| Shape::dot(there.centre, there.radius - CLEAR, colour);
        let mut shapes: Vec<Shape> = self.junctions.iter().map(round).collect();
        let pen = Pen::new(colour, 0.86 * self.gap);
        let lanes = self.paths[..self.lanes].iter();
        shapes.extend(lanes.map(|path| Shape::Line { points: path.points.clone(), pen }));
        shapes
    }

    /// A vehicle whose front is at a share of a drivable's length.
    pub fn vehicle(&self, drivable: usize, share: f32, metres: f32, fill: Colour) -> Option<Shape> {
        let (front, heading) = self.paths.get(drivable)?.at(share);
        Some(vehicle(front, heading, (metres * self.scale).max(self.gap), 0.7 * self.gap, fill))
    }

    /// The light over the end of a lane.
    pub fn light(&self, lane: usize, colour: Colour) -> Shape {
        let ((x, y), heading) = self.paths[lane].at(1.0);
        light((x, y), heading, self.gap, colour)
    }
}

/// A vehicle as it is seen from above.
pub fn vehicle(front: Point, heading: Point, length: f32, width: f32, fill: Colour) -> Shape {
    let (along, aside) = (length, 0.5 * width);
    let corner = |back: f32, side: f32| {
        (front.0 - back * heading.0 - side * heading.1, front.1 - back * heading.1 + side * heading.0)
    };
    let points = vec![corner(0.0, -aside), corner(0.0, aside), corner(along, aside), corner(along, -aside)];
    Shape::Area { points, fill }
}

/// A light: a bar across a lane.
pub fn light((x, y): Point, heading: Point, width: f32, colour: Colour) -> Shape {
    vehicle((x + 1.5 * heading.0, y + 1.5 * heading.1), heading, 3.4, 0.94 * width, colour)
}

/// Mean width of lanes in metres, by how far those of a road lie apart.
fn lane_width(network: &Network) -> f32 {
    let roads = network.roads().iter().filter(|road| road.lanes.len() > 1);
    let apart = roads.map(|road| {
        let [a, b] = [0, 1].map(|k| network.shape(road.lanes.start + k)[0]);
        ((a.x - b.x).hypot(a.y - b.y)) as f32
    });
    let (sum, count) = apart.fold((0.0, 0), |(sum, count), apart| (sum + apart, count + 1));
    if count == 0 || sum <= 0.0 { USUAL_LANE } else { sum / count as f32 }
}

/// By junction: how far its widest road reaches to either side of the middle.
fn half_widths(network: &Network, gap: f32) -> Vec<f32> {
    let of_junction = |junction: &Junction| {
        let roads = network.intersections()[junction.intersection].roads.iter();
        let most = roads.filter_map(|&road| Some(network.roads().get(road)?.lanes.len())).max();
        most.unwrap_or(1) as f32 * gap + 2.0
    };
    network.junctions().iter().map(of_junction).collect()
}

/// The lanes before a junction, each once.
fn approaches(junction: &Junction) -> Vec<Approach> {
    let mut found: Vec<Approach> = Vec::new();
    for (number, movement) in junction.movements.iter().enumerate() {
        for &lane in &movement.entry_lanes {
            match found.iter_mut().find(|approach| approach.lane == lane) {
                Some(approach) => approach.movements.push(number),
                None => found.push(Approach { lane, movements: vec![number] }),
            }
        }
    }
    for Approach { movements, .. } in &mut found {
        let is_right = |number: &usize| junction.movements[*number].turn == Turn::Right;
        if !movements.iter().all(is_right) {
            movements.retain(|number| !is_right(number));
        }
    }
    found
}

/// The smallest distance between junctions that a road joins.
fn nearest(network: &Network, centres: &[Point]) -> f32 {
    let ends = network.roads().iter().filter_map(|road| {
        let [a, b] = [road.start, road.end].map(|end| network.intersections()[end].junction);
        Some((a?, b?)).filter(|(a, b)| a != b)
    });
    let apart = ends.map(|(a, b)| distance(centres[a], centres[b]));
    apart.fold(f32::INFINITY, f32::min)
}

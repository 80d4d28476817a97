//! Pictures of junctions: roads, vehicles, lights, and how many wait.

mod map;
#[cfg(test)]
mod tests;

use phalanx::world::{Episode, Evolution, Place, Purpose, Scene, Stream, World};
use phalanx_junctions::{Simulation, WAITING_BELOW};

use super::film::{Entry, Film, ring, ring_legend};
use super::shape::{Anchor, Point, Shape};
use crate::plot::canvas::Colour;

pub use map::RoadMap;

const NUMBER: f32 = 11.0;
const SMALL: f32 = 9.0;

/// Moments of an episode that are kept, or its steps if those are more: short films show what is between.
const MOST_MOMENTS: usize = 600;

/// An episode.
#[derive(Debug, Clone)]
pub struct JunctionsFilm {
    map: RoadMap,
    /// Moments of every step, of all equally many; the last one is when the decision is over.
    steps: Vec<Vec<TrafficStep>>,
    /// Kept of a step, at most.
    most: usize,
}

/// The traffic at a moment.
#[derive(Debug, Clone, Default)]
pub struct TrafficStep {
    vehicles: Vec<Vehicle>,
    /// Per junction and lane before it, in the order of the map.
    lights: Vec<Vec<Light>>,
    /// Vehicles that wait before each junction.
    waiting: Vec<usize>,
    /// Whether each junction's constraints hold for this episode so far. Or empty.
    kept: Vec<Option<bool>>,
    seconds: f64,
    outside: usize,
    arrived: usize,
}

#[derive(Debug, Clone, Copy)]
struct Vehicle {
    drivable: u32,
    /// How far it is on its lane or link.
    share: f32,
    metres: f32,
    waits: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Light {
    Green,
    /// Phase 0, which stands between phases.
    Yellow,
    Red,
}

impl Light {
    const fn colour(self) -> Colour {
        match self {
            Light::Green => Colour::of_series(1),
            Light::Yellow => Colour::YELLOW,
            Light::Red => Colour::ALARM,
        }
    }
}

/// The traffic of an episode, if its scene is one.
pub fn traffic(scene: Option<&Scene>) -> Option<&Simulation> {
    scene?.downcast_ref()
}

/// The map of a world's roads; none if it has no roads.
pub fn map_of(world: &dyn World) -> Option<RoadMap> {
    let Evolution::Joint(joint) = world.evolution() else { return None };
    let place = Place { purpose: Purpose::EvaluationStart, iteration: 0, trajectory: 0 };
    let episode = joint.begin(&Stream::new(0), place);
    traffic(episode.scene()).map(|traffic| RoadMap::new(traffic.network()))
}

impl TrafficStep {
    /// What is to be seen at this moment; `before` it, if that is known. Where phase 0 is on, lights are
    /// yellow that were not red before.
    pub fn of(map: &RoadMap, traffic: &Simulation, before: Option<&TrafficStep>) -> Self {
        let network = traffic.network();
        let vehicle = |vehicle: phalanx_junctions::VehicleView| Vehicle {
            drivable: vehicle.drivable as u32,
            share: (vehicle.distance / network.lengths()[vehicle.drivable].max(f64::MIN_POSITIVE)) as f32,
            metres: vehicle.length as f32,
            waits: vehicle.speed < WAITING_BELOW,
        };
        let lights = map.junctions.iter().enumerate().map(|(junction, there)| {
            let before = before.and_then(|before| before.lights.get(junction));
            let light = |(k, approach): (usize, &map::Approach)| {
                let was_red = before.is_some_and(|lights| lights[k] == Light::Red);
                let is_green = approach.movements.iter().any(|&m| traffic.is_green(junction, m));
                match (is_green, traffic.phase(junction)) {
                    (true, _) => Light::Green,
                    (false, 0) if !was_red => Light::Yellow,
                    (false, _) => Light::Red,
                }
            };
            there.approaches.iter().enumerate().map(light).collect()
        });
        let waiting = map
            .junctions
            .iter()
            .map(|there| there.approaches.iter().map(|approach| traffic.lane_waiting(approach.lane)).sum());
        TrafficStep {
            lights: lights.collect(),
            waiting: waiting.collect(),
            vehicles: traffic.vehicles().map(vehicle).collect(),
            kept: Vec::new(),
            seconds: traffic.time(),
            outside: traffic.waiting_outside(),
            arrived: traffic.finished(),
        }
    }

    /// Roads with everybody on them.
    pub fn draw(&self, map: &RoadMap) -> Vec<Shape> {
        let mut shapes = map.roads();
        for (there, &kept) in map.junctions.iter().zip(&self.kept) {
            shapes.extend(ring(there.centre, there.radius, kept));
        }
        let vehicle = |v: &Vehicle| map.vehicle(v.drivable as usize, v.share, v.metres, colour(v.waits));
        shapes.extend(self.vehicles.iter().filter_map(vehicle));
        for (there, lights) in map.junctions.iter().zip(&self.lights) {
            let lit = there.approaches.iter().zip(lights);
            shapes.extend(lit.map(|(approach, light)| map.light(approach.lane, light.colour())));
        }
        if map.is_numbered {
            for (number, there) in map.junctions.iter().enumerate() {
                shapes.push(number_beside(there, number));
                let waiting = self.waiting.get(number).filter(|&&waiting| waiting > 0);
                shapes.extend(waiting.map(|&waiting| waiting_beside(there, waiting)));
            }
        }
        shapes
    }

    fn status(&self) -> String {
        let waiting = self.vehicles.iter().filter(|vehicle| vehicle.waits).count();
        let TrafficStep { seconds, vehicles, outside, arrived, .. } = self;
        let on_roads = vehicles.len();
        format!("{seconds:.0} s, {on_roads} on roads ({waiting} wait), {outside} outside, {arrived} arrived")
    }
}

/// The colour of a vehicle.
fn colour(waits: bool) -> Colour {
    if waits { Colour::INK } else { Colour::of_series(0) }
}

/// A junction's number, to its lower left.
fn number_beside(there: &map::Crossing, number: usize) -> Shape {
    let at = corner(there, -1.0, 1.0);
    Shape::text((at.0, at.1 + 0.7 * SMALL), number.to_string(), SMALL, Anchor::End, Colour::QUIET)
}

impl RoadMap {
    /// Each junction's number beside it.
    pub fn numbers(&self) -> impl Iterator<Item = Shape> + '_ {
        self.junctions.iter().enumerate().map(|(number, there)| number_beside(there, number))
    }
}

/// How many wait before it, to its upper right.
fn waiting_beside(there: &map::Crossing, waiting: usize) -> Shape {
    let at = corner(there, 1.0, -1.0);
    waiting_text(at, waiting, Anchor::Start)
}

fn waiting_text(at: Point, waiting: usize, anchor: Anchor) -> Shape {
    Shape::Text { at, content: waiting.to_string(), size: NUMBER, bold: true, anchor, colour: Colour::INK }
}

/// A corner of the square within a junction's circle.
fn corner(there: &map::Crossing, right: f32, down: f32) -> Point {
    let aside = 0.71 * there.radius + 2.5;
    (there.centre.0 + right * aside, there.centre.1 + down * aside)
}

impl JunctionsFilm {
    /// A film of so many steps, to which none was added yet.
    pub fn new(map: RoadMap, steps: usize) -> Self {
        JunctionsFilm { map, steps: Vec::new(), most: (MOST_MOMENTS / steps.max(1)).max(1) }
    }

    /// Lets the episode make its next step; `kept` is whether constraints hold when it is over.
    pub fn add(
        &mut self,
        episode: &mut dyn Episode,
        actions: &[u8],
        rewards: &mut [f32],
        kept: &[Option<bool>],
    ) {
        let mut seen: Vec<TrafficStep> = Vec::new();
        let before = self.steps.last().and_then(|moments| moments.last());
        // Chance is in the departures alone.
        episode.step_watched(actions, &[], rewards, &mut |scene| {
            seen.extend(traffic(Some(scene)).map(|traffic| {
                let step = TrafficStep::of(&self.map, traffic, seen.last().or(before));
                TrafficStep { kept: kept.to_vec(), ..step }
            }));
        });
        let (all, most) = (seen.len(), self.most.min(seen.len()));
        let is_kept = |k: usize| (k + 1) * most / all > k * most / all;
        let moments = seen.into_iter().enumerate().filter(|(k, _)| is_kept(*k)).map(|(_, seen)| seen);
        self.steps.push(moments.collect());
    }

    /// A step when its decision is over.
    fn end(&self, step: usize) -> Option<&TrafficStep> {
        self.steps[step].last()
    }
}

impl Film for JunctionsFilm {
    fn steps(&self) -> usize {
        self.steps.len()
    }

    fn size(&self) -> (f32, f32) {
        self.map.size
    }

    fn draw(&self, step: usize) -> Vec<Shape> {
        self.end(step).map_or_else(Vec::new, |seen| seen.draw(&self.map))
    }

    fn status(&self, step: usize) -> String {
        self.end(step).map_or_else(String::new, TrafficStep::status)
    }

    fn moments_per_step(&self) -> usize {
        self.steps.first().map_or(1, Vec::len)
    }

    fn moment(&self, step: usize, moment: usize) -> (Vec<Shape>, String) {
        let seen = &self.steps[step][moment];
        (seen.draw(&self.map), seen.status())
    }

    fn legend(&self) -> Vec<Entry> {
        let car = |waits| vec![map::vehicle((7.0, 0.0), (1.0, 0.0), 14.0, 5.0, colour(waits))];
        let lamp = |light: Light| vec![map::light((0.0, 0.0), (1.0, 0.0), 13.0, light.colour())];
        let moments = self.steps.iter().flatten();
        let mut lights = moments.flat_map(|moment| moment.lights.iter().flatten());
        let mut entries = vec![
            Entry { sign: car(false), label: "vehicle that drives" },
            Entry { sign: car(true), label: "that waits" },
            Entry { sign: lamp(Light::Green), label: "green" },
        ];
        if lights.any(|&light| light == Light::Yellow) {
            entries.push(Entry { sign: lamp(Light::Yellow), label: "yellow" });
        }
        entries.push(Entry { sign: lamp(Light::Red), label: "red" });
        if self.map.is_numbered {
            let waiting = vec![waiting_text((0.0, 4.0), 12, Anchor::Middle)];
            entries.push(Entry { sign: waiting, label: "vehicles that wait before the junction" });
            let number = Shape::text((0.0, 3.5), "3", SMALL, Anchor::Middle, Colour::QUIET);
            entries.push(Entry { sign: vec![number], label: "its number" });
        }
        entries.extend(self.steps.iter().flatten().take(1).flat_map(|seen| ring_legend(&seen.kept)));
        entries
    }

    fn note(&self) -> Option<String> {
        None
    }
}

//! What never changes at junctions: movements, lanes, phases and how much room there is.

use std::ops::Range;

use phalanx_junctions::{Network, Turn};

use crate::graph::Graph;
use crate::{Error, Result};

/// Metres of lane that a standing vehicle takes, with its gap.
pub const PER_VEHICLE: f64 = 7.5;
/// Movements of a junction, at most: sets of them are bits of a word.
pub const MOST_MOVEMENTS: usize = 32;

/// All junctions, in the order of the file.
#[derive(Debug)]
pub struct Layout {
    pub junctions: Vec<Site>,
    /// Most movements and most phases of any junction.
    pub movements: usize,
    pub phases: usize,
}

/// One junction.
#[derive(Debug)]
pub struct Site {
    pub movements: Vec<MovementLanes>,
    /// Movements that are green in each of the used phases, as bits; of those that rules are about.
    pub green: Vec<u32>,
    /// The same of phase 0, which stands between phases.
    pub yellow_green: u32,
    /// Movements that have lights, as bits: all but right turns.
    pub controlled: u32,
    /// Those of them that rules are about: green in one of the used phases at least.
    pub judged: u32,
    /// Lanes that lead to the junction, each once, with the weight of a vehicle on it in the reward.
    pub entry_lanes: Vec<(usize, f64)>,
    /// Lanes that lead away from it, each once.
    pub exit_lanes: Vec<usize>,
    /// Where it is, in lengths of a usual road between junctions.
    pub point: [f32; 2],
}

/// The lanes of a movement.
#[derive(Debug)]
pub struct MovementLanes {
    pub entry: Vec<usize>,
    /// All lanes of the road that it leads to.
    pub exit: Range<usize>,
    pub is_right: bool,
    /// Vehicles for which there is room before and behind it.
    pub room: f32,
    pub exit_room: f32,
}

impl Layout {
    /// With `phases` phases at most.
    pub fn new(network: &Network, phases: usize) -> Result<Self> {
        let scale = usual_distance(network);
        let junctions = (0..network.junctions().len())
            .map(|junction| Site::new(network, junction, phases, scale))
            .collect::<Result<Vec<_>>>()?;
        Ok(Layout {
            movements: junctions.iter().map(|site| site.movements.len()).max().unwrap_or(0),
            phases: junctions.iter().map(|site| site.green.len()).max().unwrap_or(0),
            junctions,
        })
    }
}

impl Site {
    fn new(network: &Network, junction: usize, phases: usize, scale: f64) -> Result<Self> {
        let there = &network.junctions()[junction];
        let refuse = |message: String| {
            let id = network.junction_id(junction);
            Err(Error::config("world.roadnet", format!("junction {id}: {message}")))
        };
        if there.phases.len() < 2 {
            return refuse(
                "it has phase 0 only; that one stands between phases, and others are chosen".into(),
            );
        }
        if there.movements.len() > MOST_MOVEMENTS {
            return refuse(format!(
                "{} movements; at most {MOST_MOVEMENTS} are possible",
                there.movements.len()
            ));
        }
        let room = |lanes: &mut dyn Iterator<Item = usize>| {
            lanes.map(|lane| network.lengths()[lane] / PER_VEHICLE).sum::<f64>() as f32
        };
        let movements: Vec<MovementLanes> = (there.movements.iter())
            .map(|movement| {
                let exit = network.roads()[movement.end].lanes.clone();
                MovementLanes {
                    room: room(&mut movement.entry_lanes.iter().copied()),
                    exit_room: room(&mut exit.clone()),
                    entry: movement.entry_lanes.clone(),
                    exit,
                    is_right: movement.turn == Turn::Right,
                }
            })
            .collect();
        let bits = |green: &[usize]| {
            let counted = green.iter().filter(|&&m| !movements[m].is_right);
            counted.fold(0u32, |bits, &m| bits | 1 << m)
        };
        let used = &there.phases[1..];
        let green: Vec<u32> = used.iter().take(phases).map(|phase| bits(&phase.green)).collect();
        let judged = green.iter().fold(0, |all, bits| all | bits);
        let controlled = bits(&(0..movements.len()).collect::<Vec<_>>());
        let mut exit_lanes: Vec<usize> =
            movements.iter().flat_map(|movement| movement.exit.clone()).collect();
        exit_lanes.sort_unstable();
        exit_lanes.dedup();
        let point = network.intersections()[there.intersection].point;
        Ok(Site {
            entry_lanes: entry_weights(&movements),
            yellow_green: bits(&there.phases[0].green),
            point: [point.x, point.y].map(|x| (x / scale) as f32),
            green,
            controlled,
            judged,
            movements,
            exit_lanes,
        })
    }
}

/// Every lane before a junction, with Σ over its movements of 1/(lanes of the movement · movements).
fn entry_weights(movements: &[MovementLanes]) -> Vec<(usize, f64)> {
    let mut weights: Vec<(usize, f64)> = Vec::new();
    for movement in movements {
        for &lane in &movement.entry {
            let weight = 1.0 / (movement.entry.len() * movements.len()) as f64;
            match weights.iter_mut().find(|(known, _)| *known == lane) {
                Some((_, sum)) => *sum += weight,
                None => weights.push((lane, weight)),
            }
        }
    }
    weights
}

/// Pairs of junctions that a road joins.
fn joined(network: &Network) -> Vec<(usize, usize)> {
    let ends = network.roads().iter().filter_map(|road| {
        let [a, b] = [road.start, road.end].map(|end| network.intersections()[end].junction);
        Some((a?.min(b?), a?.max(b?))).filter(|(a, b)| a != b)
    });
    let mut pairs: Vec<(usize, usize)> = ends.collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// Junctions are neighbours if a road joins them.
pub fn graph(network: &Network) -> Result<Graph> {
    Graph::from_edges(network.junctions().len(), joined(network))
}

/// Mean distance between neighbours in metres; 1 at least.
fn usual_distance(network: &Network) -> f64 {
    let point = |junction: usize| network.intersections()[network.junctions()[junction].intersection].point;
    let pairs = joined(network);
    let distances = pairs.iter().map(|&(a, b)| {
        let [x, y] = [point(a).x - point(b).x, point(a).y - point(b).y];
        (x * x + y * y).sqrt()
    });
    let mean = distances.sum::<f64>() / pairs.len().max(1) as f64;
    mean.max(1.0)
}

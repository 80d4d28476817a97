//! The road network: what never changes while a simulation runs.

mod crossing;
mod load;
mod sort;

pub(crate) use load::SHORTEST_LANE;

use crate::error::{Error, Result};
use crate::geometry::Point;
use std::ops::Range;

/// Speed limit inside an intersection, which is none.
pub(crate) const LINK_LIMIT: f64 = 10000.0;

/// How a movement goes through a junction. A movement of higher rank has priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Turn {
    /// To the right; lowest rank.
    Right = 1,
    /// To the left.
    Left = 2,
    /// Straight on; highest rank.
    Straight = 3,
}

/// A road: lanes that run from one intersection to another.
#[derive(Clone, Debug)]
pub struct Road {
    /// Its id in the file.
    pub id: String,
    /// Number of the intersection at which it starts.
    pub start: usize,
    /// Number of the intersection at which it ends.
    pub end: usize,
    /// Numbers of its lanes, innermost first.
    pub lanes: Range<usize>,
    /// Mean length of its lanes in metres, by which shortest paths are found.
    pub mean_length: f64,
}

/// A place where roads meet or end.
#[derive(Clone, Debug)]
pub struct Intersection {
    /// Its id in the file.
    pub id: String,
    /// Where it is.
    pub point: Point,
    /// How far it reaches into its roads, in metres; 0 if it has no signals.
    pub width: f64,
    /// Roads that touch it, in the order of the file.
    pub roads: Vec<usize>,
    /// Its junction, if it has signals (is not `virtual`).
    pub junction: Option<usize>,
}

/// An intersection with signals.
#[derive(Clone, Debug)]
pub struct Junction {
    /// Number of its intersection.
    pub intersection: usize,
    /// Movements through it, in the order of the file.
    pub movements: Vec<Movement>,
    /// Its phases, at least one.
    pub phases: Vec<Phase>,
}

/// A way from a road to another one through a junction (`roadLinks` in the file).
#[derive(Clone, Debug)]
pub struct Movement {
    /// How it turns.
    pub turn: Turn,
    /// The road it comes from.
    pub start: usize,
    /// The road it leads to.
    pub end: usize,
    /// Drivable numbers of its links, each from one lane to one lane.
    pub links: Range<usize>,
    /// Lanes from which it can be made, rising and without repetition.
    pub entry_lanes: Vec<usize>,
}

/// A phase of a junction's signals.
#[derive(Clone, Debug)]
pub struct Phase {
    /// How many seconds it lasts in the junction's own program.
    pub time: f64,
    /// Movements that are green in it, by their number in [`Junction::movements`], rising.
    pub green: Vec<usize>,
}

/// A point where two links of a junction meet, as seen from one of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// Distance along the link itself, in metres.
    pub distance: f64,
    /// Drivable number of the other link.
    pub other: u32,
    /// Distance along the other link, in metres.
    pub other_distance: f64,
}

/// A road network, read from a `roadnet.json`.
///
/// *Drivables* are what vehicles can be on: all lanes (by road, innermost first), then all links through
/// junctions, in the order of the file.
#[derive(Clone, Debug)]
pub struct Network {
    pub(crate) roads: Vec<Road>,
    pub(crate) intersections: Vec<Intersection>,
    pub(crate) junctions: Vec<Junction>,
    pub(crate) lane_count: usize,
    /// Per drivable: length, polyline.
    pub(crate) length: Vec<f64>,
    pub(crate) shape: Vec<Vec<Point>>,
    /// Per lane.
    pub(crate) limit: Vec<f64>,
    pub(crate) lane_road: Vec<u32>,
    /// Links that start at a lane, in order of creation.
    pub(crate) lane_links: Lists<u32>,
    /// Per link.
    pub(crate) link: Vec<Link>,
    pub(crate) crossings: Lists<Crossing>,
    /// Tells networks apart.
    pub(crate) fingerprint: u64,
}

/// What leads from a lane to a lane through a junction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub start: u32,
    pub end: u32,
    pub turn: Turn,
}

/// Many short lists in one piece of memory.
#[derive(Clone, Debug)]
pub(crate) struct Lists<T> {
    start: Vec<u32>,
    items: Vec<T>,
}

impl<T> Lists<T> {
    fn new(lists: Vec<Vec<T>>) -> Self {
        let mut start = vec![0];
        let mut items = Vec::new();
        for list in lists {
            items.extend(list);
            start.push(items.len() as u32);
        }
        Self { start, items }
    }

    #[inline]
    pub fn of(&self, list: usize) -> &[T] {
        &self.items[self.start[list] as usize..self.start[list + 1] as usize]
    }
}

impl Network {
    /// Reads a `roadnet.json`. Numbers are rounded as CityFlow's reader rounds them.
    ///
    /// # Errors
    /// One line that names the line of the file, the thing that is wrong, and what is allowed.
    pub fn read(text: &str) -> Result<Self> {
        load::read(text)
    }

    /// The roads in the order of the file.
    pub fn roads(&self) -> &[Road] {
        &self.roads
    }

    /// The intersections in the order of the file.
    pub fn intersections(&self) -> &[Intersection] {
        &self.intersections
    }

    /// The intersections with signals in the order of the file.
    pub fn junctions(&self) -> &[Junction] {
        &self.junctions
    }

    /// Id of a junction's intersection. Panics if there is no such junction.
    pub fn junction_id(&self, junction: usize) -> &str {
        &self.intersections[self.junctions[junction].intersection].id
    }

    /// How many lanes there are. Lanes are the first drivables.
    pub fn lane_count(&self) -> usize {
        self.lane_count
    }

    /// How many drivables there are: lanes and links.
    pub fn drivable_count(&self) -> usize {
        self.length.len()
    }

    /// Length of every drivable in metres, lanes first.
    pub fn lengths(&self) -> &[f64] {
        &self.length
    }

    /// The middle line of a drivable, as it is drawn. Panics if there is no such drivable.
    pub fn shape(&self, drivable: usize) -> &[Point] {
        &self.shape[drivable]
    }

    /// Speed limits of the lanes in m/s.
    pub fn lane_limits(&self) -> &[f64] {
        &self.limit
    }

    /// The road of a lane. Panics if there is no such lane.
    pub fn lane_road(&self, lane: usize) -> usize {
        self.lane_road[lane] as usize
    }

    /// Id of a drivable as CityFlow writes it. Panics if there is no such drivable.
    pub fn drivable_id(&self, drivable: usize) -> String {
        if drivable < self.lane_count {
            let road = &self.roads[self.lane_road(drivable)];
            format!("{}_{}", road.id, drivable - road.lanes.start)
        } else {
            let link = &self.link[drivable - self.lane_count];
            format!("{}_TO_{}", self.drivable_id(link.start as usize), self.drivable_id(link.end as usize))
        }
    }

    /// Start lane and end lane of a link. Panics if `drivable` is no link.
    pub fn link_lanes(&self, drivable: usize) -> (usize, usize) {
        let link = &self.link[drivable - self.lane_count];
        (link.start as usize, link.end as usize)
    }

    /// Crossings of a link in the order in which a vehicle meets them. Panics if `drivable` is no link.
    pub fn crossings(&self, drivable: usize) -> &[Crossing] {
        self.crossings.of(drivable - self.lane_count)
    }

    /// The junction at the end of a lane, if it has signals there. Panics if there is no such lane.
    pub fn junction_after(&self, lane: usize) -> Option<usize> {
        self.intersections[self.roads[self.lane_road(lane)].end].junction
    }

    pub(crate) fn links_of_lane(&self, lane: usize) -> &[u32] {
        self.lane_links.of(lane)
    }

    /// The link with this drivable number.
    #[inline]
    pub(crate) fn link(&self, drivable: usize) -> &Link {
        &self.link[drivable - self.lane_count]
    }

    /// Refuses a junction or a phase that does not exist.
    pub(crate) fn check_phase(&self, junction: usize, phase: usize) -> Result<()> {
        let count = self.junctions.len();
        let there = self.junctions.get(junction).ok_or(Error::Junction { junction, count })?;
        if phase < there.phases.len() {
            Ok(())
        } else {
            let last = there.phases.len() - 1;
            Err(Error::Phase { id: self.junction_id(junction).to_string(), phase, last })
        }
    }
}

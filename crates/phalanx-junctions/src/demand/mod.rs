//! Who wants to drive where and when.

mod load;
mod route;
mod schedule;

use crate::error::out_of_range;
use crate::error::{Error, Result, Source};
use crate::network::Network;
use route::{RouteFinder, Routes};
use std::collections::HashMap;

pub(crate) use route::NONE;
pub(crate) use schedule::{Active, Schedule};

/// How a kind of vehicle drives. Metres and seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VehicleKind {
    /// Length.
    pub length: f64,
    /// Width, for drawing.
    pub width: f64,
    /// Largest acceleration.
    pub max_pos_acc: f64,
    /// Largest deceleration.
    pub max_neg_acc: f64,
    /// Usual acceleration.
    pub usual_pos_acc: f64,
    /// Usual deceleration.
    pub usual_neg_acc: f64,
    /// Smallest gap to the vehicle ahead.
    pub min_gap: f64,
    /// Largest speed.
    pub max_speed: f64,
    /// Time that it keeps to the vehicle ahead.
    pub headway_time: f64,
}

impl Default for VehicleKind {
    /// The car of the common benchmarks.
    fn default() -> Self {
        Self {
            length: 5.0,
            width: 2.0,
            max_pos_acc: 2.0,
            max_neg_acc: 4.5,
            usual_pos_acc: 2.0,
            usual_neg_acc: 4.5,
            min_gap: 2.5,
            max_speed: 11.111,
            headway_time: 2.0,
        }
    }
}

impl VehicleKind {
    /// Names as in the file, values, and what is allowed.
    pub(crate) fn ranges(&self) -> [(&'static str, f64, [f64; 2]); 9] {
        [
            ("length", self.length, [0.1, 1000.0]),
            ("width", self.width, [0.0, 1000.0]),
            ("maxPosAcc", self.max_pos_acc, [0.1, 100.0]),
            ("maxNegAcc", self.max_neg_acc, [0.1, 100.0]),
            ("usualPosAcc", self.usual_pos_acc, [0.1, 100.0]),
            ("usualNegAcc", self.usual_neg_acc, [0.1, 100.0]),
            ("minGap", self.min_gap, [0.0, 1000.0]),
            ("maxSpeed", self.max_speed, [0.01, 100.0]),
            ("headwayTime", self.headway_time, [0.0, 1000.0]),
        ]
    }

    /// Its numbers in the order of the fields.
    pub(crate) fn numbers(&self) -> [f64; 9] {
        self.ranges().map(|(_, value, _)| value)
    }

    fn wrong(&self) -> Option<String> {
        let wrong = |&(_, value, [least, most]): &(_, f64, [f64; 2])| !(least..=most).contains(&value);
        let (name, value, [least, most]) = self.ranges().into_iter().find(wrong)?;
        Some(format!("{name}: {}", out_of_range(value, least, most)))
    }
}

/// Vehicles of one kind that start on one route at even intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// How they drive.
    pub vehicle: VehicleKind,
    /// Roads that they pass, by number; ways between roads that do not follow each other are found by length.
    pub route: Vec<usize>,
    /// Seconds between two vehicles.
    pub interval: f64,
    /// Second from which on they start.
    pub start_time: i32,
    /// Last second at which they start; −1 for no end.
    pub end_time: i32,
}

impl Flow {
    fn wrong(&self, network: &Network) -> Option<String> {
        if let Some(what) = self.vehicle.wrong() {
            return Some(format!("vehicle: {what}"));
        }
        if self.route.is_empty() {
            return Some("route: needs at least 1 road, has 0".into());
        }
        if let Some(road) = self.route.iter().find(|&&road| road >= network.roads().len()) {
            return Some(format!("route: there is no road {road}"));
        }
        if !(0.05..=1e9).contains(&self.interval) {
            return Some(format!("interval: must be from 0.05 to 1e9, is {}", self.interval));
        }
        None
    }
}

/// A vehicle that starts at a given time: the flow that says how and where it drives, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Departure {
    /// Number of the flow.
    pub flow: usize,
    /// Second at which it wants to start; it does so in the first step that begins then or later.
    pub time: f64,
}

/// Flows with their routes, for one network.
#[derive(Clone, Debug)]
pub struct Demand {
    flows: Vec<Flow>,
    /// Kinds of vehicles that differ.
    pub(crate) kinds: Vec<VehicleKind>,
    /// Per flow: its kind, and its route if there is a way.
    pub(crate) flow_kind: Vec<u16>,
    pub(crate) flow_route: Vec<Option<u32>>,
    pub(crate) routes: Routes,
    /// The first time in the file that is not written as an integer, and what to do about it.
    ignored_time: Option<Error>,
    /// Lines of the file in which the flows begin; none for flows that were made in the program.
    lines: Vec<usize>,
    /// Flows by the time at which they start.
    pub(crate) by_start: Vec<u32>,
    /// Fingerprint of the network that it is for.
    pub(crate) network: u64,
}

/// Departures that are listed at most: a list of them has 160 MB.
const MOST_DEPARTURES: usize = 10_000_000;

impl Demand {
    /// Reads a `flow.json` for `network`. Numbers are rounded as CityFlow's reader rounds them.
    ///
    /// A flow without a way between its roads is no error, as in CityFlow: its first vehicle vanishes, and no
    /// more come. [`Demand::require_routes`] refuses it.
    ///
    /// # Errors
    /// One line that names the line of the file, the flow, what is wrong and what is allowed.
    pub fn read(text: &str, network: &Network) -> Result<Self> {
        load::read(text, network)
    }

    /// Demand from flows that were made in the program.
    ///
    /// # Errors
    /// One line that names the flow, what is wrong and what is allowed.
    pub fn new(flows: Vec<Flow>, network: &Network) -> Result<Self> {
        for (index, flow) in flows.iter().enumerate() {
            if let Some(what) = flow.wrong(network) {
                return Err(Error::setting("flows", format!("flow {index}: {what}")));
            }
        }
        Self::with_checked(flows, network)
    }

    fn with_checked(flows: Vec<Flow>, network: &Network) -> Result<Self> {
        let mut kinds = Vec::new();
        let mut kind_numbers = HashMap::new();
        let mut flow_kind = Vec::with_capacity(flows.len());
        let mut finder = RouteFinder::new(network);
        let mut flow_route = Vec::with_capacity(flows.len());
        for flow in &flows {
            let key = flow.vehicle.numbers().map(f64::to_bits);
            let next = kinds.len();
            let number = *kind_numbers.entry(key).or_insert(next);
            if number == next {
                kinds.push(flow.vehicle);
            }
            let number = u16::try_from(number).map_err(|_| {
                Error::setting("flows", "there are more than 65536 different kinds of vehicles")
            })?;
            flow_kind.push(number);
            flow_route.push(finder.route(&flow.route)?);
        }
        let mut by_start: Vec<u32> = (0..flows.len() as u32).collect();
        by_start.sort_by_key(|&flow| flows[flow as usize].start_time);
        let (network, routes, lines) = (network.fingerprint, finder.finish(), Vec::new());
        Ok(Self { flows, kinds, flow_kind, flow_route, routes, ignored_time: None, lines, by_start, network })
    }

    /// The flows in the order of the file.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Roads that vehicles of a flow pass, if there is a way. Panics if there is no such flow.
    pub fn path(&self, flow: usize) -> Option<&[u32]> {
        self.flow_route[flow].map(|route| self.routes.path(route))
    }

    /// Refuses flows without a way between their roads, and those that name one road only.
    ///
    /// # Errors
    /// The first flow without a way.
    pub fn require_routes(&self, network: &Network) -> Result<()> {
        let Some(flow) = self.flow_route.iter().position(Option::is_none) else { return Ok(()) };
        let id = |road: usize| network.roads().get(road).map_or("?", |road| road.id.as_str());
        let route = &self.flows[flow].route;
        let what = match RouteFinder::new(network).gap(route) {
            Some([from, to]) => format!("there is no way from road {:?} to road {:?}", id(from), id(to)),
            None => {
                format!(
                    "needs two different roads, has {:?} only",
                    route.first().map_or("", |&road| id(road))
                )
            }
        };
        let place = format!("flow_{flow}: route");
        Err(match self.lines.get(flow) {
            Some(&line) => Error::Content { source_file: Source::Flow, line, place, what },
            None => Error::setting("flows", format!("{place}: {what}")),
        })
    }

    /// Refuses times that are not written as integers: CityFlow ignores them without a word, so that such a
    /// flow starts at once or never ends.
    ///
    /// # Errors
    /// The first of them.
    pub fn require_times(&self) -> Result<()> {
        self.ignored_time.clone().map_or(Ok(()), Err)
    }

    /// The departures of the flows in steps of `interval` seconds, `steps` of them.
    ///
    /// A simulation with these departures is the same, bit for bit, as one with the flows themselves. More
    /// than ten million are refused.
    pub fn departures(&self, interval: f64, steps: u32) -> Result<Vec<Departure>> {
        let mut schedule = Schedule::flows();
        let mut departures = Vec::new();
        for step in 0..steps {
            schedule.step(self, interval, step, |flow| {
                departures.push(Departure { flow: flow as usize, time: f64::from(step) * interval });
            });
            if departures.len() > MOST_DEPARTURES {
                let message = format!("more than {MOST_DEPARTURES} vehicles start within {} steps", step + 1);
                return Err(Error::setting("departures", message));
            }
        }
        Ok(departures)
    }
}

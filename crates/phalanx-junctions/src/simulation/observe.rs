//! What can be seen of a simulation.

use super::state::Vehicle;
use super::{NONE, Simulation};
use crate::fnv::Fnv;
use crate::geometry::{Point, direction_at, point_at};
use std::fmt;

/// Vehicles slower than this, in m/s, count as waiting.
pub const WAITING_BELOW: f64 = 0.1;

/// Which vehicle: the how-manyth of which flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VehicleId {
    /// Number of its flow.
    pub flow: u32,
    /// Its number among the vehicles of the flow.
    pub number: u32,
}

impl fmt::Display for VehicleId {
    /// The id that CityFlow gives it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flow_{}_{}", self.flow, self.number)
    }
}

/// A vehicle in the network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VehicleView {
    /// Which one.
    pub id: VehicleId,
    /// The lane or link it is on.
    pub drivable: usize,
    /// Metres from the beginning of that to its front.
    pub distance: f64,
    /// Metres from its front to the end of that.
    pub to_end: f64,
    /// Its speed in m/s.
    pub speed: f64,
    /// Its length in metres.
    pub length: f64,
    /// Its width in metres.
    pub width: f64,
    /// The order of vehicles in ties; larger goes first.
    pub priority: i32,
}

/// Where a vehicle is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Position {
    /// Its front.
    pub point: Point,
    /// Where it heads: a vector of length 1.
    pub heading: Point,
}

/// A change of drivable in the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Move {
    /// Which vehicle.
    pub vehicle: VehicleId,
    /// The drivable that it left; `None` if it entered the network.
    pub from: Option<usize>,
    /// The drivable that it came to; `None` if it left the network.
    pub to: Option<usize>,
}

impl Simulation {
    /// How many steps were made since the start or the last reset.
    pub fn steps(&self) -> u32 {
        self.state.step
    }

    /// Seconds since the start or the last reset.
    pub fn time(&self) -> f64 {
        f64::from(self.state.step) * self.fixed.settings.interval
    }

    /// Vehicles in the network.
    pub fn running(&self) -> usize {
        self.state.running
    }

    /// Vehicles that have started but found no room to enter the network yet.
    pub fn waiting_outside(&self) -> usize {
        self.state.waiting_outside
    }

    /// Vehicles that have left the network at the end of their route.
    pub fn finished(&self) -> usize {
        self.state.finished
    }

    /// The phase of a junction. Panics if there is no such junction.
    pub fn phase(&self, junction: usize) -> usize {
        self.state.phases[junction] as usize
    }

    /// Whether a movement of a junction is green. Panics if there is no such junction or movement.
    pub fn is_green(&self, junction: usize, movement: usize) -> bool {
        let junction_there = &self.fixed.network.junctions()[junction];
        junction_there.phases[self.phase(junction)].green.binary_search(&movement).is_ok()
    }

    /// Vehicles on a lane. Panics if there is no such lane.
    pub fn lane_vehicles(&self, lane: usize) -> usize {
        self.state.places[lane].count as usize
    }

    /// Vehicles on a lane that are slower than 0.1 m/s. Panics if there is no such lane.
    pub fn lane_waiting(&self, lane: usize) -> usize {
        self.on_drivable(lane).filter(|vehicle| vehicle.speed < WAITING_BELOW).count()
    }

    /// Vehicles that wait outside to enter a lane. Panics if there is no such lane.
    pub fn lane_queue(&self, lane: usize) -> usize {
        self.chain(self.state.queues[lane].first).count()
    }

    /// The vehicles on a lane or link, first the one that is farthest ahead. Panics if there is no such
    /// drivable.
    pub fn vehicles_on(&self, drivable: usize) -> impl Iterator<Item = VehicleView> + '_ {
        self.on_drivable(drivable).map(|vehicle| self.view(vehicle))
    }

    /// All vehicles in the network, by rising priority, as CityFlow lists them.
    pub fn vehicles(&self) -> impl Iterator<Item = VehicleView> + '_ {
        self.living().filter(|vehicle| vehicle.1).map(|(vehicle, _)| self.view(vehicle))
    }

    /// Where to draw a vehicle.
    pub fn position(&self, vehicle: &VehicleView) -> Position {
        let shape = self.fixed.network.shape(vehicle.drivable);
        Position { point: point_at(shape, vehicle.distance), heading: direction_at(shape, vehicle.distance) }
    }

    /// Changes of drivable in the last step of this very copy: first those that entered, then all others.
    pub fn moves(&self) -> impl Iterator<Item = Move> + '_ {
        let id = |slot: u32| id_of(&self.state.vehicles[slot as usize]);
        let entered = self.scratch.newcomers.iter().map(move |newcomer| Move {
            vehicle: id(newcomer.slot),
            from: None,
            to: Some(newcomer.lane as usize),
        });
        let left = self.scratch.leave.iter().map(move |leave| Move {
            vehicle: id(leave.slot),
            from: Some(leave.from as usize),
            to: (leave.to != NONE).then_some(leave.to as usize),
        });
        entered.chain(left)
    }

    /// CityFlow's average travel time in seconds: over all vehicles that have started, those outside
    /// included, up to now for those that have not arrived; 0 if there are none.
    pub fn average_travel_time(&self) -> f64 {
        let (state, interval) = (&self.state, self.fixed.settings.interval);
        let count = state.finished + state.by_priority.len();
        if count == 0 {
            return 0.0;
        }
        let time = self.time();
        let sum = self.living().fold(state.travelled, |sum, (vehicle, _)| {
            sum + (time - f64::from(vehicle.enter_step) * interval)
        });
        sum / count as f64
    }

    /// A fingerprint of all vehicles in the network: FNV-1a over flow, number, drivable, distance and speed.
    ///
    /// Two simulations that agree in it after every step have made the same trajectories, bit for bit.
    pub fn hash(&self) -> u64 {
        let mut vehicles: Vec<_> =
            self.living().filter(|vehicle| vehicle.1).map(|(vehicle, _)| vehicle).collect();
        vehicles.sort_unstable_by_key(|vehicle| id_of(vehicle));
        let mut hash = Fnv::default();
        for vehicle in vehicles {
            hash.add(&vehicle.flow.to_le_bytes());
            hash.add(&vehicle.number.to_le_bytes());
            hash.add(&vehicle.drivable.to_le_bytes());
            hash.add(&vehicle.distance.to_le_bytes());
            hash.add(&vehicle.speed.to_le_bytes());
        }
        hash.0
    }

    /// Living vehicles by priority, with whether they are in the network.
    fn living(&self) -> impl Iterator<Item = (&Vehicle, bool)> {
        let mut outside = vec![false; self.state.vehicles.len()];
        if self.state.waiting_outside > 0 {
            for &lane in &self.fixed.entry_lanes {
                let mut slot = self.state.queues[lane as usize].first;
                while slot != NONE {
                    outside[slot as usize] = true;
                    slot = self.state.vehicles[slot as usize].behind;
                }
            }
        }
        let slots = self.state.by_priority.iter().map(|entry| entry.1 as usize);
        slots.map(move |slot| (&self.state.vehicles[slot], !outside[slot]))
    }

    fn on_drivable(&self, drivable: usize) -> impl Iterator<Item = &Vehicle> {
        self.chain(self.state.places[drivable].first)
    }

    fn chain(&self, first: u32) -> impl Iterator<Item = &Vehicle> {
        let vehicles = &self.state.vehicles;
        std::iter::successors(vehicles.get(first as usize), |vehicle| vehicles.get(vehicle.behind as usize))
    }

    fn view(&self, vehicle: &Vehicle) -> VehicleView {
        let kind = &self.fixed.demand.kinds[vehicle.kind as usize];
        VehicleView {
            id: id_of(vehicle),
            drivable: vehicle.drivable as usize,
            distance: vehicle.distance,
            to_end: self.fixed.network.length[vehicle.drivable as usize] - vehicle.distance,
            speed: vehicle.speed,
            length: kind.length,
            width: kind.width,
            priority: vehicle.priority,
        }
    }
}

fn id_of(vehicle: &Vehicle) -> VehicleId {
    VehicleId { flow: vehicle.flow, number: vehicle.number }
}

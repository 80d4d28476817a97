//! The travel time of published tables, which is not the engine's.

use crate::simulation::{Simulation, VehicleId};
use std::collections::BTreeMap;

/// Time that vehicles spend on the way to signals: what most published tables call average travel time.
///
/// For every vehicle and junction it counts from the first second on a lane that ends at the junction to the
/// last second at which it leaves one. So waiting outside, the inside of junctions and the last road are left
/// out, and a vehicle that comes back to a junction is charged for all that lies between. A policy that
/// blocks the entrances looks good in it: [`Simulation::average_travel_time`] counts everything.
#[derive(Clone, Debug, Default)]
pub struct ApproachTimes {
    vehicles: BTreeMap<VehicleId, Vec<Stay>>,
    /// Seconds of the stays that are over, how many are not, and the sum of the times at which those began.
    over: f64,
    open: usize,
    begun: f64,
}

#[derive(Clone, Copy, Debug)]
struct Stay {
    junction: usize,
    on: f64,
    /// Not known while the vehicle is there.
    off: Option<f64>,
}

impl ApproachTimes {
    /// Times before the first step.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes what happened in the last step. To be called after every step.
    pub fn observe(&mut self, simulation: &Simulation) {
        let (network, time) = (simulation.network(), simulation.time());
        let junction_of = |drivable: Option<usize>| {
            drivable.filter(|&d| d < network.lane_count()).and_then(|lane| network.junction_after(lane))
        };
        for change in simulation.moves() {
            if let Some(junction) = junction_of(change.from) {
                self.leave(change.vehicle, junction, time);
            }
            if let Some(junction) = junction_of(change.to) {
                self.come(change.vehicle, junction, time);
            }
        }
    }

    fn leave(&mut self, vehicle: VehicleId, junction: usize, time: f64) {
        let stays = self.vehicles.entry(vehicle).or_default();
        if let Some(stay) = stays.iter_mut().find(|stay| stay.junction == junction && stay.off.is_none()) {
            stay.off = Some(time);
            self.over += time - stay.on;
            self.open -= 1;
            self.begun -= stay.on;
        }
    }

    fn come(&mut self, vehicle: VehicleId, junction: usize, time: f64) {
        let stays = self.vehicles.entry(vehicle).or_default();
        let on = match stays.iter_mut().find(|stay| stay.junction == junction) {
            // It came back: its stay goes on from its beginning.
            Some(stay) => {
                let Some(off) = stay.off.take() else { return };
                self.over -= off - stay.on;
                stay.on
            }
            None => {
                stays.push(Stay { junction, on: time, off: None });
                time
            }
        };
        self.open += 1;
        self.begun += on;
    }

    /// Mean over the vehicles that were on such a lane; those that still are count up to `end`. 0 if there
    /// are none.
    pub fn mean(&self, end: f64) -> f64 {
        if self.vehicles.is_empty() {
            return 0.0;
        }
        (self.over + (self.open as f64 * end - self.begun)) / self.vehicles.len() as f64
    }
}

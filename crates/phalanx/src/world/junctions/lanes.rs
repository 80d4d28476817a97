//! What is on lanes at a moment.

use phalanx_junctions::{Simulation, WAITING_BELOW};

use super::layout::{PER_VEHICLE, Site};

/// Vehicles are near a stop line within this many metres.
pub const NEAR: f64 = 100.0;
/// Vehicles that drive can reach a stop line in a decision within this many metres.
const REACH: f64 = 167.0;
/// Metres that a vehicle needs to enter a lane, beyond the length of the one ahead: its own length, usually.
const ENTERING: f64 = 5.0;
/// Behind a vehicle that is as fast as this, in m/s, others enter a lane in any case.
const MAKES_WAY: f64 = 2.0;

/// What is on a lane.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lane {
    pub vehicles: u32,
    pub waiting: u32,
    /// Within [`NEAR`] of its end.
    pub near: u32,
    /// Those that drive within [`REACH`] of its end.
    pub driving: u32,
    /// Whether its last vehicle keeps others from entering, as the engine has it.
    pub is_blocked: bool,
}

/// All lanes.
pub fn look(simulation: &Simulation, lanes: &mut [Lane]) {
    for (number, lane) in lanes.iter_mut().enumerate() {
        *lane = Lane { vehicles: simulation.lane_vehicles(number) as u32, ..Lane::default() };
        if lane.vehicles == 0 {
            continue;
        }
        for vehicle in simulation.vehicles_on(number) {
            let is_waiting = vehicle.speed < WAITING_BELOW;
            lane.waiting += u32::from(is_waiting);
            lane.near += u32::from(vehicle.to_end <= NEAR);
            lane.driving += u32::from(!is_waiting && vehicle.to_end <= REACH);
            lane.is_blocked = vehicle.speed < MAKES_WAY && vehicle.distance <= vehicle.length + ENTERING;
        }
    }
}

/// Of so many lanes together.
pub fn sum(lanes: &[Lane], numbers: impl Iterator<Item = usize>) -> Lane {
    numbers.map(|number| lanes[number]).fold(Lane::default(), |sum, lane| Lane {
        vehicles: sum.vehicles + lane.vehicles,
        waiting: sum.waiting + lane.waiting,
        near: sum.near + lane.near,
        driving: sum.driving + lane.driving,
        is_blocked: sum.is_blocked || lane.is_blocked,
    })
}

/// How full the fullest lane before a junction is; more than 1 with vehicles that are shorter than usual.
pub fn fullest(lanes: &[Lane], lengths: &[f64], site: &Site) -> f64 {
    let fill = |&(lane, _): &(usize, f64)| f64::from(lanes[lane].vehicles) * PER_VEHICLE / lengths[lane];
    site.entry_lanes.iter().map(fill).fold(0.0, f64::max)
}

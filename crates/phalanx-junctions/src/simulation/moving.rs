//! Writing down what the vehicles of a step did.

use super::state::{ON_NO_LINK, Rest};
use super::{NONE, Simulation};

impl Simulation {
    /// Moves vehicles to their new places and drivables.
    pub(super) fn advance(&mut self) {
        let Self { fixed, state, scratch } = self;
        for stay in &scratch.stay {
            let vehicle = &mut state.vehicles[stay.slot as usize];
            (vehicle.distance, vehicle.speed, vehicle.rest) = (stay.distance, stay.speed, stay.rest);
        }
        for &slot in &state.blocked {
            state.vehicles[slot as usize].blocker = NONE;
        }
        state.blocked.clear();
        for newcomer in &scratch.newcomers {
            let place = &mut state.places[newcomer.lane as usize];
            place.settled_last = place.last;
        }

        // In the order of drivables, front to back: the order in which travel times are added.
        let time = f64::from(state.step) * fixed.settings.interval;
        for leave in &scratch.leave {
            let vehicle = state.vehicles[leave.slot as usize];
            state.remove(leave.slot, vehicle.drivable);
            if leave.to == NONE {
                state.finished += 1;
                state.running -= 1;
                state.travelled += time - f64::from(vehicle.enter_step) * fixed.settings.interval;
                state.forget_vehicle(leave.slot);
            }
        }
        // Vehicles that come onto the same drivable in one step line up by their distance.
        scratch.leave.sort_by(|a, b| b.distance.total_cmp(&a.distance));
        for leave in scratch.leave.iter().filter(|leave| leave.to != NONE) {
            let is_link = fixed.is_link(leave.to);
            let vehicle = &mut state.vehicles[leave.slot as usize];
            vehicle.distance = leave.distance;
            vehicle.speed = leave.speed;
            vehicle.rest = Rest::Moved;
            vehicle.previous = vehicle.drivable;
            vehicle.drivable = leave.to;
            vehicle.enter_link = if is_link { state.step as i32 } else { ON_NO_LINK };
            if !is_link {
                let road = fixed.network.lane_road[leave.to as usize];
                vehicle.at = fixed.demand.routes.find(vehicle.at, road);
                vehicle.on_last_road = road == fixed.demand.routes.last_road(vehicle.at);
            }
            vehicle.next = fixed.demand.routes.next_drivable(&fixed.network, vehicle.at, leave.to);
            state.append(leave.slot, leave.to);
            state.places[leave.to as usize].settled_last = leave.slot;
        }
        for &(slot, foe) in &scratch.blocked {
            let is_there = |slot: u32| state.vehicles[slot as usize].drivable != NONE;
            if is_there(slot) && is_there(foe) {
                state.vehicles[slot as usize].blocker = foe;
                state.blocked.push(slot);
            }
        }
    }
}

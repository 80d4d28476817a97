//! Speed in front of and inside a junction: signals, full lanes behind it, and other vehicles' ways.

use super::Fixed;
use super::busy::Busy;
use super::driver::{Driver, TURN_SPEED, YIELD_DISTANCE, min};
use super::state::{State, Vehicle};
use crate::demand::NONE;
use crate::network::{Crossing, Turn};

/// Why a vehicle has the junction speed it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// A red light stops it.
    Red,
    /// It yields to this vehicle, or to none if `NONE`.
    Blocker(u32),
}

impl Fixed {
    /// The speed of a vehicle in sight of a junction or in it. `way` is what is left of its drivable.
    pub(super) fn junction_speed(
        &self,
        state: &State,
        busy: &Busy,
        vehicle: &Vehicle,
        driver: &Driver,
        way: f64,
    ) -> (f64, Reason) {
        let mut z = driver.max_speed;
        let braking_way = driver.braking_way(vehicle.speed);
        let (link, x) = if self.is_link(vehicle.next) {
            let red = !state.green[vehicle.next as usize];
            if (red || !self.may_enter(state, driver, self.network.link(vehicle.next as usize).end))
                && braking_way <= way
            {
                let reason = if red { Reason::Red } else { Reason::Blocker(NONE) };
                return (min(z, driver.stop(vehicle.speed, way)), reason);
            }
            if self.network.link(vehicle.next as usize).turn != Turn::Straight {
                z = min(z, TURN_SPEED);
            }
            (vehicle.next, -way)
        } else {
            (vehicle.drivable, vehicle.distance)
        };
        for crossing in self.network.crossings.of(link as usize - self.network.lane_count) {
            let d = crossing.distance - x;
            // It goes first where it cannot yield: behind the crossing, on it, or too close to brake.
            if crossing.distance < x || !(d > 0.0 && braking_way < d - YIELD_DISTANCE) {
                continue;
            }
            if !busy.has(crossing.other) {
                continue;
            }
            let Some((foe, foe_distance)) = self.foe(state, crossing) else { continue };
            if !self.goes_first(state, vehicle, driver, d, link, foe, foe_distance, crossing.other) {
                z = min(z, driver.stop(vehicle.speed, d - YIELD_DISTANCE));
                return (z, Reason::Blocker(foe));
            }
        }
        (z, Reason::Blocker(NONE))
    }

    /// Whether there is room at the beginning of a lane.
    fn may_enter(&self, state: &State, driver: &Driver, lane: u32) -> bool {
        let last = state.places[lane as usize].last;
        if last == NONE {
            return true;
        }
        let tail = &state.vehicles[last as usize];
        tail.distance > self.drivers[tail.kind as usize].length + driver.length || tail.speed >= 2.0
    }

    /// The vehicle on the other link that comes to a crossing next, and its distance from it.
    ///
    /// The reference notes this for every crossing before vehicles move. A vehicle that has passed a crossing
    /// has passed those before it, also after rounding, so the answer for one crossing needs no look at the
    /// others.
    fn foe(&self, state: &State, crossing: &Crossing) -> Option<(u32, f64)> {
        let network = &*self.network;
        let (number, at) = (crossing.other, crossing.other_distance);
        let link = network.link(number as usize);
        let length_of = |vehicle: &Vehicle| self.drivers[vehicle.kind as usize].length;

        // The last one that left the link may still stand in the way with its tail.
        let left = state.places[link.end as usize].last;
        if left != NONE {
            let vehicle = &state.vehicles[left as usize];
            if vehicle.previous == number {
                let after = network.length[number as usize] - at;
                if after + (vehicle.distance - length_of(vehicle)) < 0.0 {
                    return Some((left, -(vehicle.distance + after)));
                }
            }
        }
        let mut slot = state.places[number as usize].first;
        while slot != NONE {
            let vehicle = &state.vehicles[slot as usize];
            let passed = vehicle.distance > at && vehicle.distance - at - length_of(vehicle) > 0.0;
            if !passed {
                return Some((slot, at - vehicle.distance));
            }
            slot = vehicle.behind;
        }
        let first = state.places[link.start as usize].first;
        if first != NONE && state.green[number as usize] {
            let vehicle = &state.vehicles[first as usize];
            if vehicle.next == number {
                return Some((first, (network.length[link.start as usize] - vehicle.distance) + at));
            }
        }
        None
    }

    /// Whether a vehicle that could yield at a crossing goes first.
    #[allow(clippy::too_many_arguments, reason = "both sides of a crossing: vehicle, distance, link")]
    fn goes_first(
        &self,
        state: &State,
        vehicle: &Vehicle,
        driver: &Driver,
        distance: f64,
        link: u32,
        foe: u32,
        foe_distance: f64,
        foe_link: u32,
    ) -> bool {
        let other = &state.vehicles[foe as usize];
        let other_driver = &self.drivers[other.kind as usize];
        let first = if !other_driver.can_yield(other.speed, foe_distance) {
            false
        } else {
            let turn = self.network.link(link as usize).turn;
            let other_turn = self.network.link(foe_link as usize).turn;
            if turn > other_turn {
                true
            } else if foe_distance > 0.0 {
                let turns = |turn: Turn| turn != Turn::Straight;
                let theirs = other_driver.steps_to_reach(other.speed, foe_distance, turns(other_turn));
                let own = driver.steps_to_reach(vehicle.speed, distance, turns(turn));
                if theirs > own {
                    true
                } else if turn < other_turn || theirs < own {
                    false
                } else if vehicle.enter_link != other.enter_link {
                    vehicle.enter_link < other.enter_link
                } else if distance == foe_distance {
                    vehicle.priority > other.priority
                } else {
                    distance < foe_distance
                }
            } else {
                foe_distance + other_driver.length < 0.0
            }
        };
        first || waits_in_a_cycle(state, foe)
    }
}

/// Whether a vehicle is in, or waits for one that is in, a cycle of vehicles that yielded to each other in
/// the last step.
fn waits_in_a_cycle(state: &State, vehicle: u32) -> bool {
    let blocker =
        |vehicle: u32| if vehicle == NONE { NONE } else { state.vehicles[vehicle as usize].blocker };
    let (mut slow, mut fast) = (vehicle, vehicle);
    while fast != NONE && blocker(fast) != NONE {
        slow = blocker(slow);
        fast = blocker(blocker(fast));
        if slow == fast {
            return true;
        }
    }
    false
}

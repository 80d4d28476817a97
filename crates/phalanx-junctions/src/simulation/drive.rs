//! New speeds and places of all vehicles, computed from the old ones. Nothing is written to the state here.

use super::driver::{Driver, max, min};
use super::junction::Reason;
use super::scratch::{Leave, Scratch, Stay};
use super::state::{Rest, State, Vehicle, for_each_bit};
use super::{Fixed, NONE, Simulation};
use crate::network::LINK_LIMIT;

/// No vehicle plans to go faster than this, in m/s.
const FASTEST: f64 = 100.0;

impl Simulation {
    /// Fills `stay`, `leave` and `blocked` with what every vehicle does in this step.
    pub(super) fn drive(&mut self) {
        let Self { fixed, state, scratch } = self;
        scratch.stay.clear();
        scratch.leave.clear();
        scratch.blocked.clear();
        scratch.busy.mark(fixed, state);
        for_each_bit(&state.occupied, |drivable| fixed.drive_on(state, scratch, drivable));
    }
}

impl Fixed {
    /// All vehicles of a drivable, front to back.
    fn drive_on(&self, state: &State, scratch: &mut Scratch, drivable: u32) {
        let is_link = self.is_link(drivable);
        let length = self.network.length[drivable as usize];
        let limit = if is_link { LINK_LIMIT } else { self.network.limit[drivable as usize] };
        let mut ahead: Option<&Vehicle> = None;
        let mut slot = state.places[drivable as usize].first;
        while slot != NONE {
            let vehicle = &state.vehicles[slot as usize];
            let stands = match vehicle.rest {
                Rest::Entered | Rest::Moved | Rest::Waits => false,
                Rest::BehindLeader => ahead.is_some_and(|ahead| ahead.rest >= Rest::Waits),
                Rest::BehindLeaderAtRed => {
                    ahead.is_some_and(|ahead| ahead.rest >= Rest::Waits)
                        && !state.green[vehicle.next as usize]
                }
                Rest::AtRed => !state.green[vehicle.next as usize],
            };
            if !stands {
                self.drive_one(state, scratch, slot, vehicle, ahead, (length, limit, is_link));
            }
            ahead = Some(vehicle);
            slot = vehicle.behind;
        }
    }

    fn drive_one(
        &self,
        state: &State,
        scratch: &mut Scratch,
        slot: u32,
        vehicle: &Vehicle,
        ahead: Option<&Vehicle>,
        (length, limit, is_link): (f64, f64, bool),
    ) {
        let driver = &self.drivers[vehicle.kind as usize];
        let v = vehicle.speed;
        let way = length - vehicle.distance;
        let mut w = driver.free_speed(v, limit);
        w = self.behind_leader(state, scratch, vehicle, ahead, driver, way, w);

        let mut reason = None;
        if is_link || (self.is_link(vehicle.next) && way <= driver.look_ahead) {
            let (speed, why) = self.junction_speed(state, &scratch.busy, vehicle, driver, way);
            w = min(w, speed);
            reason = Some((speed, why));
            if let Reason::Blocker(foe) = why
                && foe != NONE
            {
                scratch.blocked.push((slot, foe));
            }
        }
        w = min(w, FASTEST);
        if vehicle.next == NONE && !vehicle.on_last_road {
            w = min(w, driver.stop_at_dead_end(v, way));
        }
        w = max(w, driver.slowest(v));

        let moved = if w < 0.0 {
            w = 0.0;
            driver.braking_way(v)
        } else {
            (v + w) * self.settings.interval / 2.0
        };
        let x = moved + vehicle.distance;
        if x > length {
            scratch.leave.push(self.leave(slot, vehicle, x, length, w));
            return;
        }
        let rest = if v != 0.0 || w != 0.0 {
            Rest::Moved
        } else {
            match reason {
                None => Rest::BehindLeader,
                Some((0.0, Reason::Red)) => Rest::AtRed,
                Some((_, Reason::Red)) => Rest::BehindLeaderAtRed,
                Some(_) => Rest::Waits,
            }
        };
        scratch.stay.push(Stay { distance: x, speed: w, slot, rest });
    }

    /// The speed `w`, or the lower one that the vehicle ahead allows.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "what is known of the vehicle already")]
    fn behind_leader(
        &self,
        state: &State,
        scratch: &Scratch,
        vehicle: &Vehicle,
        ahead: Option<&Vehicle>,
        driver: &Driver,
        way: f64,
        w: f64,
    ) -> f64 {
        let v = vehicle.speed;
        let is_slow = v <= driver.max_speed;
        let (leader, gap) = if let Some(leader) = ahead {
            let length = self.drivers[leader.kind as usize].length;
            (leader, leader.distance - length - vehicle.distance)
        } else {
            if is_slow && way - self.longest >= driver.free_gap {
                return w;
            }
            let found = match vehicle.rest {
                Rest::Entered => {
                    let newcomer = scratch.newcomers.iter().find(|entry| entry.lane == vehicle.drivable);
                    newcomer.and_then(|entry| entry.leader)
                }
                _ => self.leader(state, vehicle, |place| place.settled_last),
            };
            let Some(leader) = found else { return min(w, driver.max_speed) };
            (&state.vehicles[leader.slot as usize], leader.gap)
        };
        if is_slow && gap >= driver.free_gap {
            return w;
        }
        min(w, driver.follow(v, &self.drivers[leader.kind as usize], leader.speed, gap))
    }

    /// Where a vehicle comes to that passes the end of its drivable.
    fn leave(&self, slot: u32, vehicle: &Vehicle, x: f64, length: f64, speed: f64) -> Leave {
        let (mut distance, mut to) = (x - length, vehicle.next);
        while to != NONE && distance > self.network.length[to as usize] {
            distance -= self.network.length[to as usize];
            to = self.demand.routes.next_drivable(&self.network, vehicle.at, to);
        }
        Leave { distance, speed, slot, from: vehicle.drivable, to }
    }
}

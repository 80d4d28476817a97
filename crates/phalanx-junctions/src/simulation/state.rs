//! What changes while a simulation runs.

use crate::demand::{NONE, Schedule};
use crate::random::MersenneTwister;

/// Enter-link time of a vehicle that is on no link.
pub(super) const ON_NO_LINK: i32 = i32::MAX;

/// What a vehicle did in the last step, which tells whether it must be looked at in the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Rest {
    /// It entered the network in this step.
    Entered,
    /// It moved, or its speed changed.
    Moved,
    /// Nothing changed, but something may.
    Waits,
    /// It stands, and will as long as the vehicle ahead of it on its lane does.
    BehindLeader,
    /// The same, with a red light in sight: as long as that stays red, too.
    BehindLeaderAtRed,
    /// It stands at a red light, and will as long as that is red.
    AtRed,
}

/// A vehicle, in the network or waiting outside. One line of cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Vehicle {
    pub distance: f64,
    pub speed: f64,
    /// The vehicle behind it on its drivable or in its queue.
    pub behind: u32,
    /// Where it is; `NONE` in an unused entry.
    pub drivable: u32,
    /// The drivable after that.
    pub next: u32,
    /// Its place in the paths of all routes.
    pub at: u32,
    pub kind: u16,
    pub rest: Rest,
    /// Whether it is on a lane of its last road.
    pub on_last_road: bool,
    /// The drivable before this one.
    pub previous: u32,
    /// The step in which it came onto its link.
    pub enter_link: i32,
    /// The step in which it was made.
    pub enter_step: u32,
    pub flow: u32,
    pub number: u32,
    pub priority: i32,
    /// The vehicle it yielded to in the last step.
    pub blocker: u32,
}

/// The vehicles on a drivable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub first: u32,
    pub last: u32,
    /// The last vehicle, not counting one that entered in this step.
    pub settled_last: u32,
    pub count: u32,
}

impl Place {
    pub const EMPTY: Self = Self { first: NONE, last: NONE, settled_last: NONE, count: 0 };
}

/// Vehicles that wait outside to enter a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Queue {
    pub first: u32,
    pub last: u32,
}

impl Queue {
    pub const EMPTY: Self = Self { first: NONE, last: NONE };
}

/// Everything that changes.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub step: u32,
    pub random: MersenneTwister,
    pub schedule: Schedule,
    /// Per flow: how many vehicles it has made, and whether it was switched off.
    pub made: Vec<u32>,
    pub off: Vec<bool>,
    pub vehicles: Vec<Vehicle>,
    /// Unused entries of `vehicles`.
    pub unused: Vec<u32>,
    /// Living vehicles by priority.
    pub by_priority: Vec<(i32, u32)>,
    /// Per drivable.
    pub places: Vec<Place>,
    /// Drivables with vehicles on them, as bits.
    pub occupied: Vec<u64>,
    /// Per lane.
    pub queues: Vec<Queue>,
    /// Vehicles whose `blocker` is set.
    pub blocked: Vec<u32>,
    /// Per junction: phase, and what is left of its time in the own program.
    pub phases: Vec<u32>,
    pub left: Vec<f64>,
    /// Per link.
    pub green: Vec<bool>,
    pub running: usize,
    pub waiting_outside: usize,
    pub finished: usize,
    /// Travel times of finished vehicles.
    pub travelled: f64,
}

impl State {
    /// An entry for a new vehicle.
    pub fn place_vehicle(&mut self, vehicle: Vehicle) -> u32 {
        match self.unused.pop() {
            Some(slot) => {
                self.vehicles[slot as usize] = vehicle;
                slot
            }
            None => {
                self.vehicles.push(vehicle);
                (self.vehicles.len() - 1) as u32
            }
        }
    }

    /// Takes a vehicle out of the books. It must have left its drivable or queue.
    pub fn forget_vehicle(&mut self, slot: u32) {
        let vehicle = &mut self.vehicles[slot as usize];
        vehicle.drivable = NONE;
        if let Ok(place) = self.by_priority.binary_search(&(vehicle.priority, slot)) {
            self.by_priority.remove(place);
        }
        self.unused.push(slot);
    }

    /// Puts a vehicle behind the last one of a drivable.
    pub fn append(&mut self, slot: u32, drivable: u32) {
        let place = &mut self.places[drivable as usize];
        match place.last {
            NONE => {
                place.first = slot;
                self.occupied[drivable as usize / 64] |= 1 << (drivable % 64);
            }
            last => self.vehicles[last as usize].behind = slot,
        }
        place.last = slot;
        place.count += 1;
        self.vehicles[slot as usize].behind = NONE;
    }

    /// Puts a vehicle behind the last one of the queue that waits to enter a lane.
    pub fn enqueue(&mut self, slot: u32, lane: u32) {
        let queue = &mut self.queues[lane as usize];
        match queue.last {
            NONE => queue.first = slot,
            last => self.vehicles[last as usize].behind = slot,
        }
        queue.last = slot;
    }

    /// Takes a vehicle from its drivable.
    pub fn remove(&mut self, slot: u32, drivable: u32) {
        let behind = self.vehicles[slot as usize].behind;
        let mut ahead = NONE;
        let mut at = self.places[drivable as usize].first;
        while at != slot {
            ahead = at;
            at = self.vehicles[at as usize].behind;
        }
        let place = &mut self.places[drivable as usize];
        match ahead {
            NONE => place.first = behind,
            ahead => self.vehicles[ahead as usize].behind = behind,
        }
        match behind {
            NONE => place.last = ahead,
            // Its leader is another one now, or none.
            behind => self.vehicles[behind as usize].rest = Rest::Moved,
        }
        place.settled_last = place.last;
        place.count -= 1;
        if place.first == NONE {
            self.occupied[drivable as usize / 64] &= !(1 << (drivable % 64));
        }
    }
}

/// Calls `act` with every index whose bit is set, rising.
pub(super) fn for_each_bit(words: &[u64], mut act: impl FnMut(u32)) {
    for (index, &word) in words.iter().enumerate() {
        let mut word = word;
        while word != 0 {
            act(index as u32 * 64 + word.trailing_zeros());
            word &= word - 1;
        }
    }
}

//! Links that a vehicle at a crossing must look at: most are empty, and nobody is about to take them.

use super::Fixed;
use super::state::{State, for_each_bit};

/// Links on which, or towards which, vehicles are on their way in this step.
#[derive(Clone, Debug, Default)]
pub(super) struct Busy {
    stamps: Vec<u32>,
    now: u32,
}

impl Busy {
    fn next_step(&mut self, drivables: usize) {
        if self.now == u32::MAX || self.stamps.len() != drivables {
            self.stamps = vec![0; drivables];
            self.now = 0;
        }
        self.now += 1;
    }

    #[inline(always)]
    fn set(&mut self, link: u32) {
        self.stamps[link as usize] = self.now;
    }

    /// Whether vehicles are on their way to or on a link.
    #[inline(always)]
    pub fn has(&self, link: u32) -> bool {
        self.stamps[link as usize] == self.now
    }

    /// Finds the links from which a foe can come: those with vehicles, with one whose tail may still be on
    /// them, and green ones with one that comes next.
    pub fn mark(&mut self, fixed: &Fixed, state: &State) {
        self.next_step(state.places.len());
        for_each_bit(&state.occupied, |drivable| {
            if fixed.is_link(drivable) {
                self.set(drivable);
                return;
            }
            let place = &state.places[drivable as usize];
            let first = &state.vehicles[place.first as usize];
            if fixed.is_link(first.next) && state.green[first.next as usize] {
                self.set(first.next);
            }
            // The metre more is for crossings that rounding puts behind the end of their link.
            let last = &state.vehicles[place.last as usize];
            if fixed.is_link(last.previous) && last.distance < fixed.drivers[last.kind as usize].length + 1.0
            {
                self.set(last.previous);
            }
        });
    }
}

//! Whom the first vehicle of a drivable follows.

use super::state::{Place, State, Vehicle};
use super::{Fixed, NONE};

/// The vehicle ahead and the gap to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leader {
    pub slot: u32,
    pub gap: f64,
}

impl Fixed {
    /// The leader of the first vehicle of a drivable: the last vehicle on the next drivables within sight.
    ///
    /// `last_of` says which vehicle is the last of a place: the reference looks for leaders at the end of a
    /// step, before the next vehicles enter.
    pub(super) fn leader(
        &self,
        state: &State,
        vehicle: &Vehicle,
        last_of: impl Fn(&Place) -> u32,
    ) -> Option<Leader> {
        let network = &*self.network;
        let driver = &self.drivers[vehicle.kind as usize];
        let gap_to = |s: f64, slot: u32| {
            let tail = &state.vehicles[slot as usize];
            s + tail.distance - self.drivers[tail.kind as usize].length
        };
        let mut s = network.length[vehicle.drivable as usize] - vehicle.distance;
        let mut drivable = vehicle.next;
        while drivable != NONE {
            if self.is_link(drivable) {
                // Any vehicle that came from the same lane counts, wherever it turns.
                let mut nearest: Option<Leader> = None;
                for &link in network.links_of_lane(network.link(drivable as usize).start as usize) {
                    let slot = last_of(&state.places[link as usize]);
                    if slot != NONE {
                        let gap = gap_to(s, slot);
                        if nearest.is_none_or(|nearest| gap < nearest.gap) {
                            nearest = Some(Leader { slot, gap });
                        }
                    }
                }
                if nearest.is_some() {
                    return nearest;
                }
            } else {
                let slot = last_of(&state.places[drivable as usize]);
                if slot != NONE {
                    return Some(Leader { slot, gap: gap_to(s, slot) });
                }
            }
            s += network.length[drivable as usize];
            if s > driver.look_ahead {
                return None;
            }
            drivable = self.demand.routes.next_drivable(network, vehicle.at, drivable);
        }
        None
    }
}

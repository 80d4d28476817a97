//! Who departs when: as the files say, or as chance changes it.

use phalanx_junctions::{Departure, Simulation};

use super::settings::JunctionsSettings;
use crate::base::stream::{Place, Stream};
use crate::{Error, Result};

/// Departures of the files, and how chance changes them.
#[derive(Debug)]
pub struct Departures {
    listed: Vec<Departure>,
    jitter: f64,
    demand: f64,
    seconds: f64,
}

impl Departures {
    /// None where all vehicles depart as the files say.
    pub fn new(settings: &JunctionsSettings, start: &Simulation) -> Result<Option<Self>> {
        let JunctionsSettings { jitter, demand, seconds, .. } = *settings;
        if jitter == 0.0 && demand == 1.0 {
            return Ok(None);
        }
        let listed = start.demand().departures(start.settings().interval, seconds);
        let listed = listed.map_err(|error| Error::config("world.seconds", error.to_string()))?;
        Ok(Some(Departures { listed, jitter, demand, seconds: f64::from(seconds) }))
    }

    /// Those of an episode. Every vehicle has numbers of its own: one that stays away changes no other.
    pub fn draw(&self, stream: &Stream, place: Place) -> Vec<Departure> {
        let drawn = self.listed.iter().enumerate().filter_map(|(number, departure)| {
            let mut numbers = stream.sequence(place, number as u32);
            let [lot, shift] = [numbers.uniform(), numbers.uniform()];
            let time = departure.time + (2.0 * shift - 1.0) * self.jitter;
            // Mirrored at both ends, lest many depart at once in the first second, or some never.
            let mut time = time.abs();
            while time > self.seconds {
                time = (2.0 * self.seconds - time).abs();
            }
            (lot < self.demand).then_some(Departure { flow: departure.flow, time })
        });
        drawn.collect()
    }
}

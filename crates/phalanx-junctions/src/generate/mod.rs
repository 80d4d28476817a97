//! Made-up towns: grids and irregular networks, with demand, as CityFlow files.

mod demand;
mod roadnet;
mod town;

use crate::error::out_of_range;
use crate::error::{Error, Result};
use crate::network::SHORTEST_LANE;
use town::Town;

/// A road network and its flows as texts of CityFlow's files.
#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    /// Text of `roadnet.json`.
    pub roadnet: String,
    /// Text of `flow.json`.
    pub flow: String,
}

/// What a town is like. Every junction has nine phases: 0 right turns only, 1 straight on from west and east,
/// 2 from south and north, 3 and 4 the same to the left, 5 to 8 everything from west, east, south and north.
/// Right turns are always green.
#[derive(Clone, Debug, PartialEq)]
pub struct TownSettings {
    /// Junctions from south to north, 1 to 100.
    pub rows: usize,
    /// Junctions from west to east, 1 to 100.
    pub columns: usize,
    /// Lengths of roads from west to east in metres, repeated as often as needed; each 100 to 10000.
    pub lengths_east: Vec<f64>,
    /// Lengths of roads from south to north, likewise.
    pub lengths_north: Vec<f64>,
    /// Lanes of a road, 1 to 6: with 3 or more the first is for left turns, the last for right turns.
    pub lanes: usize,
    /// Speed limit in m/s, 1 to 40.
    pub speed_limit: f64,
    /// How often vehicles turn left, go straight and turn right at a junction; not all 0.
    pub turning: [f64; 3],
    /// Vehicles per hour that start at each entrance, 0 to 3600.
    pub vehicles_per_hour: f64,
    /// Seconds during which vehicles start, up to 1000000.
    pub seconds: u32,
    /// Seed of what is left to chance.
    pub seed: u32,
    /// What makes it irregular; `None` for a grid.
    pub irregular: Option<Irregular>,
}

/// What makes a town irregular.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Irregular {
    /// Share of roads between junctions, and of entrances, that are missing, 0 to 1. A junction keeps at
    /// least three roads, and every place can still be reached from every other, so high shares leave more
    /// roads than asked for.
    pub missing: f64,
    /// How far a junction may lie off its place in the grid, as a share of the shortest road, 0 to 0.3.
    pub shift: f64,
}

impl Default for TownSettings {
    /// A grid of 3 × 4 junctions with roads of 300 m, three lanes and the turning shares of the common
    /// benchmarks.
    fn default() -> Self {
        Self {
            rows: 3,
            columns: 4,
            lengths_east: vec![300.0],
            lengths_north: vec![300.0],
            lanes: 3,
            speed_limit: 11.111,
            turning: [0.1, 0.6, 0.3],
            vehicles_per_hour: 500.0,
            seconds: 3600,
            seed: 0,
            irregular: None,
        }
    }
}

/// Vehicles times rows and columns, at most: their routes then fit into a file that can be read.
const MOST_PASSED: f64 = 1e8;

impl TownSettings {
    /// Makes the town. The same settings make the same texts.
    ///
    /// # Errors
    /// Settings out of range, by name.
    pub fn generate(&self) -> Result<Files> {
        self.check()?;
        let town = Town::new(self);
        Ok(Files { roadnet: roadnet::text(&town, self), flow: demand::text(&town, self) })
    }

    fn check(&self) -> Result<()> {
        let [left, straight, right] = self.turning;
        let irregular = self.irregular.unwrap_or(Irregular { missing: 0.0, shift: 0.0 });
        let turned = left + straight + right;
        let mut ranges = vec![
            ("rows", self.rows as f64, 1.0, 100.0),
            ("columns", self.columns as f64, 1.0, 100.0),
            ("lanes", self.lanes as f64, 1.0, 6.0),
            ("speed_limit", self.speed_limit, 1.0, 40.0),
            ("turning", left, 0.0, 1e6),
            ("turning", straight, 0.0, 1e6),
            ("turning", right, 0.0, 1e6),
            ("turning", turned, 1e-6, 3e6),
            ("vehicles_per_hour", self.vehicles_per_hour, 0.0, 3600.0),
            ("seconds", f64::from(self.seconds), 0.0, 1e6),
            ("missing", irregular.missing, 0.0, 1.0),
            ("shift", irregular.shift, 0.0, 0.3),
        ];
        for (key, lengths) in [("lengths_east", &self.lengths_east), ("lengths_north", &self.lengths_north)] {
            if lengths.is_empty() {
                return Err(Error::setting(key, "needs at least one length, has none"));
            }
            ranges.extend(lengths.iter().map(|&length| (key, length, 100.0, 10_000.0)));
        }
        for (key, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return Err(Error::setting(key, out_of_range(value, least, most)));
            }
        }
        let shortest =
            self.lengths_east.iter().chain(&self.lengths_north).copied().fold(f64::INFINITY, f64::min);
        let needed = 2.0 * roadnet::width(self.lanes) + SHORTEST_LANE;
        if (1.0 - 2.0 * irregular.shift) * shortest < needed {
            let most = (100.0 * (1.0 - needed / shortest) / 2.0).floor().max(0.0) / 100.0;
            let what = format!(
                "with roads of {shortest} m and {} lanes, junctions come too near to each other; allowed is up to \
                 {most}, or fewer lanes or longer roads",
                self.lanes
            );
            return Err(Error::setting("shift", what));
        }
        let entrances = 2 * (self.rows + self.columns);
        let vehicles = entrances as f64 * f64::from(self.seconds) * self.vehicles_per_hour / 3600.0;
        if vehicles > 1e6 {
            let what = format!("about {vehicles:.0} vehicles would start, at most 1000000 may");
            return Err(Error::setting("vehicles_per_hour", what));
        }
        let passed = vehicles * (self.rows + self.columns) as f64;
        if passed > MOST_PASSED {
            let what = format!(
                "about {vehicles:.0} vehicles would cross a town of this size, at most {:.0} may",
                vehicles * MOST_PASSED / passed
            );
            return Err(Error::setting("vehicles_per_hour", what));
        }
        Ok(())
    }
}

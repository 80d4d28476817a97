//! What `[world]` says of junctions, and the network that it means.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use phalanx_junctions::{Demand, Irregular, Network, TownSettings};
use serde::{Deserialize, Serialize};

use super::{Junctions, read_files};
use crate::base::error::ensure;
use crate::base::key::WORLD_N;
use crate::world::registry::{check_probability, squarest};
use crate::world::{MakeSized, SizedWorld, Surroundings, World, WorldSettings};
use crate::{Error, Result};

/// The keys of `[world]` beside `kind = "junctions"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JunctionsSettings {
    /// Road network, CityFlow's `roadnet.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roadnet: Option<PathBuf>,
    /// Flows on it, CityFlow's `flow.json`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flow: Option<PathBuf>,
    /// Seconds between decisions.
    pub decision: u32,
    /// Seconds of phase 0 after a change, within those of the decision.
    pub yellow: u32,
    /// How many phases are used: 1 to this of the file, or as many as a junction has.
    pub phases: usize,
    /// Seconds by which a departure may be earlier or later.
    pub jitter: f64,
    /// Probability that a vehicle of the file departs at all.
    pub demand: f64,
    /// Seconds during which vehicles start: in a town that is made up, and in files where `jitter` or
    /// `demand` draw who departs. Vehicles of a file that start later are then left out.
    pub seconds: u32,
    /// What the finite states tell.
    pub cells: Cells,
    /// Whether signals may break the rules on them.
    pub rules: Rules,
    /// A town that is made up, in place of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub town: Option<Town>,
}

/// The keys of `[world.town]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Town {
    /// Junctions from south to north and from west to east.
    pub grid: [usize; 2],
    /// Length of roads in metres.
    pub road_length: f64,
    /// Vehicles per hour that start at each entrance.
    pub vehicles_per_hour: f64,
    /// Share of roads and entrances that are missing.
    pub missing: f64,
    /// How far junctions lie off the grid, as a share of the road length.
    pub shift: f64,
    /// Seed of the town.
    pub seed: u32,
}

/// What the finite state of a junction tells beside its phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cells {
    /// The longest red, the fullest lane, and whether an exit is blocked.
    Traffic,
    /// The longest red, and which rules are broken.
    Rules,
}

/// Whether signals may break the rules on green times and skipped phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rules {
    /// They may: constraints are on them.
    Free,
    /// A phase after which they could not be kept is replaced by one after which they can.
    Mask,
}

impl Default for JunctionsSettings {
    fn default() -> Self {
        JunctionsSettings {
            roadnet: None,
            flow: None,
            decision: 10,
            yellow: 5,
            phases: 8,
            jitter: 0.0,
            demand: 1.0,
            seconds: 3600,
            cells: Cells::Traffic,
            rules: Rules::Free,
            town: None,
        }
    }
}

impl Default for Town {
    fn default() -> Self {
        Town { grid: [4, 4], road_length: 300.0, vehicles_per_hour: 400.0, missing: 0.0, shift: 0.0, seed: 0 }
    }
}

/// Phases that can be used: with them states fit into a byte.
pub const MOST_PHASES: usize = 8;
/// Junctions along a side of a town that is made up, at most.
const LARGEST_SIDE: usize = 100;
/// Departures are drawn for as long as this at most.
const MOST_SECONDS: u32 = 1_000_000;

impl WorldSettings for JunctionsSettings {
    fn build(&self, around: &Surroundings<'_>) -> Result<Arc<dyn World>> {
        let (network, demand) = self.traffic(around.locate)?;
        let mut world = Junctions::new(self, network, demand)?;
        around.relink(&mut world.graph)?;
        Ok(Arc::new(world))
    }

    fn completed(self) -> Self {
        let town = match &self.roadnet {
            Some(_) => self.town,
            None => Some(self.town.unwrap_or_default()),
        };
        JunctionsSettings { town, ..self }
    }

    fn files(&self) -> Vec<(&'static str, &Path)> {
        let files = [("roadnet", &self.roadnet), ("flow", &self.flow)];
        files.into_iter().filter_map(|(key, file)| Some((key, file.as_deref()?))).collect()
    }

    fn agent_name(&self) -> &'static str {
        "junction"
    }

    fn sized() -> Option<MakeSized> {
        Some(|agents| {
            let grid = agents.map_or(Ok(Town::default().grid), |agents| squarest(agents, 1))?;
            let is_possible = grid.iter().all(|&side| side <= LARGEST_SIDE);
            ensure(is_possible, || {
                let [rows, columns] = grid;
                let most = format!("allowed are {LARGEST_SIDE} × {LARGEST_SIDE}");
                Error::config(WORLD_N, format!("a town of {rows} × {columns} junctions is too large; {most}"))
            })?;
            let settings = JunctionsSettings {
                town: Some(Town { grid, ..Town::default() }),
                ..JunctionsSettings::default()
            };
            let (network, demand) = settings.traffic(&|file| file.into())?;
            let world = Junctions::new(&settings, network, demand)?;
            let [rows, columns] = grid;
            Ok(SizedWorld {
                world: Arc::new(world),
                kappa: 0,
                shape: format!("at {rows} × {columns} junctions"),
            })
        })
    }
}

impl JunctionsSettings {
    /// Fails where a number is out of its range.
    pub(super) fn check(&self) -> Result<()> {
        let refuse = |key: &str, message: String| Err(Error::config(format!("world.{key}"), message));
        let JunctionsSettings { decision, yellow, phases, jitter, seconds, .. } = *self;
        if !(1..=3600).contains(&decision) {
            return refuse("decision", format!("{decision}; allowed are 1 to 3600 seconds"));
        }
        if yellow > decision {
            return refuse(
                "yellow",
                format!("{yellow}; allowed are 0 to the {decision} seconds of a decision"),
            );
        }
        if self.rules == Rules::Mask && yellow == decision {
            let message = format!(
                "{yellow}; with world.rules = \"mask\" a phase must show green within its decision, {decision} s"
            );
            return refuse("yellow", message);
        }
        if !(1..=MOST_PHASES).contains(&phases) {
            return refuse("phases", format!("{phases}; allowed are 1 to {MOST_PHASES}"));
        }
        if !(0.0..=3600.0).contains(&jitter) {
            return refuse("jitter", format!("{jitter}; allowed are 0 to 3600 seconds"));
        }
        if !(1..=MOST_SECONDS).contains(&seconds) {
            return refuse("seconds", format!("{seconds}; allowed are 1 to {MOST_SECONDS}"));
        }
        check_probability("world.demand", self.demand)
    }

    /// Roads and flows.
    fn traffic(&self, locate: &dyn Fn(&Path) -> PathBuf) -> Result<(Arc<Network>, Arc<Demand>)> {
        match (&self.roadnet, &self.flow) {
            (Some(roadnet), Some(flow)) => {
                let message = "does not go with world.roadnet, whose roads are used";
                ensure(self.town.is_none(), || Error::config("world.town", message))?;
                read_files(&locate(roadnet), &locate(flow))
            }
            (None, None) => self.town.unwrap_or_default().generate(self.seconds),
            (Some(_), None) => Err(Error::config("world.flow", "is missing; world.roadnet needs its flows")),
            (None, Some(_)) => Err(Error::config("world.roadnet", "is missing; world.flow needs its roads")),
        }
    }
}

impl Town {
    /// What makes its files; vehicles start during so many seconds.
    pub fn settings(&self, seconds: u32) -> TownSettings {
        let Town { grid: [rows, columns], road_length, vehicles_per_hour, missing, shift, seed } = *self;
        let is_irregular = missing != 0.0 || shift != 0.0;
        TownSettings {
            rows,
            columns,
            lengths_east: vec![road_length],
            lengths_north: vec![road_length],
            vehicles_per_hour,
            seconds,
            seed,
            irregular: is_irregular.then_some(Irregular { missing, shift }),
            ..TownSettings::default()
        }
    }

    /// What it calls a key of those.
    pub fn key(of_settings: &'static str) -> &'static str {
        match of_settings {
            "rows" | "columns" => "grid",
            "lengths_east" | "lengths_north" => "road_length",
            key => key,
        }
    }

    /// Its roads and flows.
    fn generate(&self, seconds: u32) -> Result<(Arc<Network>, Arc<Demand>)> {
        let blame = |error: phalanx_junctions::Error| match error {
            phalanx_junctions::Error::Setting { key: "seconds", what } => {
                Error::config("world.seconds", what)
            }
            phalanx_junctions::Error::Setting { key, what } => {
                Error::config(format!("world.town.{}", Town::key(key)), what)
            }
            other => Error::config("world.town", other.to_string()),
        };
        let files = self.settings(seconds).generate().map_err(blame)?;
        let network = Network::read(&files.roadnet).map_err(blame)?;
        let demand = Demand::read(&files.flow, &network).map_err(blame)?;
        Ok((Arc::new(network), Arc::new(demand)))
    }
}

//! `phalanx new junctions`: a road network with flows, and a configuration that trains on it.

use std::path::PathBuf;

use phalanx::Error;
use phalanx::run::preset;
use phalanx::world::junctions::Town;
use phalanx_junctions::TownSettings;

#[derive(clap::Args)]
pub struct JunctionsArgs {
    /// Folder to write to; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Junctions from south to north and from west to east.
    #[arg(long, value_name = "ROWSxCOLUMNS", default_value = "4x4")]
    grid: String,
    /// Length of roads in metres, 100 to 10000.
    #[arg(long, value_name = "METRES", default_value_t = 300.0)]
    road_length: f64,
    /// Lanes of a road, 1 to 6.
    #[arg(long, default_value_t = 3)]
    lanes: usize,
    /// Vehicles per hour that start at each entrance, 0 to 3600.
    #[arg(long, value_name = "N", default_value_t = 400.0)]
    vehicles_per_hour: f64,
    /// Seconds during which vehicles start.
    #[arg(long, value_name = "N", default_value_t = 3600)]
    seconds: u32,
    /// Share of roads and entrances that are missing, 0 to 1: not a grid any more.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    missing: f64,
    /// How far junctions lie off the grid, as a share of the road length, 0 to 0.3.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    shift: f64,
    /// Seed of what is left to chance.
    #[arg(long, default_value_t = 0)]
    seed: u32,
}

/// The files, by name.
const ROADNET: &str = "roadnet.json";
const FLOW: &str = "flow.json";
const CONFIG: &str = "junctions.toml";

/// The preset, and the section from which on it says how to learn.
const PRESET: &str = "junctions-grid4x4";
const LEARNING: &str = "\n[policy]\n";

/// Seconds between decisions in the configuration.
const DECISION: u32 = 5;

pub fn run(args: &JunctionsArgs) -> anyhow::Result<()> {
    let town = args.town()?.generate().map_err(named_flag)?;
    let files = [(ROADNET, town.roadnet), (FLOW, town.flow), (CONFIG, config(args.seconds))];
    super::write(&args.out, &files, &[super::train(&args.out, CONFIG)])
}

impl JunctionsArgs {
    fn town(&self) -> Result<TownSettings, Error> {
        let sizes = self.grid.split_once('x').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        let (rows, columns) = sizes.ok_or_else(|| {
            Error::argument("grid", format!("`{}` is no grid; write ROWSxCOLUMNS, e.g. 4x4", self.grid))
        })?;
        if self.seconds == 0 {
            return Err(Error::argument("seconds", "0; vehicles must start during 1 second at least"));
        }
        let JunctionsArgs { road_length, lanes, vehicles_per_hour, seconds, missing, shift, seed, .. } =
            *self;
        let town = Town { grid: [rows, columns], road_length, vehicles_per_hour, missing, shift, seed };
        Ok(TownSettings { lanes, ..town.settings(seconds) })
    }
}

/// Settings of the town are flags here.
fn named_flag(error: phalanx_junctions::Error) -> Error {
    let phalanx_junctions::Error::Setting { key, what } = error else {
        return Error::config("what", error.to_string());
    };
    let flag = match Town::key(key) {
        "road_length" => "road-length",
        "vehicles_per_hour" => "vehicles-per-hour",
        key => key,
    };
    Error::argument(flag, what)
}

/// The preset for a made-up town, with files in place of the town: how it learns is word for word the same.
/// Episodes last as long as vehicles start.
fn config(seconds: u32) -> String {
    let horizon = seconds.div_ceil(DECISION).max(1);
    let numbers = [("{seconds}", seconds), ("{horizon}", horizon), ("{budget}", horizon.div_ceil(20))];
    let text = include_str!("junctions.toml").replace("{roadnet}", ROADNET).replace("{flow}", FLOW);
    let text = numbers.iter().fold(text, |text, (name, number)| text.replace(name, &number.to_string()));
    let preset = preset::text(PRESET).unwrap_or_default();
    let learning = preset.find(LEARNING).map_or("", |at| &preset[at..]);
    text + learning
}

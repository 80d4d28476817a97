//! Traffic on a road network, with signals as a file or the network's own program says.

use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use phalanx::Error;
use phalanx::base::files::read_text;
use phalanx::base::text;
use phalanx::world::junctions::read_any_files;
use phalanx_junctions::{Network, Settings, Simulation};

use crate::{print, print_to_reader, say};

/// What is replayed of `junctions`.
#[derive(clap::Args)]
pub struct TrafficArgs {
    /// junctions: the road network, CityFlow's roadnet.json.
    #[arg(long, value_name = "FILE.json")]
    roadnet: Option<PathBuf>,
    /// junctions: the flows, CityFlow's flow.json.
    #[arg(long, value_name = "FILE.json")]
    flow: Option<PathBuf>,
    /// junctions: seed of the engine, which orders vehicles and chooses first lanes; negative ones as in
    /// CityFlow [default: 0].
    #[arg(long, allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(SEEDS))]
    seed: Option<i64>,
    /// junctions: seconds per step [default: 1].
    #[arg(long, value_name = "DT")]
    interval: Option<f64>,
    /// junctions: how many steps.
    #[arg(long, value_name = "N")]
    steps: Option<u32>,
    /// junctions: phases, a row for every step without a header, junctions in the order of the road network,
    /// separated by semicolons.
    #[arg(long, value_name = "FILE.csv", conflicts_with = "own_program")]
    phases: Option<PathBuf>,
    /// junctions: signals follow the program in the road network.
    #[arg(long)]
    own_program: bool,
    /// junctions: go back to the start before this step, from 0; random numbers go on.
    #[arg(long, value_name = "STEP")]
    reset_at: Option<u32>,
}

/// Numbers of 32 bits, with a sign or without.
const SEEDS: RangeInclusive<i64> = i32::MIN as i64..=u32::MAX as i64;

/// Columns of what is printed.
const HEADER: &str = "step,hash,running,waiting_outside,finished\n";

/// What is printed at once, in bytes.
const BLOCK: usize = 1 << 16;

impl TrafficArgs {
    /// Whether anything of it was given.
    pub fn is_given(&self) -> bool {
        let files = [&self.roadnet, &self.flow, &self.phases];
        let numbers = [self.steps, self.reset_at];
        files.iter().any(|file| file.is_some())
            || self.seed.is_some()
            || numbers.iter().any(Option::is_some)
            || self.interval.is_some()
            || self.own_program
    }

    /// A line after every step: a hash of all vehicles' places and speeds, and how many there are.
    pub fn replay(&self) -> Result<(), Error> {
        let roadnet = needed(self.roadnet.as_deref(), "roadnet")?;
        let flow = needed(self.flow.as_deref(), "flow")?;
        let steps = needed(self.steps, "steps")?;
        if steps == 0 {
            return Err(Error::argument("steps", "0; a replay has 1 step at least"));
        }
        if self.phases.is_none() && !self.own_program {
            let message = "is missing; name a file with a row per step, or use --own-program";
            return Err(Error::argument("phases", message));
        }
        if let Some(step) = self.reset_at.filter(|&step| step >= steps) {
            let message = format!("{step} of {steps} steps; allowed are 0 to {}", steps - 1);
            return Err(Error::argument("reset-at", message));
        }
        let (network, demand) = read_any_files(roadnet, flow)?;
        let rows = match &self.phases {
            Some(file) => phase_rows(file, &read_text(file)?, &network, steps)?,
            None => Vec::new(),
        };
        let settings = Settings {
            interval: self.interval.unwrap_or(1.0),
            // The generator takes the bits of a 32-bit number, with a sign or without.
            seed: self.seed.unwrap_or(0) as u32,
            own_program: self.own_program,
        };
        let mut simulation = Simulation::new(network, demand, settings).map_err(named_flag)?;
        let mut text = String::from(HEADER);
        for step in 0..steps {
            if self.reset_at == Some(step) {
                simulation.reset(false);
            }
            for (junction, &phase) in rows.get(step as usize).into_iter().flatten().enumerate() {
                simulation.set_phase(junction, phase).map_err(named_flag)?;
            }
            simulation.step();
            let (running, outside) = (simulation.running(), simulation.waiting_outside());
            let (hash, finished) = (simulation.hash(), simulation.finished());
            let _ = writeln!(text, "{},{hash:016x},{running},{outside},{finished}", step + 1);
            if text.len() > BLOCK {
                if !print_to_reader(&text) {
                    return Ok(());
                }
                text.clear();
            }
        }
        print(&text);
        say(&format!("{:?}", simulation.average_travel_time()));
        Ok(())
    }
}

/// A flag that must be there.
fn needed<T>(value: Option<T>, flag: &'static str) -> Result<T, Error> {
    value.ok_or_else(|| Error::argument(flag, "is missing; `junctions` needs it"))
}

/// The engine's settings are flags here.
fn named_flag(error: phalanx_junctions::Error) -> Error {
    match error {
        phalanx_junctions::Error::Setting { key: "interval", what } => Error::argument("interval", what),
        phalanx_junctions::Error::Setting { key: "own_program", what } => {
            Error::argument("own-program", what)
        }
        other => Error::config("world", other.to_string()),
    }
}

/// Whether the first `steps` rows of a file of phases fit a road network.
pub fn check_phases(roadnet: &str, file: &Path, text: &str, steps: u32) -> Result<(), Error> {
    let network = Network::read(roadnet).map_err(named_flag)?;
    phase_rows(file, text, &network, steps).map(|_| ())
}

/// The phases of every junction in the first `steps` rows; there may be more.
fn phase_rows(file: &Path, text: &str, network: &Network, steps: u32) -> Result<Vec<Vec<usize>>, Error> {
    // Some editors begin a text with a mark of its encoding.
    let lines =
        text.trim_start_matches('\u{feff}').lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let rows: Vec<Vec<usize>> = lines
        .take(steps as usize)
        .map(|(number, line)| {
            phase_row(line, network).map_err(|what| Error::file(file, format!("line {}: {what}", number + 1)))
        })
        .collect::<Result<_, _>>()?;
    if rows.len() < steps as usize {
        return Err(Error::file(file, format!("has {} rows for {steps} steps", rows.len())));
    }
    Ok(rows)
}

fn phase_row(line: &str, network: &Network) -> Result<Vec<usize>, String> {
    let junctions = network.junctions();
    let fields: Vec<&str> = line.split(';').map(str::trim).collect();
    if fields.len() != junctions.len() {
        return Err(format!("{} phases for {} junctions", fields.len(), junctions.len()));
    }
    let phase = |(junction, field): (usize, &&str)| {
        let last = junctions[junction].phases.len() - 1;
        let phase = field.parse().ok().filter(|&phase: &usize| phase <= last);
        phase.ok_or_else(|| {
            let id = network.junction_id(junction);
            format!("junction {id}: `{}` is no phase; allowed are 0 to {last}", text::name(field))
        })
    };
    fields.iter().enumerate().map(phase).collect()
}

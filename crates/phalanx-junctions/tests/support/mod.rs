//! Reading reference data: recordings of CityFlow, and the networks they were made on.

#![allow(dead_code, reason = "every test program uses its own part")]

use flate2::read::GzDecoder;
use phalanx_junctions::{Demand, Network, Settings, Simulation};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Recordings and networks that come with the crate.
pub fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference")
}

/// The full collection beside the checkout, which holds networks that may not be copied; `None` where it is
/// missing.
pub fn beside_the_checkout() -> Option<PathBuf> {
    let folder = match std::env::var_os("JUNCTIONS_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/junctions"),
    };
    if folder.join("index.json").exists() {
        return Some(folder);
    }
    println!("skipped: no reference data in {} (JUNCTIONS_DATA names another folder)", folder.display());
    None
}

/// The bytes of a file that is compressed with gzip.
pub fn unzip(path: &Path) -> Vec<u8> {
    let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

/// The text of a file of a network, such as `roadnet.json`.
pub fn net_file(folder: &Path, net: &str, file: &str) -> String {
    String::from_utf8(unzip(&folder.join("nets").join(net).join(format!("{file}.gz")))).unwrap()
}

/// Names of the networks in a folder.
pub fn nets(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("nets")).unwrap();
    let mut nets: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    nets.sort();
    nets
}

/// The entries of `index.json`, one for every recording.
pub fn index(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("index.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// What CityFlow did, step by step.
pub struct Recording {
    pub entry: Value,
    pub junctions: usize,
    pub lanes: usize,
    phases: Vec<u8>,
    seconds: Vec<u8>,
    lane_counts: Vec<u8>,
    states: Vec<u8>,
}

/// What a recording says about the network after a step.
#[derive(Debug, PartialEq)]
pub struct Second {
    pub hash: u64,
    pub running: usize,
    pub waiting_outside: usize,
    pub finished: usize,
}

/// A vehicle after a step: flow, number, drivable, priority, distance and speed as bits.
pub type VehicleState = (u32, u32, usize, i32, u64, u64);

impl Recording {
    pub fn read(folder: &Path, entry: &Value, network: &Network) -> Self {
        let bytes = unzip(&folder.join(format!("{}.bin.gz", entry["name"].as_str().unwrap())));
        let mut rest = &bytes[16..];
        let mut part = |index: usize| {
            let size = u32::from_le_bytes(bytes[4 * index..4 * index + 4].try_into().unwrap());
            let (part, after) = rest.split_at(size as usize);
            rest = after;
            part.to_vec()
        };
        Self {
            entry: entry.clone(),
            junctions: network.junctions().len(),
            lanes: network.lane_count(),
            phases: part(0),
            seconds: part(1),
            lane_counts: part(2),
            states: part(3),
        }
    }

    pub fn steps(&self) -> usize {
        self.entry["steps"].as_u64().unwrap() as usize
    }

    /// Whether the signals follow their own program.
    pub fn is_fixed(&self) -> bool {
        self.entry["program"] == "fixed"
    }

    pub fn settings(&self) -> Settings {
        Settings {
            interval: self.entry["dt"].as_f64().unwrap_or(1.0),
            seed: self.entry["seed"].as_u64().unwrap() as u32,
            own_program: self.is_fixed(),
        }
    }

    /// The step before which the engine was reset.
    pub fn reset(&self) -> Option<usize> {
        self.entry["reset"].as_u64().map(|step| step as usize)
    }

    /// The phases in force during a step.
    pub fn phases(&self, step: usize) -> impl Iterator<Item = usize> + '_ {
        self.phases[step * self.junctions..][..self.junctions].iter().map(|&phase| phase as usize)
    }

    /// What was seen after a step.
    pub fn second(&self, step: usize) -> Second {
        let bytes = &self.seconds[16 * step..][..16];
        let short = |at: usize| usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()));
        Second {
            hash: u64::from_le_bytes(bytes[..8].try_into().unwrap()),
            running: short(8),
            waiting_outside: short(10),
            finished: u32::from_le_bytes(bytes[12..].try_into().unwrap()) as usize,
        }
    }

    /// Vehicles and waiting vehicles per lane after a step; every tenth step has them.
    pub fn lane_counts(&self, step: usize) -> Option<(&[u8], &[u8])> {
        let block = (step % 10 == 9).then_some(step / 10)?;
        let counts = self.lane_counts.get(2 * block * self.lanes..2 * (block + 1) * self.lanes)?;
        Some(counts.split_at(self.lanes))
    }

    /// All vehicles after some steps, each with the number of steps made.
    pub fn states(&self) -> Vec<(usize, Vec<VehicleState>)> {
        let mut rest = &self.states[..];
        let mut take = |size: usize| {
            let (taken, after) = rest.split_at(size.min(rest.len()));
            rest = after;
            taken
        };
        let mut states = Vec::new();
        loop {
            let head = take(8);
            if head.is_empty() {
                return states;
            }
            let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
            let n = word(&head[4..]) as usize;
            let (ids, distances, speeds) = (take(10 * n), take(8 * n), take(8 * n));
            let short = |bytes: &[u8]| u32::from(u16::from_le_bytes(bytes[..2].try_into().unwrap()));
            let long = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().unwrap());
            let vehicle = |i: usize| {
                let id = &ids[10 * i..];
                let (flow, number, drivable) = (short(id), short(&id[2..]), short(&id[4..]) as usize);
                let priority = word(&id[6..]) as i32;
                (flow, number, drivable, priority, long(&distances[8 * i..]), long(&speeds[8 * i..]))
            };
            states.push((word(head) as usize, (0..n).map(vehicle).collect()));
        }
    }
}

/// A simulation of what was recorded, at its start.
pub fn simulation(folder: &Path, entry: &Value) -> (Simulation, Recording) {
    let net = entry["net"].as_str().unwrap();
    let network = Arc::new(Network::read(&net_file(folder, net, "roadnet.json")).unwrap());
    let flow = entry["flow"].as_str().unwrap_or("flow.json");
    let demand = Arc::new(Demand::read(&net_file(folder, net, flow), &network).unwrap());
    let recording = Recording::read(folder, entry, &network);
    (Simulation::new(network, demand, recording.settings()).unwrap(), recording)
}

/// What the simulation says about the network now.
pub fn second_of(simulation: &Simulation) -> Second {
    Second {
        hash: simulation.hash(),
        running: simulation.running(),
        waiting_outside: simulation.waiting_outside(),
        finished: simulation.finished(),
    }
}

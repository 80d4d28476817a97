//! How fast traffic on a road network is simulated: vehicles in the network times steps.

use std::path::Path;
use std::time::{Duration, Instant};

use phalanx::Error;
use phalanx::world::junctions::{KIND, read_any_files};
use phalanx_junctions::{Settings, Simulation};
use rayon::prelude::*;
use serde_json::json;

use crate::print;

/// Seconds that are simulated, with the signals' own program.
const STEPS: u32 = 3600;

/// Measures copies of one simulation, as many at a time as there are threads.
pub fn measure(roadnet: &Path, flow: &Path, as_json: bool) -> anyhow::Result<()> {
    let (network, demand) = read_any_files(roadnet, flow)?;
    let junctions = network.junctions().len();
    let settings = Settings { own_program: true, ..Settings::default() };
    let start = Simulation::new(network, demand, settings)
        .map_err(|error| Error::file(roadnet, error.to_string()))?;
    let threads = rayon::current_num_threads();
    let vehicle_steps = drive(start.clone());
    let (begin, mut copies) = (Instant::now(), 0);
    while begin.elapsed() < Duration::from_secs(2) {
        let driven: Vec<u64> = (0..threads).into_par_iter().map(|_| drive(start.clone())).collect();
        copies += driven.len();
    }
    let seconds = begin.elapsed().as_secs_f64();
    let per_second = copies as f64 / seconds;
    let speed = per_second * vehicle_steps as f64;
    let simulated = per_second * f64::from(STEPS);
    print(&if as_json {
        let line = json!({
            "world": KIND, "n": junctions, "threads": threads, "steps": STEPS, "copies": copies,
            "vehicle_steps": vehicle_steps, "vehicle_steps_per_s": speed, "simulated_s_per_s": simulated,
        });
        format!("{line}\n")
    } else {
        format!(
            "{junctions} junctions, {vehicle_steps} vehicle-steps in {STEPS} s: {:.2} million vehicle-steps per \
             second, {simulated:.0} simulated seconds per second, threads: {threads}\n",
            speed / 1e6
        )
    });
    Ok(())
}

/// Vehicle-steps of a run.
fn drive(mut simulation: Simulation) -> u64 {
    let mut vehicle_steps = 0;
    for _ in 0..STEPS {
        simulation.step();
        vehicle_steps += simulation.running() as u64;
    }
    vehicle_steps
}

//! How fast is it, on one core and on several? `cargo run --release -p phalanx-junctions --example speed --
//! roadnet.json flow.json [steps] [runs] [threads]`
//!
//! Files may be compressed with gzip. Signals follow the program of the file. Prints vehicle-steps per second
//! (vehicles in the network, summed over the steps), the median of the runs. Every thread runs a copy of its
//! own.

use flate2::read::GzDecoder;
use phalanx_junctions::{Demand, Network, Settings, Simulation};
use std::io::Read;
use std::sync::Arc;
use std::time::Instant;

fn read(path: &str) -> std::io::Result<String> {
    let mut text = String::new();
    let mut file = std::fs::File::open(path)?;
    if path.ends_with(".gz") {
        GzDecoder::new(file).read_to_string(&mut text)?;
    } else {
        file.read_to_string(&mut text)?;
    }
    Ok(text)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [roadnet, flow, numbers @ ..] = arguments.as_slice() else {
        return Err("speed ROADNET FLOW [STEPS] [RUNS] [THREADS]".into());
    };
    let number = |index: usize, default: u32| numbers.get(index).map_or(Ok(default), |text| text.parse());
    let (steps, runs, threads) = (number(0, 3600)?, number(1, 7)?.max(1), number(2, 1)?.max(1));

    let network = Arc::new(Network::read(&read(roadnet)?)?);
    let demand = Arc::new(Demand::read(&read(flow)?, &network)?);
    let settings = Settings { own_program: true, ..Settings::default() };
    let start = Simulation::new(network, demand, settings)?;
    let (vehicle_steps, average) = drive(start.clone(), steps);
    println!("{vehicle_steps} vehicle-steps, average travel time {average}");

    let mut speeds = Vec::new();
    for _ in 0..runs {
        let clock = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| drive(start.clone(), steps));
            }
        });
        let seconds = clock.elapsed().as_secs_f64();
        speeds.push(f64::from(threads) * vehicle_steps as f64 / seconds / 1e6);
    }
    speeds.sort_by(f64::total_cmp);
    let (least, middle, most) = (speeds[0], speeds[speeds.len() / 2], speeds[speeds.len() - 1]);
    println!(
        "{middle:.2} million vehicle-steps/s (median of {runs}, {least:.2} to {most:.2}, threads: {threads})"
    );
    Ok(())
}

/// Vehicle-steps and average travel time of a run.
fn drive(mut simulation: Simulation, steps: u32) -> (usize, f64) {
    let mut vehicle_steps = 0;
    for _ in 0..steps {
        simulation.step();
        vehicle_steps += simulation.running();
    }
    (vehicle_steps, simulation.average_travel_time())
}

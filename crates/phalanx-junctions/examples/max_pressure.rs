//! Signals that serve the longest queues, against signals that take turns, on a made-up town.
//! `cargo run --release -p phalanx-junctions --example max_pressure`

use phalanx_junctions::{Demand, Irregular, Network, Settings, Simulation, TownSettings, Turn};
use std::sync::Arc;

/// Seconds between decisions, and of phase 0 after a change.
const EVERY: u32 = 10;
const YELLOW: u32 = 3;

/// Waiting vehicles before a phase's green movements, less those on the roads behind (mean of the lanes).
fn pressure(simulation: &Simulation, junction: usize, phase: usize) -> f64 {
    let network = simulation.network();
    let junction = &network.junctions()[junction];
    let movements = junction.phases[phase].green.iter().map(|&movement| &junction.movements[movement]);
    movements
        .filter(|movement| movement.turn != Turn::Right)
        .map(|movement| {
            let waiting = |lane: usize| simulation.lane_waiting(lane) as f64;
            let exit = network.roads()[movement.end].lanes.clone();
            let lanes = exit.len() as f64;
            let before: f64 = movement.entry_lanes.iter().map(|&lane| waiting(lane)).sum();
            before - exit.map(waiting).sum::<f64>() / lanes
        })
        .sum()
}

/// The phase with the highest pressure, the first of equals.
fn best_phase(simulation: &Simulation, junction: usize) -> usize {
    let phases = simulation.network().junctions()[junction].phases.len();
    let mut best = (1, f64::NEG_INFINITY);
    for phase in 1..phases {
        let pressure = pressure(simulation, junction, phase);
        if pressure > best.1 {
            best = (phase, pressure);
        }
    }
    best.0
}

fn run(
    mut simulation: Simulation,
    choose: impl Fn(&Simulation, usize) -> usize,
) -> phalanx_junctions::Result<Simulation> {
    let mut chosen = vec![1; simulation.network().junctions().len()];
    let mut yellow_until = vec![0; chosen.len()];
    for second in 0..3600 {
        for junction in 0..chosen.len() {
            if second % EVERY == 0 {
                let phase = choose(&simulation, junction);
                if phase != chosen[junction] {
                    chosen[junction] = phase;
                    yellow_until[junction] = second + YELLOW;
                }
            }
            let is_yellow = second < yellow_until[junction];
            simulation.set_phase(junction, if is_yellow { 0 } else { chosen[junction] })?;
        }
        simulation.step();
    }
    Ok(simulation)
}

fn main() -> phalanx_junctions::Result<()> {
    let town = TownSettings {
        lengths_east: vec![250.0, 400.0],
        vehicles_per_hour: 400.0,
        irregular: Some(Irregular { missing: 0.15, shift: 0.1 }),
        ..TownSettings::default()
    };
    let files = town.generate()?;
    let network = Arc::new(Network::read(&files.roadnet)?);
    let demand = Arc::new(Demand::read(&files.flow, &network)?);
    let start = Simulation::new(network, demand, Settings::default())?;

    let turns = run(start.clone(), |simulation, _| 1 + simulation.steps() as usize / 30 % 4)?;
    let pressure = run(start, best_phase)?;
    for (name, simulation) in [("in turn", turns), ("max-pressure", pressure)] {
        println!(
            "{name:>12}: {:.1} s on average, {} arrived, {} on the way, {} outside",
            simulation.average_travel_time(),
            simulation.finished(),
            simulation.running(),
            simulation.waiting_outside()
        );
    }
    Ok(())
}

//! Does the engine make the trajectories of CityFlow, in every second and every bit?

mod support;

use phalanx_junctions::Simulation;
use serde_json::Value;
use std::path::Path;
use support::{Recording, VehicleState, second_of, simulation};

fn compare(folder: &Path, entry: &Value) {
    let name = entry["name"].as_str().unwrap();
    let (mut simulation, recording) = simulation(folder, entry);
    let mut states = recording.states().into_iter().peekable();
    let (mut full_states, mut vehicle_steps, mut approach_seconds) = (0, 0, 0);
    for step in 0..recording.steps() {
        if recording.reset() == Some(step) {
            simulation.reset(false);
        }
        for (junction, phase) in recording.phases(step).enumerate() {
            if recording.is_fixed() {
                assert_eq!(simulation.phase(junction), phase, "{name}: step {step}: junction {junction}");
            } else {
                simulation.set_phase(junction, phase).unwrap();
            }
        }
        simulation.step();
        if let Some((_, vehicles)) = states.next_if(|state| state.0 == step + 1) {
            assert_eq!(state_of(&simulation), vehicles, "{name}: step {step}");
            full_states += 1;
        }
        assert_eq!(second_of(&simulation), recording.second(step), "{name}: step {step}");
        compare_lanes(&simulation, &recording, step);
        vehicle_steps += simulation.running();
        let network = simulation.network();
        approach_seconds += (0..network.lane_count())
            .filter(|&lane| network.junction_after(lane).is_some())
            .map(|lane| simulation.lane_vehicles(lane))
            .sum::<usize>();
    }
    assert!(states.next().is_none(), "{name}: a recorded state was never reached");
    let average: f64 = entry["average_travel_time"].as_str().unwrap().parse().unwrap();
    assert_eq!(simulation.average_travel_time().to_bits(), average.to_bits(), "{name}");
    if recording.reset().is_none() {
        assert_eq!(approach_seconds as u64, entry["approach_seconds"].as_u64().unwrap(), "{name}");
    }
    println!("{name}: {} steps, {full_states} full states, {vehicle_steps} vehicle-steps", recording.steps());
}

fn compare_lanes(simulation: &Simulation, recording: &Recording, step: usize) {
    let Some((vehicles, waiting)) = recording.lane_counts(step) else { return };
    for lane in 0..recording.lanes {
        assert_eq!(simulation.lane_vehicles(lane), usize::from(vehicles[lane]), "step {step}: lane {lane}");
        assert_eq!(simulation.lane_waiting(lane), usize::from(waiting[lane]), "step {step}: lane {lane}");
    }
}

fn state_of(simulation: &Simulation) -> Vec<VehicleState> {
    let mut vehicles: Vec<_> = simulation
        .vehicles()
        .map(|v| {
            let (flow, number) = (v.id.flow, v.id.number);
            (flow, number, v.drivable, v.priority, v.distance.to_bits(), v.speed.to_bits())
        })
        .collect();
    vehicles.sort();
    vehicles
}

#[test]
fn shipped_recordings_are_repeated_in_every_second() {
    for entry in support::index(&support::shipped()) {
        compare(&support::shipped(), &entry);
    }
}

/// `JUNCTIONS_RECORDING=jinan` picks recordings by a part of their name.
#[test]
fn recordings_beside_the_checkout_are_repeated_in_every_second() {
    let Some(folder) = support::beside_the_checkout() else { return };
    let wanted = std::env::var("JUNCTIONS_RECORDING").unwrap_or_default();
    for entry in support::index(&folder) {
        if entry["name"].as_str().unwrap().contains(&wanted) {
            compare(&folder, &entry);
        }
    }
}

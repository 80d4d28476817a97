//! Are copies, saved states, listed departures and threads all the same simulation?

mod support;

use phalanx_junctions::{Demand, Departure, Simulation};
use support::{Recording, second_of};

fn start(name: &str) -> (Simulation, Recording) {
    let folder = support::shipped();
    let entry = support::index(&folder).into_iter().find(|entry| entry["name"] == name).unwrap();
    support::simulation(&folder, &entry)
}

fn run(simulation: &mut Simulation, recording: &Recording, steps: std::ops::Range<usize>) {
    for step in steps {
        if !recording.is_fixed() {
            for (junction, phase) in recording.phases(step).enumerate() {
                simulation.set_phase(junction, phase).unwrap();
            }
        }
        simulation.step();
        assert_eq!(second_of(simulation), recording.second(step), "step {step}");
    }
}

#[test]
fn a_saved_state_goes_on_as_if_nothing_had_happened() {
    for name in ["one_half_s3", "two_fixed_s0", "three_random15_s7", "star_random10_s9", "ties_mp10_s11"] {
        let (mut simulation, recording) = start(name);
        let (fresh, _) = start(name);
        for step in 0..recording.steps() {
            if step % 37 == 5 {
                let saved = simulation.save();
                let mut restored = fresh.clone();
                restored.restore(&saved).unwrap();
                assert_eq!(restored.save(), saved, "{name}: step {step}");
                assert_eq!(
                    restored.average_travel_time().to_bits(),
                    simulation.average_travel_time().to_bits(),
                    "{name}: step {step}"
                );
                simulation = restored;
            }
            run(&mut simulation, &recording, step..step + 1);
        }
    }
}

#[test]
fn states_of_other_simulations_are_refused() {
    let (one, _) = start("one_fixed_s0");
    let (mut two, _) = start("two_fixed_s0");
    let message = two.restore(&one.save()).unwrap_err().to_string();
    assert!(message.contains("another network"), "{message}");
    let mut listed = one.restarted_with(&one.demand().departures(1.0, 100).unwrap()).unwrap();
    let message = listed.restore(&one.save()).unwrap_err().to_string();
    assert!(message.contains("other departures"), "{message}");
}

#[test]
fn copies_do_not_touch_each_other() {
    let (mut simulation, recording) = start("two_random10_s5");
    run(&mut simulation, &recording, 0..300);
    let mut copy = simulation.clone();
    copy.set_phase(0, 0).unwrap();
    for _ in 0..200 {
        copy.step();
    }
    run(&mut simulation, &recording, 300..600);
}

#[test]
fn listed_departures_are_the_flows_bit_for_bit() {
    for entry in support::index(&support::shipped()) {
        let (simulation, recording) = support::simulation(&support::shipped(), &entry);
        if recording.reset().is_some() {
            continue;
        }
        let settings = recording.settings();
        let departures = simulation.demand().departures(settings.interval, recording.steps() as u32).unwrap();
        // The order of the list does not matter.
        let mut shuffled: Vec<Departure> = departures.iter().rev().copied().collect();
        let middle = shuffled.len() / 2;
        shuffled.rotate_left(middle);
        let (network, demand) = (simulation.network().clone(), simulation.demand().clone());
        let mut listed = Simulation::with_departures(network, demand, settings, &shuffled).unwrap();
        let mut restarted = listed.restarted_with(&departures).unwrap();
        run(&mut listed, &recording, 0..recording.steps());
        run(&mut restarted, &recording, 0..recording.steps());
    }
}

#[test]
fn fewer_and_later_departures_are_possible() {
    let (simulation, recording) = start("one_fixed_s0");
    let departures = simulation.demand().departures(1.0, 900).unwrap();
    let thinned: Vec<_> = departures
        .iter()
        .step_by(3)
        .map(|departure| Departure { time: departure.time + 7.25, ..*departure })
        .collect();
    let (network, demand) = (simulation.network().clone(), simulation.demand().clone());
    let mut simulation =
        Simulation::with_departures(network, demand, recording.settings(), &thinned).unwrap();
    for _ in 0..900 {
        simulation.step();
    }
    let started = simulation.finished() + simulation.running() + simulation.waiting_outside();
    assert_eq!(started, thinned.iter().filter(|departure| departure.time <= 899.0).count());
}

#[test]
fn endless_lists_of_departures_are_refused() {
    let (simulation, _) = start("one_fixed_s0");
    let mut flow = simulation.demand().flows()[0].clone();
    (flow.interval, flow.start_time, flow.end_time) = (0.05, 0, -1);
    let demand = Demand::new(vec![flow; 100], simulation.network()).unwrap();
    let message = demand.departures(1.0, 1_000_000).unwrap_err().to_string();
    assert!(message.contains("more than 10000000 vehicles start"), "{message}");
}

#[test]
fn threads_change_nothing() {
    let (simulation, recording) = start("three_mp5_s8");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (mut copy, recording) = (simulation.clone(), &recording);
            scope.spawn(move || run(&mut copy, recording, 0..recording.steps()));
        }
    });
}

#[test]
fn reset_starts_again() {
    let (mut simulation, recording) = start("two_mp15_s6");
    run(&mut simulation, &recording, 0..200);
    simulation.reset(true);
    run(&mut simulation, &recording, 0..recording.steps());
}

//! Do the ways to look at a simulation agree with each other?

mod support;

use phalanx_junctions::{ApproachTimes, Demand, Simulation, VehicleId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use support::second_of;

const NAMES: [&str; 4] = ["one_random5_s1", "two_random10_s5", "three_mp5_s8", "star_random10_s9"];

/// Repeats a recording and calls `look` after every step.
fn watch(name: &str, mut look: impl FnMut(&Simulation)) {
    let folder = support::shipped();
    let entry = support::index(&folder).into_iter().find(|entry| entry["name"] == name).unwrap();
    let (mut simulation, recording) = support::simulation(&folder, &entry);
    for step in 0..recording.steps() {
        for (junction, phase) in recording.phases(step).enumerate() {
            simulation.set_phase(junction, phase).unwrap();
        }
        simulation.step();
        look(&simulation);
    }
}

#[test]
fn vehicles_are_where_they_are_said_to_be() {
    for name in NAMES {
        watch(name, |simulation| {
            let network = simulation.network();
            let mut seen = 0;
            for drivable in 0..network.drivable_count() {
                let vehicles: Vec<_> = simulation.vehicles_on(drivable).collect();
                seen += vehicles.len();
                assert!(vehicles.windows(2).all(|pair| pair[0].distance >= pair[1].distance), "{name}");
                for vehicle in &vehicles {
                    assert_eq!(vehicle.drivable, drivable);
                    assert_eq!(vehicle.to_end, network.lengths()[drivable] - vehicle.distance);
                }
                if drivable < network.lane_count() {
                    assert_eq!(simulation.lane_vehicles(drivable), vehicles.len());
                    let waiting = vehicles.iter().filter(|vehicle| vehicle.speed < 0.1).count();
                    assert_eq!(simulation.lane_waiting(drivable), waiting);
                }
            }
            assert_eq!(seen, simulation.running());
            let priorities: Vec<_> = simulation.vehicles().map(|vehicle| vehicle.priority).collect();
            assert!(priorities.is_sorted() && priorities.len() == seen);
            let queues = (0..network.lane_count()).map(|lane| simulation.lane_queue(lane));
            assert_eq!(queues.sum::<usize>(), simulation.waiting_outside());
        });
    }
}

#[test]
fn positions_lie_on_the_shapes() {
    watch("two_random10_s5", |simulation| {
        for vehicle in simulation.vehicles() {
            let position = simulation.position(&vehicle);
            let shape = simulation.network().shape(vehicle.drivable);
            let range = |coordinate: fn(&phalanx_junctions::Point) -> f64| {
                let values = shape.iter().map(coordinate);
                let (least, most) =
                    values.fold((f64::MAX, f64::MIN), |(least, most), v| (least.min(v), most.max(v)));
                least - 1e-9..=most + 1e-9
            };
            assert!(range(|p| p.x).contains(&position.point.x) && range(|p| p.y).contains(&position.point.y));
            let heading = position.heading;
            assert!((heading.x * heading.x + heading.y * heading.y - 1.0).abs() < 1e-12);
        }
    });
}

#[test]
fn moves_tell_where_everybody_is() {
    for name in NAMES {
        let mut places: BTreeMap<VehicleId, usize> = BTreeMap::new();
        watch(name, |simulation| {
            for change in simulation.moves() {
                assert_eq!(places.remove(&change.vehicle), change.from, "{name}");
                if let Some(to) = change.to {
                    places.insert(change.vehicle, to);
                }
            }
            let wanted: BTreeMap<_, _> =
                simulation.vehicles().map(|vehicle| (vehicle.id, vehicle.drivable)).collect();
            assert_eq!(places, wanted, "{name}");
        });
    }
}

/// The published measure by looking at all approach lanes in every second, as the code behind the tables
/// does.
#[test]
fn approach_times_are_those_of_a_look_at_every_second() {
    for name in NAMES {
        let mut times = ApproachTimes::new();
        let mut on: BTreeMap<(VehicleId, usize), (f64, f64)> = BTreeMap::new();
        let mut before = BTreeSet::new();
        let mut end = 0.0;
        watch(name, |simulation| {
            times.observe(simulation);
            end = simulation.time();
            let network = simulation.network();
            let mut now = BTreeSet::new();
            for lane in 0..network.lane_count() {
                if let Some(junction) = network.junction_after(lane) {
                    now.extend(simulation.vehicles_on(lane).map(|vehicle| (vehicle.id, junction)));
                }
            }
            for &key in &now {
                on.entry(key).or_insert((end, f64::NAN));
            }
            for key in before.difference(&now) {
                on.get_mut(key).unwrap().1 = end;
            }
            before = std::mem::take(&mut now);
        });
        let vehicles: BTreeSet<_> = on.keys().map(|key| key.0).collect();
        let sum: f64 = on
            .iter()
            .map(|(key, &(first, last))| if before.contains(key) { end - first } else { last - first })
            .sum();
        assert_eq!(times.mean(end), sum / vehicles.len() as f64, "{name}");
    }
}

#[test]
fn flows_made_in_the_program_are_those_of_the_file() {
    let folder = support::shipped();
    let entry = &support::index(&folder)[5];
    let (simulation, recording) = support::simulation(&folder, entry);
    let demand = Demand::new(simulation.demand().flows().to_vec(), simulation.network()).unwrap();
    let network = simulation.network().clone();
    let mut simulation = Simulation::new(network, Arc::new(demand), recording.settings()).unwrap();
    for step in 0..recording.steps() {
        simulation.step();
        assert_eq!(second_of(&simulation), recording.second(step), "step {step}");
    }
}

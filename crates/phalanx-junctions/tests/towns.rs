//! Do generated towns load, run and have what was asked for?

use phalanx_junctions::{Demand, Flow, Irregular, Network, Settings, Simulation, TownSettings, VehicleKind};
use proptest::prelude::*;
use std::sync::Arc;

fn load(town: &TownSettings) -> (Arc<Network>, Arc<Demand>) {
    let files = town.generate().unwrap();
    let network = Network::read(&files.roadnet).unwrap();
    let demand = Demand::read(&files.flow, &network).unwrap();
    demand.require_routes(&network).unwrap();
    (network.into(), demand.into())
}

fn cycle(network: Arc<Network>, demand: Arc<Demand>, steps: u32) -> Simulation {
    let mut simulation = Simulation::new(network, demand, Settings::default()).unwrap();
    for step in 0..steps {
        for junction in 0..simulation.network().junctions().len() {
            let phase = if step % 20 < 5 { 0 } else { 1 + (step as usize / 20) % 8 };
            simulation.set_phase(junction, phase).unwrap();
        }
        simulation.step();
    }
    simulation
}

#[test]
fn a_grid_has_the_form_of_the_common_benchmarks() {
    let (network, demand) = load(&TownSettings::default());
    assert_eq!((network.junctions().len(), network.roads().len(), network.lane_count()), (12, 62, 186));
    for junction in network.junctions() {
        assert_eq!(junction.movements.len(), 12);
        let green: Vec<_> = junction.phases.iter().map(|phase| phase.green.len()).collect();
        assert_eq!(green, [4, 6, 6, 6, 6, 6, 6, 6, 6]);
    }
    // 500 vehicles an hour at 14 entrances.
    assert!((6500..7500).contains(&demand.flows().len()), "{}", demand.flows().len());
    let simulation = cycle(network, demand, 900);
    assert!(simulation.finished() > 300, "{}", simulation.finished());
}

#[test]
fn an_irregular_town_lacks_roads_and_has_several_lengths() {
    let town = TownSettings {
        lengths_east: vec![200.0, 400.0, 300.0],
        irregular: Some(Irregular { missing: 0.3, shift: 0.1 }),
        vehicles_per_hour: 200.0,
        ..TownSettings::default()
    };
    let (network, demand) = load(&town);
    let movements: Vec<_> = network.junctions().iter().map(|junction| junction.movements.len()).collect();
    assert!(
        movements.contains(&6) && movements.iter().all(|&count| count == 6 || count == 12),
        "{movements:?}"
    );
    for junction in network.junctions() {
        let useful = |phase: &phalanx_junctions::Phase| phase.green.len() > junction.phases[0].green.len();
        assert!(junction.phases[1..].iter().all(useful));
    }
    assert!(cycle(network, demand, 900).finished() > 100);
}

#[test]
fn a_vehicle_may_drive_round_the_block_twice() {
    let files =
        TownSettings { rows: 2, columns: 2, seconds: 0, ..TownSettings::default() }.generate().unwrap();
    let network = Arc::new(Network::read(&files.roadnet).unwrap());
    let block = ["road_1_1_0", "road_2_1_1", "road_2_2_2", "road_1_2_3"];
    let ids = ["road_0_1_0"].into_iter().chain(block).chain(block).chain(["road_1_1_0", "road_2_1_0"]);
    let route: Vec<_> =
        ids.map(|id| network.roads().iter().position(|road| road.id == id).unwrap()).collect();
    let flow = Flow {
        vehicle: VehicleKind::default(),
        route: route.clone(),
        interval: 20.0,
        start_time: 0,
        end_time: 100,
    };
    let demand = Arc::new(Demand::new(vec![flow], &network).unwrap());
    let mut simulation = Simulation::new(network.clone(), demand, Settings::default()).unwrap();
    let mut passed = Vec::new();
    for step in 0..3000 {
        for junction in 0..4 {
            simulation.set_phase(junction, 1 + step / 20 % 4).unwrap();
        }
        simulation.step();
        let lanes = simulation.moves().filter(|change| change.vehicle.number == 0);
        let lanes = lanes.filter_map(|change| change.to.filter(|&to| to < network.lane_count()));
        passed.extend(lanes.map(|lane| network.lane_road(lane)));
    }
    assert_eq!(passed, route);
    assert_eq!(simulation.finished(), 6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn all_kinds_of_towns_load_and_run(
        (rows, columns, lanes) in (1usize..5, 1usize..5, 1usize..7),
        (missing, shift) in (0.0..1.0, 0.0..0.3),
        (left, straight, right) in (0.0..1.0, 0.0..1.0, 0.01..1.0),
        length in 100.0..500.0,
        is_irregular: bool,
        seed: u32,
    ) {
        // Six lanes need more room than a short road leaves where junctions are shifted as far as allowed.
        let room = 0.5 - (4.0 * lanes as f64 + 3.5) / f64::min(length, 150.0);
        let shift = f64::min(shift, room);
        let town = TownSettings {
            rows,
            columns,
            lanes,
            lengths_north: vec![length, 150.0],
            turning: [left, straight, right],
            seconds: 200,
            seed,
            irregular: is_irregular.then_some(Irregular { missing, shift }),
            ..TownSettings::default()
        };
        let (network, demand) = load(&town);
        prop_assert_eq!(network.junctions().len(), rows * columns);
        cycle(network, demand, 200);
    }
}

#[test]
fn settings_out_of_range_are_named() {
    let message = |town: TownSettings| town.generate().unwrap_err().to_string();
    let town = TownSettings::default;
    assert_eq!(message(TownSettings { rows: 0, ..town() }), "rows: must be from 1 to 100, is 0");
    assert_eq!(
        message(TownSettings { lengths_east: vec![], ..town() }),
        "lengths_east: needs at least one length, has none"
    );
    assert_eq!(
        message(TownSettings { turning: [0.0; 3], ..town() }),
        "turning: must be from 0.000001 to 3000000, is 0"
    );
    let irregular = Some(Irregular { missing: 0.0, shift: 0.3 });
    assert_eq!(
        message(TownSettings { lanes: 6, lengths_east: vec![100.0], irregular, ..town() }),
        "shift: with roads of 100 m and 6 lanes, junctions come too near to each other; allowed is up to 0.22, \
         or fewer lanes or longer roads"
    );
    assert_eq!(
        message(TownSettings { rows: 100, columns: 100, seconds: 1_000_000, ..town() }),
        "vehicles_per_hour: about 55555556 vehicles would start, at most 1000000 may"
    );
}

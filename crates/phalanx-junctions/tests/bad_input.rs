//! Is every broken file refused with one clear line, and does whatever is not refused run?

mod support;

use phalanx_junctions::{Demand, Departure, Error, Network, Settings, Simulation, TownSettings};
use serde_json::{Value, json};
use std::sync::Arc;

const NETS: [&str; 5] = ["one", "two", "three", "star", "ties"];
/// Values that take the place of others.
const STRANGE: [&str; 22] = [
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\"road\"",
    "0",
    "-0.0",
    "-1",
    "1",
    "2",
    "0.5",
    "1e-308",
    "1e308",
    "-1e308",
    "1e9",
    "4294967296",
    "-9223372036854775808",
    "99999999999999999999",
    "1e-3",
    "[[]]",
    "[0, 0]",
];

/// Numbers from a seed, for choosing what to break.
struct Choices(u64);

impl Choices {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % count.max(1)
    }
}

/// Gives the first road that leads to the intersection of the net `one` a last piece of 10 m, aside by so
/// much; the intersection is 15 m wide.
fn bend(file: &mut Value, aside: f64) {
    let centre = centre(file)["id"].clone();
    let roads = file["roads"].as_array_mut().unwrap();
    let road = roads.iter_mut().find(|road| road["endIntersection"] == centre).unwrap();
    let points = road["points"].as_array_mut().unwrap();
    let coordinate = |point: &Value, key: &str| point[key].as_f64().unwrap();
    let [from, to] = [&points[0], &points[1]].map(|point| [coordinate(point, "x"), coordinate(point, "y")]);
    let [x, y] = [to[0] - from[0], to[1] - from[1]];
    let length = x.hypot(y);
    let [x, y] = [x / length, y / length];
    let between = [to[0] - 10.0 * x - aside * y, to[1] - 10.0 * y + aside * x];
    points.insert(1, json!({ "x": between[0], "y": between[1] }));
}

/// A road whose last piece is shorter than the intersection is wide goes on, as in CityFlow, if it bends.
#[test]
fn a_short_last_piece_is_driven() {
    let (roadnet, flow) = texts("one");
    let mut file: Value = serde_json::from_str(&roadnet).unwrap();
    bend(&mut file, 5.0);
    let network = Network::read(&file.to_string()).unwrap();
    assert!(network.lengths().iter().all(|length| length.is_finite() && *length > 1.0));
    try_it(&file.to_string(), &flow).unwrap();
}

fn texts(net: &str) -> (String, String) {
    let folder = support::shipped();
    (support::net_file(&folder, net, "roadnet.json"), support::net_file(&folder, net, "flow.json"))
}

fn check_message(error: &Error) {
    let message = error.to_string();
    assert!(!message.is_empty() && message.lines().count() == 1, "{message:?}");
}

/// Loads both files and, if they are accepted, drives for a while.
fn try_it(roadnet: &str, flow: &str) -> Result<(), Error> {
    let network = Arc::new(Network::read(roadnet)?);
    let demand = Arc::new(Demand::read(flow, &network)?);
    if let Err(error) = demand.require_routes(&network) {
        check_message(&error);
    }
    for own_program in [false, true] {
        let settings = Settings { own_program, ..Settings::default() };
        let mut simulation = Simulation::new(network.clone(), demand.clone(), settings)?;
        for step in 0..80 {
            for junction in 0..network.junctions().len() {
                let phases = network.junctions()[junction].phases.len();
                if !own_program {
                    simulation.set_phase(junction, (step / 20 + junction) % phases)?;
                }
            }
            simulation.step();
        }
        let saved = simulation.save();
        simulation.restore(&saved)?;
        assert!(simulation.average_travel_time().is_finite());
        assert_eq!(simulation.vehicles().count(), simulation.running());
        for vehicle in simulation.vehicles() {
            assert!(vehicle.distance >= 0.0 && vehicle.to_end >= 0.0 && vehicle.speed >= 0.0, "{vehicle:?}");
        }
    }
    Ok(())
}

/// All strings in a value.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, found)),
        Value::Object(members) => members.values().for_each(|member| strings(member, found)),
        _ => {}
    }
}

/// How many values there are in a value, itself included.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// Changes the value number `index` in `value`, counted from the outside in.
fn change(value: &mut Value, index: &mut usize, choices: &mut Choices, strings: &[String]) {
    if *index == 0 {
        let strange: Value = serde_json::from_str(STRANGE[choices.below(STRANGE.len())]).unwrap();
        match (choices.below(4), &mut *value) {
            (0, Value::Array(items)) if !items.is_empty() => {
                let place = choices.below(items.len());
                items.remove(place);
            }
            (1, Value::Array(items)) if !items.is_empty() => {
                let place = choices.below(items.len());
                items.push(items[place].clone());
            }
            (2, Value::Array(items)) if items.len() > 1 => {
                let (a, b) = (choices.below(items.len()), choices.below(items.len()));
                items.swap(a, b);
            }
            (0 | 1, Value::Object(members)) if !members.is_empty() => {
                let name = members.keys().nth(choices.below(members.len())).unwrap().clone();
                members.remove(&name);
            }
            (0..=2, Value::Number(number)) => {
                let factor = [-1.0, 0.0, 1e-3, 0.1, 0.5, 0.9, 1.1, 2.0, 10.0, 1e5, 1e300][choices.below(11)];
                let changed = number.as_f64().unwrap() * factor;
                *value = if number.is_f64() { json!(changed) } else { json!(changed as i64) };
            }
            (0..=2, Value::String(text)) => *text = strings[choices.below(strings.len())].clone(),
            _ => *value = strange,
        }
        *index = usize::MAX;
        return;
    }
    *index -= 1;
    let mut visit = |child: &mut Value| {
        if *index != usize::MAX {
            let inside = count(child);
            if *index < inside {
                change(child, index, choices, strings);
            } else {
                *index -= inside;
            }
        }
    };
    match value {
        Value::Array(items) => items.iter_mut().for_each(&mut visit),
        Value::Object(members) => members.values_mut().for_each(&mut visit),
        _ => {}
    }
}

/// How many changed files are tried per network; `JUNCTIONS_MUTATIONS` asks for more.
fn tries() -> u64 {
    std::env::var("JUNCTIONS_MUTATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}

#[test]
fn files_with_changed_values_are_refused_or_run() {
    let (mut refused, mut run) = (0, 0);
    for net in NETS {
        let (roadnet, flow) = texts(net);
        let values: [Value; 2] = [&roadnet, &flow].map(|text| serde_json::from_str(text).unwrap());
        let mut ids = Vec::new();
        strings(&values[0], &mut ids);
        for seed in 0..tries() {
            let mut choices = Choices::new(seed);
            let mut changed = values.clone();
            for _ in 0..1 + choices.below(3) {
                let file = choices.below(2);
                let mut index = choices.below(count(&changed[file]));
                change(&mut changed[file], &mut index, &mut choices, &ids);
            }
            let [roadnet, flow] = changed.map(|value| value.to_string());
            println!("{net} {seed}");
            match try_it(&roadnet, &flow) {
                Ok(()) => run += 1,
                Err(error) => {
                    check_message(&error);
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 20 && run > 20, "{refused} refused, {run} run");
}

#[test]
fn files_with_changed_bytes_are_refused_or_run() {
    for net in NETS {
        let (roadnet, flow) = texts(net);
        for seed in 0..tries() {
            let mut choices = Choices::new(seed);
            let mut changed = [roadnet.clone().into_bytes(), flow.clone().into_bytes()];
            let bytes = &mut changed[choices.below(2)];
            let place = choices.below(bytes.len());
            match choices.below(4) {
                0 => bytes.truncate(place),
                1 => bytes[place] = choices.below(128) as u8,
                2 => bytes.insert(place, b"0-.e\"[]{},:"[choices.below(11)]),
                _ => drop(bytes.drain(place..(place + choices.below(50)).min(bytes.len()))),
            }
            let [roadnet, flow] = changed.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            println!("{net} {seed}");
            if let Err(error) = try_it(&roadnet, &flow) {
                check_message(&error);
            }
        }
    }
}

/// The message for network `one` with a change of its roadnet.
fn roadnet_message(change: impl FnOnce(&mut Value)) -> String {
    let mut value: Value = serde_json::from_str(&texts("one").0).unwrap();
    change(&mut value);
    Network::read(&value.to_string()).unwrap_err().to_string()
}

/// The message for network `one` with a change of its first flow.
fn flow_message(change: impl FnOnce(&mut Value)) -> String {
    let (roadnet, flow) = texts("one");
    let mut value: Value = serde_json::from_str(&flow).unwrap();
    change(&mut value[0]);
    Demand::read(&value.to_string(), &Network::read(&roadnet).unwrap()).unwrap_err().to_string()
}

/// The intersection with signals.
fn centre(file: &mut Value) -> &mut Value {
    file["intersections"].as_array_mut().unwrap().iter_mut().find(|value| value["virtual"] == false).unwrap()
}

#[test]
fn messages_name_place_and_reason() {
    assert_eq!(Network::read("").unwrap_err().to_string(), "roadnet: line 1: the file is empty");
    assert_eq!(Network::read("{}").unwrap_err().to_string(), "roadnet: line 1: file: roads is missing");
    assert_eq!(
        Network::read("{\"roads\": [],\n\"intersections\": []}").unwrap_err().to_string(),
        "roadnet: line 1: file: no intersection has signals, at least one must have \"virtual\": false"
    );
    let twice = roadnet_message(|file| file["roads"][1]["id"] = file["roads"][0]["id"].clone());
    assert!(twice.ends_with("is there twice"), "{twice}");
    let dangling = roadnet_message(|file| file["roads"][0]["endIntersection"] = json!("nowhere"));
    assert!(dangling.ends_with("endIntersection: there is no intersection \"nowhere\""), "{dangling}");
    let phase = roadnet_message(|file| {
        centre(file)["trafficLight"]["lightphases"][2]["availableRoadLinks"][0] = json!(99);
    });
    assert!(
        phase.ends_with("availableRoadLinks: there is no roadLink number 99, they go from 0 to 11"),
        "{phase}"
    );
    assert!(phase.contains("lightphase 2"), "{phase}");
    let none = roadnet_message(|file| centre(file)["trafficLight"]["lightphases"] = json!([]));
    assert!(none.ends_with("an intersection with signals needs at least 1, has 0"), "{none}");
    let huge = roadnet_message(|file| file["roads"][0]["points"][0]["x"] = json!(1e300));
    assert!(huge.ends_with("must be from -10000000 to 10000000, is 1e300"), "{huge}");
    let same = roadnet_message(|file| file["roads"][0]["points"][0] = file["roads"][0]["points"][1].clone());
    assert!(same.contains("a piece has length 0"), "{same}");
    let lane =
        roadnet_message(|file| centre(file)["roadLinks"][0]["laneLinks"][0]["startLaneIndex"] = json!(3));
    assert!(lane.ends_with("startLaneIndex: there is no lane number 3, they go from 0 to 2"), "{lane}");

    let wide = roadnet_message(|file| centre(file)["width"] = json!(5000));
    assert!(wide.contains("5000 m wide, leave nothing of it"), "{wide}");
    // The last piece ends where the intersection begins already: CityFlow has no direction there.
    let back = roadnet_message(|file| bend(file, 0.0));
    assert!(back.contains("turns straight back"), "{back}");
    let phases = roadnet_message(|file| {
        let phases = centre(file)["trafficLight"]["lightphases"].as_array_mut().unwrap();
        *phases = vec![phases[0].clone(); 1001];
    });
    assert!(phases.ends_with("lightphases: at most 1000, has 1001"), "{phases}");

    let many = roadnet_message(|file| {
        let links = centre(file)["roadLinks"][0]["laneLinks"].as_array_mut().unwrap();
        *links = vec![links[0].clone(); 5000];
    });
    assert!(many.contains("straight pieces, at most 4000 are allowed"), "{many}");

    let road = flow_message(|flow| flow["route"][0] = json!("nowhere"));
    assert_eq!(road, "flow: line 1: flow_0: route: there is no road \"nowhere\"");
    let negative = flow_message(|flow| flow["vehicle"]["maxSpeed"] = json!(-3));
    assert_eq!(negative, "flow: line 1: flow_0: vehicle: maxSpeed: must be from 0.01 to 100, is -3");
    let interval = flow_message(|flow| flow["interval"] = json!(0.0));
    assert_eq!(interval, "flow: line 1: flow_0: interval: must be from 0.05 to 1e9, is 0");
    let missing = flow_message(|flow| drop(flow["vehicle"].as_object_mut().unwrap().remove("minGap")));
    assert_eq!(missing, "flow: line 1: flow_0: minGap is missing");
}

#[test]
fn messages_name_the_line() {
    let files =
        TownSettings { rows: 1, columns: 1, seconds: 100, ..TownSettings::default() }.generate().unwrap();
    let line = 1 + files.roadnet.lines().position(|line| line.contains("{\"id\": \"road_0_1_0\"")).unwrap();
    let mut lines: Vec<_> = files.roadnet.lines().map(str::to_string).collect();
    lines[line] = lines[line].replacen("\"width\": 4", "\"width\": -4", 1);
    let message = Network::read(&lines.join("\n")).unwrap_err().to_string();
    let wanted = "width: must be from 0 to 1000, is -4";
    assert_eq!(message, format!("roadnet: line {}: road \"road_0_1_0\": {wanted}", line + 1));
    lines[line] =
        lines[line].replacen("\"width\": -4", "\"width\": 4", 1).replacen("\"x\": 0", "\"x\": 299.5", 1);
    let message = Network::read(&lines.join("\n")).unwrap_err().to_string();
    assert!(
        message.starts_with(&format!("roadnet: line {line}: road \"road_0_1_0\": lanes must be")),
        "{message}"
    );

    let network = Network::read(&files.roadnet).unwrap();
    let flow = files.flow.replacen("\"length\": 5", "\"length\": 0", 3);
    let message = Demand::read(&flow, &network).unwrap_err().to_string();
    assert_eq!(message, "flow: line 1: flow_0: vehicle: length: must be from 0.1 to 1000, is 0");
}

#[test]
fn times_that_are_no_integers_are_found() {
    let (roadnet, flow) = texts("one");
    let network = Network::read(&roadnet).unwrap();
    let mut value: Value = serde_json::from_str(&flow).unwrap();
    Demand::read(&flow, &network).unwrap().require_times().unwrap();
    value[1]["endTime"] = json!(4.0);
    let message =
        Demand::read(&value.to_string(), &network).unwrap().require_times().unwrap_err().to_string();
    let wanted = "endTime: must be written as an integer; CityFlow ignores it as it is";
    assert_eq!(message, format!("flow: line 1: flow_1: {wanted}"));
}

/// Ways that go to and fro between far roads take more memory than their file.
#[test]
fn routes_have_a_limit() {
    let town = TownSettings { rows: 2, columns: 100, seconds: 10, ..TownSettings::default() };
    let network = Network::read(&town.generate().unwrap().roadnet).unwrap();
    let flow = texts("one").1;
    let value: Value = serde_json::from_str(&flow).unwrap();
    let vehicle = value[0]["vehicle"].clone();
    let demand = |times: usize| {
        let route = ["road_1_1_0", "road_99_1_0"].repeat(times);
        let text = json!([{ "vehicle": vehicle, "route": route, "interval": 1.0 }]).to_string();
        Demand::read(&text, &network)
    };
    demand(1).unwrap().require_routes(&network).unwrap();
    let message = demand(200_000).unwrap_err().to_string();
    assert!(message.contains("more than 10000000 roads together"), "{message}");
}

#[test]
fn routes_without_a_way_are_found() {
    let (roadnet, flow) = texts("one");
    let network = Arc::new(Network::read(&roadnet).unwrap());
    let mut value: Value = serde_json::from_str(&flow).unwrap();
    let route = value[0]["route"].as_array().unwrap().clone();
    value[0]["route"] = json!([route[1], route[0]]);
    let demand = Arc::new(Demand::read(&value.to_string(), &network).unwrap());
    let message = demand.require_routes(&network).unwrap_err().to_string();
    let pair = format!("from road {} to road {}", route[1], route[0]);
    assert_eq!(message, format!("flow: line 1: flow_0: route: there is no way {pair}"));
    // Its first vehicle vanishes, all others drive.
    let mut simulation =
        Simulation::new(network, demand, Settings { own_program: true, ..Settings::default() }).unwrap();
    for _ in 0..300 {
        simulation.step();
    }
    assert!(simulation.finished() > 0);
    assert!(simulation.vehicles().all(|vehicle| vehicle.id.flow != 0));
}

#[test]
fn calls_out_of_range_are_refused() {
    let files =
        TownSettings { rows: 1, columns: 1, seconds: 10, ..TownSettings::default() }.generate().unwrap();
    let network = Arc::new(Network::read(&files.roadnet).unwrap());
    let demand = Arc::new(Demand::read(&files.flow, &network).unwrap());
    let mut simulation = Simulation::new(network.clone(), demand.clone(), Settings::default()).unwrap();
    let message = simulation.set_phase(0, 9).unwrap_err().to_string();
    assert_eq!(message, "junction intersection_1_1: phase 9 does not exist, it has phases 0 to 8");
    assert_eq!(simulation.set_phase(7, 0).unwrap_err().to_string(), "junction 7 does not exist, there are 1");
    for interval in [0.0, -1.0, f64::NAN, 1e9] {
        let settings = Settings { interval, ..Settings::default() };
        assert!(Simulation::new(network.clone(), demand.clone(), settings).is_err(), "{interval}");
    }
    let other = Arc::new(Network::read(&texts("one").0).unwrap());
    let message = Simulation::new(other, demand.clone(), Settings::default()).unwrap_err().to_string();
    assert_eq!(message, "demand: it was made for another network");
    let count = demand.flows().len();
    for departure in
        [(count, 0.0), (0, -1.0), (0, f64::NAN), (0, 1e300)].map(|(flow, time)| Departure { flow, time })
    {
        let made =
            Simulation::with_departures(network.clone(), demand.clone(), Settings::default(), &[departure]);
        check_message(&made.unwrap_err());
    }
}

#[test]
fn damaged_states_are_refused() {
    let (mut simulation, _) =
        support::simulation(&support::shipped(), &support::index(&support::shipped())[0]);
    for _ in 0..100 {
        simulation.step();
    }
    let saved = simulation.save();
    let mut choices = Choices::new(1);
    for _ in 0..500 {
        let mut bytes = saved.clone();
        let place = choices.below(bytes.len());
        match choices.below(2) {
            0 => bytes.truncate(place),
            _ => bytes[place] ^= 1 << choices.below(8),
        }
        check_message(&simulation.restore(&bytes).unwrap_err());
    }
    assert_eq!(simulation.save(), saved);
}

/// The checksum at the end of a state.
fn checksum(bytes: &[u8]) -> [u8; 8] {
    let start = 14_695_981_039_346_656_037u64;
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(1_099_511_628_211);
    bytes.iter().fold(start, hash).to_le_bytes()
}

#[test]
fn states_with_a_forged_checksum_are_refused_or_run() {
    let (mut simulation, _) =
        support::simulation(&support::shipped(), &support::index(&support::shipped())[11]);
    for _ in 0..400 {
        simulation.step();
    }
    let saved = simulation.save();
    let content = &saved[..saved.len() - 8];
    let mut choices = Choices::new(2);
    let mut run = 0;
    for _ in 0..2000 {
        let mut bytes = content.to_vec();
        // Vehicles are at the end.
        let vehicles = bytes.len() * 2 / 3;
        let place = if choices.below(2) == 0 { 16 } else { vehicles };
        let place = place + choices.below(bytes.len() - place);
        bytes[place] ^= 1 << choices.below(8);
        bytes.extend(checksum(&bytes));
        match simulation.restore(&bytes) {
            Err(error) => check_message(&error),
            Ok(()) => {
                run += 1;
                (0..20).for_each(|_| simulation.step());
            }
        }
    }
    assert!(run > 100, "{run}");
}

#[test]
fn flows_without_a_way_stay_off_after_a_reset() {
    let (roadnet, flow) = texts("one");
    let network = Arc::new(Network::read(&roadnet).unwrap());
    let mut value: Value = serde_json::from_str(&flow).unwrap();
    let route = value[0]["route"].as_array().unwrap().clone();
    let mut with_way = value[0].clone();
    with_way["startTime"] = json!(1);
    value[0]["route"] = json!([route[1], route[0]]);
    value[0]["startTime"] = json!(0);
    let flows = json!([value[0], with_way]).to_string();
    let demand = Arc::new(Demand::read(&flows, &network).unwrap());
    let first_priority = |is_reset: bool| {
        let mut simulation = Simulation::new(network.clone(), demand.clone(), Settings::default()).unwrap();
        simulation.step();
        if is_reset {
            simulation.reset(false);
            simulation.step();
        }
        simulation.step();
        simulation.vehicles().next().unwrap().priority
    };
    // The vehicle that vanishes draws random numbers once, and not again after the reset.
    assert_eq!(first_priority(true), first_priority(false));
}

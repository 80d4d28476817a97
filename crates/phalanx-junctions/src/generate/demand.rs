//! The text of a town's `flow.json`: one entry for every vehicle, as in the common benchmarks.

use super::TownSettings;
use super::roadnet::road_id;
use super::town::{SIDES, Town, opposite, uniform};
use crate::demand::VehicleKind;
use crate::random::MersenneTwister;

/// The route of a vehicle that is still in town after this many junctions per row and column ends there.
const LONGEST: usize = 4;

pub(super) fn text(town: &Town, settings: &TownSettings) -> String {
    // A stream of its own: the demand does not depend on how many numbers the roads took.
    let mut random = MersenneTwister::new(settings.seed ^ 0x5eed_f10e);
    let vehicle = vehicle_text(settings.speed_limit);
    let mut entries = Vec::new();
    for second in 0..settings.seconds {
        for entrance in (0..town.nodes.len()).filter(|&node| !town.nodes[node].is_junction) {
            if uniform(&mut random) < settings.vehicles_per_hour / 3600.0 {
                let route = route(town, entrance, settings, &mut random).join(", ");
                entries.push(format!(
                    r#"{{"vehicle": {vehicle},
 "route": [{route}], "interval": 1.0, "startTime": {second}, "endTime": {second}}}"#
                ));
            }
        }
    }
    format!("[{}]\n", entries.join(",\n"))
}

fn vehicle_text(max_speed: f64) -> String {
    let kind = VehicleKind { max_speed, ..VehicleKind::default() };
    let members = kind.ranges().map(|(name, value, _)| format!("\"{name}\": {value}"));
    format!("{{{}}}", members.join(", "))
}

/// The roads of a vehicle that enters at a node and turns as chance wants until it leaves the town.
fn route(town: &Town, entrance: usize, settings: &TownSettings, random: &mut MersenneTwister) -> Vec<String> {
    let mut roads = Vec::new();
    let mut node = entrance;
    let mut side = (0..SIDES).find(|&side| town.nodes[node].arms[side].is_some()).unwrap_or(0);
    let most = LONGEST * (settings.rows + settings.columns);
    while let Some(next) = town.nodes[node].arms[side] {
        roads.push(format!("\"{}\"", road_id(&town.nodes[node], side)));
        node = next;
        if !town.nodes[node].is_junction || roads.len() >= most {
            break;
        }
        side = turn(&town.nodes[node].arms, side, settings.turning, random);
    }
    roads
}

/// The side on which a vehicle that drives towards `side` leaves a junction: by the shares of the turns that
/// exist.
fn turn(arms: &[Option<usize>; SIDES], side: usize, shares: [f64; 3], random: &mut MersenneTwister) -> usize {
    let sides = [(side + 1) % SIDES, side, (side + 3) % SIDES];
    let shares = [0, 1, 2].map(|turn| if arms[sides[turn]].is_some() { shares[turn] } else { 0.0 });
    let mut rest = uniform(random) * (shares[0] + shares[1] + shares[2]);
    for turn in 0..3 {
        if rest < shares[turn] {
            return sides[turn];
        }
        rest -= shares[turn];
    }
    // No turn that exists is wanted: take any road but the one it came from.
    sides.into_iter().find(|&side| arms[side].is_some()).unwrap_or(opposite(side))
}

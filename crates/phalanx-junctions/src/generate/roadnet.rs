//! The text of a town's `roadnet.json`.

use super::TownSettings;
use super::town::{Node, SIDES, Town, opposite};

const LANE_WIDTH: f64 = 4.0;
const YELLOW_SECONDS: u32 = 5;
const GREEN_SECONDS: u32 = 30;
const EAST: usize = 0;
const NORTH: usize = 1;
const WEST: usize = 2;
const SOUTH: usize = 3;

/// Width of an intersection of roads with so many lanes.
pub(super) fn width(lanes: usize) -> f64 {
    LANE_WIDTH * lanes as f64 + 3.0
}

/// A way through a junction: from the arm on side `from` to the arm on side `to`.
struct Turning {
    from: usize,
    to: usize,
}

impl Turning {
    /// Name in the file; by the direction of driving, which is opposite to the side it comes from.
    fn kind(&self) -> &'static str {
        match (self.to + SIDES - opposite(self.from)) % SIDES {
            0 => "go_straight",
            1 => "turn_left",
            _ => "turn_right",
        }
    }

    fn is_right(&self) -> bool {
        self.kind() == "turn_right"
    }

    /// Lanes from which it is made.
    fn lanes(&self, lanes: usize) -> std::ops::Range<usize> {
        match (self.kind(), lanes) {
            (_, 1) => 0..1,
            ("turn_left", _) => 0..1,
            ("turn_right", _) => lanes - 1..lanes,
            (_, 2) => 0..2,
            _ => 1..lanes - 1,
        }
    }
}

/// Id of an intersection.
fn intersection_id(node: &Node) -> String {
    format!("intersection_{}_{}", node.column, node.row)
}

/// Id of the road that leaves a node on a side.
pub(super) fn road_id(node: &Node, side: usize) -> String {
    format!("road_{}_{}_{side}", node.column, node.row)
}

pub(super) fn text(town: &Town, settings: &TownSettings) -> String {
    let intersections: Vec<_> = town.nodes.iter().map(|node| intersection(town, node, settings)).collect();
    let mut roads = Vec::new();
    for node in &town.nodes {
        for (side, arm) in node.arms.iter().enumerate() {
            if let Some(other) = arm {
                roads.push(road(node, side, &town.nodes[*other], settings));
            }
        }
    }
    let (intersections, roads) = (intersections.join(",\n"), roads.join(",\n"));
    format!("{{\"intersections\": [\n{intersections}\n],\n\"roads\": [\n{roads}\n]}}\n")
}

fn road(from: &Node, side: usize, to: &Node, settings: &TownSettings) -> String {
    let (id, start, end) = (road_id(from, side), intersection_id(from), intersection_id(to));
    let points = [from, to].map(point).join(", ");
    let lane = format!(r#"{{"width": {LANE_WIDTH}, "maxSpeed": {}}}"#, settings.speed_limit);
    let lanes = vec![lane; settings.lanes].join(", ");
    format!(
        r#"{{"id": "{id}", "startIntersection": "{start}", "endIntersection": "{end}",
 "points": [{points}], "lanes": [{lanes}]}}"#
    )
}

fn point(node: &Node) -> String {
    format!(r#"{{"x": {}, "y": {}}}"#, node.point.x, node.point.y)
}

fn intersection(town: &Town, node: &Node, settings: &TownSettings) -> String {
    // Roads that come in, then roads that go out.
    let arms = || (0..SIDES).filter_map(|side| Some((side, &town.nodes[node.arms[side]?])));
    let coming = arms().map(|(side, other)| road_id(other, opposite(side)));
    let going = arms().map(|(side, _)| road_id(node, side));
    let roads: Vec<_> = coming.chain(going).map(|id| format!("\"{id}\"")).collect();
    let (id, point, roads) = (intersection_id(node), point(node), roads.join(", "));
    let is_virtual = !node.is_junction;
    let signals = if node.is_junction { signals(town, node, settings) } else { String::new() };
    format!(r#"{{"id": "{id}", "point": {point}, "virtual": {is_virtual}, "roads": [{roads}]{signals}}}"#)
}

/// What only an intersection with signals has.
fn signals(town: &Town, node: &Node, settings: &TownSettings) -> String {
    let turnings: Vec<_> = (0..SIDES)
        .flat_map(|from| (0..SIDES).map(move |to| Turning { from, to }))
        .filter(|turning| turning.from != turning.to)
        .filter(|turning| node.arms[turning.from].is_some() && node.arms[turning.to].is_some())
        .collect();
    let links: Vec<_> = turnings.iter().map(|turning| road_link(town, node, turning, settings)).collect();
    let phases: Vec<_> = (0..9).map(|phase| light_phase(phase, &turnings, node)).collect();
    let indices: Vec<_> = (0..turnings.len()).map(|index| index.to_string()).collect();
    let width = width(settings.lanes);
    let (links, phases, indices) = (links.join(",\n"), phases.join(",\n"), indices.join(", "));
    format!(
        r#", "width": {width},
 "roadLinks": [
{links}
 ],
 "trafficLight": {{"roadLinkIndices": [{indices}], "lightphases": [
{phases}
 ]}}"#
    )
}

fn road_link(town: &Town, node: &Node, turning: &Turning, settings: &TownSettings) -> String {
    let start = node.arms[turning.from].map(|other| road_id(&town.nodes[other], opposite(turning.from)));
    let (start, end) = (start.unwrap_or_default(), road_id(node, turning.to));
    let (kind, direction) = (turning.kind(), opposite(turning.from));
    let mut lane_links = Vec::new();
    for from in turning.lanes(settings.lanes) {
        for to in 0..settings.lanes {
            lane_links.push(format!(r#"{{"startLaneIndex": {from}, "endLaneIndex": {to}}}"#));
        }
    }
    let lane_links = lane_links.join(", ");
    format!(
        r#"  {{"type": "{kind}", "startRoad": "{start}", "endRoad": "{end}", "direction": {direction},
   "laneLinks": [{lane_links}]}}"#
    )
}

/// A phase. Where only one road of an axis is left, its phases all serve that road, so that no phase is
/// useless.
fn light_phase(phase: usize, turnings: &[Turning], node: &Node) -> String {
    let axis = if matches!(phase, 1 | 3 | 5 | 6) { [WEST, EAST] } else { [SOUTH, NORTH] };
    let there: Vec<_> = axis.into_iter().filter(|&side| node.arms[side].is_some()).collect();
    let is_green = |turning: &Turning| {
        let from_axis = axis.contains(&turning.from);
        turning.is_right()
            || match (phase, there.as_slice()) {
                (0, _) => false,
                (_, [only]) => turning.from == *only,
                (1 | 2, _) => from_axis && turning.kind() == "go_straight",
                (3 | 4, _) => from_axis && turning.kind() == "turn_left",
                (5 | 7, _) => turning.from == axis[0],
                _ => turning.from == axis[1],
            }
    };
    let green: Vec<_> = turnings
        .iter()
        .enumerate()
        .filter(|(_, turning)| is_green(turning))
        .map(|(index, _)| index.to_string())
        .collect();
    let seconds = if phase == 0 { YELLOW_SECONDS } else { GREEN_SECONDS };
    format!(r#"  {{"time": {seconds}, "availableRoadLinks": [{}]}}"#, green.join(", "))
}

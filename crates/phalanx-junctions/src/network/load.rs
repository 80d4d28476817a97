//! From the text of a `roadnet.json` to a [`Network`].

use super::crossing::crossings;
use super::{Intersection, Junction, Link, Lists, Movement, Network, Phase, Road, Turn};
use crate::error::{Result, Source};
use crate::fnv::Fnv;
use crate::geometry::{Point, beside, curve, polyline_length};
use crate::json::{Field, Item, parse};
use std::collections::HashMap;

/// Coordinates may go this far from the origin, in metres.
const FARTHEST: f64 = 1e7;
/// Lanes shorter than this make no sense, and vehicles would pass any number of them in a step.
pub(crate) const SHORTEST_LANE: f64 = 1.0;
/// Straight pieces of links at one intersection; every pair of them is tried for a crossing.
const MOST_PIECES: usize = 4000;

type Ids<'a> = HashMap<&'a str, usize>;

/// A road as the file has it.
struct RawRoad {
    points: Vec<Point>,
    widths: Vec<f64>,
}

pub(super) fn read(text: &str) -> Result<Network> {
    let file = parse(text, Source::Roadnet)?;
    let file = Item::new(&file, Source::Roadnet, "file")?;
    let road_fields: Vec<_> = file.field("roads")?.array()?.collect();
    let intersection_fields: Vec<_> = file.field("intersections")?.array()?.collect();
    let road_ids = ids(&road_fields, "road")?;
    let intersection_ids = ids(&intersection_fields, "intersection")?;

    let mut network = Network {
        roads: Vec::with_capacity(road_fields.len()),
        intersections: Vec::with_capacity(intersection_fields.len()),
        junctions: Vec::new(),
        lane_count: 0,
        length: Vec::new(),
        shape: Vec::new(),
        limit: Vec::new(),
        lane_road: Vec::new(),
        lane_links: Lists::new(Vec::new()),
        link: Vec::new(),
        crossings: Lists::new(Vec::new()),
        fingerprint: 0,
    };
    let mut raw = Vec::with_capacity(road_fields.len());
    for field in &road_fields {
        raw.push(read_road(field, &intersection_ids, &mut network)?);
    }
    network.lane_count = network.lane_road.len();
    for (field, raw) in road_fields.iter().zip(&raw) {
        let shapes = lane_shapes(&raw.points, &raw.widths);
        check_shapes(&shapes, field)?;
        network.shape.extend(shapes);
    }

    let mut all_crossings = Vec::new();
    for field in &intersection_fields {
        read_intersection(field, &road_ids, &mut network, &mut all_crossings)?;
    }
    if network.junctions.is_empty() {
        return Err(file.error("no intersection has signals, at least one must have \"virtual\": false"));
    }
    network.crossings = Lists::new(all_crossings);

    // Lanes now end where their intersections begin. The shapes of links do not follow.
    let mut lane = 0;
    for ((road, raw), field) in network.roads.iter_mut().zip(&raw).zip(&road_fields) {
        let points = trimmed(&raw.points, road, &network.intersections);
        check_widths(&raw.points, road, &network.intersections, field)?;
        let shapes = lane_shapes(&points, &raw.widths);
        check_shapes(&shapes, field)?;
        let mut sum = 0.0;
        for shape in shapes {
            network.length[lane] = polyline_length(&shape);
            sum += network.length[lane];
            network.shape[lane] = shape;
            lane += 1;
        }
        road.mean_length = sum / raw.widths.len() as f64;
    }
    let mut lane_links = vec![Vec::new(); network.lane_count];
    for (index, link) in network.link.iter().enumerate() {
        lane_links[link.start as usize].push((network.lane_count + index) as u32);
    }
    network.lane_links = Lists::new(lane_links);
    network.fingerprint = fingerprint(&network);
    Ok(network)
}

/// A hash of all that matters to traffic.
fn fingerprint(network: &Network) -> u64 {
    let mut hash = Fnv::default();
    for road in &network.roads {
        hash.add(road.id.as_bytes());
        hash.add_number(road.lanes.end as u64);
    }
    network.length.iter().chain(&network.limit).for_each(|number| hash.add_number(number.to_bits()));
    for link in &network.link {
        hash.add_number(u64::from(link.start) << 32 | u64::from(link.end));
        hash.add(&[link.turn as u8]);
    }
    for link in network.lane_count..network.length.len() {
        network.crossings(link).iter().for_each(|crossing| hash.add_number(crossing.distance.to_bits()));
    }
    for phase in network.junctions.iter().flat_map(|junction| &junction.phases) {
        hash.add_number(phase.time.to_bits());
        hash.add_number(phase.green.len() as u64);
        phase.green.iter().for_each(|&movement| hash.add_number(movement as u64));
    }
    hash.0
}

/// The ids of `things`, which must all differ.
fn ids<'a>(things: &[Field<'a>], kind: &str) -> Result<Ids<'a>> {
    let mut ids = Ids::with_capacity(things.len());
    for (index, thing) in things.iter().enumerate() {
        let id = thing.item()?.field("id")?;
        if ids.insert(id.text()?, index).is_some() {
            return Err(id.error(format!("{kind} {:?} is there twice", id.text()?)));
        }
    }
    Ok(ids)
}

/// The number of the thing that `field` names.
fn lookup(field: Field<'_>, ids: &Ids<'_>, kind: &str) -> Result<usize> {
    let id = field.text()?;
    ids.get(id).copied().ok_or_else(|| field.error(format!("there is no {kind} {id:?}")))
}

fn read_point(field: Field<'_>) -> Result<Point> {
    let point = field.item()?;
    let coordinate = |name| point.field(name)?.within(-FARTHEST, FARTHEST);
    Ok(Point::new(coordinate("x")?, coordinate("y")?))
}

fn read_road(field: &Field<'_>, intersections: &Ids<'_>, network: &mut Network) -> Result<RawRoad> {
    let item = field.item()?;
    let id = item.field("id")?.text()?;
    let place = format!("road {id:?}");
    let item = item.called(&place);
    let start = lookup(item.field("startIntersection")?, intersections, "intersection")?;
    let end = lookup(item.field("endIntersection")?, intersections, "intersection")?;
    let points = item.field("points")?.array()?.map(read_point).collect::<Result<Vec<_>>>()?;
    if points.len() < 2 {
        return Err(item.error(format!("points: a road needs at least 2, has {}", points.len())));
    }
    let mut widths = Vec::new();
    let first = network.lane_road.len();
    for lane in item.field("lanes")?.array()? {
        let lane = lane.item()?;
        widths.push(lane.field("width")?.within(0.0, 1000.0)?);
        network.limit.push(lane.field("maxSpeed")?.within(0.01, 1000.0)?);
        network.lane_road.push(network.roads.len() as u32);
        network.length.push(0.0);
    }
    if widths.is_empty() {
        return Err(item.error("lanes: a road needs at least 1, has 0"));
    }
    let lanes = first..network.lane_road.len();
    network.roads.push(Road { id: id.to_string(), start, end, lanes, mean_length: 0.0 });
    Ok(RawRoad { points, widths })
}

/// The lanes of a road, innermost first, each in the middle of its width.
fn lane_shapes(points: &[Point], widths: &[f64]) -> Vec<Vec<Point>> {
    let mut before = 0.0;
    widths
        .iter()
        .map(|width| {
            let offset = (before + (before + width)) / 2.0;
            before += width;
            beside(points, offset)
        })
        .collect()
}

/// Phases of a junction at most.
const MOST_PHASES: usize = 1000;

fn check_shapes(shapes: &[Vec<Point>], road: &Field<'_>) -> Result<()> {
    for shape in shapes {
        let length = polyline_length(shape);
        if !(SHORTEST_LANE..=10.0 * FARTHEST).contains(&length) {
            let item = road.item()?;
            let place = format!("road {:?}", item.field("id")?.text()?);
            let what = if length.is_nan() {
                "a piece has length 0, or turns straight back where the intersection is wider than it is long"
                    .into()
            } else {
                format!("lanes must be at least 1 m long between the intersections; one has length {length}")
            };
            return Err(item.called(&place).error(what));
        }
    }
    Ok(())
}

/// The intersections at its ends must leave something of a road.
fn check_widths(
    points: &[Point],
    road: &Road,
    intersections: &[Intersection],
    field: &Field<'_>,
) -> Result<()> {
    let inside =
        |end: usize| if intersections[end].junction.is_some() { intersections[end].width } else { 0.0 };
    if inside(road.start) + inside(road.end) < polyline_length(points) {
        return Ok(());
    }
    let item = field.item()?;
    let place = format!("road {:?}", item.field("id")?.text()?);
    let [start, end] = [road.start, road.end].map(|end| intersections[end].width);
    let what = format!("the intersections at its ends, {start} m and {end} m wide, leave nothing of it");
    Err(item.called(&place).error(what))
}

/// The road's points without what lies inside its intersections.
fn trimmed(points: &[Point], road: &Road, intersections: &[Intersection]) -> Vec<Point> {
    let mut points = points.to_vec();
    let last = points.len() - 1;
    let (start, end) = (&intersections[road.start], &intersections[road.end]);
    if start.junction.is_some() {
        points[0] = points[0] + (points[1] - points[0]).unit() * start.width;
    }
    if end.junction.is_some() {
        points[last] = points[last] - (points[last] - points[last - 1]).unit() * end.width;
    }
    points
}

fn read_intersection(
    field: &Field<'_>,
    road_ids: &Ids<'_>,
    network: &mut Network,
    all_crossings: &mut Vec<Vec<super::Crossing>>,
) -> Result<()> {
    let item = field.item()?;
    let id = item.field("id")?.text()?;
    let place = format!("intersection {id:?}");
    let item = item.called(&place);
    let point = read_point(item.field("point")?)?;
    let is_virtual = item.field("virtual")?.flag()?;
    let roads =
        item.field("roads")?.array()?.map(|road| lookup(road, road_ids, "road")).collect::<Result<_>>()?;
    let number = network.intersections.len();
    let mut intersection = Intersection { id: id.to_string(), point, width: 0.0, roads, junction: None };
    if is_virtual {
        network.intersections.push(intersection);
        return Ok(());
    }
    intersection.width = item.field("width")?.within(0.0, 100_000.0)?;
    intersection.junction = Some(network.junctions.len());

    let first_link = network.link.len();
    let mut movements = Vec::new();
    for field in item.field("roadLinks")?.array()? {
        let place = format!("{place} roadLink {}", movements.len());
        let movement = field.item()?.called(&place);
        movements.push(read_movement(movement, number, intersection.width, road_ids, network)?);
    }
    let shapes = &network.shape[network.lane_count + first_link..];
    let pieces: usize = shapes.iter().map(|shape| shape.len() - 1).sum();
    if pieces > MOST_PIECES {
        let what = format!("its laneLinks have {pieces} straight pieces, at most {MOST_PIECES} are allowed");
        return Err(item.error(what));
    }
    all_crossings.extend(crossings(network.lane_count + first_link, shapes));

    let light = item.field("trafficLight")?.item()?;
    let mut phases = Vec::new();
    for field in light.field("lightphases")?.array()? {
        let place = format!("{place} lightphase {}", phases.len());
        phases.push(read_phase(field.item()?.called(&place), movements.len())?);
    }
    if phases.len() > MOST_PHASES {
        return Err(light.error(format!("lightphases: at most {MOST_PHASES}, has {}", phases.len())));
    }
    if phases.is_empty() {
        return Err(light.error("lightphases: an intersection with signals needs at least 1, has 0"));
    }
    network.intersections.push(intersection);
    network.junctions.push(Junction { intersection: number, movements, phases });
    Ok(())
}

fn read_phase(item: Item<'_>, movements: usize) -> Result<Phase> {
    let time = item.field("time")?.within(0.0, 1e9)?;
    let green = item.field("availableRoadLinks")?;
    let mut green: Vec<usize> =
        green.array()?.map(|link| link.index(movements, "roadLink")).collect::<Result<_>>()?;
    green.sort_unstable();
    green.dedup();
    Ok(Phase { time, green })
}

fn read_movement(
    item: Item<'_>,
    intersection: usize,
    width: f64,
    road_ids: &Ids<'_>,
    network: &mut Network,
) -> Result<Movement> {
    let kind = item.field("type")?;
    let turn = match kind.text()? {
        "go_straight" => Turn::Straight,
        "turn_left" => Turn::Left,
        "turn_right" => Turn::Right,
        other => {
            return Err(kind.error(format!("must be go_straight, turn_left or turn_right, is {other:?}")));
        }
    };
    let (start_field, end_field) = (item.field("startRoad")?, item.field("endRoad")?);
    let start = lookup(start_field, road_ids, "road")?;
    let end = lookup(end_field, road_ids, "road")?;
    if network.roads[start].end != intersection {
        return Err(start_field.error(format!("road {:?} does not end here", network.roads[start].id)));
    }
    if network.roads[end].start != intersection {
        return Err(end_field.error(format!("road {:?} does not start here", network.roads[end].id)));
    }
    let first = network.length.len();
    for link in item.field("laneLinks")?.array()? {
        let link = link.item()?;
        let lane = |name, road: &Road| -> Result<usize> {
            Ok(road.lanes.start + link.field(name)?.index(road.lanes.len(), "lane")?)
        };
        let start_lane = lane("startLaneIndex", &network.roads[start])?;
        let end_lane = lane("endLaneIndex", &network.roads[end])?;
        let given = match link.optional("points") {
            Some(points) => points.array()?.map(read_point).collect::<Result<Vec<_>>>()?,
            None => Vec::new(),
        };
        let shape = match given.len() {
            0 => curve(&network.shape[start_lane], width, &network.shape[end_lane], width),
            1 => return Err(link.error("points: a laneLink has none or at least 2, this one has 1")),
            _ => given,
        };
        let length = polyline_length(&shape);
        if !length.is_finite() {
            return Err(link.error("a laneLink has no finite length"));
        }
        network.length.push(length);
        network.shape.push(shape);
        network.link.push(Link { start: start_lane as u32, end: end_lane as u32, turn });
    }
    let links = first..network.length.len();
    let mut entry_lanes: Vec<usize> =
        network.link[first - network.lane_count..].iter().map(|link| link.start as usize).collect();
    entry_lanes.sort_unstable();
    entry_lanes.dedup();
    Ok(Movement { turn, start, end, links, entry_lanes })
}

//! From the text of a `flow.json` to flows.

use super::{Demand, Flow, VehicleKind};
use crate::error::{Error, Result, Source};
use crate::json::{Data, Field, Item, parse};
use crate::network::Network;
use std::collections::HashMap;

pub(super) fn read(text: &str, network: &Network) -> Result<Demand> {
    let file = parse(text, Source::Flow)?;
    let Data::Array(entries) = &file.data else {
        let what = format!("must be an array of flows, is {}", file.data.kind());
        let place = "file".to_string();
        return Err(Error::Content { source_file: Source::Flow, line: file.line, place, what });
    };
    let roads: HashMap<&str, usize> =
        network.roads().iter().enumerate().map(|(index, road)| (road.id.as_str(), index)).collect();
    let (mut flows, mut lines, mut ignored_time) = (Vec::with_capacity(entries.len()), Vec::new(), None);
    for (index, entry) in entries.iter().enumerate() {
        let place = format!("flow_{index}");
        let item = Item::new(entry, Source::Flow, &place)?;
        let flow = read_flow(item, &roads)?;
        if let Some(what) = flow.wrong(network) {
            return Err(item.error(what));
        }
        flows.push(flow);
        lines.push(entry.line);
        ignored_time = ignored_time.or_else(|| ignored(item));
    }
    Ok(Demand { ignored_time, lines, ..Demand::with_checked(flows, network)? })
}

fn read_flow(item: Item<'_>, roads: &HashMap<&str, usize>) -> Result<Flow> {
    let vehicle = item.field("vehicle")?.item()?;
    let number = |name| Ok(vehicle.field(name)?.number()?.value);
    let vehicle = VehicleKind {
        length: number("length")?,
        width: number("width")?,
        max_pos_acc: number("maxPosAcc")?,
        max_neg_acc: number("maxNegAcc")?,
        usual_pos_acc: number("usualPosAcc")?,
        usual_neg_acc: number("usualNegAcc")?,
        min_gap: number("minGap")?,
        max_speed: number("maxSpeed")?,
        headway_time: number("headwayTime")?,
    };
    let mut route = Vec::new();
    for field in item.field("route")?.array()? {
        let id = field.text()?;
        let road = roads.get(id).ok_or_else(|| field.error(format!("there is no road {id:?}")))?;
        route.push(*road);
    }
    // CityFlow silently ignores times that are not written as integers.
    let time = |name, missing| item.optional(name).and_then(integer).unwrap_or(missing);
    let (start_time, end_time) = (time("startTime", 0), time("endTime", -1));
    Ok(Flow { vehicle, route, interval: item.field("interval")?.number()?.value, start_time, end_time })
}

fn integer(field: Field<'_>) -> Option<i32> {
    i32::try_from(field.number().ok()?.integer?).ok()
}

/// Tells of a time that is there and does not count.
fn ignored(flow: Item<'_>) -> Option<Error> {
    let times = ["startTime", "endTime"].into_iter().filter_map(|name| flow.optional(name));
    let mut wrong = times.filter(|field| integer(*field).is_none());
    wrong.next().map(|field| field.error("must be written as an integer; CityFlow ignores it as it is"))
}

//! How vehicles come into being, get their way, and enter the network.

use super::scratch::Newcomer;
use super::state::{ON_NO_LINK, Rest, State, Vehicle};
use super::{Fixed, NONE, Simulation};

/// A vehicle that was made in this step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Starting {
    road: usize,
    flow: u32,
    number: u32,
    priority: i32,
}

impl Simulation {
    /// Makes the vehicles that start in this step and puts them into the queues of their first lanes.
    pub(super) fn depart(&mut self) {
        let Self { fixed, state, scratch } = self;
        let starting = &mut scratch.starting;
        starting.clear();
        let State { schedule, random, by_priority, made, off, .. } = state;
        schedule.step(&fixed.demand, fixed.settings.interval, state.step, |flow| {
            if off[flow as usize] {
                return;
            }
            let (priority, place) = loop {
                let drawn = random.draw() as i32;
                if let Err(place) = by_priority.binary_search_by_key(&drawn, |entry| entry.0) {
                    break (drawn, place);
                }
            };
            by_priority.insert(place, (priority, NONE));
            // The reference draws a worker thread, however many it has.
            random.draw();
            let road = fixed.demand.flows()[flow as usize].route[0];
            starting.push(Starting { road, flow, number: made[flow as usize], priority });
            made[flow as usize] += 1;
        });
        // First lanes are drawn after all priorities, by road and then in the order in which vehicles were
        // made.
        starting.sort_by_key(|vehicle| vehicle.road);
        for &vehicle in &*starting {
            plan(fixed, state, vehicle);
        }
    }

    /// Lets at most one vehicle of every queue enter its lane.
    pub(super) fn enter(&mut self) {
        let fixed = &*self.fixed;
        self.scratch.newcomers.clear();
        if self.state.waiting_outside == 0 {
            return;
        }
        for &lane in &fixed.entry_lanes {
            let state = &mut self.state;
            let slot = state.queues[lane as usize].first;
            if slot == NONE {
                continue;
            }
            let vehicle = state.vehicles[slot as usize];
            let last = state.places[lane as usize].last;
            if last != NONE {
                let tail = &state.vehicles[last as usize];
                let room =
                    fixed.drivers[tail.kind as usize].length + fixed.drivers[vehicle.kind as usize].min_gap;
                if tail.distance <= room {
                    continue;
                }
            }
            let queue = &mut state.queues[lane as usize];
            queue.first = vehicle.behind;
            if vehicle.behind == NONE {
                queue.last = NONE;
            }
            state.append(slot, lane);
            state.waiting_outside -= 1;
            state.running += 1;
            let leader = match last {
                NONE => fixed.leader(state, &state.vehicles[slot as usize], |place| place.last),
                _ => None,
            };
            self.scratch.newcomers.push(Newcomer { slot, lane, leader });
        }
    }
}

/// Puts a vehicle into the queue of its first lane. Without a way it vanishes, and its flow is switched off.
fn plan(fixed: &Fixed, state: &mut State, vehicle: Starting) {
    let Starting { flow, number, priority, .. } = vehicle;
    let demand = &*fixed.demand;
    let entry = state.by_priority.binary_search_by_key(&priority, |entry| entry.0);
    let Some(route) = demand.flow_route[flow as usize] else {
        if let Ok(entry) = entry {
            state.by_priority.remove(entry);
        }
        state.off[flow as usize] = true;
        return;
    };
    let lanes = demand.routes.first_lanes(route);
    let lane = lanes[state.random.draw() as usize % lanes.len()];
    let at = demand.routes.start(route);
    let slot = state.place_vehicle(Vehicle {
        distance: 0.0,
        speed: 0.0,
        behind: NONE,
        drivable: lane,
        next: demand.routes.next_drivable(&fixed.network, at, lane),
        at,
        kind: demand.flow_kind[flow as usize],
        rest: Rest::Entered,
        on_last_road: fixed.network.lane_road[lane as usize] == demand.routes.last_road(at),
        previous: NONE,
        enter_link: ON_NO_LINK,
        enter_step: state.step,
        flow,
        number,
        priority,
        blocker: NONE,
    });
    if let Ok(entry) = entry {
        state.by_priority[entry].1 = slot;
    }
    state.enqueue(slot, lane);
    state.waiting_outside += 1;
}

//! A state as bytes, and back.
//!
//! Vehicles are written in the order of their drivables and queues, so equal states are equal bytes, whatever
//! they went through. What follows from the rest (next drivables, who stands for good) is not written but
//! made anew.

use super::state::{ON_NO_LINK, Place, Queue, Rest, State, Vehicle};
use super::{Fixed, NONE, Simulation};
use crate::demand::{Active, Schedule};
use crate::error::{Error, Result};
use crate::fnv::Fnv;
use crate::random::MersenneTwister;

const MAGIC: &[u8; 8] = b"phxjunc1";
/// Steps and vehicles of a flow are counted up to here.
const MOST: u32 = 1 << 31;
/// Bytes of a vehicle.
const VEHICLE: usize = 52;

impl Simulation {
    /// The state as bytes: time, vehicles, signals, flows and random numbers.
    pub fn save(&self) -> Vec<u8> {
        let state = &self.state;
        let mut bytes = Writer(MAGIC.to_vec());
        bytes.u64(self.fixed.fingerprint);
        bytes.u64(state.schedule.fingerprint());
        bytes.u32(state.step);
        let (words, next) = state.random.parts();
        words.iter().for_each(|&word| bytes.u32(word));
        bytes.u32(next as u32);
        bytes.u32(state.schedule.cursor as u32);
        bytes.f64(state.schedule.clock);
        bytes.u32(state.schedule.active.len() as u32);
        for active in &state.schedule.active {
            bytes.u32(active.flow);
            bytes.f64(active.waited);
        }
        for (&made, &off) in state.made.iter().zip(&state.off) {
            bytes.u32(made);
            bytes.0.push(u8::from(off));
        }
        for (&phase, &left) in state.phases.iter().zip(&state.left) {
            bytes.u32(phase);
            bytes.f64(left);
        }
        bytes.u32(state.finished as u32);
        bytes.f64(state.travelled);

        let running = in_order(state, state.places.iter().map(|place| place.first));
        let outside = in_order(state, state.queues.iter().map(|queue| queue.first));
        let mut index = vec![NONE; state.vehicles.len()];
        for (place, &slot) in running.iter().enumerate() {
            index[slot as usize] = place as u32;
        }
        bytes.u32(running.len() as u32);
        bytes.u32(outside.len() as u32);
        for &slot in running.iter().chain(&outside) {
            let vehicle = &state.vehicles[slot as usize];
            let route = self.fixed.demand.flow_route[vehicle.flow as usize].unwrap_or(0);
            bytes.u32(vehicle.drivable);
            bytes.f64(vehicle.distance);
            bytes.f64(vehicle.speed);
            bytes.u32(vehicle.flow);
            bytes.u32(vehicle.at - self.fixed.demand.routes.start(route));
            bytes.u32(vehicle.number);
            bytes.u32(vehicle.priority as u32);
            bytes.u32(vehicle.enter_step);
            bytes.u32(vehicle.enter_link as u32);
            bytes.u32(vehicle.previous);
            bytes.u32(index.get(vehicle.blocker as usize).copied().unwrap_or(NONE));
        }
        let mut hash = Fnv::default();
        hash.add(&bytes.0);
        bytes.u64(hash.0);
        bytes.0
    }

    /// Goes to a state that was saved by this simulation, a copy of it, or one made of the same files and
    /// settings.
    ///
    /// # Errors
    /// Bytes that are damaged or of another simulation. The simulation is left as it was.
    pub fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let Some((content, hash)) = bytes.split_last_chunk::<8>() else {
            return Err(Error::state("it is too short"));
        };
        let mut wanted = Fnv::default();
        wanted.add(content);
        if u64::from_le_bytes(*hash) != wanted.0 {
            return Err(Error::state("it is damaged"));
        }
        let state = read(&self.fixed, &self.state, content)?;
        self.state = state;
        self.scratch.clear();
        self.light_all();
        Ok(())
    }
}

/// The vehicles of all chains, one chain after the other.
fn in_order(state: &State, firsts: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut slots = Vec::new();
    for mut slot in firsts {
        while slot != NONE {
            slots.push(slot);
            slot = state.vehicles[slot as usize].behind;
        }
    }
    slots
}

fn read(fixed: &Fixed, now: &State, bytes: &[u8]) -> Result<State> {
    let mut bytes = Reader(bytes);
    if bytes.take(8)? != MAGIC {
        return Err(Error::state("it was not made by this version"));
    }
    if bytes.u64()? != fixed.fingerprint {
        return Err(Error::state("it is of another network, another demand or other settings"));
    }
    if bytes.u64()? != now.schedule.fingerprint() {
        return Err(Error::state("it is of a simulation with other departures"));
    }
    let step = bytes.count(MOST)?;
    let words = (0..624).map(|_| bytes.u32()).collect::<Result<Vec<_>>>()?;
    let random = MersenneTwister::from_parts(&words, bytes.u32()? as usize)
        .ok_or_else(|| Error::state("its random numbers make no sense"))?;
    let schedule = read_schedule(fixed, &now.schedule, &mut bytes)?;
    let mut state = State {
        step,
        random,
        schedule,
        vehicles: Vec::new(),
        unused: Vec::new(),
        by_priority: Vec::new(),
        places: vec![Place::EMPTY; now.places.len()],
        occupied: vec![0; now.occupied.len()],
        queues: vec![Queue::EMPTY; now.queues.len()],
        blocked: Vec::new(),
        ..now.clone()
    };
    for (made, off) in state.made.iter_mut().zip(&mut state.off) {
        *made = bytes.count(MOST)?;
        *off = bytes.take(1)? == [1];
    }
    for (junction, (phase, left)) in state.phases.iter_mut().zip(&mut state.left).enumerate() {
        *phase = bytes.count(fixed.green_links[junction].len() as u32 - 1)?;
        *left = bytes.f64_within(0.0, 1e9)?;
    }
    state.finished = bytes.count(MOST)? as usize;
    state.travelled = bytes.f64_within(0.0, f64::MAX)?;
    state.running = bytes.u32()? as usize;
    state.waiting_outside = bytes.u32()? as usize;
    let count = state.running.saturating_add(state.waiting_outside);
    if count.checked_mul(VEHICLE) != Some(bytes.0.len()) {
        return Err(Error::state("its number of vehicles is wrong"));
    }
    for slot in 0..count as u32 {
        read_vehicle(fixed, &mut state, &mut bytes, slot)?;
    }
    state.by_priority.sort_unstable();
    if state.by_priority.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(Error::state("two vehicles have the same priority"));
    }
    for place in &mut state.places {
        place.settled_last = place.last;
    }
    Ok(state)
}

fn read_schedule(fixed: &Fixed, now: &Schedule, bytes: &mut Reader<'_>) -> Result<Schedule> {
    let mut schedule = now.clone();
    let flows = fixed.demand.flows();
    schedule.cursor = bytes.count(now.last_cursor(&fixed.demand) as u32)? as usize;
    schedule.clock = bytes.f64_within(0.0, 1e12)?;
    schedule.active.clear();
    for _ in 0..bytes.count(flows.len() as u32)? {
        let flow = bytes.count(flows.len() as u32 - 1)?;
        let waited = bytes.f64_within(0.0, flows[flow as usize].interval + fixed.settings.interval)?;
        if schedule.active.last().is_some_and(|last| last.flow >= flow) {
            return Err(Error::state("its flows are out of order"));
        }
        schedule.active.push(Active { flow, waited });
    }
    Ok(schedule)
}

fn read_vehicle(fixed: &Fixed, state: &mut State, bytes: &mut Reader<'_>, slot: u32) -> Result<()> {
    let (network, demand) = (&*fixed.network, &*fixed.demand);
    let in_network = (slot as usize) < state.running;
    let places = if in_network { network.drivable_count() } else { network.lane_count() };
    let drivable = bytes.count(places as u32 - 1)?;
    let distance = bytes.f64_within(0.0, network.length[drivable as usize])?;
    let speed = bytes.f64_within(0.0, 1000.0)?;
    let flow = bytes.u32()?;
    let route = demand.flow_route.get(flow as usize).copied().flatten();
    let route = route.ok_or_else(|| Error::state("a vehicle has no route"))?;
    let at = demand.routes.start(route) + bytes.count(demand.routes.path(route).len() as u32 - 1)?;
    let last_road = demand.routes.last_road(at);
    let vehicle = Vehicle {
        distance,
        speed,
        behind: NONE,
        drivable,
        next: demand.routes.next_drivable(network, at, drivable),
        at,
        kind: demand.flow_kind[flow as usize],
        rest: if in_network { Rest::Moved } else { Rest::Entered },
        on_last_road: network.lane_road.get(drivable as usize) == Some(&last_road),
        number: bytes.u32()?,
        flow,
        priority: bytes.u32()? as i32,
        enter_step: bytes.count(state.step)?,
        enter_link: bytes.u32()? as i32,
        previous: bytes.u32()?,
        blocker: bytes.u32()?,
    };
    let is_link = fixed.is_link(drivable);
    let strange_time = if is_link { vehicle.enter_link < 0 } else { vehicle.enter_link != ON_NO_LINK };
    let strange_place = vehicle.previous != NONE && vehicle.previous as usize >= network.drivable_count();
    let strange_blocker = vehicle.blocker != NONE && vehicle.blocker as usize >= state.running;
    if strange_time || strange_place || strange_blocker {
        return Err(Error::state("a vehicle makes no sense"));
    }
    state.vehicles.push(vehicle);
    state.by_priority.push((vehicle.priority, slot));
    if vehicle.blocker != NONE {
        state.blocked.push(slot);
    }
    if in_network {
        state.append(slot, drivable);
    } else {
        state.enqueue(slot, drivable);
    }
    Ok(())
}

struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn f64(&mut self, number: f64) {
        self.0.extend(number.to_le_bytes());
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, size: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(size).ok_or_else(|| Error::state("it is too short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk().ok_or_else(|| Error::state("it is too short"))?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u32(&mut self) -> Result<u32> {
        self.chunk().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.chunk().map(u64::from_le_bytes)
    }

    /// A number up to `most`.
    fn count(&mut self, most: u32) -> Result<u32> {
        let number = self.u32()?;
        if number <= most { Ok(number) } else { Err(Error::state(format!("{number} is more than {most}"))) }
    }

    fn f64_within(&mut self, least: f64, most: f64) -> Result<f64> {
        let number = self.chunk().map(f64::from_le_bytes)?;
        let is_inside = (least..=most).contains(&number);
        if is_inside {
            Ok(number)
        } else {
            Err(Error::state(format!("{number} is not from {least} to {most}")))
        }
    }
}

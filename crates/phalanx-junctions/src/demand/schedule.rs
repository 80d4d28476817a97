//! When vehicles start: the flows' own clockwork, or a given list.

use super::{Demand, Departure};
use crate::error::{Error, Result};
use crate::fnv::Fnv;
use std::sync::Arc;

/// Steps up to which departures may be listed.
const LAST_STEP: f64 = 4e9;

/// Who starts in which step. It goes through the steps one by one.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// Step and flow of every vehicle, in order, if they are listed.
    list: Option<Arc<[(u32, u32)]>>,
    /// How many flows have begun, or how many listed vehicles have started.
    pub cursor: usize,
    /// Seconds that the flows have seen, added up step by step.
    pub clock: f64,
    /// Flows that have begun and not ended, in their order.
    pub active: Vec<Active>,
}

/// A flow from which vehicles come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Active {
    pub flow: u32,
    /// Seconds since its last vehicle.
    pub waited: f64,
}

impl Schedule {
    /// The schedule of the flows themselves.
    pub fn flows() -> Self {
        Self { list: None, cursor: 0, clock: 0.0, active: Vec::new() }
    }

    /// The schedule of a list of departures, in steps of `interval` seconds.
    pub fn listed(departures: &[Departure], demand: &Demand, interval: f64) -> Result<Self> {
        let mut list = Vec::with_capacity(departures.len());
        for departure in departures {
            if departure.flow >= demand.flows().len() {
                let what = format!("there is no flow {}, there are {}", departure.flow, demand.flows().len());
                return Err(Error::setting("departures", what));
            }
            list.push((step_of(departure.time, interval)?, departure.flow as u32));
        }
        list.sort();
        Ok(Self { list: Some(list.into()), ..Self::flows() })
    }

    /// Back to the first step.
    pub fn rewind(&mut self) {
        *self = Self { list: self.list.take(), ..Self::flows() };
    }

    /// How far `cursor` can go.
    pub fn last_cursor(&self, demand: &Demand) -> usize {
        self.list.as_ref().map_or(demand.flows().len(), |list| list.len())
    }

    /// A hash of the listed departures.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::default();
        hash.add_number(self.list.is_some().into());
        for &(step, flow) in self.list.iter().flat_map(|list| list.iter()) {
            hash.add_number(u64::from(step) << 32 | u64::from(flow));
        }
        hash.0
    }

    /// Calls `start` with the flow of every vehicle that starts in `step`, the next one.
    pub fn step(&mut self, demand: &Demand, interval: f64, step: u32, mut start: impl FnMut(u32)) {
        if let Some(list) = &self.list {
            while let Some(&(_, flow)) = list.get(self.cursor).filter(|departure| departure.0 <= step) {
                start(flow);
                self.cursor += 1;
            }
            return;
        }
        while let Some(&flow) = demand.by_start.get(self.cursor) {
            let new = &demand.flows()[flow as usize];
            if self.clock < f64::from(new.start_time) {
                break;
            }
            let place = self.active.partition_point(|other| other.flow < flow);
            self.active.insert(place, Active { flow, waited: new.interval });
            self.cursor += 1;
        }
        let clock = self.clock;
        self.active.retain_mut(|active| {
            let flow = &demand.flows()[active.flow as usize];
            if flow.end_time != -1 && clock > f64::from(flow.end_time) {
                return false;
            }
            while active.waited >= flow.interval {
                start(active.flow);
                active.waited -= flow.interval;
            }
            active.waited += interval;
            true
        });
        self.clock += interval;
    }
}

/// The first step that begins at `time` or later.
fn step_of(time: f64, interval: f64) -> Result<u32> {
    let guess = (time / interval).ceil();
    if !(0.0..=LAST_STEP).contains(&guess) || !time.is_finite() {
        return Err(Error::setting("departures", format!("a time must be from 0 to 4e9 steps, is {time}")));
    }
    // The quotient may be off by one step where the product that the engine forms is not.
    let mut step = guess as u32;
    while step > 0 && f64::from(step - 1) * interval >= time {
        step -= 1;
    }
    while f64::from(step) * interval < time {
        step += 1;
    }
    Ok(step)
}

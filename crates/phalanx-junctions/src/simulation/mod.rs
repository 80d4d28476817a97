//! A simulation: one network, one demand, and the state of all vehicles and signals.

mod busy;
mod depart;
mod drive;
mod driver;
mod junction;
mod leader;
mod moving;
mod observe;
mod save;
mod scratch;
mod signal;
mod state;

use crate::demand::{Demand, Departure, NONE, Schedule};
use crate::error::{Error, Result};
use crate::fnv::Fnv;
use crate::network::Network;
use crate::random::MersenneTwister;
use driver::Driver;
use scratch::Scratch;
use state::{Place, Queue, State};
use std::sync::Arc;

pub use observe::{Move, Position, VehicleId, VehicleView, WAITING_BELOW};

/// How a simulation runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Seconds of a step, `interval` in CityFlow's configuration.
    pub interval: f64,
    /// Seed of the random numbers that order vehicles and choose first lanes.
    pub seed: u32,
    /// Whether signals follow the program of the file (`rlTrafficLight` false) instead of being set from
    /// outside.
    pub own_program: bool,
}

impl Default for Settings {
    /// Steps of a second, seed 0, signals set from outside.
    fn default() -> Self {
        Self { interval: 1.0, seed: 0, own_program: false }
    }
}

/// What never changes, shared by all copies of a simulation.
#[derive(Debug)]
struct Fixed {
    network: Arc<Network>,
    demand: Arc<Demand>,
    settings: Settings,
    drivers: Vec<Driver>,
    /// Length of the longest vehicle.
    longest: f64,
    /// Lanes on which vehicles can start, rising.
    entry_lanes: Vec<u32>,
    /// Links that are green, per junction and phase.
    green_links: Vec<Vec<Vec<u32>>>,
    /// Tells simulations apart that cannot read each other's states.
    fingerprint: u64,
}

/// Traffic on a network, second by second.
///
/// A copy is cheap: what never changes is shared. Copies run independently of each other, on any thread.
#[derive(Clone, Debug)]
pub struct Simulation {
    fixed: Arc<Fixed>,
    state: State,
    scratch: Scratch,
}

impl Simulation {
    /// A simulation of the flows of `demand` at time 0.
    ///
    /// # Errors
    /// Settings out of range, or an own program whose phases take no time.
    pub fn new(network: Arc<Network>, demand: Arc<Demand>, settings: Settings) -> Result<Self> {
        Self::with_schedule(network, demand, settings, Schedule::flows())
    }

    /// A simulation in which the vehicles that start are listed, in any order.
    ///
    /// With [`Demand::departures`] it is the same, bit for bit, as with the flows themselves. Vehicles of the
    /// same step start in the order of their flows; those of one flow are numbered in the order in which they
    /// start.
    ///
    /// # Errors
    /// As [`Simulation::new`], and departures whose flow does not exist or whose time is no time.
    pub fn with_departures(
        network: Arc<Network>,
        demand: Arc<Demand>,
        settings: Settings,
        departures: &[Departure],
    ) -> Result<Self> {
        check_interval(&settings)?;
        let schedule = Schedule::listed(departures, &demand, settings.interval)?;
        Self::with_schedule(network, demand, settings, schedule)
    }

    fn with_schedule(
        network: Arc<Network>,
        demand: Arc<Demand>,
        settings: Settings,
        schedule: Schedule,
    ) -> Result<Self> {
        check_interval(&settings)?;
        if demand.network != network.fingerprint {
            return Err(Error::setting("demand", "it was made for another network"));
        }
        if settings.own_program {
            signal::check_program(&network)?;
        }
        let hardest = demand
            .kinds
            .iter()
            .fold(0.0, |most: f64, kind| most.max(kind.max_neg_acc).max(kind.usual_neg_acc));
        let drivers = demand.kinds.iter().map(|kind| Driver::new(kind, settings.interval, hardest)).collect();
        let mut is_entry = vec![false; network.lane_count()];
        for route in demand.flow_route.iter().flatten() {
            for &lane in demand.routes.first_lanes(*route) {
                is_entry[lane as usize] = true;
            }
        }
        let fixed = Fixed {
            fingerprint: fingerprint(&network, &demand, &settings),
            longest: demand.kinds.iter().fold(0.0, |most: f64, kind| most.max(kind.length)),
            drivers,
            entry_lanes: (0..network.lane_count() as u32).filter(|&lane| is_entry[lane as usize]).collect(),
            green_links: signal::green_links(&network),
            network,
            demand,
            settings,
        };
        Ok(Self::at_start(Arc::new(fixed), schedule))
    }

    /// The same network, demand and settings at time 0, with other departures than the flows'.
    ///
    /// As [`Simulation::with_departures`], but what never changes is shared, so that an episode starts
    /// quickly.
    ///
    /// # Errors
    /// Departures whose flow does not exist or whose time is no time.
    pub fn restarted_with(&self, departures: &[Departure]) -> Result<Self> {
        let fixed = &self.fixed;
        let schedule = Schedule::listed(departures, &fixed.demand, fixed.settings.interval)?;
        Ok(Self::at_start(fixed.clone(), schedule))
    }

    fn at_start(fixed: Arc<Fixed>, schedule: Schedule) -> Self {
        let (network, flows) = (&fixed.network, fixed.demand.flows().len());
        let state = State {
            step: 0,
            random: MersenneTwister::new(fixed.settings.seed),
            schedule,
            made: vec![0; flows],
            off: vec![false; flows],
            vehicles: Vec::new(),
            unused: Vec::new(),
            by_priority: Vec::new(),
            places: vec![Place::EMPTY; network.drivable_count()],
            occupied: vec![0; network.drivable_count().div_ceil(64)],
            queues: vec![Queue::EMPTY; network.lane_count()],
            blocked: Vec::new(),
            phases: vec![0; network.junctions().len()],
            left: network.junctions().iter().map(|junction| junction.phases[0].time).collect(),
            green: vec![false; network.drivable_count()],
            running: 0,
            waiting_outside: 0,
            finished: 0,
            travelled: 0.0,
        };
        let mut simulation = Self { fixed, state, scratch: Scratch::default() };
        simulation.light_all();
        simulation
    }

    /// One step of [`Settings::interval`] seconds, with the phases as they are set.
    pub fn step(&mut self) {
        self.depart();
        self.enter();
        self.drive();
        self.advance();
        if self.fixed.settings.own_program {
            self.pass_signal_time();
        }
        self.state.step += 1;
    }

    /// Back to time 0: no vehicles, first phases, flows from their start.
    ///
    /// The random numbers go on where they are, unless `reseed` is set (CityFlow's `reset` with and without
    /// its argument). Flows that were switched off because there is no way stay off, as in CityFlow.
    pub fn reset(&mut self, reseed: bool) {
        let mut schedule = self.state.schedule.clone();
        schedule.rewind();
        let mut start = Self::at_start(self.fixed.clone(), schedule);
        std::mem::swap(&mut start.state.off, &mut self.state.off);
        if !reseed {
            std::mem::swap(&mut start.state.random, &mut self.state.random);
        }
        *self = start;
    }

    /// The network.
    pub fn network(&self) -> &Arc<Network> {
        &self.fixed.network
    }

    /// The demand.
    pub fn demand(&self) -> &Arc<Demand> {
        &self.fixed.demand
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.fixed.settings
    }
}

impl Fixed {
    /// Whether a drivable number is that of a link.
    #[inline(always)]
    fn is_link(&self, drivable: u32) -> bool {
        drivable != NONE && drivable as usize >= self.network.lane_count
    }
}

fn check_interval(settings: &Settings) -> Result<()> {
    if (0.01..=10.0).contains(&settings.interval) {
        Ok(())
    } else {
        Err(Error::setting("interval", format!("must be from 0.01 to 10 seconds, is {}", settings.interval)))
    }
}

/// A hash of what a state depends on, but for listed departures.
fn fingerprint(network: &Network, demand: &Demand, settings: &Settings) -> u64 {
    let mut hash = Fnv::default();
    hash.add_number(network.fingerprint);
    hash.add_number(settings.interval.to_bits());
    hash.add_number(settings.seed.into());
    hash.add_number(settings.own_program.into());
    for (flow, route) in demand.flows().iter().zip(&demand.flow_route) {
        flow.vehicle.numbers().into_iter().for_each(|number| hash.add_number(number.to_bits()));
        hash.add_number(flow.interval.to_bits());
        hash.add(&flow.start_time.to_le_bytes());
        hash.add(&flow.end_time.to_le_bytes());
        let path = route.map_or(&[][..], |route| demand.routes.path(route));
        path.iter().for_each(|&road| hash.add_number(road.into()));
    }
    hash.0
}

//! An episode: traffic, signals, and what is counted.

use std::sync::Arc;

use phalanx_junctions::{ApproachTimes, Simulation};

use super::cells::Trouble;
use super::counters::{Broken, Counters};
use super::lanes::{self, Lane};
use super::settings::Cells;
use super::{CHANNELS, Fixed, MEASURES};
use crate::world::{Episode, Scene};

/// The benchmark's weight of a vehicle on a lane.
pub const REWARD_SCALE: f64 = 0.03333;

/// An episode.
pub struct Drive {
    fixed: Arc<Fixed>,
    simulation: Simulation,
    times: ApproachTimes,
    lanes: Vec<Lane>,
    signals: Vec<Signal>,
    longest_red: u32,
}

/// One junction.
#[derive(Clone)]
struct Signal {
    counters: Counters,
    /// Phases that are allowed, as bits.
    allowed: u32,
    broken: Broken,
    trouble: Trouble,
}

impl Drive {
    pub fn new(fixed: Arc<Fixed>, simulation: Simulation) -> Self {
        let lanes = vec![Lane::default(); simulation.network().lane_count()];
        let calm = Signal {
            counters: Counters::new(),
            allowed: u32::MAX,
            broken: Broken { green_time: 0.0, green_skip: 0.0, phase_skip: 0.0 },
            trouble: Trouble { red: 0, fill: 0, is_blocked: false },
        };
        let signals = vec![calm; fixed.layout.junctions.len()];
        let mut drive =
            Drive { fixed, simulation, times: ApproachTimes::new(), lanes, signals, longest_red: 0 };
        drive.look();
        drive
    }

    /// Notes what there is to see.
    fn look(&mut self) {
        let (layout, mask) = (&self.fixed.layout, self.fixed.mask());
        lanes::look(&self.simulation, &mut self.lanes);
        let lengths = self.simulation.network().lengths();
        for (junction, (signal, site)) in self.signals.iter_mut().zip(&layout.junctions).enumerate() {
            let fullest = lanes::fullest(&self.lanes, lengths, site);
            signal.trouble = Trouble::new(site, &signal.counters, &self.lanes, fullest);
            signal.broken = signal.counters.broken(site);
            if let Some(mask) = mask {
                signal.allowed = mask.allowed(junction, site, &signal.counters);
            }
        }
    }

    /// Chooses phases; returns which junctions change.
    fn decide(&mut self, actions: &[u8]) -> Vec<bool> {
        let (Fixed { layout, timing, .. }, mask) = (&*self.fixed, self.fixed.mask());
        let mut changes = Vec::with_capacity(actions.len());
        for ((signal, site), &asked) in self.signals.iter_mut().zip(&layout.junctions).zip(actions) {
            let phase =
                mask.map_or(asked, |mask| mask.nearest(asked, signal.allowed, site, &signal.counters));
            changes.push(phase != signal.counters.phase);
            self.longest_red = self.longest_red.max(signal.counters.decide(site, phase, *timing));
        }
        changes
    }

    fn light(&mut self, junction: usize, phase: usize) {
        self.simulation.set_phase(junction, phase).expect("the layout has phases that exist");
    }
}

impl Episode for Drive {
    fn observe(&self, states: &mut [u8], shared: &mut [f32]) {
        let Fixed { layout, format, cells, .. } = &*self.fixed;
        let rows = shared.chunks_exact_mut(format.stride());
        let sites = self.signals.iter().zip(&layout.junctions);
        for (((signal, site), state), row) in sites.zip(states).zip(rows) {
            let Signal { counters, allowed, broken, trouble } = signal;
            *state = match cells {
                Cells::Traffic => trouble.traffic_cell(counters.phase),
                Cells::Rules => trouble.rules_cell(counters.phase, broken),
            };
            format.write(site, counters, *allowed, &self.lanes, row);
        }
    }

    fn step(&mut self, actions: &[u8], draws: &[u32], rewards: &mut [f32]) -> bool {
        self.step_watched(actions, draws, rewards, &mut |_| ())
    }

    /// Every second is shown.
    fn step_watched(
        &mut self,
        actions: &[u8],
        _draws: &[u32],
        rewards: &mut [f32],
        watch: &mut dyn FnMut(&Scene),
    ) -> bool {
        let n = actions.len();
        let changes = self.decide(actions);
        let fixed = self.fixed.clone();
        let mut on_lanes = vec![0.0; n];
        for second in 0..fixed.timing.decision {
            for junction in 0..n {
                let is_yellow = changes[junction] && second < fixed.timing.yellow;
                let phase = 1 + usize::from(self.signals[junction].counters.phase);
                self.light(junction, if is_yellow { 0 } else { phase });
            }
            self.simulation.step();
            self.times.observe(&self.simulation);
            watch(&self.simulation);
            for (sum, site) in on_lanes.iter_mut().zip(&fixed.layout.junctions) {
                let weighted =
                    |&(lane, weight): &(usize, f64)| weight * self.simulation.lane_vehicles(lane) as f64;
                *sum += site.entry_lanes.iter().map(weighted).sum::<f64>();
            }
        }
        self.look();
        let flag = |holds: bool| f64::from(u8::from(holds));
        for (i, (signal, site)) in self.signals.iter().zip(&fixed.layout.junctions).enumerate() {
            let Signal { broken, trouble, .. } = signal;
            let waiting: u32 = site.entry_lanes.iter().map(|&(lane, _)| self.lanes[lane].waiting).sum();
            let earned: [f64; CHANNELS.len()] = [
                -REWARD_SCALE * on_lanes[i] / f64::from(fixed.timing.decision),
                f64::from(waiting),
                broken.green_time,
                broken.green_skip,
                broken.phase_skip,
                flag(trouble.is_starving()),
                flag(trouble.spills_back()),
            ];
            for (channel, number) in earned.into_iter().enumerate() {
                rewards[channel * n + i] = number as f32;
            }
        }
        false
    }

    fn measures(&self, out: &mut [f64]) {
        let found: [f64; MEASURES.len()] = [
            self.simulation.average_travel_time(),
            self.times.mean(self.simulation.time()),
            self.simulation.finished() as f64,
            self.simulation.waiting_outside() as f64,
            f64::from(self.longest_red),
        ];
        out.copy_from_slice(&found);
    }

    /// The [`Simulation`]: vehicles, lanes and lights at this moment.
    fn scene(&self) -> Option<&Scene> {
        Some(&self.simulation)
    }
}

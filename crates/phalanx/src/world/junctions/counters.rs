//! How long lights are green and red, and how often they are skipped: what the rules of the constrained
//! benchmark (MAPPO-LCE, arXiv:2503.23626) count, as its text means them.

use super::layout::{MOST_MOVEMENTS, Site};
use super::settings::MOST_PHASES;

/// A light that is green for so many seconds breaks the rule *green time*.
pub const LONGEST_GREEN: u32 = 40;
/// A movement that so many changes of phase in a row left out breaks the rule *green skip*.
pub const MOST_GREEN_SKIPS: u8 = 4;
/// A phase that so many changes of phase in a row left out breaks the rule *phase skip*.
pub const MOST_PHASE_SKIPS: u8 = 16;

/// When signals may change, in seconds.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// Between decisions.
    pub decision: u32,
    /// Of phase 0 after a change.
    pub yellow: u32,
}

/// What is counted at one junction. Phases are numbered from 0 here: number a is phase a + 1 of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Counters {
    /// The phase that is on, or will be after yellow.
    pub phase: u8,
    /// Seconds since it was chosen, and since it is green.
    pub elapsed: u32,
    pub age: u32,
    /// By movement: seconds green in a row, seconds red in a row, and changes of phase in a row that left it
    /// out. Yellow is red.
    pub green: [u32; MOST_MOVEMENTS],
    pub red: [u32; MOST_MOVEMENTS],
    pub skips: [u8; MOST_MOVEMENTS],
    /// By phase: changes in a row that left it out.
    pub phase_skips: [u8; MOST_PHASES],
}

/// Shares of lights, movements and phases that break each rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Broken {
    pub green_time: f64,
    pub green_skip: f64,
    pub phase_skip: f64,
}

impl Broken {
    pub fn is_none(&self) -> bool {
        self.green_time == 0.0 && self.green_skip == 0.0 && self.phase_skip == 0.0
    }
}

/// Numbers of the bits that are set.
pub fn ones(mut bits: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (bits != 0).then(|| {
            let bit = bits.trailing_zeros() as usize;
            bits &= bits - 1;
            bit
        })
    })
}

impl Counters {
    /// At the start the first phase is on.
    pub fn new() -> Self {
        Counters {
            phase: 0,
            elapsed: 0,
            age: 0,
            green: [0; MOST_MOVEMENTS],
            red: [0; MOST_MOVEMENTS],
            skips: [0; MOST_MOVEMENTS],
            phase_skips: [0; MOST_PHASES],
        }
    }

    /// One decision for `phase`. Returns the longest red that there was in it.
    pub fn decide(&mut self, site: &Site, phase: u8, timing: Timing) -> u32 {
        let Timing { decision, yellow } = timing;
        if phase == self.phase {
            self.age += decision;
            self.elapsed += decision;
            return self.pass(site.controlled, site.green[usize::from(phase)], decision);
        }
        self.change(site, phase);
        self.elapsed = decision;
        self.age = decision - yellow;
        let in_yellow = self.pass(site.controlled, site.yellow_green, yellow);
        in_yellow.max(self.pass(site.controlled, site.green[usize::from(phase)], decision - yellow))
    }

    fn change(&mut self, site: &Site, new: u8) {
        let [old, new] = [self.phase, new].map(usize::from);
        for (phase, skips) in self.phase_skips[..site.green.len()].iter_mut().enumerate() {
            if phase != old {
                *skips = skips.saturating_add(1);
            }
        }
        self.phase_skips[new] = 0;
        let served = site.green[old] | site.green[new];
        for movement in ones(site.judged) {
            let skips = &mut self.skips[movement];
            *skips = if served >> movement & 1 == 1 { 0 } else { skips.saturating_add(1) };
        }
        self.phase = new as u8;
    }

    /// So many seconds of the same lights.
    fn pass(&mut self, controlled: u32, lit: u32, seconds: u32) -> u32 {
        if seconds == 0 {
            return 0;
        }
        let mut longest = 0;
        for movement in ones(controlled) {
            let [green, red] = [&mut self.green[movement], &mut self.red[movement]];
            if lit >> movement & 1 == 1 {
                (*green, *red) = (*green + seconds, 0);
            } else {
                (*green, *red) = (0, *red + seconds);
                longest = longest.max(*red);
            }
        }
        longest
    }

    /// What is broken now.
    pub fn broken(&self, site: &Site) -> Broken {
        let lit = site.green[usize::from(self.phase)];
        let share = |count: usize, all: usize| if all == 0 { 0.0 } else { count as f64 / all as f64 };
        let long = ones(lit).filter(|&movement| self.green[movement] >= LONGEST_GREEN).count();
        let skipped = ones(site.judged).filter(|&movement| self.skips[movement] >= MOST_GREEN_SKIPS).count();
        let phases = &self.phase_skips[..site.green.len()];
        let left_out = phases.iter().filter(|&&skips| skips >= MOST_PHASE_SKIPS).count();
        Broken {
            green_time: share(long, lit.count_ones() as usize),
            green_skip: share(skipped, site.judged.count_ones() as usize),
            phase_skip: share(left_out, phases.len()),
        }
    }
}

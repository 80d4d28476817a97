//! Numbers that describe the traffic, per junction: what views and scripted policies read.

use super::counters::{Counters, ones};
use super::lanes::{self, Lane};
use super::layout::{Layout, Site};

/// Numbers of a junction: phase, seconds since it was chosen, seconds since it is green.
const SHARED_HEAD: usize = 3;
/// Per phase: changes that left it out, and whether it is allowed.
const SHARED_PER_PHASE: usize = 2;
/// Per movement: vehicles before it, those that wait, that are near, and that drive; vehicles behind it and
/// those that wait; seconds green and red; changes that left it out.
const SHARED_PER_MOVEMENT: usize = 9;

/// Where the numbers stand; the same for every junction, those that it lacks are 0.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    phases: usize,
    movements: usize,
}

/// The numbers of one movement.
#[derive(Debug, Clone, Copy)]
pub struct MovementNumbers {
    pub vehicles: f32,
    pub waiting: f32,
    pub near: f32,
    pub driving: f32,
    pub exit_vehicles: f32,
    pub exit_waiting: f32,
    pub green: f32,
    pub red: f32,
    pub skips: f32,
}

impl Format {
    pub fn new(layout: &Layout) -> Self {
        Format { phases: layout.phases, movements: layout.movements }
    }

    /// Numbers per junction.
    pub fn stride(&self) -> usize {
        SHARED_HEAD + SHARED_PER_PHASE * self.phases + SHARED_PER_MOVEMENT * self.movements
    }

    /// Writes the numbers of a junction.
    pub fn write(&self, site: &Site, counters: &Counters, allowed: u32, lanes: &[Lane], out: &mut [f32]) {
        let Counters { phase, elapsed, age, .. } = *counters;
        out[..SHARED_HEAD].copy_from_slice(&[f32::from(phase), elapsed as f32, age as f32]);
        let (phases, movements) = out[SHARED_HEAD..].split_at_mut(SHARED_PER_PHASE * self.phases);
        let (phases, _) = phases.as_chunks_mut::<SHARED_PER_PHASE>();
        phases.fill([0.0; SHARED_PER_PHASE]);
        for (number, row) in phases.iter_mut().enumerate().take(site.green.len()) {
            *row = [f32::from(counters.phase_skips[number]), (allowed >> number & 1) as f32];
        }
        let (movements, _) = movements.as_chunks_mut::<SHARED_PER_MOVEMENT>();
        movements.fill([0.0; SHARED_PER_MOVEMENT]);
        for (number, (row, movement)) in movements.iter_mut().zip(&site.movements).enumerate() {
            let before = lanes::sum(lanes, movement.entry.iter().copied());
            let behind = lanes::sum(lanes, movement.exit.clone());
            let counts = [before.vehicles, before.waiting, before.near, before.driving];
            let counts = counts.into_iter().chain([behind.vehicles, behind.waiting]);
            let counts = counts.chain([counters.green[number], counters.red[number]]);
            let counts = counts.chain([u32::from(counters.skips[number])]);
            row.iter_mut().zip(counts).for_each(|(out, count)| *out = count as f32);
        }
    }

    /// The numbers of a junction.
    pub fn of<'a>(&self, shared: &'a [f32], junction: usize) -> Numbers<'a> {
        Numbers { format: *self, row: &shared[junction * self.stride()..][..self.stride()] }
    }
}

/// The numbers of one junction.
#[derive(Debug, Clone, Copy)]
pub struct Numbers<'a> {
    format: Format,
    row: &'a [f32],
}

impl Numbers<'_> {
    /// The phase that is on, from 0.
    pub fn phase(&self) -> usize {
        self.row[0] as usize
    }

    /// Seconds since the phase was chosen.
    pub fn elapsed(&self) -> f32 {
        self.row[1]
    }

    /// Seconds since the phase is green.
    pub fn age(&self) -> f32 {
        self.row[2]
    }

    /// Changes that left a phase out.
    pub fn phase_skips(&self, phase: usize) -> f32 {
        self.row[SHARED_HEAD + SHARED_PER_PHASE * phase]
    }

    /// Whether a phase is allowed, as 0 or 1.
    pub fn allowed(&self, phase: usize) -> f32 {
        self.row[SHARED_HEAD + SHARED_PER_PHASE * phase + 1]
    }

    pub fn movement(&self, number: usize) -> MovementNumbers {
        let at = SHARED_HEAD + SHARED_PER_PHASE * self.format.phases + SHARED_PER_MOVEMENT * number;
        let row: [f32; SHARED_PER_MOVEMENT] = std::array::from_fn(|k| self.row[at + k]);
        let [vehicles, waiting, near, driving, exit_vehicles, exit_waiting, green, red, skips] = row;
        MovementNumbers { vehicles, waiting, near, driving, exit_vehicles, exit_waiting, green, red, skips }
    }

    /// What is counted there, once more.
    pub fn counters(&self, site: &Site) -> Counters {
        let mut counters = Counters::new();
        counters.phase = self.phase() as u8;
        (counters.elapsed, counters.age) = (self.elapsed() as u32, self.age() as u32);
        for phase in 0..site.green.len() {
            counters.phase_skips[phase] = self.phase_skips(phase) as u8;
        }
        for movement in ones(site.controlled) {
            let numbers = self.movement(movement);
            counters.green[movement] = numbers.green as u32;
            counters.red[movement] = numbers.red as u32;
            counters.skips[movement] = numbers.skips as u8;
        }
        counters
    }
}

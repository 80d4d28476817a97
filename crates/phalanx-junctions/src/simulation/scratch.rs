//! What a step notes before it writes, kept from step to step for its memory.

use super::busy::Busy;
use super::depart::Starting;
use super::leader::Leader;
use super::state::Rest;

/// A vehicle that stays on its drivable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    pub distance: f64,
    pub speed: f64,
    pub slot: u32,
    pub rest: Rest,
}

/// A vehicle that leaves its drivable; `to` is `NONE` if it leaves the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leave {
    pub distance: f64,
    pub speed: f64,
    pub slot: u32,
    pub from: u32,
    pub to: u32,
}

/// A vehicle that entered in this step; its leader was looked for then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Newcomer {
    pub slot: u32,
    pub lane: u32,
    pub leader: Option<Leader>,
}

/// Lists that a step fills and uses, kept for their memory.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub starting: Vec<Starting>,
    pub newcomers: Vec<Newcomer>,
    pub stay: Vec<Stay>,
    pub leave: Vec<Leave>,
    /// Vehicles and whom they yield to.
    pub blocked: Vec<(u32, u32)>,
    pub busy: Busy,
}

impl Scratch {
    pub fn clear(&mut self) {
        self.newcomers.clear();
        self.leave.clear();
    }
}

impl Clone for Scratch {
    /// Nothing in it outlives a step but the list of moves, which belongs to the copy that made them.
    fn clone(&self) -> Self {
        Self::default()
    }
}

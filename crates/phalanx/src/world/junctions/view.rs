//! What a junction sees of itself and of its neighbours.

use std::sync::Arc;

use super::counters::{LONGEST_GREEN, MOST_GREEN_SKIPS, MOST_PHASE_SKIPS};
use super::lanes::NEAR;
use super::layout::{Layout, PER_VEHICLE};
use super::shared::Format;
use crate::world::View;

/// Numbers beside those of phases and movements: seconds since the phase was chosen, and of green.
const ROW_HEAD: usize = 2;
/// Per phase: whether it is on, changes that left it out, whether it is allowed.
const ROW_PER_PHASE: usize = 3;
/// Per movement: vehicles before it, those that wait and that are near, vehicles behind it, each the root
/// of the share of the room, so that one vehicle on an empty road is not lost; seconds red; changes that
/// left it out.
const ROW_PER_MOVEMENT: usize = 6;
/// Seconds are shares of these, and cut at [`MOST`].
const ELAPSED: f32 = 60.0;
const RED: f32 = 120.0;
const MOST: f32 = 2.0;

/// A row per junction of the neighbourhood. Lanes that lead to a junction and away from it are what detectors
/// there see; nothing else is told.
#[derive(Debug)]
pub struct Rows {
    layout: Arc<Layout>,
    group: Vec<u32>,
}

impl Rows {
    pub fn new(layout: Arc<Layout>, group: &[u32]) -> Self {
        Rows { layout, group: group.to_vec() }
    }

    fn width(&self) -> usize {
        ROW_HEAD + ROW_PER_PHASE * self.layout.phases + ROW_PER_MOVEMENT * self.layout.movements
    }
}

impl View for Rows {
    fn shape(&self) -> [usize; 2] {
        [self.group.len(), self.width()]
    }

    fn is_by_member(&self) -> bool {
        true
    }

    fn write(&self, _states: &[u8], shared: &[f32], out: &mut [f32]) {
        let format = Format::new(&self.layout);
        out.fill(0.0);
        for (row, &member) in out.chunks_exact_mut(self.width()).zip(&self.group) {
            let numbers = format.of(shared, member as usize);
            let site = &self.layout.junctions[member as usize];
            row[0] = (numbers.elapsed() / ELAPSED).min(MOST);
            row[1] = (numbers.age() / LONGEST_GREEN as f32).min(MOST);
            let (phases, movements) = row[ROW_HEAD..].split_at_mut(ROW_PER_PHASE * self.layout.phases);
            let (phases, _) = phases.as_chunks_mut::<ROW_PER_PHASE>();
            for (phase, out) in phases.iter_mut().enumerate().take(site.green.len()) {
                *out = [
                    f32::from(u8::from(phase == numbers.phase())),
                    (numbers.phase_skips(phase) / f32::from(MOST_PHASE_SKIPS)).min(MOST),
                    numbers.allowed(phase),
                ];
            }
            let (movements, _) = movements.as_chunks_mut::<ROW_PER_MOVEMENT>();
            for (number, (out, lanes)) in movements.iter_mut().zip(&site.movements).enumerate() {
                let found = numbers.movement(number);
                let near = (NEAR / PER_VEHICLE) as f32 * lanes.entry.len().max(1) as f32;
                *out = [
                    (found.vehicles / lanes.room.max(1.0)).sqrt(),
                    (found.waiting / lanes.room.max(1.0)).sqrt(),
                    (found.near / near).sqrt(),
                    (found.exit_vehicles / lanes.exit_room.max(1.0)).sqrt(),
                    (found.red / RED).min(MOST),
                    (found.skips / f32::from(MOST_GREEN_SKIPS)).min(MOST),
                ];
            }
        }
    }
}

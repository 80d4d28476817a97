//! Pistonball: pistons in a row push a ball to the left, as in PettingZoo's game of that name.

mod library;
pub mod physics;

pub use library::{Library, MAX_CYCLES, Outcome, draw_start};

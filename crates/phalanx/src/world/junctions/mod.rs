//! Signals of a road network.

mod files;

pub use files::{read_any_files, read_files};

/// What `world.kind` and commands call it.
pub const KIND: &str = "junctions";

//! Commands that read a file, on text at hand: for tests that try very many of them.

use std::path::Path;

use phalanx::Result;

/// What `phalanx replay` prints for a recorded game of a world.
pub fn replay(world: &str, text: &str) -> Result<String> {
    crate::replay::replay_text(world, Path::new("game.csv"), || Ok(text.into()))
}

/// The names of the runs of a sweep; configurations are made where there are `most` runs or fewer.
pub fn sweep(text: &str, most: usize) -> Result<Vec<String>> {
    crate::sweep::run_names(Path::new("sweep.toml"), text, most)
}

/// Whether the first `steps` rows of a file of phases fit a road network.
pub fn phases(roadnet: &str, text: &str, steps: u32) -> Result<()> {
    crate::replay::junctions::check_phases(roadnet, Path::new("phases.csv"), text, steps)
}

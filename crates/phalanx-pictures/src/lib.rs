//! Pictures of Phalanx: [`plot`] draws runs and experiments, [`render`] draws episodes and boards of worlds.

#![forbid(unsafe_code)]

pub mod plot;
pub mod render;
pub mod statistics;

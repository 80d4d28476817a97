//! Pictures of Phalanx: [`plot`] draws runs and experiments, [`render`] draws episodes and boards of worlds,
//! and [`page`] puts pictures into pages for browsers.

#![forbid(unsafe_code)]

pub mod page;
pub mod plot;
pub mod render;
pub mod statistics;

//! doc
#![forbid(unsafe_code)]

mod demand;
mod error;
mod geometry;
mod json;
mod network;
mod random;
mod simulation;

pub use demand::{Demand, Departure, Flow, VehicleKind};
pub use error::{Error, Result, Source};
pub use geometry::Point;
pub use network::{Crossing, Intersection, Junction, Movement, Network, Phase, Road, Turn};
pub use simulation::{Move, Position, Settings, Simulation, VehicleId, VehicleView};

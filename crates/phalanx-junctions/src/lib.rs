//! Traffic on a network of roads with signals: a microscopic engine that reproduces
//! [CityFlow](https://github.com/cityflow-project/CityFlow) bit for bit.
//!
//! It reads CityFlow's `roadnet.json` and `flow.json`, with lane changes off, and makes the same
//! trajectories: every position and speed in every second has the same bits. It is meant for reinforcement
//! learning and for controllers of signals: a [`Simulation`] is a small value that is copied, saved and
//! restored at will, and many of them run side by side on one shared [`Network`].
//!
//! ```
//! use phalanx_junctions::{Demand, Network, Settings, Simulation, TownSettings};
//! use std::sync::Arc;
//!
//! // A made-up town of 2 × 2 junctions; files of CityFlow are read in the same way.
//! let town = TownSettings { rows: 2, columns: 2, seconds: 600, ..TownSettings::default() };
//! let files = town.generate()?;
//! let network = Arc::new(Network::read(&files.roadnet)?);
//! let demand = Arc::new(Demand::read(&files.flow, &network)?);
//!
//! let mut simulation = Simulation::new(network.clone(), demand, Settings::default())?;
//! for second in 0..600 {
//!     for junction in 0..network.junctions().len() {
//!         // Four phases in turn, 25 s each, with 5 s of phase 0 (right turns only) before each.
//!         let phase = if second % 30 < 5 { 0 } else { 1 + second / 30 % 4 };
//!         simulation.set_phase(junction, phase)?;
//!     }
//!     simulation.step();
//! }
//! assert!(simulation.finished() > 100);
//! println!("{} s on average", simulation.average_travel_time());
//! # Ok::<(), phalanx_junctions::Error>(())
//! ```
//!
//! # What is modelled
//!
//! Lanes and links through junctions are *drivables*, numbered lanes first. Each vehicle follows the one
//! ahead, stops at red lights and where the lane behind a junction is full, and yields at crossings of links.
//! The order of all operations on floating-point numbers is CityFlow's (commit 81ee0f4, x86-64, no fused
//! multiply-add), down to how decimal numbers of the files are rounded. Only sums, products, quotients and
//! square roots are taken, so the bits do not depend on the machine.
//!
//! Left out: lane changes, which CityFlow itself does not repeat from run to run, and changing routes on the
//! way.
//!
//! # Speed
//!
//! Only what can change is computed. A vehicle that stands behind one that stands, or at a red light, is
//! skipped: the next step would give the same bits. So is the car-following law where the leader is too far
//! to matter. Crossings are looked up when someone asks, not noted for all. `examples/speed.rs` measures.

#![forbid(unsafe_code)]

// What does not change: files, roads, demand.
mod configuration;
mod demand;
mod error;
mod fnv;
mod geometry;
mod json;
mod network;

// What changes.
mod approach;
mod random;
mod simulation;

// Towns that nobody drew.
mod generate;

pub use approach::ApproachTimes;
pub use configuration::Configuration;
pub use demand::{Demand, Departure, Flow, VehicleKind};
pub use error::{Error, Result, Source};
pub use generate::{Files, Irregular, TownSettings};
pub use geometry::Point;
pub use network::{Crossing, Intersection, Junction, Movement, Network, Phase, Road, Turn};
pub use simulation::{Move, Position, Settings, Simulation, VehicleId, VehicleView, WAITING_BELOW};

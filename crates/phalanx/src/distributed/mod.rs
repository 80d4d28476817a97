//! What neighbours send each other: counted as messages between agents, and carried between processes where
//! the graph is partitioned over several.

mod communicator;
mod halo;
mod traffic;

#[cfg(feature = "mpi")]
pub mod mpi;
#[cfg(test)]
mod tests;

pub use communicator::{Communicator, SingleProcess, ThreadCommunicator};
pub use halo::{Halo, Messages};
pub(crate) use halo::{Link, numbers};
pub use traffic::{Count, Links, ProcessTraffic, Traffic, TrafficBound, TrafficCounter, TrafficLimits};

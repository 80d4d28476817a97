//! What neighbours send each other: counted as messages between agents, and carried between processes where the network is
//! shared out over several.

mod halo;
mod letters;
mod peers;
mod traffic;

#[cfg(feature = "mpi")]
pub mod mpi;
#[cfg(test)]
mod tests;

pub(crate) use halo::numbers;
pub use halo::{Halo, Messages, agree_among, same_among};
pub use letters::Letters;
pub use peers::{Crew, Peers};
pub use traffic::{Bound, Carried, Count, Largest, Ledger, Links, Traffic};

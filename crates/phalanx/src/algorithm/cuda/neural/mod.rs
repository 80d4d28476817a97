//! Policies and critics that are neural networks, one per agent, on the card.
//!
//! A block works on one neural network: its parameters are in the memory that the block shares, its samples
//! come in tiles. Sums have one order, so that two runs on the card give the same bytes; it is not the
//! processor's order, so that the processor's results differ by rounding.

mod critic;
mod networks;
mod policy;
#[cfg(test)]
mod tests;

pub use critic::{NetworkCritic, Samples};
pub use policy::NetworkPolicy;

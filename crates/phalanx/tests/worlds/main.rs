//! Questions about worlds: the contract that all keep, and each one's own.

#[path = "../support/mod.rs"]
mod support;

mod contract;
mod epidemic;
mod joint;
mod junctions;
mod kernels;
mod pistonball;
mod pistonball_physics;
mod platoon;
mod sampled;

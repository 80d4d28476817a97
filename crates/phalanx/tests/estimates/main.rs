//! Questions about critics, gradients and what they are estimated from.

#[path = "../support/mod.rs"]
mod support;

mod constraint_radius;
mod convergence;
mod estimators;
mod gradients;
mod linear;
mod locality;
mod network;
mod termination;

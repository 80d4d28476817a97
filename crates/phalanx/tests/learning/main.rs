//! Questions about whole runs: what they learn, and how they grow.

#[path = "../support/mod.rs"]
mod support;

mod large;
mod mappo;
mod optimum;

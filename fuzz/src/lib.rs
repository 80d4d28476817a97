//! Hostile input for everything of Phalanx that reads.
//!
//! An input of a target is a list of choices: which valid document to start from, and what to change in it.
//! So most inputs get past the first check, which is syntax, names and types, and meet those behind it. The
//! same targets run with libFuzzer, which looks for choices that reach new code (`cargo xtask fuzz`), and
//! with random choices as a test.

#![forbid(unsafe_code)]

pub mod choices;
pub mod edit;
pub mod node;
pub mod print;
pub mod statistics;
mod targets;
mod verdict;

pub use targets::{TARGETS, Target, find};
pub use verdict::Verdict;

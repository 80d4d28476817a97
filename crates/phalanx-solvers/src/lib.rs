//! The solver that Phalanx takes from elsewhere, as a function without type parameters.
//!
//! Clarabel is generic: called from the main crate, its code would be compiled again with every change of it,
//! and with every variant of it (tests, MPI). Here it is compiled once.

#![forbid(unsafe_code)]

pub mod conic;

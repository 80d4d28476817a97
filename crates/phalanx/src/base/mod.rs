//! What everything else stands on: errors, rows of unequal length, random streams, files that survive a
//! crash.

pub mod beta;
pub mod binomial;
pub mod builtin;
pub mod document;
pub mod durable;
pub(crate) mod elimination;
pub mod error;
pub mod exact_sum;
pub mod fields;
pub mod files;
pub mod key;
pub mod limits;
pub mod own_folder;
pub(crate) mod parallel;
pub mod ragged;
pub mod range;
pub mod sampler;
pub mod schedule;
pub mod sealed;
pub mod section;
pub mod stream;
pub(crate) mod tensor;
pub mod text;
mod value;

pub use phalanx_agent::elementary;

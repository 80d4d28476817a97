//! What everything else stands on: errors, rows of unequal length, random streams, files that survive a
//! crash.

pub mod builtin;
pub mod document;
pub(crate) mod durable;
pub mod error;
pub mod fields;
pub mod key;
pub mod memory;
pub(crate) mod parallel;
pub mod ragged;
pub mod range;
pub mod sampler;
pub mod schedule;
pub mod section;
pub mod stream;
pub(crate) mod tensor;
mod value;

//! Agents at work: a trained policy outside the program that trained it.
#![forbid(unsafe_code)]

pub mod policy;

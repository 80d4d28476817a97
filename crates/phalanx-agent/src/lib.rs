//! Agents at work: a trained policy outside the program that trained it.
//!
//! ```no_run
//! use phalanx_agent::Agent;
//! use phalanx_agent::message::Clock;
//!
//! let mut agent = Agent::load("policy.json".as_ref(), 7, 1)?;
//! let mut message = Vec::new();
//! agent.observe(Clock { episode: 0, step: 0 }, 2);
//! while agent.outbox(&mut message) {
//!     // Send `message` to every one of `agent.neighbours()`, and hand what they send to `agent.receive`.
//! }
//! if let Some(action) = agent.act() {
//!     println!("{action}");
//! }
//! # Ok::<(), phalanx_agent::Error>(())
//! ```
#![forbid(unsafe_code)]

// Policies: data, reading, laws and draws.
pub mod check;
pub mod draw;
pub mod elementary;
mod error;
mod hops;
pub mod law;
pub mod policy;

// Agents and what they say to each other.
pub mod agent;
pub mod counts;
pub mod message;

// Over UDP.
pub mod addresses;
pub mod conductor;
pub mod program;
pub mod udp;

pub use agent::Agent;
pub use error::{Error, Result};

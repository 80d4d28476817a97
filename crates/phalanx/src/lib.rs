//! Safe policies for networks of agents.
//!
//! Many agents live on a graph; each sees and talks to its κ-hop neighbourhood only. Together they maximise the mean
//! of local *general utilities*, differentiable functions of an agent's own discounted occupancy measure, and each
//! keeps its own constraints, which are general utilities too. The method is a primal-dual actor-critic with shadow
//! rewards and truncated Q-functions; `docs/paper-map.md` lists which item implements which part of the paper.
//!
//! ```
//! use phalanx::run::{Config, Session};
//!
//! let config = Config::preset("synthetic")?.with("iterations", "5")?;
//! let mut session = Session::new(&config)?;
//! while let Some(metrics) = session.advance()? {
//!     println!("{}: return {:?}, violation {:.3}", metrics.iteration, metrics.return_, metrics.violation_total);
//! }
//! let result = session.evaluate()?;
//! assert!(result.violations.total >= 0.0);
//! # Ok::<(), phalanx::Error>(())
//! ```

pub mod actor;
pub mod algorithm;
mod columns;
pub mod critic;
pub mod document;
pub mod dual;
mod durable;
pub mod error;
pub mod exact;
pub mod exchange;
pub mod indexing;
pub mod memory;
pub mod net;
pub mod network;
pub mod occupancy;
pub mod optimizer;
mod parallel;
pub mod policy;
pub mod problem;
mod projection;
pub mod ragged;
pub mod rollout;
pub mod run;
pub mod sampler;
pub mod schedule;
pub mod shadow;
pub mod sight;
pub mod state;
pub mod stream;
pub mod utility;
pub mod world;

pub use error::{Error, Result};
pub use ragged::Ragged;

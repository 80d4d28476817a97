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

// In reading order: a module uses those above it only (`tests/layers.rs`).
pub mod algorithm;
#[doc(hidden)]
pub mod base;
pub mod distributed;
pub mod exact;
pub mod graph;
pub mod learn;
pub mod neural;
pub mod policy;
pub mod run;
pub mod sample;
pub mod utility;
pub mod world;

pub use base::error::{Error, Result};
pub use base::ragged::Ragged;

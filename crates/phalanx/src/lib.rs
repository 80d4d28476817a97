//! Safe policies for many agents on a graph.
//!
//! Many agents live on a graph; each sees and talks to its κ-hop neighbourhood only. Together they maximise
//! the mean of local *general utilities*, differentiable functions of an agent's own discounted occupancy
//! measure, and each keeps its own constraints, which are general utilities too. The method is a primal-dual
//! actor-critic with shadow rewards and truncated Q-functions; `docs/paper-map.md` lists which item
//! implements which part of the paper.
//!
//! Ten words that are used throughout:
//!
//! - **agent**: one decision maker, numbered from 0; it has a local state and takes a local action.
//! - **graph**: who is linked with whom ([`graph`]).
//! - **κ-hop neighbourhood**: the agents at most κ links away, the agent itself among them.
//! - **occupancy**: how much discounted time an agent spends in each pair of own state and action.
//! - **utility**: a function of one agent's occupancy; objectives and constraints are utilities
//!   ([`utility`]).
//! - **shadow reward**: the derivative of a utility at the present occupancy; it stands in for a reward.
//! - **multiplier**: the price μ of violating a constraint.
//! - **truncated Q**: an agent's Q-function over the states and actions of its neighbourhood alone.
//! - **trajectory**: states and actions of all agents over the steps of one episode.
//! - **run**: a configuration carried out, with the folder that it leaves behind ([`run`]).
//!
//! ```
//! use phalanx::run::{Config, Session};
//!
//! let config = Config::preset("synthetic")?.with("iterations", "5")?;
//! let mut session = Session::new(&config)?;
//! while let Some(metrics) = session.advance()? {
//!     let (t, violation) = (metrics.iteration, metrics.violation_total);
//!     println!("{t}: return {:?}, violation {violation:.3}", metrics.return_);
//! }
//! let result = session.evaluate()?;
//! assert!(result.violations.total >= 0.0);
//! # Ok::<(), phalanx::Error>(())
//! ```

// In reading order: a module uses only those above it, which `tests/layers.rs` holds. Those that only our own
// crates need are hidden; what a user's world or utility needs of them is in `world`, what a run
// needs is in `run`.

// Errors, rows of unequal length, random streams, durable files.
#[doc(hidden)]
pub mod base;

// Graphs, neighbourhoods, generators, partitions.
pub mod graph;

// One process or several: communicator, borders, traffic.
#[doc(hidden)]
pub mod distributed;

// What is wanted of the agents: objectives, constraints, the problem.
pub mod utility;

// What the agents live in.
pub mod world;

// Per-agent neural networks.
#[doc(hidden)]
pub mod neural;

// How the agents act.
pub mod policy;

// Algorithm 1, lines 3 and 4: trajectories and occupancies.
#[doc(hidden)]
pub mod sample;

// Lines 5 to 9: shadow rewards, critics, multipliers, gradients, steps.
#[doc(hidden)]
pub mod learn;

// The truth on small models, by enumeration.
pub mod exact;

// Primal-dual, exact, MAPPO-Lagrangian.
pub mod algorithm;

// Configuration, training to the end, folders, evaluation.
pub mod run;

pub use base::error::{Error, Result};
pub use base::ragged::Ragged;

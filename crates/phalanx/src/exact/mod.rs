//! The truth on small graphs, by enumeration of the joint space.
//!
//! A [`System`] is a graph written out (at most [`LARGEST_JOINT_SPACE`] joint states); [`System::under`] a
//! policy it is a [`Chain`], which knows occupancies, values and gradients. [`Truncated`] has the Q-functions
//! over neighbourhoods, [`Stationarity`] the paper's metrics, [`Decay`] and [`Certificate`] say how far
//! influence reaches, [`optimum`] how well any policy can do, and [`report`] says it all at once for a
//! [`Case`] from a file.
//!
//! ```
//! use phalanx::exact::{Domain, Stationarity, System};
//! use phalanx::policy::Parameterisation;
//! use phalanx::run::{Config, Session};
//!
//! let session = Session::new(&Config::preset("exact")?.with("world.n", "4")?)?;
//! let (problem, mu) = (session.problem(), session.algorithm().mu());
//! let policy = session.policy().tabular().expect("`exact` has tables");
//! let system = System::new(session.world(), problem, policy)?; // once for a graph
//! let chain = system.under(policy)?; // for every policy
//! let signals = chain.signals(problem); // f, g and shadow rewards
//! let values = chain.values(&signals.rewards)?; // V of every utility
//! let slopes = chain.action_values(&values, mu);
//! let gradient = chain.gradient(&slopes, Parameterisation::Softmax, 1.0 / 4.0);
//! let at = Stationarity::new(&gradient, Domain::Everywhere, mu, &signals.slack, f64::INFINITY);
//! assert!(at.x > 0.0 && at.y == 0.0); // The uniform policy is feasible, but not stationary.
//! # Ok::<(), phalanx::Error>(())
//! ```

mod certificate;
mod constants;
mod contraction;
mod critic;
mod decay;
mod dynamics;
mod ever;
mod exploration;
mod fosp;
mod gmres;
mod gradient;
mod induced;
mod input;
mod layout;
mod limit_law;
mod optimum;
mod report;
mod smoothness;
mod system;
mod theorem_settings;
mod truncation;

pub use certificate::Certificate;
pub use constants::{Constants, Estimators, SCORE_BOUND, eps1};
pub use critic::{ExactCritic, TruncationKeys};
pub use decay::{Decay, TruncationBound};
pub use dynamics::{Dynamics, LARGEST_JOINT_SPACE};
pub use ever::least_probability;
pub use exploration::Exploration;
pub use fosp::{Domain, Stationarity, largest_in_box, largest_on_simplices};
pub use induced::Induced;
pub use input::{AlgorithmInput, Case, EstimatorInput, Input};
pub use optimum::{EverOptimum, Optimum, SlaterPoint, ever_optimum, largest_slacks, optimum, slater_point};
pub use report::{LARGEST_REPORTED, report};
pub use smoothness::local_constants;
pub use system::{Chain, System, Values};
pub use theorem_settings::{SamplePlan, Steps, TdBound, TdSetting};
pub use truncation::{LARGEST_TD_TABLE, Truncated, Truncation};

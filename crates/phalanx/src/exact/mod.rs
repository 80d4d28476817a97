//! The truth on small networks, by enumeration of the joint space.

mod case;
mod certificate;
mod constants;
mod contraction;
mod decay;
mod distance;
mod dynamics;
mod exploration;
mod gmres;
mod gradient;
mod induced;
mod optimum;
mod prescription;
mod report;
mod smoothness;
mod stationarity;
mod stationary;
mod system;
mod truncation;

pub use case::{AlgorithmInput, Case, EstimatorInput, Input};
pub use certificate::Certificate;
pub use constants::{Constants, Estimators, SCORE_BOUND, UtilityBounds, eps1};
pub use decay::{Decay, TruncationBound};
pub use distance::distances;
pub use dynamics::{Dynamics, LARGEST_JOINT_SPACE};
pub use exploration::Exploration;
pub use induced::Induced;
pub use optimum::{Optimum, SlaterPoint, largest_slacks, optimum, slater_point};
pub(crate) use prescription::check_open_unit;
pub use prescription::{SamplePlan, Steps, TdBound, TdSetting, dual_bound};
pub use report::{LARGEST_REPORTED, report};
pub use smoothness::local_constants;
pub use stationarity::{Domain, Stationarity, largest_in_box, largest_on_simplices};
pub use system::{Chain, System};
pub use truncation::{LARGEST_TD_TABLE, Truncated, Truncation};

//! Algorithms: one iteration each; the loop around it is `run`'s.

mod primal_dual;

pub use primal_dual::{LastIteration, PrimalDual, Settings, Stage, Summary, Violations, mean_return};

//! κ-hop policies π_i(a_i | s_{N_i^κ}). Paper: assump:khop_policy.

mod file;
mod tabular;

use serde::{Deserialize, Serialize};

pub use tabular::{ActionSampler, Tabular};

/// How θ_i makes a law over actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parameterisation {
    /// π(b | x) = exp θ(x, b) / Σ exp θ(x, ·).
    Softmax,
    /// π(b | x) = θ(x, b), every row in the simplex.
    Direct,
}

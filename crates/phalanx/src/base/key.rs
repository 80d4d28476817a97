//! Names of keys of the whole run, for messages of modules below the configuration that declares them.

use crate::Error;

/// Which algorithm.
pub const ALGORITHM: &str = "algorithm";
/// B.
pub const BATCH: &str = "batch";
/// γ.
pub const GAMMA: &str = "gamma";
/// H.
pub const HORIZON: &str = "horizon";
/// κ.
pub const KAPPA: &str = "kappa";
/// How occupancies and steps are scaled.
pub const SCALING: &str = "scaling";
/// Seed of all randomness.
pub const SEED: &str = "seed";
/// κ_q.
pub const KAPPA_Q: &str = "kappa_q";
/// How many agents a world has, if it is told.
pub const WORLD_N: &str = "world.n";

/// `field` is set, but nothing is sampled.
pub fn sampled_only(field: &str) -> Error {
    Error::config(field, format!("is for {ALGORITHM} = \"primal-dual\""))
}

//! Names of keys of the whole run, for messages of modules below the configuration that declares them.

/// B.
pub const BATCH: &str = "batch";
/// γ.
pub const GAMMA: &str = "gamma";
/// H.
pub const HORIZON: &str = "horizon";
/// κ.
pub const KAPPA: &str = "kappa";
/// κ_q.
pub const KAPPA_Q: &str = "kappa_q";

//! `[network]`: which generator, and its settings.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// `[network]`: replaces the world's own links; in an epidemic, who meets whom.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphConfig {
    /// `line`, `ring`, `grid`, `star`, `complete`, `geometric`, `erdos_renyi`, `small_world`, `scale_free` or `edges`.
    pub kind: String,
    /// Rows of a `grid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<usize>,
    /// Columns of a `grid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<usize>,
    /// Radius of a `geometric` graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub radius: Option<f64>,
    /// Link probability of an `erdos_renyi` graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Links of each agent in the ring that a `small_world` starts from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub neighbours: Option<usize>,
    /// Probability that a link of a `small_world` is moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewire: Option<f64>,
    /// Links that every new agent of a `scale_free` graph makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<usize>,
    /// Seed of the random graphs (default 0: the graph does not change with the run's seed).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// File of `edges`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
}

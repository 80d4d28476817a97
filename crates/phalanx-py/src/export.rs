//! Policies for other programs.

use std::path::PathBuf;

use phalanx::run::export::{ExportSettings, export as write};
use pyo3::prelude::*;

use crate::session::Fixed;
use crate::watch::watch_all;

/// How a policy is to be exported.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Wanted {
    to: String,
    out: PathBuf,
    episodes: usize,
    seed: u64,
    confidence: f64,
}

/// Writes a policy for other programs; what was written, as JSON.
#[pyfunction]
pub fn export(
    py: Python<'_>,
    policy: &Bound<'_, Fixed>,
    wanted: Wanted,
    threads: Option<usize>,
) -> PyResult<String> {
    let evaluator = &policy.get().evaluator;
    let Wanted { to, out, episodes, seed, confidence } = wanted;
    watch_all(py, threads, evaluator.stop_flag(), || {
        let settings = ExportSettings { to: to.parse()?, out, episodes, seed, confidence };
        Ok(serde_json::to_string(&write(evaluator, &settings)?).unwrap_or_default())
    })
}

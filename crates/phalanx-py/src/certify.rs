//! Certificates.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use phalanx::run::certify::{Certificate, CertifySettings, CertifySource, certify as make};
use pyo3::prelude::*;

use crate::config::Configuration;
use crate::own::Own;
use crate::watch::watch_all;

/// How a certification is to go.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Wanted {
    confidence: f64,
    max_attempts: usize,
    episodes: Option<usize>,
    seed: u64,
    out: PathBuf,
}

/// Trains `config`, or goes on with `run`, until every constraint holds; what came of it, as JSON.
#[pyfunction]
pub fn certify(
    py: Python<'_>,
    config: Option<&Bound<'_, Configuration>>,
    run: Option<PathBuf>,
    own: &Bound<'_, Own>,
    wanted: Wanted,
    threads: Option<usize>,
) -> PyResult<String> {
    let registry = own.borrow().registry.clone();
    let config = config.map(|config| &config.get().0);
    let Wanted { confidence, max_attempts, episodes, seed, out } = wanted;
    let provenance = phalanx_cli::provenance();
    let settings =
        CertifySettings { confidence, max_attempts, episodes, seed, device: None, out, provenance };
    let stop = Arc::new(AtomicBool::new(false));
    watch_all(py, threads, &stop, || {
        let run = run.unwrap_or_default();
        let source = config.map_or(CertifySource::Run(&run), CertifySource::Config);
        let found = make(&source, &registry, &settings, &stop, &mut |_, _| {}, &mut |_| {})?;
        Ok(serde_json::to_string(&found).unwrap_or_default())
    })
}

/// Repeats the episodes of a certificate, or judges on new ones; what was found, as JSON.
#[pyfunction]
pub fn check_certificate(
    py: Python<'_>,
    path: PathBuf,
    fresh: Option<u64>,
    own: &Bound<'_, Own>,
    threads: Option<usize>,
) -> PyResult<String> {
    let registry = own.borrow().registry.clone();
    let stop = Arc::new(AtomicBool::new(false));
    watch_all(py, threads, &stop, || {
        let found = Certificate::check(&path, fresh, &registry, &stop)?;
        Ok(serde_json::to_string(&found).unwrap_or_default())
    })
}

//! Training, from the beginning or from a checkpoint.

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use phalanx::algorithm::Summary;
use phalanx::distributed::SingleProcess;
use phalanx::run::{Ending, ResumeOutcome, Run, RunFolder, Session};
use pyo3::exceptions::{PyKeyboardInterrupt, PyUserWarning};
use pyo3::prelude::*;

use crate::config::Configuration;
use crate::errors::{Interrupted, TrainingError, exception, without_lock};
use crate::own::Own;
use crate::watch::{watch, watch_all};

/// Trains and evaluates; returns the run's folder.
#[pyfunction]
pub fn train(
    py: Python<'_>,
    config: &Bound<'_, Configuration>,
    name: &str,
    out: Option<PathBuf>,
    init: Option<PathBuf>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<PathBuf> {
    let config = &config.get().0;
    if let Some(out) = &out {
        RunFolder::check_free(out).map_err(|error| exception(&error))?;
    }
    let session = watch_all(py, threads, &Arc::default(), || {
        let mut session = Session::new(config)?;
        if let Some(init) = &init {
            session.warm_start(&init.join("policy.safetensors"))?;
        }
        Ok(session)
    })?;
    for warning in session.warnings() {
        warn(py, warning)?;
    }
    let path = out.unwrap_or_else(|| RunFolder::unused(name, config.seed));
    let run = without_lock(py, || Run::begin(session, &path, phalanx_cli::provenance()))?;
    run_to_end(py, threads, run, progress.as_ref())?;
    Ok(path)
}

/// Goes on with a run; returns whether there was anything left to do.
#[pyfunction]
pub fn resume(
    py: Python<'_>,
    path: PathBuf,
    own: &Bound<'_, Own>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<bool> {
    let registry = own.borrow().registry.clone();
    let resume = || Run::resume(&path, &registry, Arc::new(SingleProcess));
    match watch_all(py, threads, &Arc::default(), resume)? {
        ResumeOutcome::Finished => Ok(false),
        ResumeOutcome::Ready { run, notes } => {
            for note in notes {
                warn(py, &note)?;
            }
            run_to_end(py, threads, *run, progress.as_ref())?;
            Ok(true)
        }
    }
}

fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    // Messages have no NUL.
    let message = CString::new(message).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &message, 3)
}

fn run_to_end(
    py: Python<'_>,
    threads: Option<usize>,
    mut run: Run,
    progress: Option<&Py<PyAny>>,
) -> PyResult<()> {
    let stop = Arc::new(AtomicBool::new(false));
    let watched = watch(py, threads, progress, &stop, |latest| {
        let note = |summary: &Summary| {
            if let Ok(mut latest) = latest.lock() {
                *latest = Some(summary.clone());
            }
        };
        match run.train(&stop, note) {
            // Said here, because an exception does not tell what it was.
            Err(error @ phalanx::Error::RunWrite { .. }) => Ok(Err(error.to_string())),
            ending => ending.map(Ok),
        }
    })?;
    let path = run.path().display().to_string();
    let go_on = format!("go on with phalanx.resume({path:?})");
    let interrupted = |message: String| Err(Interrupted::new_err(message));
    let is_interrupt = |exception: &PyErr| exception.is_instance_of::<PyKeyboardInterrupt>(py);
    match (watched.result, watched.asked_to_stop) {
        (Ok(Err(message)), _) => Err(TrainingError::new_err(format!("{message}; once mended, {go_on}"))),
        (Ok(Ok(Ending::Finished(_))), None) => Ok(()),
        (Ok(Ok(_)), Some(exception)) if !is_interrupt(&exception) => Err(exception),
        (Ok(Ok(Ending::Finished(_))), Some(_)) => {
            interrupted(format!("finished all the same; open it with phalanx.load({path:?})"))
        }
        (Ok(Ok(Ending::Stopped { iteration })), _) => {
            interrupted(format!("stopped after {iteration} iterations; {go_on}"))
        }
        (Err(exception), _) => {
            // An exception of somebody's own code is not known to the library, which would have noted it.
            run.fail(&exception.to_string());
            if !is_interrupt(&exception) {
                return Err(exception);
            }
            interrupted(format!("left at once; {go_on}"))
        }
    }
}

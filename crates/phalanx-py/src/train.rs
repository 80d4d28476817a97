//! Training, from the beginning or from a checkpoint.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use phalanx::run::{self, Ending, ResumeOutcome, RunFolder, Session};
use pyo3::exceptions::{PyKeyboardInterrupt, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::config::config;
use crate::errors::{Interrupted, exception, without_lock};
use crate::own::Own;
use crate::watch::{Pool, watch, watch_all};

/// Trains and evaluates; returns the run's folder.
#[pyfunction]
#[pyo3(signature = (source, settings, own, name, out, init, threads, progress))]
#[expect(clippy::too_many_arguments, reason = "keywords in Python")]
pub fn train(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    settings: &Bound<'_, PyDict>,
    own: &Bound<'_, Own>,
    name: &str,
    out: Option<PathBuf>,
    init: Option<PathBuf>,
    threads: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<PathBuf> {
    let config = config(source, settings, own.borrow().registry())?;
    if let Some(out) = &out {
        RunFolder::check_free(out).map_err(|error| exception(&error))?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut session = watch_all(py, threads, &stop, || {
        let mut session = Session::new(&config)?;
        if let Some(init) = &init {
            session.warm_start(&init.join("policy.safetensors"))?;
        }
        Ok(session)
    })?;
    for warning in session.warnings() {
        warn(py, warning)?;
    }
    let path = out.unwrap_or_else(|| phalanx_cli::default_folder(name, config.seed));
    let mut folder = without_lock(py, || RunFolder::create(&path, &session, phalanx_cli::provenance()))?;
    go_on(py, threads, &mut session, &mut folder, Duration::ZERO, progress.as_ref())?;
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
    let registry = own.borrow().registry();
    let stop = Arc::new(AtomicBool::new(false));
    let resumed = watch_all(py, threads, &stop, || RunFolder::resume(&path, &registry))?;
    match resumed {
        ResumeOutcome::Finished => Ok(false),
        ResumeOutcome::Ready { mut session, mut folder, elapsed, notes } => {
            for note in notes {
                warn(py, &note)?;
            }
            go_on(py, threads, &mut session, &mut folder, elapsed, progress.as_ref())?;
            Ok(true)
        }
    }
}

fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    // Messages have no NUL.
    let message = CString::new(message).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &message, 3)
}

fn go_on(
    py: Python<'_>,
    threads: Option<usize>,
    session: &mut Session,
    folder: &mut RunFolder,
    elapsed: Duration,
    progress: Option<&Py<PyAny>>,
) -> PyResult<()> {
    let stop = session.stop_flag().clone();
    let watched = watch(py, Pool::new(threads)?, progress, &stop, |notes| {
        run::train(session, folder, elapsed, &stop, |summary| notes.note(summary))
    });
    let interrupted = |message: String| Err(Interrupted::new_err(message));
    let is_interrupt = |exception: &PyErr| exception.is_instance_of::<PyKeyboardInterrupt>(py);
    match (watched.result, watched.asked_to_stop) {
        (Ok(Ending::Finished(..)), None) => Ok(()),
        (Ok(_), Some(exception)) if !is_interrupt(&exception) => Err(exception),
        (Ok(Ending::Finished(..)), Some(_)) => interrupted(format!(
            "finished all the same; open it with phalanx.load({:?})",
            shown(folder.path())
        )),
        (Ok(Ending::Stopped { iteration }), _) => interrupted(format!(
            "stopped after {iteration} iterations; go on with phalanx.resume({:?})",
            shown(folder.path())
        )),
        (Err(exception), _) => {
            // An exception of somebody's own code is not known to the library, which would have noted it.
            folder.fail(&exception.to_string());
            if !is_interrupt(&exception) {
                return Err(exception);
            }
            interrupted(format!("left at once; go on with phalanx.resume({:?})", shown(folder.path())))
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

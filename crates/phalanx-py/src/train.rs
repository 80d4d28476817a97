//! Training, from the beginning or from a checkpoint.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use phalanx::run::{self, Ending, Resumed, RunFolder, Session};
use pyo3::exceptions::{PyKeyboardInterrupt, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::config::config;
use crate::errors::{Interrupted, exception, without_lock};
use crate::own::Own;
use crate::watch::{Pool, watch};

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
    let pool = Pool::new(threads)?;
    let mut session = without_lock(py, || {
        pool.install(|| {
            let mut session = Session::new(&config)?;
            if let Some(init) = &init {
                session.warm_start(&init.join("policy.safetensors"))?;
            }
            Ok(session)
        })
    })?;
    for warning in session.warnings() {
        warn(py, warning)?;
    }
    let path = out.unwrap_or_else(|| phalanx_cli::default_folder(name, config.seed));
    let mut folder = without_lock(py, || RunFolder::create(&path, &session, phalanx_cli::provenance()))?;
    go_on(py, &pool, &mut session, &mut folder, Duration::ZERO, progress.as_ref())?;
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
    let pool = Pool::new(threads)?;
    let resumed = without_lock(py, || pool.install(|| RunFolder::resume(&path, &registry)))?;
    match resumed {
        Resumed::Finished => Ok(false),
        Resumed::Ready { mut session, mut folder, elapsed, notes } => {
            for note in notes {
                warn(py, &note)?;
            }
            go_on(py, &pool, &mut session, &mut folder, elapsed, progress.as_ref())?;
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
    pool: &Pool,
    session: &mut Session,
    folder: &mut RunFolder,
    elapsed: Duration,
    progress: Option<&Py<PyAny>>,
) -> PyResult<()> {
    let watched = watch(py, pool, progress, |watched| {
        run::train(session, folder, elapsed, &watched.stop, |summary| watched.note(summary))
    });
    match (watched.result, watched.asked_to_stop) {
        (Ok(Ending::Finished(..)), _) => Ok(()),
        (Ok(Ending::Stopped { iteration }), asked) => {
            let is_interrupt = asked.as_ref().is_none_or(|e| e.is_instance_of::<PyKeyboardInterrupt>(py));
            Err(match asked {
                Some(exception) if !is_interrupt => exception,
                _ => Interrupted::new_err(format!(
                    "stopped after {iteration} iterations; go on with {}",
                    how_to_resume(folder.path())
                )),
            })
        }
        (Err(exception), _) => {
            // An exception of somebody's own code is not known to the library, which would have noted it.
            folder.fail(&exception.to_string());
            Err(exception)
        }
    }
}

fn how_to_resume(path: &Path) -> String {
    format!("phalanx.resume({:?})", path.display().to_string())
}

//! Training, from the beginning or from a checkpoint.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use phalanx::algorithm::{DeviceChoice, Summary};
use phalanx::distributed::SingleProcess;
use phalanx::run::{Ending, ResumeOutcome, Run, RunFolder, Session};
use pyo3::exceptions::{PyKeyboardInterrupt, PyUserWarning};
use pyo3::prelude::*;

use crate::config::Configuration;
use crate::errors::{Interrupted, TrainingError, exception, without_lock};
use crate::hook::Hook;
use crate::own::Own;
use crate::session::Fixed;
use crate::watch::{watch, watch_all};

/// Who is told of a run while it is trained, and what else `resume` needs to go on with it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Watchers {
    /// `progress(dict)`, called now and then.
    progress: Option<Py<PyAny>>,
    /// `callback(Iteration) -> whether to stop`, called after every iteration.
    callback: Option<Py<PyAny>>,
    /// Arguments of `phalanx.resume` beside the path, in words.
    beside: String,
}

/// Trains and evaluates; returns the run's folder, and the policy if the callback stopped the run.
#[pyfunction]
pub fn train(
    py: Python<'_>,
    config: &Bound<'_, Configuration>,
    name: &str,
    out: Option<PathBuf>,
    init: Option<PathBuf>,
    threads: Option<usize>,
    watchers: Watchers,
) -> PyResult<(PathBuf, Option<Fixed>)> {
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
    // Somebody may change the working directory while it is trained.
    let path = std::path::absolute(out.unwrap_or_else(|| RunFolder::unused(name, config.seed)))?;
    let run = without_lock(py, || Run::begin(session, &path, phalanx_cli::provenance()))?;
    let stopped = run_to_end(py, threads, run, watchers)?;
    Ok((path, stopped))
}

/// Goes on with a run, on another device if one is named; returns the policy if the callback stopped it.
#[pyfunction]
pub fn resume(
    py: Python<'_>,
    path: PathBuf,
    own: &Bound<'_, Own>,
    device: Option<&str>,
    threads: Option<usize>,
    watchers: Watchers,
) -> PyResult<Option<Fixed>> {
    let registry = own.borrow().registry.clone();
    let device = device.map(DeviceChoice::from_name).transpose().map_err(|error| exception(&error))?;
    let resume = || Run::resume_on(&path, &registry, Arc::new(SingleProcess), device);
    match watch_all(py, threads, &Arc::default(), resume)? {
        ResumeOutcome::Finished => Ok(None),
        ResumeOutcome::Ready { run, notes } => {
            for note in notes {
                warn(py, &note)?;
            }
            run_to_end(py, threads, *run, watchers)
        }
    }
}

fn warn(py: Python<'_>, message: &str) -> PyResult<()> {
    // Messages have no NUL.
    let message = CString::new(message).unwrap_or_default();
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &message, 3)
}

/// How a training ended that the library was asked to do.
struct Trained {
    /// An error that says itself how to go on.
    ending: Result<Ending, String>,
    /// What the callback raised.
    raised: Option<PyErr>,
    /// Whether the callback asked for the end.
    is_enough: bool,
}

/// Returns the policy if the callback stopped the run.
fn run_to_end(
    py: Python<'_>,
    threads: Option<usize>,
    mut run: Run,
    watchers: Watchers,
) -> PyResult<Option<Fixed>> {
    let stop = Arc::new(AtomicBool::new(false));
    let hook = watchers.callback.map(|callback| Hook::new(callback, run.path()));
    let iterations = run.session().config().iterations;
    let watched = watch(py, threads, watchers.progress.as_ref(), &stop, |caller| {
        let (mut raised, mut is_enough) = (None, false);
        let note = |summary: &Summary, session: &mut Session| {
            caller.note(summary);
            match hook.as_ref().map_or(Ok(false), |hook| hook.call(caller, summary, session)) {
                // After the last iteration there is nothing left to stop.
                Ok(asked) => is_enough = asked && summary.iteration + 1 < iterations,
                Err(exception) => raised = Some(exception),
            }
            if is_enough || raised.is_some() {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let ending = match run.train_with(&stop, note) {
            // Said here, because an exception does not tell what it was.
            Err(error @ phalanx::Error::RunWrite { .. }) => Err(error.to_string()),
            ending => Ok(ending?),
        };
        Ok(Trained { ending, raised, is_enough })
    })?;
    let path = shown(run.path());
    let go_on = format!("go on with phalanx.resume({path:?}{})", watchers.beside);
    let interrupted = |message: String| Err(Interrupted::new_err(message));
    let is_interrupt = |exception: &PyErr| exception.is_instance_of::<PyKeyboardInterrupt>(py);
    let Trained { ending, raised, is_enough } = match watched.result {
        Ok(trained) => trained,
        Err(exception) => {
            // An exception of somebody's own code is not known to the library, which would have noted it.
            run.fail(&exception.to_string());
            if !is_interrupt(&exception) {
                return Err(exception);
            }
            return interrupted(format!("left at once; {go_on}"));
        }
    };
    match (ending, raised.or(watched.asked_to_stop)) {
        (Err(message), _) => Err(TrainingError::new_err(format!("{message}; when that is solved, {go_on}"))),
        (Ok(_), Some(exception)) if !is_interrupt(&exception) => Err(exception),
        (Ok(Ending::Finished(_)), None) => Ok(None),
        (Ok(Ending::Finished(_)), Some(_)) => interrupted(format!(
            "finished all the same; open it with phalanx.load({path:?}{})",
            watchers.beside
        )),
        (Ok(Ending::Stopped { .. }), None) if is_enough => {
            let evaluator = without_lock(py, || run.session().evaluator())?;
            Ok(Some(evaluator.into()))
        }
        (Ok(Ending::Stopped { iteration }), _) => {
            interrupted(format!("stopped after {iteration} iterations; {go_on}"))
        }
    }
}

/// A path as people would type it here.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

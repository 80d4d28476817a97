//! Long work while Python stays alive: the interpreter's lock is released, Ctrl-C is noticed, progress is shown.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use phalanx::algorithm::Summary;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::ThreadPool;

use crate::errors::{bad, caught, exception, throw};

/// How often Ctrl-C and progress are looked at.
const EVERY: Duration = Duration::from_millis(50);

/// More threads than this are a mistake.
const MOST_THREADS: usize = 1024;

/// Threads to work on, which the interpreter knows: they ask for its lock in a fraction of the time that others need.
pub struct Pool {
    /// There until the end.
    threads: Option<ThreadPool>,
    handles: Vec<JoinHandle<()>>,
}

impl Pool {
    /// So many threads; all cores if not given.
    pub fn new(threads: Option<usize>) -> PyResult<Self> {
        if let Some(threads) = threads.filter(|threads| !(1..=MOST_THREADS).contains(threads)) {
            return Err(bad("threads", format!("{threads}; allowed are 1 to {MOST_THREADS}")));
        }
        let mut handles = Vec::new();
        let known = |thread: rayon::ThreadBuilder| {
            let work = || Python::attach(|py| py.detach(|| thread.run()));
            handles.push(std::thread::Builder::new().spawn(work)?);
            Ok(())
        };
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0));
        let built = builder.spawn_handler(known).build().map_err(|error| bad("threads", error))?;
        Ok(Pool { threads: Some(built), handles })
    }

    /// Runs `work` on one of the threads, and what it splits on all of them. The interpreter's lock must not be held.
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.threads {
            Some(threads) => threads.install(work),
            None => work(),
        }
    }
}

impl Drop for Pool {
    /// Waits for the threads: one that lets go of the interpreter while that is being shut down would take the process with it.
    fn drop(&mut self) {
        self.threads = None;
        let handles = std::mem::take(&mut self.handles);
        let wait = || handles.into_iter().for_each(|handle| drop(handle.join()));
        Python::attach(|py| py.detach(wait));
    }
}

/// Whether somebody has pressed Ctrl-C a second time and does not want to wait for the end of an iteration. Only the main
/// thread is told of it.
static IN_A_HURRY: AtomicBool = AtomicBool::new(false);

/// To be called before every call of somebody's Python code: leaves at once if nobody wants to wait.
pub fn leave_if_hurried() {
    if IN_A_HURRY.load(Ordering::Relaxed) {
        throw(PyKeyboardInterrupt::new_err("interrupted twice"));
    }
}

/// What the watching thread shares with the working one.
#[derive(Default)]
pub struct Watched {
    /// Set when the work should come to an end.
    pub stop: AtomicBool,
    latest: Mutex<Option<Summary>>,
}

impl Watched {
    /// Notes where the work is.
    pub fn note(&self, summary: &Summary) {
        if let Ok(mut latest) = self.latest.lock() {
            *latest = Some(summary.clone());
        }
    }
}

/// How watched work ended: its result, and the exception that asked it to stop, if any did.
pub struct Watch<T> {
    pub result: PyResult<T>,
    pub asked_to_stop: Option<PyErr>,
}

/// Runs `work` on the threads of `pool`. `progress(dict)` is called now and then, and after the last iteration.
pub fn watch<T: Send>(
    py: Python<'_>,
    pool: &Pool,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&Watched) -> phalanx::Result<T> + Send,
) -> Watch<T> {
    let watched = Watched::default();
    let mut asked_to_stop = None;
    let outcome = py.detach(|| {
        let watched = &watched;
        // The worker lets go of its end when it is done.
        let (done, finished) = channel::<()>();
        std::thread::scope(|scope| {
            let worker = scope.spawn(move || {
                let outcome = catch_unwind(AssertUnwindSafe(|| pool.install(|| work(watched))));
                drop(done);
                outcome
            });
            while finished.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let looked = Python::attach(|py| {
                    py.check_signals()?;
                    show(py, progress, watched)
                });
                if let Err(exception) = looked {
                    let again = watched.stop.swap(true, Ordering::Relaxed);
                    IN_A_HURRY.fetch_or(again, Ordering::Relaxed);
                    asked_to_stop = Some(exception);
                }
            }
            worker.join()
        })
    });
    IN_A_HURRY.store(false, Ordering::Relaxed);
    let result = match outcome {
        Ok(Ok(Ok(value))) => show(py, progress, &watched).map(|()| value),
        Ok(Ok(Err(error))) => Err(exception(&error)),
        Ok(Err(payload)) | Err(payload) => Err(caught(payload)),
    };
    Watch { result, asked_to_stop }
}

/// Tells Python of the latest iteration, once.
fn show(py: Python<'_>, progress: Option<&Py<PyAny>>, watched: &Watched) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    let Some(summary) = watched.latest.lock().ok().and_then(|mut latest| latest.take()) else {
        return Ok(());
    };
    let dict = PyDict::new(py);
    dict.set_item("iteration", summary.iteration + 1)?;
    dict.set_item("return", summary.return_)?;
    dict.set_item("objective", summary.objective)?;
    dict.set_item("violation_total", summary.violation_total)?;
    dict.set_item("violation_max", summary.violation_max)?;
    dict.set_item("mu_mean", summary.mu_mean)?;
    dict.set_item("mu_largest", summary.mu_largest)?;
    dict.set_item("gradient_norm", summary.gradient_norm)?;
    progress.call1(py, (dict,)).map(drop)
}

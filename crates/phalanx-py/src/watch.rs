//! Long work while Python stays alive: the interpreter's lock is released, Ctrl-C is noticed, progress is
//! shown.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use phalanx::algorithm::Summary;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::ThreadPool;

use crate::errors::{bad, caught, exception, throw};

/// How often Ctrl-C and progress are looked at.
const EVERY: Duration = Duration::from_millis(50);

/// So many threads to work on, all cores if not given, and what waits for their end. The interpreter knows
/// them: they ask for its lock in a fraction of the time that others need. `hurry` is set when nobody wants
/// to wait for an iteration to end, as after a second Ctrl-C: Python code that is called on these threads is
/// left at once.
fn start_threads(
    threads: Option<usize>,
    hurry: &Arc<AtomicBool>,
) -> PyResult<(ThreadPool, Vec<JoinHandle<()>>)> {
    let mut handles = Vec::new();
    let known = |thread: rayon::ThreadBuilder| {
        let hurry = hurry.clone();
        let work = || {
            HURRY.set(Some(hurry));
            Python::attach(|py| py.detach(|| thread.run()));
        };
        handles.push(std::thread::Builder::new().spawn(work)?);
        Ok(())
    };
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads.unwrap_or(0));
    let pool = builder.spawn_handler(known).build().map_err(|error| bad("threads", error))?;
    Ok((pool, handles))
}

thread_local! {
    /// Whether somebody does not want to wait for the work of this thread's pool.
    static HURRY: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Calls somebody's Python code, and carries its exception through the library; leaves at once if nobody
/// wants to wait.
pub fn in_python<T>(work: impl FnOnce(Python<'_>) -> PyResult<T>) -> T {
    let hurried =
        HURRY.with_borrow(|hurry| hurry.as_ref().is_some_and(|hurry| hurry.load(Ordering::Relaxed)));
    if hurried {
        throw(PyKeyboardInterrupt::new_err("interrupted twice"));
    }
    Python::attach(work).unwrap_or_else(|exception| throw(exception))
}

/// Work under way, for the end of the interpreter.
static AT_WORK: Mutex<Vec<Weak<Work>>> = Mutex::new(Vec::new());

/// One piece of it.
struct Work {
    stop: Arc<AtomicBool>,
    hurry: Arc<AtomicBool>,
    /// Where it is done: a forked process has the list, but not the threads.
    process: u32,
}

/// Ends all work and waits for it. The interpreter calls it before it shuts down: a thread that asks for its
/// lock afterwards would be ended in the middle of the library.
#[pyfunction]
pub fn finish_work(py: Python<'_>) {
    py.detach(|| {
        loop {
            let mut under_way: Vec<Arc<Work>> =
                AT_WORK.lock().map_or(Vec::new(), |work| work.iter().filter_map(Weak::upgrade).collect());
            under_way.retain(|work| work.process == std::process::id());
            if under_way.is_empty() {
                return;
            }
            for work in &under_way {
                work.stop.store(true, Ordering::Relaxed);
                work.hurry.store(true, Ordering::Relaxed);
            }
            drop(under_way);
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}

/// The latest iteration that Python has not been told of.
type Latest = Mutex<Option<Summary>>;

/// Something for the calling thread to do, with the interpreter's lock.
type Errand = Box<dyn FnOnce(Python<'_>) + Send>;

/// The thread that has called and waits, as the work sees it.
pub struct Caller<'a> {
    latest: &'a Latest,
    errands: Sender<Errand>,
}

impl Caller<'_> {
    /// Keeps an iteration until Python is told of the latest one.
    pub fn note(&self, summary: &Summary) {
        if let Ok(mut latest) = self.latest.lock() {
            *latest = Some(summary.clone());
        }
    }

    /// Has something done on the thread that has called: what people keep by thread is there, such as
    /// MLflow's active run. Does not wait for it.
    pub fn send(&self, errand: Errand) {
        // Somebody listens for as long as there is a caller.
        drop(self.errands.send(errand));
    }
}

/// How watched work ended: its result, and the exception that asked it to stop, if any did.
pub struct Watch<T> {
    pub result: PyResult<T>,
    pub asked_to_stop: Option<PyErr>,
}

/// Runs `work` on threads of its own, until `stop` is set, as it is by Ctrl-C or if `progress` raises.
/// `progress(dict)` is called now and then, and after the last iteration.
pub fn watch<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    progress: Option<&Py<PyAny>>,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce(&Caller<'_>) -> phalanx::Result<T> + Send,
) -> PyResult<Watch<T>> {
    stop.store(false, Ordering::Relaxed);
    let hurry = Arc::new(AtomicBool::new(false));
    let (pool, handles) = start_threads(threads, &hurry)?;
    let process = std::process::id();
    let under_way = Arc::new(Work { stop: stop.clone(), hurry: hurry.clone(), process });
    if let Ok(mut all) = AT_WORK.lock() {
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&under_way));
    }
    let latest = Latest::default();
    let mut asked_to_stop = None;
    let outcome = py.detach(|| {
        let (latest, workers) = (&latest, &pool);
        // The worker lets go of its end when it is done.
        let (sender, errands) = channel::<Errand>();
        let outcome = std::thread::scope(|scope| {
            let worker = scope.spawn(move || {
                let caller = Caller { latest, errands: sender };
                catch_unwind(AssertUnwindSafe(|| workers.install(|| work(&caller))))
            });
            let mut last_look = Instant::now();
            loop {
                match errands.recv_timeout(EVERY) {
                    Ok(errand) => Python::attach(errand),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
                if last_look.elapsed() < EVERY {
                    continue;
                }
                last_look = Instant::now();
                let looked = Python::attach(|py| {
                    py.check_signals()?;
                    if asked_to_stop.is_some() { Ok(()) } else { show(py, progress, latest) }
                });
                if let Err(exception) = looked {
                    let again = stop.swap(true, Ordering::Relaxed);
                    hurry.fetch_or(again, Ordering::Relaxed);
                    asked_to_stop.get_or_insert(exception);
                }
            }
            worker.join()
        });
        // Waits for the threads: one that lets go of the interpreter while that is being shut down would take
        // the process with it.
        drop(pool);
        handles.into_iter().for_each(|handle| drop(handle.join()));
        outcome
    });
    let result = match outcome {
        Ok(Ok(Ok(value))) => Ok(value),
        Ok(Ok(Err(error))) => Err(exception(&error)),
        Ok(Err(payload)) | Err(payload) => Err(caught(payload)),
    };
    if result.is_ok()
        && asked_to_stop.is_none()
        && let Err(exception) = show(py, progress, &latest)
    {
        asked_to_stop = Some(exception);
    }
    drop(under_way);
    Ok(Watch { result, asked_to_stop })
}

/// As [`watch`] for work that is worth nothing unless it comes to its end.
pub fn watch_all<T: Send>(
    py: Python<'_>,
    threads: Option<usize>,
    stop: &Arc<AtomicBool>,
    work: impl FnOnce() -> phalanx::Result<T> + Send,
) -> PyResult<T> {
    let watched = watch(py, threads, None, stop, |_| work())?;
    watched.asked_to_stop.map_or(watched.result, Err)
}

/// Tells Python of the latest iteration, once.
fn show(py: Python<'_>, progress: Option<&Py<PyAny>>, latest: &Latest) -> PyResult<()> {
    let Some(progress) = progress else { return Ok(()) };
    let Some(summary) = latest.lock().ok().and_then(|mut latest| latest.take()) else { return Ok(()) };
    let dict = numbers(py, &summary)?;
    let done = summary.iteration + 1;
    dict.set_item("iteration", done)?;
    dict.set_item("done", done)?;
    progress.call1(py, (dict,)).map(drop)
}

/// What `metrics.csv` has of an iteration, but for traffic.
pub fn numbers<'py>(py: Python<'py>, summary: &Summary) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("iteration", summary.iteration)?;
    dict.set_item("return", summary.return_)?;
    dict.set_item("objective", summary.objective)?;
    dict.set_item("violation_total", summary.violation_total)?;
    dict.set_item("violation_max", summary.violation_max)?;
    dict.set_item("violation_mean", summary.violation_mean)?;
    dict.set_item("mu_mean", summary.mu_mean)?;
    dict.set_item("mu_largest", summary.mu_largest)?;
    dict.set_item("gradient_norm", summary.gradient_norm)?;
    Ok(dict)
}

//! The threads that a command works on.

use phalanx::Error;
use phalanx::base::limits::MOST_THREADS;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::check_range;

/// The variable that says how many threads there are where no flag does.
const VARIABLE: &str = "RAYON_NUM_THREADS";

/// Runs `work` on `threads` threads; on all cores if not given.
///
/// `work` itself runs on one of them: handing every parallel loop over from outside would cost more than many
/// a loop.
pub fn on_threads<T: Send>(threads: Option<usize>, work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
    let threads = match threads {
        Some(threads) => threads,
        None => default_threads()?,
    };
    check_range("threads", threads, 1..=MOST_THREADS)?;
    Ok(pool(threads, "threads")?.install(work))
}

/// So many threads, which the argument `blamed` has asked for.
pub fn pool(threads: usize, blamed: &'static str) -> phalanx::Result<ThreadPool> {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| cannot_make(threads, blamed, &error))
}

/// Says that threads could not be had.
pub fn cannot_make(threads: usize, blamed: &'static str, error: &dyn std::error::Error) -> Error {
    let reason = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let what = if threads == 1 { "a thread".into() } else { format!("{threads} threads") };
    Error::argument(blamed, format!("{what} could not be made: {reason}; use fewer, or allow more processes"))
}

/// As many as there are cores, unless the environment says otherwise.
pub fn default_threads() -> phalanx::Result<usize> {
    let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get()).min(MOST_THREADS);
    let Ok(text) = std::env::var(VARIABLE) else { return Ok(cores()) };
    match text.parse() {
        Ok(0) => Ok(cores()),
        Ok(threads) if threads <= MOST_THREADS => Ok(threads),
        _ => {
            let message = format!("`{text}`; allowed are 1 to {MOST_THREADS}, and 0 for all cores");
            Err(Error::config(VARIABLE, message))
        }
    }
}

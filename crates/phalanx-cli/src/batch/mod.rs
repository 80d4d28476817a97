//! Many runs at once, side by side in one process. What is done already is not done again, and what fails
//! does not stop the rest.

mod job;
mod progress;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use phalanx::Error;
use phalanx::base::limits::MOST_THREADS;
pub use phalanx::run::{Job, JobOutcome};
use phalanx::run::{Provenance, RunFolder, RunStatus};

use crate::check_range;
use crate::threads::{self, default_threads};
use job::Shared;
use progress::Progress;

/// Who does the work, and how much is said about it; nothing here changes results.
pub struct Workers {
    /// Runs at a time.
    pub jobs: usize,
    /// Threads of each.
    pub threads_each: usize,
    /// Say nothing on the way.
    pub quiet: bool,
}

impl Workers {
    /// As the flags `--jobs` and `--threads` say; by default a run on every core: runs do not wait for each
    /// other, threads of one run do.
    pub fn of(jobs: Option<usize>, threads: Option<usize>, quiet: bool) -> phalanx::Result<Self> {
        let (jobs, threads_each) = (jobs.map_or_else(default_threads, Ok)?, threads.unwrap_or(1));
        check_range("jobs", jobs, 1..=MOST_THREADS)?;
        check_range("threads", threads_each, 1..=MOST_THREADS)?;
        Ok(Workers { jobs, threads_each, quiet })
    }
}

/// Carries out `jobs`, as many at a time as `workers` says, until all are done or `stop` is set. One
/// [`JobOutcome`] per job, in their order.
///
/// An error means that nothing was begun: a folder holds something else than the job's run, or two jobs are
/// called the same.
pub fn run_jobs(
    jobs: &[Job],
    workers: &Workers,
    stop: &Arc<AtomicBool>,
    provenance: &Provenance,
) -> anyhow::Result<Vec<JobOutcome>> {
    check_apart(jobs)?;
    let (mut outcomes, mut waiting) = (BTreeMap::new(), Vec::new());
    for (k, job) in jobs.iter().enumerate() {
        match RunFolder::status(&job.folder, &job.config)? {
            RunStatus::Finished(outcome) => _ = outcomes.insert(k, JobOutcome::Done(outcome)),
            RunStatus::Absent | RunStatus::Started => waiting.push((k, job)),
        }
    }
    let iterations = waiting.iter().map(|(_, job)| job.config.iterations).sum();
    let progress = Progress::new(jobs.len(), outcomes.len(), iterations, workers.quiet);
    let shared = Shared { stop, provenance, progress };
    let outcomes = Mutex::new(outcomes);
    let next = AtomicUsize::new(0);
    let take_jobs = |pool: &rayon::ThreadPool| {
        while let Some(&(k, job)) = waiting.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = if stop.load(Ordering::Relaxed) {
                JobOutcome::Stopped
            } else {
                // The run itself is on one of its threads: handing every loop over from outside costs more
                // than many a loop.
                let run = || pool.install(|| shared.run_job(job));
                std::panic::catch_unwind(AssertUnwindSafe(run))
                    .unwrap_or_else(|panic| JobOutcome::Failed(job::words_of(&*panic)))
            };
            shared.progress.end(job, &outcome);
            unpoisoned(&outcomes).insert(k, outcome);
        }
    };
    let pools = (0..workers.jobs.min(waiting.len())).map(|_| threads::pool(workers.threads_each, "jobs"));
    let pools: Vec<rayon::ThreadPool> = pools.collect::<Result<_, _>>()?;
    std::thread::scope(|scope| {
        let take_jobs = &take_jobs;
        let spawn = |pool| std::thread::Builder::new().spawn_scoped(scope, move || take_jobs(pool)).map(drop);
        let spawned: Vec<std::io::Result<()>> = pools.iter().map(spawn).collect();
        // Those that could be made do the work of all.
        match spawned.into_iter().reduce(|one, other| one.or(other)) {
            Some(Err(error)) => Err(threads::cannot_make(workers.jobs, "jobs", &error)),
            _ => Ok(()),
        }
    })?;
    shared.progress.clear();
    let outcomes = outcomes.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok(outcomes.into_values().collect())
}

/// Two jobs in one folder would each take the other's run for its own.
fn check_apart(jobs: &[Job]) -> phalanx::Result<()> {
    let mut folders = BTreeMap::new();
    for job in jobs {
        if let Some(other) = folders.insert(&job.folder, &job.name) {
            let message = format!("both `{other}` and `{}` would go there", job.name);
            return Err(Error::file(&job.folder, message));
        }
    }
    Ok(())
}

/// What a lock guards here is whole at any time, whoever panicked.
fn unpoisoned<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

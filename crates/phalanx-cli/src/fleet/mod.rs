//! Many runs at once, side by side in one process. What is done already is not done again, and what fails does not
//! stop the rest.

mod one;
mod progress;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use phalanx::Error;
pub use phalanx::run::{Job, JobOutcome as Finish};
use phalanx::run::{Provenance, RunFolder, RunStatus};

use crate::MOST_THREADS;
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

impl Default for Workers {
    /// A run on every core: runs do not wait for each other, threads of one run do.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Workers { jobs: cores.min(MOST_THREADS), threads_each: 1, quiet: false }
    }
}

impl Workers {
    /// As the flags `--jobs` and `--threads` say, or the default where they are not given.
    pub fn of(jobs: Option<usize>, threads: Option<usize>, quiet: bool) -> phalanx::Result<Self> {
        for (flag, number) in [("--jobs", jobs), ("--threads", threads)] {
            if let Some(number) = number.filter(|number| !(1..=MOST_THREADS).contains(number)) {
                return Err(Error::config(flag, format!("{number}; allowed are 1 to {MOST_THREADS}")));
            }
        }
        let default = Workers::default();
        Ok(Workers {
            jobs: jobs.unwrap_or(default.jobs),
            threads_each: threads.unwrap_or(default.threads_each),
            quiet,
        })
    }
}

/// Carries out `jobs`, as many at a time as `workers` says, until all are done or `stop` is set. One [`Finish`] a job,
/// in their order.
///
/// An error means that nothing was begun: a folder holds something else than the job's run, or two jobs are called the
/// same.
pub fn carry_out(
    jobs: &[Job],
    workers: &Workers,
    stop: &AtomicBool,
    provenance: &Provenance,
) -> anyhow::Result<Vec<Finish>> {
    check_apart(jobs)?;
    let standings = jobs.iter().map(|job| {
        let standing = RunFolder::standing(&job.folder, &job.config);
        Ok((standing?, job))
    });
    let standings: Vec<(RunStatus, &Job)> = standings.collect::<phalanx::Result<_>>()?;
    let progress = Progress::new(&standings, workers.quiet);
    let mut finishes: Vec<Option<Finish>> = Vec::with_capacity(jobs.len());
    let mut waiting = Vec::new();
    for (k, (standing, job)) in standings.into_iter().enumerate() {
        match standing {
            RunStatus::Finished(outcome) => finishes.push(Some(Finish::Done(outcome))),
            RunStatus::Free | RunStatus::Begun => {
                finishes.push(None);
                waiting.push((k, job));
            }
        }
    }
    let finishes = Mutex::new(finishes);
    let next = AtomicUsize::new(0);
    let take_jobs = |pool: &rayon::ThreadPool| {
        while let Some(&(k, job)) = waiting.get(next.fetch_add(1, Ordering::Relaxed)) {
            let finish = if stop.load(Ordering::Relaxed) {
                Finish::Stopped
            } else {
                // The run itself is on one of its threads: handing every loop over from outside costs more than many a loop.
                let run = || pool.install(|| one::carry_out(job, stop, provenance, &progress));
                std::panic::catch_unwind(AssertUnwindSafe(run))
                    .unwrap_or_else(|panic| Finish::Failed(one::words_of(&*panic)))
            };
            progress.end(job, &finish);
            if let Some(place) = unpoisoned(&finishes).get_mut(k) {
                *place = Some(finish);
            }
        }
    };
    let pools = (0..workers.jobs.min(waiting.len()))
        .map(|_| rayon::ThreadPoolBuilder::new().num_threads(workers.threads_each).build());
    let pools: Vec<rayon::ThreadPool> = pools.collect::<Result<_, _>>()?;
    std::thread::scope(|scope| {
        for pool in &pools {
            scope.spawn(|| take_jobs(pool));
        }
    });
    progress.clear();
    let finishes = finishes.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok(finishes.into_iter().map(|finish| finish.unwrap_or(Finish::Stopped)).collect())
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

//! Ranks as threads: runs of a network that is shared out, and what they must have in common.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use phalanx::distributed::{Communicator, SingleProcess, ThreadCommunicator};
use phalanx::run::{Config, Ending, Provenance, Registry, ResumeOutcome, Run, Session};

/// Runs `work` on so many threads that can talk to each other, each with a pool of its own.
pub fn crew<T: Send>(count: usize, work: impl Fn(Arc<dyn Communicator>) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = ThreadCommunicator::new(count)
            .into_iter()
            .map(|peers| {
                scope.spawn(move || {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                    pool.install(|| work(peers))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Trains in one process.
pub fn whole(config: &Config, path: &Path) {
    train(config, path, Arc::new(SingleProcess), usize::MAX);
}

/// Trains in `count` processes until `stop` iterations are done.
pub fn parts(config: &Config, path: &Path, count: usize, stop: usize) {
    crew(count, |peers| train(config, path, peers, stop));
}

/// Trains one process's part until `stop` iterations are done.
pub fn train(config: &Config, path: &Path, peers: Arc<dyn Communicator>, stop: usize) {
    let session = Session::distributed(config, peers.clone()).unwrap();
    let mut run = Run::begin(session, path, Provenance::default()).unwrap();
    let flag = Arc::new(AtomicBool::new(false));
    let ending = run.train(&flag, |summary| flag.store(summary.iteration + 1 == stop, Ordering::Relaxed));
    match ending.unwrap() {
        Ending::Finished(results) => assert_eq!(results.is_some(), peers.rank() == 0),
        Ending::Stopped { iteration } => assert_eq!(iteration, stop),
    }
}

/// The rest of a run that has `done` iterations; false if it is finished.
pub fn resume(path: &Path, peers: Arc<dyn Communicator>, done: usize) -> bool {
    let ResumeOutcome::Ready { mut run, .. } = Run::resume(path, &Registry::default(), peers).unwrap() else {
        return false;
    };
    assert_eq!(run.session().algorithm().iteration(), done);
    assert!(matches!(run.train(&Arc::default(), |_| ()), Ok(Ending::Finished(_))));
    true
}

const RESULTS: [&str; 6] = [
    "metrics.csv",
    "agents.csv",
    "agents-summary.csv",
    "policy.safetensors",
    "multipliers.safetensors",
    "usual_states.json",
];

pub fn assert_same(one: &Path, other: &Path, what: &str) {
    for name in RESULTS {
        let [a, b] = [one, other].map(|path| std::fs::read(path.join(name)).unwrap());
        if a != b {
            let text =
                [&a, &b].map(|bytes| String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned());
            panic!("{what}: {name} differs\n{}\n{}", text[0], text[1]);
        }
    }
}

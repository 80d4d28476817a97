//! Small runs on the line, side by side.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use phalanx::run::{Config, Provenance, Registry, Run, RunFolder, Session};
use phalanx::world::{Line, Start};

use super::{Job, JobOutcome, Workers, run_jobs};

const FILES: [&str; 3] = ["metrics.csv", "agents.csv", "policy.safetensors"];

fn config(seed: usize) -> Config {
    let seed = seed.to_string();
    let short = [("iterations", "20"), ("horizon", "10"), ("evaluation.episodes", "4"), ("world.n", "3")];
    let short = short.into_iter().chain([("critic.steps", "20"), ("seed", seed.as_str())]);
    Config::preset("synthetic").unwrap().with_all(short).unwrap()
}

fn job(folder: &Path, name: &str, config: Config) -> Job {
    Job { name: name.into(), folder: folder.join(name), config }
}

fn three(folder: &Path) -> Vec<Job> {
    (1..=3).map(|seed| job(folder, &format!("seed{seed}"), config(seed))).collect()
}

fn run(jobs: &[Job], at_once: usize, threads_each: usize) -> anyhow::Result<Vec<JobOutcome>> {
    let workers = Workers { jobs: at_once, threads_each, quiet: true };
    run_jobs(jobs, &workers, &Arc::default(), &Provenance::default())
}

fn objective(finish: &JobOutcome) -> f64 {
    match finish {
        JobOutcome::Done(outcome) => outcome.objective,
        other => panic!("{other:?}"),
    }
}

fn bytes(job: &Job) -> [Vec<u8>; 3] {
    FILES.map(|name| std::fs::read(job.folder.join(name)).unwrap())
}

#[test]
fn results_do_not_depend_on_the_workers_and_are_not_made_twice() {
    let (alone, together) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (first, second) = (three(alone.path()), three(together.path()));
    let (one, two) = (run(&first, 1, 1).unwrap(), run(&second, 2, 2).unwrap());
    for k in 0..3 {
        assert_eq!(objective(&one[k]), objective(&two[k]));
        assert!(bytes(&first[k]) == bytes(&second[k]), "run {k} differs");
    }
    assert_ne!(objective(&one[0]), objective(&one[1]));
    // Without its table a run could not be made again unnoticed: what is finished is only read.
    std::fs::remove_file(first[1].folder.join("metrics.csv")).unwrap();
    let again = run(&first, 2, 1).unwrap();
    assert!((0..3).all(|k| objective(&again[k]) == objective(&one[k])));
    assert!(!first[1].folder.join("metrics.csv").exists());
}

#[test]
fn what_fails_does_not_stop_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let mut registry = Registry::default();
    registry.add("brittle", |_keys| panic!("it broke"));
    registry.add("short", |_keys| Ok(Arc::new(Line::new(3, Start::Zeros, 0.0)?)));
    let text = "iterations = 3\n[world]\nkind = \"short\"\n[objective]\nkind = \"return\"";
    let own = Config::from_toml(text, folder.path()).unwrap().with_registry(registry);
    let diverging = [
        ("dual.kind", "descent"),
        ("dual.mu_max", "inf"),
        ("dual.eta_mu", "1e308"),
        ("constraint.0.at_least", "0.8"),
        ("constraint.0.allow_infeasible", "true"),
    ];
    let jobs = [
        job(folder.path(), "brittle", own.with("world.kind", "brittle").unwrap()),
        job(folder.path(), "diverging", config(1).with_all(diverging).unwrap()),
        job(folder.path(), "short", own),
        job(folder.path(), "sound", config(1)),
    ];
    let outcomes = run(&jobs, 1, 1).unwrap();
    assert!(
        matches!(&outcomes[0], JobOutcome::Failed(why) if why.contains("panic: it broke")),
        "{outcomes:?}"
    );
    assert!(matches!(&outcomes[1], JobOutcome::Failed(why) if why.contains("is inf")), "{outcomes:?}");
    assert!(outcomes[2..].iter().all(|finish| matches!(finish, JobOutcome::Done(_))), "{outcomes:?}");
}

#[test]
fn a_folder_of_another_run_is_refused_before_anything_begins() {
    let folder = tempfile::tempdir().unwrap();
    run(&three(folder.path())[1..2], 1, 1).unwrap();
    let mut jobs = three(folder.path());
    jobs[1].config = config(2).with("kappa", "0").unwrap();
    let message = run(&jobs, 1, 1).unwrap_err().to_string();
    assert!(message.contains("seed2: was made with kappa = 1") && message.contains("kappa = 0"), "{message}");
    assert!(!jobs[0].folder.exists());
    jobs[1].folder = jobs[0].folder.clone();
    let message = run(&jobs, 1, 1).unwrap_err().to_string();
    assert!(message.contains("both `seed1` and `seed2`"), "{message}");
}

#[test]
fn a_folder_in_use_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = three(folder.path());
    let session = Session::new(&jobs[0].config).unwrap();
    let held = RunFolder::create(&jobs[0].folder, &session, Provenance::default()).unwrap();
    let outcomes = run(&jobs, 1, 1).unwrap();
    assert!(
        matches!(outcomes[..], [JobOutcome::Busy, JobOutcome::Done(_), JobOutcome::Done(_)]),
        "{outcomes:?}"
    );
    drop(held);
    objective(&run(&jobs, 1, 1).unwrap()[0]);
}

#[test]
fn stopped_runs_go_on_to_the_same_bytes() {
    let (stopped, whole) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let jobs = three(stopped.path());
    // Stopped before it starts, a run is not begun; stopped after an iteration, it has a checkpoint.
    let workers = Workers { jobs: 1, threads_each: 1, quiet: true };
    let outcomes =
        run_jobs(&jobs, &workers, &Arc::new(AtomicBool::new(true)), &Provenance::default()).unwrap();
    assert!(outcomes.iter().all(|finish| matches!(finish, JobOutcome::Stopped)) && !jobs[0].folder.exists());
    let session = Session::new(&jobs[0].config).unwrap();
    let mut first = Run::begin(session, &jobs[0].folder, Provenance::default()).unwrap();
    first.train(&Arc::new(AtomicBool::new(true)), |_| ()).unwrap();
    drop(first);
    run(&jobs, 2, 1).unwrap();
    let expected = three(whole.path());
    run(&expected, 2, 1).unwrap();
    assert!(jobs.iter().zip(&expected).all(|(job, expected)| bytes(job) == bytes(expected)));
}

#[test]
fn what_cannot_be_written_is_said_with_the_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = [job(folder.path(), "run", config(1).with("checkpoint.seconds", "inf").unwrap())];
    let session = Session::new(&jobs[0].config).unwrap();
    let mut first = Run::begin(session, &jobs[0].folder, Provenance::default()).unwrap();
    first.train(&Arc::new(AtomicBool::new(true)), |_| ()).unwrap();
    drop(first);
    std::fs::create_dir(jobs[0].folder.join("policy.safetensors.tmp")).unwrap();
    let outcomes = run(&jobs, 1, 1).unwrap();
    let JobOutcome::Failed(reason) = &outcomes[0] else { panic!("{outcomes:?}") };
    assert!(reason.contains("cannot write") && reason.ends_with("is of iteration 1"), "{reason}");
}

//! `cargo xtask fuzz`: hostile input for every reader, led by coverage.

mod build;
mod log;
mod target;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::{setup, target as target_folder};
use target::{Fuzzed, Job, Program};

#[derive(clap::Args)]
pub struct FuzzArgs {
    /// Minutes in all, the same share for every target.
    #[arg(long, value_name = "N", default_value_t = 15.0)]
    minutes: f64,
    /// Inputs of every target at least, however long they take.
    #[arg(long, value_name = "N", default_value_t = 0)]
    runs: u64,
    /// These targets alone [default: all].
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
    /// Targets at a time.
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Seed of libFuzzer.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Where the log goes.
    #[arg(long, value_name = "DIR", default_value = "bench-runs")]
    into: PathBuf,
    /// Replace `fuzz/corpus` by the smallest set of inputs that covers the same.
    #[arg(long)]
    keep: bool,
}

/// Where inputs that broke something are left.
const ARTIFACTS: &str = "fuzz/artifacts";

/// Inputs that are kept in the repository, by target.
const CORPUS: &str = "fuzz/corpus";

/// Fuzzes every target that is asked for, prints what came of it and writes it down.
pub fn run(args: &FuzzArgs) -> Result<()> {
    ensure!(
        args.minutes >= 0.0 && args.minutes.is_finite(),
        "--minutes: {}; at least 0 is needed",
        args.minutes
    );
    setup::cpp_compiler(false)?;
    let folder = target_folder()?.join("fuzz");
    let mut programs = vec![build::build(&folder)?];
    match build::python(&folder) {
        Ok(program) => programs.push(program),
        Err(error) => println!("the targets in Python are left out: {error:#}"),
    }
    let mut targets = Vec::new();
    for program in &programs {
        targets.extend(program.targets()?.into_iter().map(|name| (program, name)));
    }
    let all: Vec<&String> = targets.iter().map(|(_, name)| name).collect();
    if let Some(unknown) = args.targets.iter().find(|name| !all.contains(name)) {
        let known: Vec<&str> = all.iter().map(|name| name.as_str()).collect();
        anyhow::bail!("--target: `{unknown}` is unknown; there are {}", known.join(", "));
    }
    let is_wanted = |name: &String| args.targets.is_empty() || args.targets.contains(name);
    let wanted: Vec<_> = targets.iter().filter(|(_, name)| is_wanted(name)).collect();
    let share = Duration::from_secs_f64(args.minutes * 60.0 * args.jobs.max(1) as f64 / wanted.len() as f64);
    let job = |(program, name): &(&Program, String)| Job {
        program: (*program).clone(),
        name: name.clone(),
        kept: Path::new(CORPUS).join(format!("{name}.txt")),
        corpus: folder.join("corpus").join(name),
        artifacts: Path::new(ARTIFACTS).join(name),
        seed: args.seed,
        runs: args.runs,
        time: share,
    };
    let jobs: Vec<Job> = wanted.into_iter().map(job).collect();
    println!("{}", log::HEAD);
    let fuzzed = side_by_side(&jobs, args.jobs.max(1))?;
    if args.keep {
        jobs.iter().try_for_each(Job::keep)?;
    }
    let path = log::write(&args.into, &fuzzed, args.jobs.max(1))?;
    println!("\nlog: {}", path.display());
    let findings: Vec<&String> = fuzzed.iter().flat_map(|fuzzed| &fuzzed.findings).collect();
    ensure!(findings.is_empty(), "inputs that broke something:\n{}", log::reproduce(&fuzzed));
    Ok(())
}

/// Carries out jobs, some at a time; a line for each as it ends.
fn side_by_side(jobs: &[Job], at_once: usize) -> Result<Vec<Fuzzed>> {
    let (next, done) = (Mutex::new(0..jobs.len()), Mutex::new(Vec::new()));
    let broken = || anyhow::anyhow!("another target's thread has panicked");
    let work = || -> Result<()> {
        loop {
            let Some(k) = next.lock().map_err(|_| broken())?.next() else { return Ok(()) };
            let fuzzed = jobs[k].run().with_context(|| format!("target {}", jobs[k].name))?;
            println!("{}", log::row(&fuzzed));
            done.lock().map_err(|_| broken())?.push((k, fuzzed));
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| broken())?)
    })?;
    let mut done = done.into_inner().map_err(|_| broken())?;
    done.sort_by_key(|(k, _)| *k);
    Ok(done.into_iter().map(|(_, fuzzed)| fuzzed).collect())
}

//! Developer commands: what CI runs and what a person runs are the same.

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;

/// Developer commands.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Xtask {
    /// All checks: format, lints, tests, documentation, book, examples and benchmarks, the Python package.
    Test {
        /// Install the Debian packages that some tests need, and NVRTC; without them, tests are skipped.
        #[arg(long)]
        install: bool,
    },
    /// The Python package alone: its wheel, lints, types, tests, examples.
    Python,
    /// The book in `target/book`: its pages, without a warning, and all their links and anchors looked up.
    Book(book::BookArgs),
    /// Kill runs of six kinds at random moments, resume them, compare every byte; where Open MPI is installed
    /// also runs of two processes, a tenth as often.
    Crash {
        /// How many times.
        #[arg(long, value_name = "N", default_value_t = 60)]
        kills: usize,
    },
    /// Train with random stops, full disks and two processes at one folder; report memory and bytes.
    Soak {
        /// For how long.
        #[arg(long, value_name = "N", default_value_t = 60.0)]
        minutes: f64,
    },
    /// The benchmark tables: iterations by stage, speed and memory by graph size, MPI.
    ///
    /// PHALANX_BIN names a program to measure instead of building one.
    Bench(bench::BenchArgs),
    /// All short runs of `crates/phalanx-cli/tests/golden`: are results the bytes that they were?
    Golden {
        /// Write their bytes anew.
        #[arg(long)]
        write: bool,
    },
    /// Some of them on an emulated processor with AVX2 and without AVX-512 (qemu-user): the same bytes?
    Processors,
    /// A CUDA card against the processor: tests of kernels, bytes of results, and speed, with a report.
    Gpu(gpu::GpuArgs),
    /// Hostile input for every reader, led by coverage: no panic, hang or large allocation.
    Fuzz(fuzz::FuzzArgs),
}

fn main() -> ExitCode {
    let done = match Xtask::parse() {
        Xtask::Test { install } => test(install),
        Xtask::Python => python_package(),
        Xtask::Book(args) => book::build(&args),
        Xtask::Crash { kills } => crash(kills),
        Xtask::Soak { minutes } => soak::run(minutes),
        Xtask::Bench(args) => bench::run(&args),
        Xtask::Golden { write } => golden(&[("PHALANX_GOLDEN", if write { "write" } else { "all" })]),
        Xtask::Processors => processors(),
        Xtask::Gpu(args) => gpu::measure(&args),
        Xtask::Fuzz(args) => fuzz::run(&args),
    };
    if let Err(error) = done {
        eprintln!("error: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

mod bench;
mod book;
mod fuzz;
mod gpu;
mod python;
mod setup;
mod soak;

/// Runs the test of golden bytes, optimised.
fn golden(environment: &[(&str, &str)]) -> Result<()> {
    cargo(&["test", "--release", "-p", "phalanx-cli", "--test", "golden", "--", "--nocapture"], environment)
}

fn processors() -> Result<()> {
    if Command::new("qemu-x86_64").arg("--version").output().is_err() {
        println!("skipped: there is no qemu-x86_64 (Debian package qemu-user)");
        return Ok(());
    }
    let runner = ("PHALANX_RUNNER", "qemu-x86_64 -cpu Haswell");
    golden(&[
        runner,
        ("PHALANX_GOLDEN_CASES", "wireless,epidemic,exact,entropy,paper-synthetic,mappo-l-wireless"),
    ])
}

/// Every check, in the order in which failures are cheapest to find. `install`: packages of the system may be
/// installed.
///
/// What one step compiles the next ones use: all have the same profile and, being of the whole workspace, the
/// same features.
fn test(install: bool) -> Result<()> {
    let begin = Instant::now();
    let install = install || std::env::var("CI").is_ok_and(|value| value == "true");
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])?;
    // What a registry would get. That it builds, `cargo publish --workspace --dry-run` tries, in minutes.
    cargo(&["package", "--workspace", "--no-verify", "--offline", "--allow-dirty", "--quiet"], &[])?;
    // Property tests draw the same cases every time here; plain `cargo test` draws new ones.
    let cache = target()?.join("kernels").display().to_string();
    let mut environment = vec![("PROPTEST_RNG_SEED", "1"), ("PHALANX_CACHE", &*cache)];
    let python = setup::tensorboard(&target()?.join("python"));
    match &python {
        Ok(python) => environment.push(("PHALANX_PYTHON", python)),
        Err(error) => println!("the test against TensorBoard is skipped: {error:#}"),
    }
    let nvrtc = setup::nvrtc(&target()?.join("nvrtc"), install).map(|folder| setup::library_path(&folder));
    match &nvrtc {
        Ok(libraries) => environment.push(("LD_LIBRARY_PATH", libraries)),
        Err(error) => println!("kernels are not compiled for a GPU unless NVRTC is installed: {error:#}"),
    }
    if let Err(error) = setup::browser(install) {
        println!("the test of the report's page is skipped: {error:#}");
    }
    cargo(&["test", "--workspace", "--lib", "--bins", "--tests", "--examples"], &environment)?;
    match setup::open_mpi(install) {
        Ok(()) => {
            // Without the paper's experiments, which do not know of MPI.
            let mpi =
                ["--workspace", "--no-default-features", "--features", "phalanx-cli/mpi", "--test", "mpi"];
            let deny = ["--bin", "phalanx", "--", "-D", "warnings"];
            cargo(&[&["clippy"][..], &mpi, &deny].concat(), &[])?;
            cargo(&[&["test"][..], &mpi].concat(), &[])?;
        }
        Err(error) => println!("the tests of runs over MPI are skipped: {error:#}"),
    }
    cargo(&["test", "--workspace", "--doc"], &[])?;
    build()?;
    run(&mut Command::new(target()?.join("debug/examples/own_utility")))?;
    cargo(&["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])?;
    match book::mdbook(&target()?) {
        Ok(_) => book::build(&book::BookArgs::default())?,
        Err(error) => println!("the book is not built: {error:#}"),
    }
    // Benchmarks compile, with what tests were compiled with.
    cargo(&["test", "--workspace", "--benches", "--no-run"], &[])?;
    match setup::python() {
        Ok(()) => python_package()?,
        Err(error) => println!("the tests of the Python package are skipped: {error:#}"),
    }
    println!("all checks passed in {:.0} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// The Python package, against the program as tests build it.
fn python_package() -> Result<()> {
    setup::python()?;
    build()?;
    python::test(&target()?, &target()?.join("debug/phalanx"))
}

/// The programs and examples. Examples bring features of what tests depend on: without them nearly everything
/// would be compiled once more.
fn build() -> Result<()> {
    cargo(&["build", "--workspace", "--bins", "--examples"], &[])
}

/// Where cargo builds.
fn target() -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(std::path::absolute(target)?)
}

/// The crash test at full length.
fn crash(kills: usize) -> Result<()> {
    let (test, shown) =
        (["test", "--release", "--package", "phalanx-cli"], ["--test", "crash", "--", "--nocapture"]);
    let (of_ranks, kills) = (kills.div_ceil(10).to_string(), kills.to_string());
    cargo(&[&test[..], &shown].concat(), &[("PHALANX_KILLS", &kills)])?;
    if let Err(error) = setup::open_mpi(false) {
        println!("runs over MPI are left out: {error:#}");
        return Ok(());
    }
    let mpi = ["--no-default-features", "--features", "mpi"];
    // Several processes take ten times as long to start.
    cargo(&[&test[..], &mpi, &shown].concat(), &[("PHALANX_KILLS", &of_ranks), ("PHALANX_RANKS", "2")])
}

/// Runs cargo and shows what it ran.
fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    run(Command::new(program).args(arguments).envs(environment.iter().copied()))
}

/// Runs a command and shows what it ran.
fn run(command: &mut Command) -> Result<()> {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let arguments = command.get_args().map(|argument| format!(" {}", argument.to_string_lossy().trim()));
    let shown = format!("{name}{}", arguments.collect::<String>());
    println!("> {shown}");
    let status = command.status().with_context(|| format!("cannot start {}", program.display()))?;
    ensure!(status.success(), "`{shown}` failed");
    Ok(())
}

//! Developer commands: what CI runs and what a person runs are the same.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask test     all checks: format, lints, tests, documentation, examples and benchmarks compile, the Python package
cargo xtask python   the Python package alone: its wheel, lints, types, tests, examples
cargo xtask crash    kill a run fifty times at random moments, resume it, compare every byte
cargo xtask bench    the benchmark tables: iterations by stage, speed and memory by network size, MPI; `bench help` lists them
cargo xtask theory   the numbers and figures of docs/theory.md";

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let done = match command.as_str() {
        "test" => test(),
        "python" => python_package(),
        "crash" => crash(),
        "bench" => bench::run(&std::env::args().skip(2).collect::<Vec<_>>()),
        "theory" => theory(),
        _ => {
            println!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

mod bench;
mod python;

/// Every check, in the order in which failures are cheapest to find.
fn test() -> Result<()> {
    let begin = Instant::now();
    cargo(&["fmt", "--all", "--check"], &[])?;
    let theory = ["--features", "xtask/theory"];
    cargo(
        &[&["clippy", "--workspace", "--all-targets"][..], &theory, &["--", "-D", "warnings"]].concat(),
        &[],
    )?;
    // Property tests draw the same cases every time here; plain `cargo test` draws new ones.
    let mut environment = vec![("PROPTEST_RNG_SEED", "1")];
    let python = python_with_tensorboard();
    match &python {
        Ok(python) => environment.push(("PHALANX_PYTHON", python)),
        Err(error) => println!("the test against TensorBoard is skipped: {error:#}"),
    }
    if let Err(error) = browser() {
        println!("the test of the report's page is skipped: {error:#}");
    }
    cargo(&["test", "--workspace", "--lib", "--bins", "--tests", "--examples"], &environment)?;
    match open_mpi() {
        Ok(()) => {
            let mpi = ["--package", "phalanx-cli", "--features", "mpi"];
            cargo(&[&["clippy"][..], &mpi, &["--tests", "--", "-D", "warnings"]].concat(), &[])?;
            cargo(&[&["test"][..], &mpi, &["--test", "mpi"]].concat(), &[])?;
        }
        Err(error) => println!("the tests of runs over MPI are skipped: {error:#}"),
    }
    cargo(&["test", "--workspace", "--doc"], &[])?;
    cargo(&["run", "--quiet", "--package", "phalanx", "--example", "own_utility"], &[])?;
    cargo(&["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")])?;
    cargo(&["bench", "--workspace", "--no-run"], &[])?;
    match python_is_new_enough() {
        Ok(()) => python_package()?,
        Err(error) => println!("the tests of the Python package are skipped: {error:#}"),
    }
    println!("all checks passed in {:.0} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// The Python package, against the program as tests build it.
fn python_package() -> Result<()> {
    python_is_new_enough()?;
    cargo(&["build", "--package", "phalanx-cli"], &[])?;
    python::test(&target()?, &target()?.join("debug/phalanx"))
}

/// Where cargo builds.
fn target() -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(std::path::absolute(target)?)
}

/// Whether there is a Python that the package can be installed in.
fn python_is_new_enough() -> Result<()> {
    let test = "import sys, venv; sys.exit(sys.version_info < (3, 11))";
    let found = Command::new("python3").args(["-c", test]).output()?;
    anyhow::ensure!(found.status.success(), "python3 is older than 3.11, or has no venv");
    Ok(())
}

/// A Python environment of the project's own with the package `tensorboard`, made on first use.
fn python_with_tensorboard() -> Result<String> {
    let folder = target()?.join("python");
    let python = folder.join("bin/python");
    let works = |python: &std::path::Path| {
        let import = "import tensorboard.backend.event_processing.event_accumulator";
        Command::new(python).args(["-c", import]).output().is_ok_and(|output| output.status.success())
    };
    if !works(&python) {
        println!("> making {}", folder.display());
        let made = Command::new("python3").args(["-m", "venv"]).arg(&folder).status()?;
        anyhow::ensure!(made.success(), "python3 cannot make a virtual environment");
        let installed =
            Command::new(&python).args(["-m", "pip", "install", "--quiet", "tensorboard"]).status()?;
        anyhow::ensure!(installed.success() && works(&python), "tensorboard cannot be installed");
    }
    Ok(python.display().to_string())
}

/// Chromium, installed where it is missing and that is allowed.
fn browser() -> Result<()> {
    install("chromium", || starts("chromium"), &["chromium"])
}

/// Open MPI with what its Rust interface is built with, installed where it is missing and that is allowed.
fn open_mpi() -> Result<()> {
    // The interface reads the C headers with libclang, which has no program to ask for.
    let clang = || {
        let folders = std::path::Path::new("/usr/lib").read_dir().into_iter().flatten().flatten();
        let has = |folder: std::path::PathBuf| {
            let names = folder.join("lib").read_dir().into_iter().flatten().flatten();
            names.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("libclang"))
        };
        folders.into_iter().any(|folder| has(folder.path())) || std::env::var_os("LIBCLANG_PATH").is_some()
    };
    let packages = ["openmpi-bin", "libopenmpi-dev", "libclang-dev"];
    install("Open MPI", || starts("mpirun") && starts("mpicc") && clang(), &packages)
}

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Installs Debian's packages unless what they bring is there.
fn install(what: &str, works: impl Fn() -> bool, packages: &[&str]) -> Result<()> {
    if works() {
        return Ok(());
    }
    let user = Command::new("id").arg("-u").output()?;
    anyhow::ensure!(user.stdout.trim_ascii() == b"0", "there is no {what}, and only root can install it");
    let install = [&["install", "-y", "--no-install-recommends"][..], packages].concat();
    for arguments in [&["update"][..], &install] {
        println!("> apt-get {}", arguments.join(" "));
        let status =
            Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").status()?;
        anyhow::ensure!(status.success(), "`apt-get {}` failed", arguments.join(" "));
    }
    anyhow::ensure!(works(), "{what} cannot be started");
    Ok(())
}

/// The crash test at full length.
fn crash() -> Result<()> {
    let test = ["test", "--release", "--package", "phalanx-cli", "--test", "crash", "--", "--nocapture"];
    cargo(&test, &[("PHALANX_KILLS", "50")])
}

/// Runs everything that `docs/theory.md` tells of, and draws its figures.
fn theory() -> Result<()> {
    cargo(&["build", "--release"], &[])?;
    cargo(&["run", "--quiet", "--package", "xtask", "--features", "theory", "--bin", "theory"], &[])
}

/// Runs cargo and shows what it ran.
fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    println!("> cargo {}", arguments.join(" "));
    let program = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let status = Command::new(program).args(arguments).envs(environment.iter().copied()).status()?;
    if !status.success() {
        bail!("`cargo {}` failed", arguments.join(" "));
    }
    Ok(())
}

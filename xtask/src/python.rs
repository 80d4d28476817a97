//! The Python package: installed as people install it, and tested in an environment of its own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::run;
use crate::setup::virtual_environment;

/// Largest wheel that people should have to download.
const LARGEST_WHEEL: u64 = 15_000_000;

/// Makes an environment in `folder` with the package and others; returns its interpreter.
pub fn installed(folder: &Path, others: &[&str]) -> Result<PathBuf> {
    remove(folder)?;
    let python = virtual_environment(folder)?;
    let wheel = wheel(&python, &folder.join("wheels"))?;
    run(pip(&python).arg("install").arg(wheel).args(others))?;
    Ok(python)
}

fn pip(python: &Path) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
    pip
}

/// Builds the wheel in an empty folder. With the profile of tests, which have compiled the library already;
/// people get a faster and smaller one.
fn wheel(python: &Path, folder: &Path) -> Result<PathBuf> {
    let quick = ("MATURIN_PEP517_ARGS", "--profile dev");
    run(pip(python).args(["wheel", ".", "--no-deps", "--wheel-dir"]).arg(folder).env(quick.0, quick.1))?;
    only_file(folder)
}

fn remove(folder: &Path) -> Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
    }
    Ok(())
}

/// Builds the wheel, installs it with what its tests need, and runs them. `program` is the command line to
/// compare with.
pub fn test(target: &Path, program: &Path) -> Result<()> {
    let (wheels, environment) = (target.join("wheels"), target.join("python-package"));
    remove(&wheels)?;
    remove(&environment)?;
    let python = virtual_environment(&environment)?;
    let pip = || pip(&python);
    let wheel = wheel(&python, &wheels)?;
    let size = wheel.metadata()?.len();
    println!("{}: {:.1} MB", wheel.display(), size as f64 / 1e6);
    ensure!(size <= LARGEST_WHEEL, "the wheel has {size} bytes; at most {LARGEST_WHEEL} are allowed");
    // Without what is optional: the package must work with NumPy alone.
    first_verdict(&python, &wheel, &wheels)?;
    sources(&python, &wheels.join("sources"))?;
    run(pip().args(["install", "--no-compile"]).arg(format!("{}[test]", wheel.display())))?;
    let module = |name: &str, arguments: &[&str]| {
        run(Command::new(&python).args(["-m", name]).args(arguments).env("PHALANX_BIN", program))
    };
    module("ruff", &["check", "crates/phalanx-py", "fuzz"])?;
    module("ruff", &["format", "--check", "crates/phalanx-py", "fuzz"])?;
    module("mypy", &[])?;
    // On two cores, half as long; tests of one file stay together, since some share what took long to make.
    module("pytest", &["-q", "--numprocesses", "auto", "--dist", "loadfile", "crates/phalanx-py/tests"])?;
    // Examples in docstrings, of the package as it is installed.
    module("pytest", &["-q", "--pyargs", "phalanx"])
}

/// What somebody does who has neither Rust nor a C compiler: installs the wheel, trains, and asks whether
/// every agent is safe, in the terminal and in Python. `folder` is where runs go.
fn first_verdict(python: &Path, wheel: &Path, folder: &Path) -> Result<()> {
    let programs = python.parent().context("an interpreter has a folder")?;
    run(pip(python).args(["install", "--only-binary=:all:"]).arg(wheel).env("PATH", programs))?;
    let begin = Instant::now();
    let bare = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(programs.join(program));
        run(command.args(arguments).current_dir(folder).env_clear().env("PATH", programs))
    };
    bare("phalanx", &["train", "synthetic", "--out", "first-run"])?;
    bare("phalanx", &["eval", "first-run"])?;
    bare("python", &["-c", FIRST_EXAMPLE])?;
    let taken = begin.elapsed();
    println!("first verdicts after {:.1} s", taken.as_secs_f64());
    ensure!(taken <= PATIENCE, "that is too long: at most {} s are allowed", PATIENCE.as_secs());
    Ok(())
}

/// How long somebody new will wait for a first verdict.
const PATIENCE: Duration = Duration::from_secs(60);

/// The first example of the documentation, shortened.
const FIRST_EXAMPLE: &str = "
import phalanx
run = phalanx.train('synthetic', seed=3, iterations=20, out='first-example')
print(phalanx.__version__, run, run.evaluate(episodes=100))
";

/// Packs the sources as `pip` gets them where there is no wheel, and asks whether that is a whole workspace:
/// its crates and the locked versions of all others. That it builds, the workflow of wheels tries.
fn sources(python: &Path, folder: &Path) -> Result<()> {
    run(pip(python).args(["install", "maturin>=1.9,<2"]))?;
    quietly(Command::new(python).args(["-m", "maturin", "sdist", "--out"]).arg(folder))?;
    let archive = only_file(folder)?;
    quietly(Command::new(python).args(["-m", "tarfile", "--extract"]).args([&archive, folder]))?;
    let name = archive.file_name().unwrap_or_default().to_string_lossy().replace(".tar.gz", "");
    let root = folder.join(name);
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let arguments = ["metadata", "--offline", "--format-version", "1", "--manifest-path"];
    quietly(Command::new(cargo).args(arguments).arg(root.join("Cargo.toml")))?;
    for file in ["crates/phalanx/presets/synthetic.toml", "LICENSE-MIT", "README.md"] {
        ensure!(root.join(file).is_file(), "{} has no {file}", archive.display());
    }
    Ok(())
}

/// Runs a command, and shows what it said only if it failed.
fn quietly(command: &mut Command) -> Result<()> {
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} failed: {}", command.get_program().display(), said.trim());
    Ok(())
}

fn only_file(folder: &Path) -> Result<PathBuf> {
    let found: Vec<PathBuf> = folder.read_dir()?.flatten().map(|entry| entry.path()).collect();
    match &found[..] {
        [file] => Ok(file.clone()),
        _ => anyhow::bail!("{} holds {} files, not one wheel", folder.display(), found.len()),
    }
}

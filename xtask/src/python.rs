//! The Python package: installed as people install it, and tested in an environment of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::run;
use crate::setup::virtual_environment;

/// Largest wheel that people should have to download.
const LARGEST_WHEEL: u64 = 15_000_000;

/// Builds the wheel, installs it with what its tests need, and runs them. `program` is the command line to
/// compare with.
pub fn test(target: &Path, program: &Path) -> Result<()> {
    let (wheels, environment) = (target.join("wheels"), target.join("python-package"));
    for folder in [&wheels, &environment] {
        if folder.exists() {
            std::fs::remove_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
        }
    }
    let python = virtual_environment(&environment)?;
    let pip = || {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
        pip
    };
    // With the profile of tests, which have compiled the library already; people get a faster and smaller
    // one.
    let quick = ("MATURIN_PEP517_ARGS", "--profile dev");
    run(pip().args(["wheel", ".", "--no-deps", "--wheel-dir"]).arg(&wheels).env(quick.0, quick.1))?;
    let wheel = only_file(&wheels)?;
    let size = wheel.metadata()?.len();
    println!("{}: {:.1} MB", wheel.display(), size as f64 / 1e6);
    ensure!(size <= LARGEST_WHEEL, "the wheel has {size} bytes; at most {LARGEST_WHEEL} are allowed");
    // Without what is optional: the package must work with NumPy alone.
    run(pip().arg("install").arg(&wheel))?;
    run(Command::new(&python).args(["-c", FIRST_EXAMPLE]).current_dir(&wheels))?;
    run(pip().args(["install", "--no-compile"]).arg(format!("{}[test]", wheel.display())))?;
    let module = |name: &str, arguments: &[&str]| {
        run(Command::new(&python).args(["-m", name]).args(arguments).env("PHALANX_BIN", program))
    };
    module("ruff", &["check", "crates/phalanx-py"])?;
    module("ruff", &["format", "--check", "crates/phalanx-py"])?;
    module("mypy", &[])?;
    module("pytest", &["-q", "crates/phalanx-py/tests"])?;
    // Examples in docstrings, of the package as it is installed.
    module("pytest", &["-q", "--pyargs", "phalanx"])
}

/// The first example of the documentation, shortened.
const FIRST_EXAMPLE: &str = "
import phalanx
run = phalanx.train('synthetic', seed=3, iterations=20, out='first-example')
print(run, run.evaluate(episodes=100))
";

fn only_file(folder: &Path) -> Result<PathBuf> {
    let found: Vec<PathBuf> = folder.read_dir()?.flatten().map(|entry| entry.path()).collect();
    match &found[..] {
        [file] => Ok(file.clone()),
        _ => anyhow::bail!("{} holds {} files, not one wheel", folder.display(), found.len()),
    }
}

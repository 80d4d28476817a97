//! The programs with libFuzzer and coverage: one on the stable toolchain, one in Python.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::target::Program;
use crate::{python, run};

/// In front of the compiler of our own crates. What is compiled for this machine while building (it has no
/// `--target`) and the targets themselves have no coverage: inputs are judged by what they reach in readers,
/// not by what happens where they are made. Comparisons are not traced: what is compared does not stand in
/// the input, which is a list of choices.
const INSTRUMENT: &str = "#!/bin/sh
case \"$*\" in
*'--crate-name phalanx_fuzz '*|*'--crate-name fuzz '*) exec \"$@\" ;;
*' --target '*) exec \"$@\" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \\
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table ;;
*) exec \"$@\" ;;
esac
";

/// Builds it in `folder`.
pub fn build(folder: &Path) -> Result<Program> {
    std::fs::create_dir_all(folder)?;
    // Cargo builds all anew where its name has changed, whatever it holds.
    let mut hasher = DefaultHasher::new();
    INSTRUMENT.hash(&mut hasher);
    let wrapper = folder.join(format!("instrument-{:x}.sh", hasher.finish()));
    if !wrapper.exists() {
        std::fs::write(&wrapper, INSTRUMENT)?;
        make_executable(&wrapper)?;
    }
    let host = host()?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let arguments = ["build", "--package", "phalanx-fuzz", "--features", "libfuzzer", "--bin", "fuzz"];
    run(Command::new(cargo)
        .args(arguments)
        .args(["--profile", "fuzz", "--target", &host, "--target-dir"])
        .arg(folder)
        .env("RUSTC_WORKSPACE_WRAPPER", &wrapper))?;
    Ok(Program { path: folder.join(host).join("fuzz/fuzz"), script: None })
}

/// The targets in Python, in an environment of their own with atheris, which is libFuzzer for Python.
pub fn python(folder: &Path) -> Result<Program> {
    let path = python::installed(&folder.join("python"), &["atheris"])?;
    Ok(Program { path, script: Some(std::path::absolute("fuzz/python/main.py")?) })
}

/// The machine, in the compiler's words.
fn host() -> Result<String> {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(String::from).context("rustc does not say what machine this is")
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn make_executable(_: &Path) -> Result<()> {
    anyhow::bail!("fuzzing needs Linux")
}

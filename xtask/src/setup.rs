//! What checks need beside Rust: asked for in one line, and installed only where that was allowed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::run;

/// Chromium, for the test of the report's page.
pub fn browser(install: bool) -> Result<()> {
    packages("Chromium", || starts("chromium"), &["chromium"], install)
}

/// Open MPI, and libclang, with which its Rust interface reads the C headers.
pub fn open_mpi(install: bool) -> Result<()> {
    let works = || starts("mpirun") && starts("mpicc") && has_libclang();
    packages("Open MPI", works, &["openmpi-bin", "libopenmpi-dev", "libclang-dev"], install)
}

/// A C++ compiler, for libFuzzer.
pub fn cpp_compiler(install: bool) -> Result<()> {
    packages("C++ compiler", || starts("c++"), &["g++"], install)
}

/// It has no program to ask for.
fn has_libclang() -> bool {
    let entries = |folder: &Path| folder.read_dir().into_iter().flatten().flatten();
    let has = |folder: PathBuf| {
        entries(&folder.join("lib")).any(|entry| entry.file_name().to_string_lossy().starts_with("libclang"))
    };
    std::env::var_os("LIBCLANG_PATH").is_some()
        || entries(Path::new("/usr/lib")).any(|folder| has(folder.path()))
}

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Debian's packages, unless what they bring is there.
fn packages(what: &str, works: impl Fn() -> bool, packages: &[&str], install: bool) -> Result<()> {
    if works() {
        return Ok(());
    }
    let command = format!("apt-get install -y --no-install-recommends {}", packages.join(" "));
    ensure!(install, "there is no {what}; install it with `{command}`");
    for command in ["apt-get update", &command] {
        let mut words = command.split(' ');
        let program = words.next().unwrap_or_default();
        run(Command::new(program).args(words).env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    ensure!(works(), "{what} cannot be started");
    Ok(())
}

/// Whether there is a Python that the package can be installed in.
pub fn python() -> Result<()> {
    let test = "import sys, venv; sys.exit(sys.version_info < (3, 11))";
    let found = Command::new("python3").args(["-c", test]).output()?;
    ensure!(found.status.success(), "python3 is older than 3.11, or has no venv");
    Ok(())
}

/// A Python environment of the project's own with the package `tensorboard`, made in `folder` on first use.
pub fn tensorboard(folder: &Path) -> Result<String> {
    let python = folder.join("bin/python");
    let works = || {
        let import = "import tensorboard.backend.event_processing.event_accumulator";
        Command::new(&python).args(["-c", import]).output().is_ok_and(|output| output.status.success())
    };
    if !works() {
        virtual_environment(folder)?;
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "tensorboard"]))?;
        ensure!(works(), "tensorboard cannot be installed");
    }
    Ok(python.display().to_string())
}

/// The folder of NVRTC, NVIDIA's compiler of kernels, which needs no GPU: in a Python environment of the
/// project's own in `folder`, made on first use if that is allowed.
pub fn nvrtc(folder: &Path, install: bool) -> Result<PathBuf> {
    if let Some(found) = nvrtc_in(folder) {
        return Ok(found);
    }
    let package = "nvidia-cuda-nvrtc";
    ensure!(
        install,
        "there is no NVRTC in {}; --install gets the Python package {package}",
        folder.display()
    );
    let python = virtual_environment(folder)?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", package]))?;
    nvrtc_in(folder).with_context(|| format!("{package} has no libnvrtc"))
}

/// `lib/python3.…/site-packages/nvidia/cu13/lib`, whatever the versions.
fn nvrtc_in(environment: &Path) -> Option<PathBuf> {
    let within =
        |folder: PathBuf| folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let pythons = within(environment.join("lib"));
    let mut folders =
        pythons.flat_map(|python| within(python.join("site-packages/nvidia"))).map(|cuda| cuda.join("lib"));
    let is_nvrtc = |path: PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libnvrtc.so"))
    };
    folders.find(|folder| within(folder.clone()).any(is_nvrtc))
}

/// `LD_LIBRARY_PATH` with a folder in front.
pub fn library_path(folder: &Path) -> String {
    let before = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    let folder = folder.display();
    if before.is_empty() { folder.to_string() } else { format!("{folder}:{before}") }
}

/// Makes a Python environment in `folder`; returns its interpreter.
pub fn virtual_environment(folder: &Path) -> Result<PathBuf> {
    run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    Ok(folder.join("bin/python"))
}

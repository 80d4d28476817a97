//! What happens when a GPU cannot be had, or is lost half-way? The emulation of one stands in for it.

use std::path::Path;
use std::process::{Command, Output};

const PHALANX: &str = env!("CARGO_BIN_EXE_phalanx");

const TRAIN: &str = "train synthetic --set iterations=12 --set horizon=9 --set batch=3 --set critic.steps=40 \
                     --set constraint.0.allow_infeasible=true --set evaluation.episodes=4 --set checkpoint.seconds=0";

fn phalanx(arguments: &str, folder: &Path, environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(PHALANX);
    command.args(arguments.split_whitespace()).current_dir(folder).envs(environment.iter().copied());
    command.output().unwrap()
}

fn has_compiler() -> bool {
    let has = Command::new("gcc").arg("--version").output().is_ok();
    if !has {
        eprintln!("skipped: no C compiler");
    }
    has
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// One line, status 1, the last checkpoint named; the processor goes on to the bytes of a whole run.
#[test]
fn a_lost_device_leaves_the_last_checkpoint() {
    if !has_compiler() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = phalanx(&format!("{TRAIN} --out whole"), folder.path(), &[]);
    assert!(whole.status.success(), "{}", said(&whole));
    let lost = format!("{TRAIN} --device emulated --out lost");
    let lost = phalanx(&lost, folder.path(), &[("PHALANX_LOST_AFTER", "70")]);
    let message = said(&lost);
    assert_eq!(lost.status.code(), Some(1), "{message}");
    let line = message.lines().last().unwrap_or_default();
    assert!(line.contains("the GPU failed while starting a kernel: the device is lost"), "{message}");
    assert!(line.contains("checkpoint"), "{message}");
    assert!(!folder.path().join("lost/outcome.json").exists());
    let resumed = phalanx("resume lost --device cpu", folder.path(), &[]);
    assert!(resumed.status.success(), "{}", said(&resumed));
    for name in ["metrics.csv", "agents.csv", "policy.safetensors", "multipliers.safetensors"] {
        let read = |run: &str| std::fs::read(folder.path().join(run).join(name)).unwrap();
        assert!(read("whole") == read("lost"), "{name} differs");
    }
}

/// Kernels that cannot be compiled: one line, status 2, nothing written.
#[test]
fn without_a_compiler_nothing_begins() {
    let folder = tempfile::tempdir().unwrap();
    let output = phalanx(
        &format!("{TRAIN} --device emulated --out run"),
        folder.path(),
        &[("CC", "no-such-compiler")],
    );
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("no C compiler `no-such-compiler`"), "{}", said(&output));
    assert!(!folder.path().join("run").exists());
}

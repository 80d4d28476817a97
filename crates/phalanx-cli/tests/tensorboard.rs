//! TensorBoard's own reader opens the event files of a run, also of one that was stopped and resumed.
//!
//! Needs a Python with the package `tensorboard`: `cargo xtask test` makes one and names it in
//! `PHALANX_PYTHON`. Without it there is nothing to compare with, and the test says so.

use std::path::Path;
use std::process::Command;

const READ_BACK: &str = r#"
import csv, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
run = sys.argv[1]
events = EventAccumulator(run + "/tb", size_guidance={"scalars": 0})
events.Reload()
rows = list(csv.DictReader(open(run + "/metrics.csv")))
for tag, column in [("result/return", "return"), ("violation/total", "violation_total"), ("dual/max", "mu_largest")]:
    scalars = events.Scalars(tag)
    assert [s.step for s in scalars] == [int(r["iteration"]) for r in rows], tag
    for scalar, row in zip(scalars, rows):
        assert abs(scalar.value - float(row[column])) <= 1e-6 * (1 + abs(scalar.value)), (tag, scalar, row[column])
print(len(rows), "rows")
"#;

fn run(program: &str, arguments: &[&str], folder: &Path) -> std::process::Output {
    Command::new(program).args(arguments).current_dir(folder).output().unwrap()
}

#[test]
fn tensorboard_reads_what_metrics_say() {
    let Ok(python) = std::env::var("PHALANX_PYTHON") else {
        println!("skipped: PHALANX_PYTHON does not name a Python with tensorboard; cargo xtask test does");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let phalanx = env!("CARGO_BIN_EXE_phalanx");
    let train = ["train", "synthetic", "--set", "iterations=9000", "--out", "run", "--json"];
    let mut process = Command::new(phalanx)
        .args(train)
        .current_dir(folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // Until there is a checkpoint, or the run is over on a fast machine.
    let checkpoints = folder.path().join("run/checkpoints");
    while process.try_wait().unwrap().is_none() && !checkpoints.exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let _ = process.kill();
    process.wait().unwrap();
    let resumed = run(phalanx, &["resume", "run", "--json"], folder.path());
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    let read = run(&python, &["-c", READ_BACK, "run"], folder.path());
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    assert_eq!(String::from_utf8_lossy(&read.stdout).trim(), "9000 rows");
}

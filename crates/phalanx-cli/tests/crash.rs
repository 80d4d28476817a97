//! Kills the real binary at random moments and resumes it until it is done: not a byte may differ.
//!
//! Ten kills by default; `cargo xtask crash` asks for fifty in a release build.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const FILES: [&str; 3] = ["metrics.csv", "agents.csv", "policy.safetensors"];

fn start(arguments: &[&str], folder: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_phalanx"))
        .args(arguments)
        .args(["--json", "--threads", "2"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.join("notes")).unwrap())
        .spawn()
        .unwrap()
}

fn train(run: &str, folder: &Path) -> Child {
    start(&["train", "synthetic", "--set", "iterations=6000", "--seed", "3", "--out", run], folder)
}

/// Lets a process run for a while, then kills it; true if it was done before.
fn kill_after(mut process: Child, patience: Duration) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < patience {
        if let Some(status) = process.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return true;
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    false
}

#[test]
fn killed_runs_end_in_the_same_bytes() {
    let kills: usize = std::env::var("PHALANX_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let folder = tempfile::tempdir().unwrap();
    let begin = Instant::now();
    assert!(train("whole", folder.path()).wait().unwrap().success());
    let whole_time = begin.elapsed();
    let read = |run: &str| FILES.map(|name| std::fs::read(folder.path().join(run).join(name)).unwrap());
    let expected = read("whole");

    // Reproducible moments, spread over the whole run and a little beyond.
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut moment = || {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        whole_time.mul_f64(1.05 * ((random >> 33) as f64 / (1u64 << 31) as f64))
    };
    let (mut killed, mut runs, mut resumed, mut from_checkpoint) = (0, 0, 0, 0);
    while killed < kills {
        let run = format!("run{runs}");
        runs += 1;
        let mut done = kill_after(train(&run, folder.path()), moment());
        while !done {
            killed += 1;
            if !folder.path().join(&run).join("config.toml").exists() {
                // Killed before there was a run.
                break;
            }
            resumed += 1;
            let checkpoints = folder.path().join(&run).join("checkpoints");
            let manifests = checkpoints.read_dir().into_iter().flatten().flatten();
            let had_checkpoint =
                manifests.map(|e| e.path()).any(|path| path.extension().is_some_and(|e| e == "json"));
            from_checkpoint += usize::from(had_checkpoint);
            let notes = folder.path().join("notes");
            let process = start(&["resume", &run], folder.path());
            let patience = if killed < kills { moment() } else { Duration::from_secs(600) };
            done = kill_after(process, patience);
            let said = std::fs::read_to_string(&notes).unwrap();
            assert!(
                !had_checkpoint || !said.contains("iteration 0"),
                "a whole checkpoint was not used: {said}"
            );
        }
        if done {
            let found = read(&run);
            for (k, name) in FILES.iter().enumerate() {
                assert!(found[k] == expected[k], "{run}/{name} differs after {killed} kills");
            }
        }
        let _ = std::fs::remove_dir_all(folder.path().join(&run));
    }
    assert!(from_checkpoint > 0, "no resume began at a checkpoint");
    println!(
        "{killed} kills, {resumed} resumes ({from_checkpoint} from a checkpoint), {runs} runs: all bytes the same"
    );
}

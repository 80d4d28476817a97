//! Signals, full disks and vanished folders: a message, the right status, and nothing lost.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PHALANX: &str = env!("CARGO_BIN_EXE_phalanx");

fn wait_for_checkpoint(run: &Path) {
    let begin = Instant::now();
    while !checkpoint_exists(run) {
        assert!(begin.elapsed() < Duration::from_secs(60), "no checkpoint in {}", run.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn checkpoint_exists(run: &Path) -> bool {
    run.join("checkpoints")
        .read_dir()
        .is_ok_and(|entries| entries.flatten().any(|e| e.path().extension().is_some_and(|x| x == "json")))
}

/// A run in `run` that would take very long, begun and past its first checkpoint.
fn endless_run(folder: &Path) -> Child {
    let process = Command::new(PHALANX)
        .args(["train", "synthetic", "--set", "iterations=1000000", "--out", "run"])
        .current_dir(folder)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_checkpoint(&folder.join("run"));
    process
}

#[test]
fn signals_stop_with_a_checkpoint_and_say_how_to_go_on() {
    for signal in ["-INT", "-TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let process = endless_run(folder.path());
        assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap().success());
        let output = process.wait_with_output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("stopped after") && message.contains("phalanx resume run"), "{message}");
        assert!(checkpoint_exists(&folder.path().join("run")));
        let meta = std::fs::read_to_string(folder.path().join("run/meta.json")).unwrap();
        assert!(meta.contains("\"stopped\""), "{meta}");
    }
}

/// Few iterations, and a closing evaluation that would take very long. The policy is on disk before it.
#[test]
fn the_closing_evaluation_can_be_stopped_in_a_run_and_in_a_sweep() {
    let long = "evaluation.episodes = 16000000\nevaluation.max_agent_steps = 1000000000000000";
    let sets = long.split('\n').flat_map(|line| ["--set".to_string(), line.replace(' ', "")]);
    let train = ["train", "synthetic", "--set", "iterations=3", "--out", "run"].map(String::from);
    let sweep = ["sweep", "sweep.toml", "--out", "sweep"].map(String::from);
    for (arguments, run, said) in [
        (train.into_iter().chain(sets).collect::<Vec<_>>(), "run", "stopped after 3 iterations; go on with"),
        (sweep.to_vec(), "sweep/seed1", "1 of 1 runs are stopped: seed1"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = format!("base = \"synthetic\"\nseeds = 1\n[set]\niterations = 3\n{long}\n");
        std::fs::write(folder.path().join("sweep.toml"), file).unwrap();
        let mut command = Command::new(PHALANX);
        let process =
            command.args(&arguments).current_dir(folder.path()).stderr(Stdio::piped()).spawn().unwrap();
        let run = folder.path().join(run);
        let begin = Instant::now();
        while !run.join("policy.safetensors").exists() {
            assert!(begin.elapsed() < Duration::from_secs(60), "no policy in {}", run.display());
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap().success());
        let output = process.wait_with_output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains(said), "{message}");
        assert!(checkpoint_exists(&run) && !run.join("outcome.json").exists());
        assert!(std::fs::read_to_string(run.join("meta.json")).unwrap().contains("\"stopped\""));
    }
}

#[test]
fn a_vanished_folder_stops_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let process = endless_run(folder.path());
    std::fs::rename(folder.path().join("run"), folder.path().join("elsewhere")).unwrap();
    let output = process.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("vanished"), "{message}");
    assert!(!folder.path().join("run").exists(), "the folder was made again");
}

/// On a file system of a few hundred kilobytes; needs the right to mount one, which CI has.
#[test]
fn a_full_disk_stops_the_run_and_its_checkpoint_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = |options: &str| {
        let arguments = ["-t", "tmpfs", "-o", options, "phalanx-test"];
        Command::new("mount").args(arguments).arg(&disk).stderr(Stdio::null()).status()
    };
    if !mount("size=900k").is_ok_and(|status| status.success()) {
        println!("skipped: this user may not mount a small file system");
        return;
    }
    struct Unmount<'a>(&'a Path);
    impl Drop for Unmount<'_> {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(self.0).status();
        }
    }
    let _unmount = Unmount(&disk);
    let train = [
        "train",
        "synthetic",
        "--set",
        "iterations=9000",
        "--set",
        "checkpoint.seconds=0.02",
        "--json",
        "--out",
    ];
    let whole = Command::new(PHALANX).args(train).arg("whole").current_dir(folder.path()).output().unwrap();
    assert!(whole.status.success());
    let full = Command::new(PHALANX).args(train).arg("disk/run").current_dir(folder.path()).output().unwrap();
    let message = String::from_utf8(full.stderr).unwrap();
    assert_eq!(full.status.code(), Some(1), "{message}");
    assert!(
        message.contains("No space left on device") && message.contains("phalanx resume disk/run"),
        "{message}"
    );
    assert!(mount("remount,size=50m").unwrap().success());
    let resumed =
        Command::new(PHALANX).args(["resume", "disk/run", "--json"]).current_dir(folder.path()).output();
    let resumed = resumed.unwrap();
    assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
    for name in ["metrics.csv", "agents.csv", "policy.safetensors"] {
        let read = |run: &str| std::fs::read(folder.path().join(run).join(name)).unwrap();
        assert!(read("whole") == read("disk/run"), "{name} differs");
    }
}

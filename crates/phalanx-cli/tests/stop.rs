//! Stop means stop: within a second, in every phase of every command, and what is there can be gone on with.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PHALANX: &str = env!("CARGO_BIN_EXE_phalanx");

/// A second, and what a loaded machine needs to start and to end a process.
const LIMIT: Duration = Duration::from_millis(1500);

fn start(arguments: &str, folder: &Path) -> Child {
    // Under `nohup` tests would hand on that hangups are ignored.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", PHALANX]).args(arguments.split_whitespace()).current_dir(folder);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn wait_for(file: &Path) {
    let begin = Instant::now();
    while !file.exists() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{} does not come", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal; the message and status that the process ends with, within the limit.
fn stopped(mut process: Child, signal: &str, what: &str) -> (String, Option<i32>) {
    assert!(process.try_wait().unwrap().is_none(), "{what}: it ended before it could be stopped");
    let begin = Instant::now();
    assert!(Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap().success());
    let output = process.wait_with_output().unwrap();
    let taken = begin.elapsed();
    assert!(taken <= LIMIT, "{what}: {signal} took {taken:?}");
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

fn run(arguments: &str, folder: &Path) {
    let output =
        Command::new(PHALANX).args(arguments.split_whitespace()).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

fn same_results(first: &Path, second: &Path) {
    for name in ["metrics.csv", "agents.csv", "returns.csv", "policy.safetensors", "multipliers.safetensors"]
    {
        let read = |run: &Path| std::fs::read(run.join(name)).unwrap();
        assert!(read(first) == read(second), "{name} differs");
    }
}

/// A run whose iterations take seconds: given up, the last checkpoint stands, and `resume` says so.
#[test]
fn a_long_iteration_is_given_up() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let folder = tempfile::tempdir().unwrap();
        let train = "train synthetic --set iterations=3 --set world.n=1000 --set batch=2000 --set horizon=1000 \
                     --threads 1 --json --out run";
        let process = start(train, folder.path());
        wait_for(&folder.path().join("run/meta.json"));
        std::thread::sleep(Duration::from_millis(300));
        let (message, status) = stopped(process, signal, "a long iteration");
        assert_eq!(status, Some(1), "{message}");
        assert_eq!(message, "error: stopped before the end; go on with `phalanx resume run`\n");
    }
}

/// Short iterations: the one under way is finished, and a checkpoint holds it.
#[test]
fn every_signal_leaves_a_checkpoint_and_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let train = "train synthetic --set iterations=3000 --json --out";
    run(&format!("{train} whole"), folder.path());
    for signal in ["-INT", "-TERM", "-HUP"] {
        let name = format!("run{signal}");
        let process = start(&format!("{train} {name}"), folder.path());
        wait_for(&folder.path().join(&name).join("meta.json"));
        std::thread::sleep(Duration::from_millis(100));
        let (message, status) = stopped(process, signal, "training");
        assert_eq!(status, Some(1), "{message}");
        assert!(message.contains("stopped after"), "{message}");
        assert!(folder.path().join(&name).join("checkpoints").read_dir().unwrap().count() >= 2);
        run(&format!("resume {name} --json"), folder.path());
        same_results(&folder.path().join("whole"), &folder.path().join(&name));
    }
}

/// `nohup` asks for hangups to be ignored, and they are.
#[test]
fn nohup_is_respected() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        format!("trap '' HUP; exec {PHALANX} train synthetic --set iterations=2000000 --json --out run");
    let process =
        Command::new("sh").args(["-c", &arguments]).current_dir(folder.path()).stderr(Stdio::piped()).spawn();
    let mut process = process.unwrap();
    wait_for(&folder.path().join("run/meta.json"));
    assert!(Command::new("kill").args(["-HUP", &process.id().to_string()]).status().unwrap().success());
    std::thread::sleep(Duration::from_millis(1500));
    assert!(process.try_wait().unwrap().is_none(), "a hangup ended it");
    stopped(process, "-TERM", "training under nohup");
}

/// The closing evaluations, sampled and exact, of a run and of a sweep.
#[test]
fn closing_evaluations_stop() {
    let sampled = "--set iterations=2 --set evaluation.episodes=16000000 \
                   --set evaluation.max_agent_steps=1000000000000000";
    let exact = "--set iterations=1 --set world.n=12 --set horizon=30000 --set evaluation.episodes=1";
    for (what, settings, pause) in [("sampled", sampled, 100), ("exact", exact, 1500)] {
        let folder = tempfile::tempdir().unwrap();
        let process = start(&format!("train synthetic {settings} --json --out run"), folder.path());
        wait_for(&folder.path().join("run/policy.safetensors"));
        std::thread::sleep(Duration::from_millis(pause));
        let (message, status) = stopped(process, "-TERM", what);
        assert_eq!(status, Some(1), "{what}: {message}");
        assert!(message.contains("phalanx resume run"), "{what}: {message}");
        assert!(!folder.path().join("run/outcome.json").exists(), "{what} had ended");

        let set: String =
            settings.replace("--set ", "").split_whitespace().map(|set| format!("{set}\n")).collect();
        let file = format!("base = \"synthetic\"\nseeds = 2\n[set]\n{set}");
        std::fs::write(folder.path().join("sweep.toml"), file).unwrap();
        let process = start("sweep sweep.toml --jobs 2 --out sweep", folder.path());
        wait_for(&folder.path().join("sweep/seed1/policy.safetensors"));
        std::thread::sleep(Duration::from_millis(pause));
        let (message, status) = stopped(process, "-INT", what);
        assert_eq!(status, Some(1), "{what}: {message}");
        assert!(message.contains("the same command goes on"), "{what}: {message}");
    }
}

/// Commands that train nothing end at once and leave no half of a file.
#[test]
fn everything_else_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    run("train synthetic --set iterations=3 --json --out run", folder.path());
    for command in [
        "eval run --episodes 16000000",
        "occupancy run --episodes 16000000 --out o.json",
        "bench line --n 200000",
        "render pistonball --policy random --steps 250 --out film.gif",
        "paper rate --out paper",
    ] {
        let process = start(command, folder.path());
        std::thread::sleep(Duration::from_millis(400));
        let (_, status) = stopped(process, "-TERM", command);
        assert_ne!(status, Some(0), "{command}");
    }
    for name in ["o.json", "film.gif"] {
        assert!(!folder.path().join(name).exists(), "half of {name} is there");
    }
}

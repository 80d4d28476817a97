//! Runs over several processes with the real command and the real `mpirun`.
#![cfg(feature = "mpi")]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// `mpirun -n ranks phalanx …`.
fn mpirun(ranks: usize, arguments: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command.args(["--oversubscribe", "--allow-run-as-root", "--mca", "mpi_yield_when_idle", "1"]);
    command.args(["-n", &ranks.to_string(), env!("CARGO_BIN_EXE_phalanx")]).args(arguments);
    command
}

fn finished(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const RESULTS: [&str; 5] =
    ["metrics.csv", "agents.csv", "returns.csv", "policy.safetensors", "multipliers.safetensors"];

fn assert_same(one: &Path, other: &Path, what: &str) {
    for name in RESULTS {
        let [a, b] = [one, other].map(|path| std::fs::read(path.join(name)).unwrap());
        assert!(a == b, "{what}: {name} differs");
    }
}

/// Settings of a run, `--set` for each.
fn sets<'a>(settings: &[&'a str]) -> Vec<&'a str> {
    settings.iter().flat_map(|&set| ["--set", set]).collect()
}

#[test]
fn any_number_of_ranks_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for (preset, settings) in [
        ("synthetic", &["world.n=300", "iterations=5"][..]),
        ("wireless", &["iterations=5"]),
        ("paper/wireless", &["iterations=2"]),
        ("epidemic", &["iterations=3", "evaluation.episodes=50"]),
    ] {
        let common = [&["train", preset][..], &sets(settings)].concat();
        let path = |name: &str| folder.path().join(format!("{}-{name}", preset.replace('/', "-")));
        let one = path("one");
        let alone = Command::new(env!("CARGO_BIN_EXE_phalanx"))
            .args(&common)
            .args(["--json", "--out"])
            .arg(&one)
            .output()
            .unwrap();
        finished(&alone);
        for ranks in [1, 2, 4] {
            let several = path(&ranks.to_string());
            let output =
                mpirun(ranks, &common).args(["--mpi", "--json", "--out"]).arg(&several).output().unwrap();
            finished(&output);
            assert_same(&one, &several, &format!("{preset} on {ranks} ranks"));
            // One line, of the first rank, with what every rank sent.
            let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let processes = line["processes"].as_array().unwrap();
            assert_eq!(processes.len(), ranks);
            for sent in processes {
                assert!(sent["bytes"].as_u64().unwrap() <= sent["bound"].as_u64().unwrap(), "{line}");
            }
            let alone: serde_json::Value = serde_json::from_slice(&alone.stdout).unwrap();
            for field in ["return", "objective", "violation_total", "agent_steps", "comm_bytes", "traffic"] {
                assert_eq!(line[field], alone[field], "{preset} {field}");
            }
        }
    }
}

/// Process of one rank of a run in `path`.
fn process_of(rank: usize, path: &Path) -> Option<u32> {
    let processes = Path::new("/proc").read_dir().ok()?.flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let read =
        |process: u32, what: &str| std::fs::read(format!("/proc/{process}/{what}")).unwrap_or_default();
    let holds = |bytes: &[u8], word: &[u8]| bytes.split(|&b| b == 0).any(|other| other == word);
    numbers.into_iter().find(|&process| {
        let (command, environment) = (read(process, "cmdline"), read(process, "environ"));
        command.starts_with(env!("CARGO_BIN_EXE_phalanx").as_bytes())
            && holds(&command, path.to_string_lossy().as_bytes())
            && holds(&environment, format!("OMPI_COMM_WORLD_RANK={rank}").as_bytes())
    })
}

fn wait_until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{what} did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ends(mut child: Child, within: Duration) -> Output {
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < within, "it still runs after {within:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn a_killed_rank_ends_the_run_which_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    // Few steps per iteration: ranks that share a core wait for each other at every one.
    let settings = sets(&[
        "world.n=1000",
        "iterations=600",
        "horizon=10",
        "batch=2",
        "critic.steps=20",
        "checkpoint.seconds=0.05",
    ]);
    let common = [&["train", "synthetic", "--json"][..], &settings].concat();
    let one = folder.path().join("one");
    finished(
        &Command::new(env!("CARGO_BIN_EXE_phalanx")).args(&common).arg("--out").arg(&one).output().unwrap(),
    );
    for (victim, resumed_on) in [(1, 2), (0, 4), (2, 1)] {
        let path = folder.path().join(format!("killed-{victim}"));
        let child = mpirun(3, &common)
            .args(["--mpi", "--threads", "1", "--out"])
            .arg(&path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let has_manifest = || {
            let entries = path.join("checkpoints").read_dir().ok()?.flatten();
            entries.into_iter().find(|entry| entry.path().extension().is_some_and(|e| e == "json")).map(drop)
        };
        wait_until("a checkpoint", has_manifest);
        let process = wait_until("the rank", || process_of(victim, &path));
        finished(&Command::new("kill").args(["-9", &process.to_string()]).output().unwrap());
        let output = ends(child, Duration::from_secs(30));
        assert!(!output.status.success());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = format!("go on with `phalanx resume {}`", path.display());
        assert!(
            message.contains(&expected) && message.contains("the last checkpoint is of iteration"),
            "{message}"
        );
        let arguments = ["resume", "--json"];
        if resumed_on == 1 {
            let mut resume = Command::new(env!("CARGO_BIN_EXE_phalanx"));
            finished(&resume.args(arguments).arg(&path).output().unwrap());
        } else {
            finished(&mpirun(resumed_on, &arguments).arg("--mpi").arg(&path).output().unwrap());
        }
        assert_same(&one, &path, &format!("after the death of rank {victim}"));
    }
}

#[test]
fn a_warm_start_reaches_every_rank() {
    let folder = tempfile::tempdir().unwrap();
    let [expert, one, several] = ["expert", "one", "several"].map(|name| folder.path().join(name));
    let settings = sets(&["iterations=3", "policy.init_std=0.5"]);
    let phalanx = || Command::new(env!("CARGO_BIN_EXE_phalanx"));
    let train = [&["train", "synthetic", "--json"][..], &settings].concat();
    finished(&phalanx().args(&train).arg("--out").arg(&expert).output().unwrap());
    finished(&phalanx().args(&train).arg("--init").arg(&expert).arg("--out").arg(&one).output().unwrap());
    let mut with_ranks = mpirun(3, &train);
    with_ranks.arg("--mpi").arg("--init").arg(&expert).arg("--out").arg(&several);
    finished(&with_ranks.output().unwrap());
    assert_same(&one, &several, "a warm start");
}

#[test]
fn bad_input_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let refused = |mut command: Command, expected: &str| {
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        let lines: Vec<&str> = message.lines().filter(|line| line.starts_with("error:")).collect();
        assert_eq!(lines.len(), 1, "{message}");
        assert!(lines[0].contains(expected), "{message}");
        assert!(!out.exists(), "{expected}");
    };
    let with = |ranks: usize, arguments: &[&str]| {
        let mut command = mpirun(ranks, arguments);
        command.arg("--mpi").arg("--out").arg(&out);
        command
    };
    refused(with(4, &["train", "synthetic", "--set", "world.n=3"]), "--mpi: 4 processes for 3 agents");
    refused(with(2, &["train", "pistonball"]), "--mpi: this world is simulated whole");
    refused(with(2, &["train", "exact"]), "--mpi: algorithm = \"exact\"");
    refused(with(2, &["train", "baselines/mappo-l-wireless"]), "--mpi: algorithm = \"mappo-l\"");
    refused(with(2, &["train", "no-such-preset"]), "no-such-preset");
    let program = env!("CARGO_BIN_EXE_phalanx");
    let out_text = out.to_string_lossy().into_owned();
    let mut different = mpirun(1, &["train", "synthetic", "--mpi", "--out", &out_text]);
    different.args([
        ":",
        "-n",
        "1",
        program,
        "train",
        "synthetic",
        "--set",
        "kappa=2",
        "--mpi",
        "--out",
        &out_text,
    ]);
    refused(different, "--mpi: rank 1 has another configuration than rank 0");
}

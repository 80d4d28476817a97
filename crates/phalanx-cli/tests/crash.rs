//! Kills the real binary at random moments and goes on until it is done: not a byte may differ.
//!
//! A kill of each by default; `cargo xtask crash --kills N` asks for more in a release build. With
//! `PHALANX_RANKS` the runs are those of several processes (a build with MPI).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Name, what is trained, and whether several processes can. Short runs have a checkpoint after every
/// iteration, or few kills would find one.
const SUBJECTS: [(&str, &str, bool); 7] = [
    ("synthetic", "synthetic --set iterations=4000", true),
    ("wireless", "wireless --set iterations=60 --set checkpoint.seconds=0", true),
    (
        "pistonball",
        "pistonball --set iterations=8 --set evaluation.episodes=20 --set checkpoint.seconds=0",
        false,
    ),
    ("epidemic", "epidemic --set iterations=20", true),
    (
        "junctions",
        "junctions-rules --set iterations=8 --set world.town.grid=[2,2] --set evaluation.episodes=20 --set checkpoint.seconds=0",
        false,
    ),
    ("exact", "exact --set iterations=300 --set world.n=4 --set checkpoint.seconds=0", false),
    (
        "mappo-l",
        "baselines/mappo-l-pistonball --set iterations=3 --set evaluation.episodes=20 --set checkpoint.seconds=0",
        false,
    ),
];

fn setting(name: &str) -> Option<usize> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// The program, by itself or as several processes.
fn start(arguments: &str, folder: &Path) -> Child {
    let phalanx = env!("CARGO_BIN_EXE_phalanx");
    let mut command = match setting("PHALANX_RANKS") {
        None => Command::new(phalanx),
        Some(ranks) => {
            let mut command = Command::new("mpirun");
            command.args(["--allow-run-as-root", "--oversubscribe", "-n", &ranks.to_string(), phalanx]);
            command
        }
    };
    command.args(arguments.split_whitespace()).arg("--json");
    if setting("PHALANX_RANKS").is_some() {
        command.arg("--mpi")
    } else {
        command.args(["--threads", "2"])
    };
    let notes = std::fs::File::create(folder.join("notes")).unwrap();
    command.current_dir(folder).stdout(Stdio::null()).stderr(notes).spawn().unwrap()
}

/// Lets a process run for a while, then kills it; true if it was done before.
fn kill_after(mut process: Child, patience: Duration, run: &Path) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < patience {
        if let Some(status) = process.try_wait().unwrap() {
            let notes = std::fs::read_to_string(run.with_file_name("notes")).unwrap_or_default();
            assert!(status.success(), "{status}: {notes}");
            return true;
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    process.kill().unwrap();
    process.wait().unwrap();
    if setting("PHALANX_RANKS").is_some() {
        // Its ranks are processes of their own, and are known by the folder.
        let _ = Command::new("pkill").args(["-KILL", "-f", run.to_str().unwrap()]).status();
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

/// Every file of results with its bytes; times and what holds them are left out.
fn results(run: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in run.read_dir().unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let name = entry.file_name().into_string().unwrap();
        let bytes = std::fs::read(entry.path()).unwrap();
        match name.as_str() {
            "timings.csv" | "meta.json" | "checksums.json" | "lock" => {}
            "outcome.json" => {
                let mut outcome: serde_json::Map<String, serde_json::Value> =
                    serde_json::from_slice(&bytes).unwrap();
                // What processes sent each other in the last iteration is known to those that carried it out.
                let timed = ["run", "wall_s", "agent_steps_per_s", "processes"];
                outcome.retain(|key, _| !timed.contains(&key.as_str()));
                found.insert(name, serde_json::to_vec(&outcome).unwrap());
            }
            _ => _ = found.insert(name, bytes),
        }
    }
    found
}

fn has_checkpoint(run: &Path) -> bool {
    let files = run.join("checkpoints").read_dir().into_iter().flatten().flatten();
    files.map(|entry| entry.path()).any(|path| path.extension().is_some_and(|ending| ending == "json"))
}

#[test]
fn killed_runs_end_in_the_same_bytes() {
    let is_mpi = setting("PHALANX_RANKS").is_some();
    let subjects: Vec<_> = SUBJECTS.iter().filter(|(_, _, is_local)| *is_local || !is_mpi).collect();
    let kills = setting("PHALANX_KILLS").unwrap_or(6).div_ceil(subjects.len());
    let folder = tempfile::tempdir().unwrap();
    // Reproducible moments, spread over the whole run and a little beyond.
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut share = || {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        1.05 * ((random >> 33) as f64 / (1u64 << 31) as f64)
    };
    let mut total = 0;
    for (name, arguments, _) in subjects {
        let path = |run: &str| folder.path().join(run);
        let train = |run: &str| {
            start(&format!("train {arguments} --seed 3 --out {}", path(run).display()), folder.path())
        };
        let begin = Instant::now();
        assert!(train("whole").wait().unwrap().success(), "{name}");
        let (whole_time, expected) = (begin.elapsed(), results(&path("whole")));
        let (mut killed, mut runs, mut resumed, mut from_checkpoint) = (0, 0, 0, 0);
        while killed < kills {
            let run = path("run");
            runs += 1;
            let mut done = kill_after(train("run"), whole_time.mul_f64(share()), &run);
            while !done {
                killed += 1;
                let patience =
                    if killed < kills { whole_time.mul_f64(share()) } else { Duration::from_secs(600) };
                // Killed before there was a run, the same command begins it.
                let is_run = run.join("config.toml").exists();
                let had_checkpoint = has_checkpoint(&run);
                let process = if is_run {
                    start(&format!("resume {}", run.display()), folder.path())
                } else {
                    train("run")
                };
                resumed += usize::from(is_run);
                from_checkpoint += usize::from(had_checkpoint);
                done = kill_after(process, patience, &run);
                let said = std::fs::read_to_string(path("notes")).unwrap();
                assert!(
                    !had_checkpoint || !said.contains("iteration 0"),
                    "{name}: a whole checkpoint was not used: {said}"
                );
            }
            let found = results(&run);
            assert!(
                found.keys().eq(expected.keys()),
                "{name}: {:?} instead of {:?}",
                found.keys(),
                expected.keys()
            );
            for (file, bytes) in &expected {
                assert!(&found[file] == bytes, "{name}: {file} differs after {killed} kills");
            }
            std::fs::remove_dir_all(&run).unwrap();
        }
        std::fs::remove_dir_all(path("whole")).unwrap();
        total += killed;
        println!(
            "{name}: {killed} kills, {resumed} resumes ({from_checkpoint} from a checkpoint), {runs} runs: all bytes the same"
        );
    }
    println!("{total} kills in all, none stuck");
}

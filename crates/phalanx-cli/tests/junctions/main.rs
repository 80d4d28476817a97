//! Commands about traffic: recordings of CityFlow come out in every step, and bad input gets one clear line.

#[path = "../../../phalanx-junctions/tests/support/mod.rs"]
mod support;

mod controllers;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use phalanx_junctions::Network;
use support::Recording;

fn phalanx(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phalanx")).args(arguments).output().unwrap()
}

/// What went wrong, in one line.
fn refused(arguments: &[&str]) -> String {
    let output = phalanx(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

/// Recordings that come with the engine.
fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../phalanx-junctions/tests/reference")
}

/// The files of a network, uncompressed in a folder.
fn unpack(net: &str, folder: &Path) -> [String; 2] {
    ["roadnet.json", "flow.json"].map(|name| {
        let path = folder.join(name);
        std::fs::write(&path, support::net_file(&shipped(), net, name)).unwrap();
        path.to_str().unwrap().to_owned()
    })
}

#[test]
fn recordings_come_out_in_every_step() {
    let folder = tempfile::tempdir().unwrap();
    for entry in support::index(&shipped()) {
        let (name, net) = (entry["name"].as_str().unwrap(), entry["net"].as_str().unwrap());
        let [roadnet, flow] = unpack(net, folder.path());
        let network = Network::read(&std::fs::read_to_string(&roadnet).unwrap()).unwrap();
        let recording = Recording::read(&shipped(), &entry, &network);
        let (steps, settings) = (recording.steps(), recording.settings());
        let rows = (0..steps).map(|step| {
            recording.phases(step).map(|phase| phase.to_string()).collect::<Vec<_>>().join(";") + "\n"
        });
        let phases = folder.path().join("phases.csv");
        std::fs::write(&phases, rows.collect::<String>()).unwrap();
        let [seed, interval] = [settings.seed.to_string(), settings.interval.to_string()];
        let (count, reset) = (steps.to_string(), recording.reset().map(|step| step.to_string()));
        let mut arguments =
            vec!["replay", "junctions", "--roadnet", &roadnet, "--flow", &flow, "--seed", &seed];
        arguments.extend(["--interval", &interval, "--steps", &count]);
        match recording.is_fixed() {
            true => arguments.push("--own-program"),
            false => arguments.extend(["--phases", phases.to_str().unwrap()]),
        }
        arguments.extend(reset.iter().flat_map(|step| ["--reset-at", step]));
        let output = phalanx(&arguments);
        let mut wanted = "step,hash,running,waiting_outside,finished\n".to_string();
        for step in 0..steps {
            let second = recording.second(step);
            let (running, outside) = (second.running, second.waiting_outside);
            wanted += &format!("{},{:016x},{running},{outside},{}\n", step + 1, second.hash, second.finished);
        }
        assert!(output.stdout == wanted.as_bytes(), "{name} differs");
        let average = String::from_utf8(output.stderr).unwrap();
        assert_eq!(average.trim(), entry["average_travel_time"].as_str().unwrap(), "{name}");
    }
}

#[test]
fn bad_replays_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let [roadnet, flow] = unpack("two", folder.path());
    let phases = folder.path().join("phases.csv");
    let phases = phases.to_str().unwrap();
    let files = ["replay", "junctions", "--roadnet", &roadnet, "--flow", &flow];
    let with = |more: &[&str]| refused(&[&files, more].concat());
    for (text, wanted) in [
        ("0;0;0;0\n", "phases.csv: has 1 rows for 2 steps"),
        ("0;0;0\n0;0;0\n", "line 1: 3 phases for 4 junctions"),
        ("0;0;0;0\n0;99;0;0\n", "line 2: junction"),
        ("0;0;0;0\n0;x;0;0\n", "`x` is no phase; allowed are 0 to"),
    ] {
        std::fs::write(phases, text).unwrap();
        let message = with(&["--steps", "2", "--phases", phases]);
        assert!(message.contains(wanted), "{message}");
    }
    assert!(with(&["--steps", "2"]).contains("--phases: is missing"));
    assert!(with(&["--own-program"]).contains("--steps: is missing"));
    assert!(with(&["--steps", "2", "--own-program", "--interval", "0"]).contains("--interval"));
    let late = with(&["--steps", "2", "--own-program", "--reset-at", "2"]);
    assert!(late.contains("--reset-at: 2 of 2 steps; allowed are 0 to 1"), "{late}");
    assert!(refused(&["replay", "junctions"]).contains("--roadnet: is missing"));
    assert!(refused(&["replay", "junctions", "game.csv"]).contains("--roadnet"));
    assert!(refused(&["replay", "platoon", "--steps", "2"]).contains("recorded game"));
    assert!(refused(&["replay", "platoon"]).contains("FILE.csv"));
    let missing = refused(&[
        "replay",
        "junctions",
        "--roadnet",
        "x.json",
        "--flow",
        &flow,
        "--steps",
        "1",
        "--own-program",
    ]);
    assert!(missing.contains("x.json"), "{missing}");
    let swapped = refused(&[
        "replay",
        "junctions",
        "--roadnet",
        &flow,
        "--flow",
        &roadnet,
        "--steps",
        "1",
        "--own-program",
    ]);
    assert!(swapped.contains("flow.json: roadnet: line 1"), "{swapped}");
}

/// What `new` writes is trained on at once, and is not written over.
#[test]
fn a_new_town_trains() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("town");
    let out = out.to_str().unwrap();
    let made =
        phalanx(&["new", "junctions", "--grid", "2x3", "--missing", "0.2", "--shift", "0.1", "--out", out]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let again = refused(&["new", "junctions", "--out", out]);
    assert!(again.contains("--out: ") && again.contains("has another roadnet.json already"), "{again}");
    let (config, run) = (format!("{out}/junctions.toml"), format!("{out}/run"));
    let mut arguments = vec!["train", &config, "--out", &run, "--json"];
    for set in ["iterations=2", "horizon=20", "constraint.0.budget=1", "batch=2", "evaluation.episodes=2"] {
        arguments.extend(["--set", set]);
    }
    let trained = phalanx(&arguments);
    assert!(trained.status.success(), "{}", String::from_utf8_lossy(&trained.stderr));
    // The run knows where its files are.
    let judged = phalanx(&["eval", &run, "--episodes", "3", "--json"]);
    assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stderr));
    let judged: serde_json::Value = serde_json::from_slice(&judged.stdout).unwrap();
    assert!(judged["travel_time"].as_f64().unwrap() > 0.0);
    assert!(judged["travel_time_tables"].as_f64().unwrap() > 0.0);
    for (arguments, wanted) in [
        (["--grid", "4"], "--grid: `4` is no grid"),
        (["--grid", "0x4"], "--grid: must be from 1 to 100, is 0"),
        (["--shift", "0.5"], "--shift: must be from 0 to 0.3, is 0.5"),
        (["--road-length", "10"], "--road-length: must be from 100"),
    ] {
        let other = format!("{out}/other");
        let message = refused(&[&["new", "junctions", "--out", &other][..], &arguments].concat());
        assert!(message.contains(wanted), "{message}");
    }
    assert!(refused(&["new", "pistonball", "--out", out]).contains("unrecognized subcommand 'pistonball'"));
}

/// All vehicles that a new town has start within its episodes.
#[test]
fn a_new_town_knows_its_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().to_str().unwrap();
    let made = phalanx(&["new", "junctions", "--grid", "1x1", "--seconds", "5400", "--out", out]);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let flows = std::fs::read_to_string(folder.path().join("flow.json")).unwrap();
    let flows: serde_json::Value = serde_json::from_str(&flows).unwrap();
    let last = flows.as_array().unwrap().iter().map(|flow| flow["startTime"].as_i64().unwrap()).max();
    assert!(last > Some(3600), "{last:?}");
    let config = format!("{out}/junctions.toml");
    let judged = phalanx(&["eval", &config, "--policy", "near-queue", "--episodes", "3", "--json"]);
    assert!(judged.status.success(), "{}", String::from_utf8_lossy(&judged.stderr));
    let judged: serde_json::Value = serde_json::from_slice(&judged.stdout).unwrap();
    // Some of the last minute are still under way.
    let vehicles = flows.as_array().unwrap().len() as f64;
    assert!(judged["finished"].as_f64().unwrap() > 0.95 * vehicles, "{judged}");
}

/// Networks that cannot be trained on are refused in one line.
#[test]
fn networks_without_signals_or_ways_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [roadnet, flow] = unpack("one", folder.path());
    let config = folder.path().join("c.toml");
    let text = "[world]\nkind = \"junctions\"\nroadnet = \"roadnet.json\"\nflow = \"flow.json\"\n[objective]\nkind = \"return\"";
    std::fs::write(&config, text).unwrap();
    let refused = || refused(&["eval", config.to_str().unwrap(), "--policy", "cycle", "--episodes", "3"]);
    let edit = |file: &str, from: &str, to: &str| {
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains(from), "{from}");
        std::fs::write(file, text.replace(from, to)).unwrap();
    };
    edit(&flow, "\"r_n21_n11\", \"r_n11_n12\"", "\"r_n21_n11\", \"r_n12_n11\"");
    assert!(
        refused().contains("there is no way from road \"r_n21_n11\" to road \"r_n12_n11\""),
        "{}",
        refused()
    );
    unpack("one", folder.path());
    std::fs::write(&flow, "[]").unwrap();
    edit(&roadnet, "\"virtual\": false", "\"virtual\": true");
    assert!(refused().contains("no intersection has signals"), "{}", refused());
}

#[test]
fn the_engine_is_measured_on_files() {
    let folder = tempfile::tempdir().unwrap();
    let [roadnet, flow] = unpack("one", folder.path());
    let output =
        phalanx(&["bench", "junctions", "--roadnet", &roadnet, "--flow", &flow, "--threads", "2", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["n"], 1);
    assert_eq!(found["threads"], 2);
    assert!(found["vehicle_steps_per_s"].as_f64().unwrap() > 0.0);
    let message = refused(&["bench", "line", "--roadnet", &roadnet, "--flow", &flow]);
    assert!(message.contains("--roadnet: is for `junctions`"), "{message}");
}

//! Commands about traffic: recordings of CityFlow come out in every step, and bad input gets one clear line.

#[path = "../../phalanx-junctions/tests/support/mod.rs"]
mod support;

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

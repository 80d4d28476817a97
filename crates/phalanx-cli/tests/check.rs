//! `phalanx check`: the real binary on presets, models and runs.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn phalanx(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phalanx")).args(arguments).current_dir(folder).output().unwrap()
}

fn stdout(arguments: &[&str], folder: &Path) -> String {
    let output = phalanx(arguments, folder);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str], folder: &Path) -> Value {
    let text = stdout(arguments, folder);
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

fn reference(name: &str) -> String {
    format!("{}/../phalanx/tests/reference/{name}.json", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_preset_in_words_and_in_json() {
    let folder = tempfile::tempdir().unwrap();
    let text = stdout(&["check", "synthetic", "--set", "world.n=4"], folder.path());
    for wanted in [
        "4: 16 joint states x 16 joint actions",
        "fails: chi(0+) = 2.400 is not below 2/gamma = 2.020",
        "binding agent 1: itself 2.00, agent 2 0.40",
        "would hold with gamma < 0.8333, or with world.mixing > 0.1582",
        "       *1          3            - ",
        "at the optimal multipliers",
        "\nTheorem 2          for epsilon = 0.1 with probability 0.95\n",
        "\nTD exploration     sigma ",
        "\nAdvice\n- The decay assumption fails",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
    let arguments = ["check", "synthetic", "--set", "world.n=4", "--epsilon", "0.01", "--json"];
    let check = json(&arguments, folder.path());
    assert_eq!(check["sizes"]["joint_states"], 16);
    assert_eq!(check["decay"]["holds"], false);
    assert_eq!(check["truncation"]["rows"].as_array().unwrap().len(), 4);
    assert!(check["truncation"]["rows"][1]["predicted"].is_null());
    assert_eq!(check["feasibility"]["constraints"].as_array().unwrap().len(), 4);
    assert_eq!(check["theorems"]["orders"]["iterations"], 1000.0);
    assert!(check["td"]["measured"]["to_limit"].is_number());
    // Threads change no digit.
    let alone = [&arguments[..], &["--threads", "1"]].concat();
    assert_eq!(stdout(&alone, folder.path()), stdout(&arguments, folder.path()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_model_file() {
    let folder = tempfile::tempdir().unwrap();
    let check = json(&["check", &reference("lemma_counterexample"), "--json"], folder.path());
    let row = &check["truncation"]["rows"][4];
    assert!(row["fixed"].as_f64() > row["predicted"].as_f64());
    assert!(row["fixed"].as_f64() < row["certified"].as_f64());
    assert_eq!(check["decay"]["holds"], true);
}

#[test]
fn a_run_is_checked_at_its_policy_and_multipliers() {
    let folder = tempfile::tempdir().unwrap();
    let train =
        ["train", "synthetic", "--set", "world.n=4", "--set", "iterations=30", "--out", "run", "--json"];
    let outcome = json(&train, folder.path());
    let check = json(&["check", "run", "--json"], folder.path());
    assert_eq!(check["feasibility"]["objective"], outcome["exact"]["objective"]);
    assert_eq!(check["feasibility"]["violation_total"], outcome["exact"]["violation_total"]);
    let start = json(&["check", "synthetic", "--set", "world.n=4", "--json"], folder.path());
    assert_eq!(check["feasibility"]["optimum"], start["feasibility"]["optimum"]);
    assert_ne!(check["feasibility"]["objective"], start["feasibility"]["objective"]);
}

#[test]
fn bad_input_is_one_line_and_status_2() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let model = reference("ring5_weak");
    for (arguments, wanted) in [
        (&["nope"][..], "preset: `nope` is neither a preset"),
        (&["missing.json"], "missing.json: cannot be read"),
        (&["missing.toml"], "missing.toml: cannot be read"),
        (&["empty"], "empty: is not a run"),
        (&["synthetic", "--epsilon", "0"], "epsilon: 0; more than 0 and less than 1 is needed"),
        (&["synthetic", "--epsilon", "-0.001"], "epsilon: -0.001; more than 0"),
        (&["synthetic", "--epsilon", "nan"], "epsilon: NaN; more than 0"),
        (&["synthetic", "--delta", "1"], "delta: 1; more than 0 and less than 1 is needed"),
        (
            &["synthetic", "--set", "world.n=40"],
            "the 40 agents have 1099511627776 joint states; exact computations take at most 65536",
        ),
        (&["synthetic", "--set", "kapa=1"], "unknown field `kapa`"),
        (&[&model, "--set", "kappa=1"], "--set: goes with a preset or a TOML file, not with a model"),
        (&["empty", "--set", "kappa=1"], "--set: goes with a preset or a file, not with a run"),
    ] {
        let output = phalanx(&[&["check"], arguments].concat(), folder.path());
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.starts_with("error: ") && message.contains(wanted), "{arguments:?}: {message}");
        assert_eq!((message.lines().count(), output.stdout.len()), (1, 0), "{arguments:?}");
    }
}

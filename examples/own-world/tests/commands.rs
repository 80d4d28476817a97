//! Every command works for a world of one's own.

use std::path::Path;
use std::process::Command;

fn own_world(arguments: &[&str], folder: &Path) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_own-world")).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn train_resume_and_eval_know_the_world() {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("lamps.toml");
    let config = config.to_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    assert!(own_world(&["config", config], folder.path()).contains("kind = \"lamps\""));
    let line = own_world(&["train", config, "--out", "run", "--json"], folder.path());
    let result: serde_json::Value = serde_json::from_str(&line).unwrap();
    // Burning pays 1 and a switch costs 0.3, so lamps burn as much as they may: 0.8 less at most 0.3 per
    // step.
    assert!(result["objective"].as_f64().unwrap() > 0.5, "{line}");
    assert!(result["violation_max"].as_f64().unwrap() < 0.02, "{line}");
    // It tells its start law, so the truth is known.
    let exact = result["exact"]["objective"].as_f64().unwrap();
    assert!((exact - result["objective"].as_f64().unwrap()).abs() < 0.05, "{line}");
    own_world(&["resume", "run"], folder.path());
    assert!(own_world(&["eval", "run", "--episodes", "50"], folder.path()).contains("burning"));
    let bad =
        Command::new(env!("CARGO_BIN_EXE_own-world")).args(["train", config, "--set", "world.n=2"]).output();
    let bad = bad.unwrap();
    assert_eq!(bad.status.code(), Some(2));
    assert!(String::from_utf8(bad.stderr).unwrap().contains("world.n: 2"));
}

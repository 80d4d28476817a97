//! The real binary on two hundred thousand agents: everything that it says and writes stays small.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn phalanx(arguments: &[&str], folder: &Path) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_phalanx")).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

const N: usize = 200_000;

#[test]
fn two_hundred_thousand_agents_train_and_are_summed_up() {
    let folder = tempfile::tempdir().unwrap();
    let n = format!("world.n={N}");
    let short =
        ["gamma=0.5", "horizon=10", "batch=2", "critic.steps=10", "iterations=2", "evaluation.episodes=2"];
    let mut arguments = vec!["train", "synthetic", "--out", "run", "--set", n.as_str()];
    short.iter().for_each(|set| arguments.extend(["--set", set]));
    let text = phalanx(&arguments, folder.path());
    assert!(
        text.contains("and 199995 more: the worst 1000 in agents.csv, all in agents-summary.csv"),
        "{text}"
    );
    let run = folder.path().join("run");
    let lines = |name: &str| std::fs::read_to_string(run.join(name)).unwrap().lines().count();
    assert_eq!([lines("agents.csv"), lines("returns.csv"), lines("agents-summary.csv")], [1001, 1001, 7]);
    // Two observations have agents at the ends, three the others.
    let parameters = 8 * (2 * 8 + (N as u64 - 2) * 16);
    let size = std::fs::metadata(run.join("policy.safetensors")).unwrap().len();
    assert!((parameters..parameters + 16 * N as u64 + 1000).contains(&size), "{size}");
    let figure = std::fs::read_to_string(run.join("plots/margins.svg")).unwrap();
    assert!(figure.len() < 200_000 && figure.contains("of 200000 constraints violated"));
    assert!(figure.contains("the 20 with the least slack"));

    let line: Value = serde_json::from_str(&phalanx(&["eval", "run", "--json"], folder.path())).unwrap();
    assert_eq!(line["constraint_count"].as_u64(), Some(N as u64));
    let listed = line["constraints"].as_array().unwrap();
    assert_eq!(listed.len(), 1000);
    let count = |field: &str| line[field].as_u64().unwrap();
    assert_eq!(count("safe") + count("unsafe") + count("undecided"), N as u64);
    let slacks = listed.iter().map(|c| c["value"].as_f64().unwrap() - c["threshold"].as_f64().unwrap());
    assert!(slacks.collect::<Vec<_>>().is_sorted());
}

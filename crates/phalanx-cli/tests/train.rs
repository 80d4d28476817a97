//! The real binary: what it prints, what it leaves behind, and that threads change nothing.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn phalanx(arguments: &[&str], folder: &Path) -> Output {
    let output =
        Command::new(env!("CARGO_BIN_EXE_phalanx")).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn stdout(output: Output) -> String {
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn synthetic_is_the_documented_problem() {
    let folder = tempfile::tempdir().unwrap();
    let config: toml::Table =
        toml::from_str(&stdout(phalanx(&["config", "synthetic"], folder.path()))).unwrap();
    let expected: toml::Table = toml::from_str(
        r#"
        iterations = 400
        gamma = 0.99
        horizon = 125
        batch = 5
        kappa = 1
        kappa_q = 1
        world = { kind = "line", n = 10, start = "uniform", mixing = 0.0, reward = "present" }
        "#,
    )
    .unwrap();
    for (key, value) in &expected {
        assert_eq!(config.get(key), Some(value), "{key}");
    }
    let section = |name: &str, key: &str| config[name][key].clone();
    assert_eq!(section("policy", "kind").as_str(), Some("softmax"));
    assert_eq!(section("critic", "kind").as_str(), Some("td"));
    assert_eq!(section("critic", "steps").as_integer(), Some(500));
    let constraint = &config["constraint"].as_array().unwrap()[0];
    assert_eq!(constraint["kind"].as_str(), Some("state_entropy"));
    assert_eq!(constraint["at_least"].as_float(), Some(0.5));
}

#[test]
fn a_run_leaves_its_folder_and_one_line_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["train", "synthetic", "--set", "iterations=7", "--seed", "4", "--out", "run", "--json"];
    let text = stdout(phalanx(&arguments, folder.path()));
    assert_eq!(text.lines().count(), 1);
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((line["seed"].as_u64(), line["iterations"].as_u64()), (Some(4), Some(7)));
    assert_eq!(line["agent_steps"].as_u64(), Some(7 * 10 * (5 * 125 + 500)));
    for field in
        ["return", "objective", "violation_total", "violation_max", "violation_mean", "wall_s", "comm_bytes"]
    {
        assert!(line[field].is_number(), "{field}: {text}");
    }
    let run = folder.path().join("run");
    let rows = |name: &str| std::fs::read_to_string(run.join(name)).unwrap().lines().count();
    assert_eq!([rows("metrics.csv"), rows("timings.csv"), rows("agents.csv")], [8, 8, 11]);
    let meta: Value = serde_json::from_str(&std::fs::read_to_string(run.join("meta.json")).unwrap()).unwrap();
    assert_eq!(meta["status"], "finished");
    assert_eq!(meta["command_line"][1], "train");
    let policy = std::fs::read(run.join("policy.safetensors")).unwrap();
    let tensors = safetensors::SafeTensors::deserialize(&policy).unwrap();
    assert_eq!(tensors.len(), 10);
    assert_eq!(tensors.tensor("theta.0").unwrap().shape(), [4, 2]);
    assert_eq!(tensors.tensor("theta.5").unwrap().shape(), [8, 2]);
    // The resolved configuration repeats the run.
    let again = ["train", "run/config.toml", "--out", "again", "--json"];
    phalanx(&again, folder.path());
    for name in ["metrics.csv", "agents.csv", "policy.safetensors"] {
        let read = |run: &str| std::fs::read(folder.path().join(run).join(name)).unwrap();
        assert!(read("run") == read("again"), "{name} differs");
    }
}

#[test]
fn threads_change_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let runs = [
        "synthetic iterations=40",
        "synthetic iterations=3 world.n=40000 horizon=20 critic.steps=30",
        "synthetic iterations=20 critic.kind=lstd world.n=70 policy.kind=direct",
        "synthetic iterations=10 critic.kind=montecarlo kappa=2 batch=9",
        "synthetic iterations=5 algorithm=exact",
        "synthetic iterations=5 critic.kind=exact critic.truncation=td",
        "wireless iterations=4",
        "wireless iterations=3 world.rows=40 world.columns=9 batch=4 critic.average=0 critic.on=chain critic.solver=td",
        "wireless iterations=3 policy.kind=network critic.kind=network critic.optimizer=sgd critic.minibatch=0",
        "epidemic iterations=4 evaluation.episodes=50",
        "epidemic-grid iterations=2 world.n=2000 batch=3 evaluation.episodes=20",
        "paper/wireless iterations=2 batch=8 critic.steps=120",
        "paper/synthetic iterations=3",
        "paper/synthetic iterations=2 world.n=150 horizon=30 critic.steps=100 critic.merged=true actor.all_actions=true",
        "pistonball iterations=3 batch=3 horizon=30 evaluation.episodes=20",
        "pistonball iterations=3 world.n=4 batch=2 horizon=60 critic.kind=network critic.steps=150 critic.minibatch=32 critic.on=chain kappa_g=0 evaluation.episodes=20",
        "pistonball iterations=3 world.n=3 kappa=0 policy.kind=softmax critic.kind=td critic.steps=150 actor.normalise=false world.game=pettingzoo evaluation.episodes=20",
        "junctions-grid4x4 iterations=2 world.town.grid=[2,3] horizon=40 batch=3 world.demand=0.8 evaluation.episodes=20",
        "junctions-rules iterations=2 world.town.grid=[2,2] horizon=30 batch=3 evaluation.episodes=20",
        "junctions-fair iterations=2 world.town.grid=[2,2] horizon=30 batch=3 evaluation.episodes=20",
        "synthetic iterations=5 critic.kind=returns world.n=70 occupancy_average=0.9 kappa_g=0 actor.normalise=true actor.baseline=mean",
        "synthetic iterations=5 algorithm=mappo-l world.n=12 policy.kind=network constraint=[{kind=\"return\",at_most=5}] mappo.minibatches=2",
        "wireless iterations=4 algorithm=mappo-l policy.kind=network constraint=[{kind=\"return\",channel=\"send\",at_most=3}] mappo.scope=aggregate",
        "pistonball iterations=3 algorithm=mappo-l world.n=6 batch=3 horizon=30 constraint=[{kind=\"return\",channel=\"height\",at_most=3}] mappo.scope=local evaluation.episodes=20",
    ];
    for (k, line) in runs.iter().enumerate() {
        let run = |threads: &str| {
            let out = format!("{k}-{threads}");
            let (preset, settings) = line.split_once(' ').unwrap();
            let mut arguments = vec!["train", preset, "--json", "--threads", threads, "--out", &out];
            settings.split(' ').for_each(|setting| arguments.extend(["--set", setting]));
            phalanx(&arguments, folder.path());
            ["metrics.csv", "agents.csv", "policy.safetensors"]
                .map(|name| std::fs::read(folder.path().join(&out).join(name)).unwrap())
        };
        let one = run("1");
        for threads in ["2", "8"] {
            assert!(run(threads) == one, "{line} differs on {threads} threads");
        }
    }
}

#[test]
fn a_run_that_diverges_says_where_and_keeps_its_rows() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_phalanx"))
        .args([
            "train",
            "synthetic",
            "--out",
            "run",
            "--set",
            "dual.kind=descent",
            "--set",
            "dual.mu_max=inf",
        ])
        .args(["--set", "dual.eta_mu=1e308", "--set", "constraint.0.at_least=0.8"])
        .args(["--set", "constraint.0.allow_infeasible=true"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("iteration") && message.contains("agent") && message.contains("is inf"),
        "{message}"
    );
    let meta = std::fs::read_to_string(folder.path().join("run/meta.json")).unwrap();
    assert!(meta.contains("failed: iteration"), "{meta}");
    let metrics = std::fs::read_to_string(folder.path().join("run/metrics.csv")).unwrap();
    let iteration: usize =
        message.split("iteration ").nth(1).unwrap().split(',').next().unwrap().parse().unwrap();
    assert_eq!(metrics.lines().count(), 1 + iteration, "a header and a row for every whole iteration");
}

/// A value that cannot be computed must never pass for a constraint that is kept.
#[test]
fn a_constraint_that_is_not_a_number_stops_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_phalanx"))
        .args([
            "train",
            "apprenticeship",
            "--out",
            "run",
            "--set",
            "scaling=paper",
            "--set",
            "constraint.0.scale=1",
        ])
        .args(["--set", "constraint.0.r=[1e308,-1e308,1e308,-1e308]"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("agent 0: g is "), "{message}");
}

#[test]
fn closing_table_names_agents_scaling_and_folder() {
    let folder = tempfile::tempdir().unwrap();
    let text = stdout(phalanx(&["train", "synthetic", "--set", "iterations=3"], folder.path()));
    for wanted in ["normalised", "400 fresh episodes", "state_entropy", "≥ 0.5", "runs/synthetic-seed1"] {
        assert!(text.contains(wanted), "{wanted:?} is missing in\n{text}");
    }
    // A second run goes to a folder of its own.
    let text = stdout(phalanx(&["train", "synthetic", "--set", "iterations=3"], folder.path()));
    assert!(text.contains("runs/synthetic-seed1-2"), "{text}");
}

/// `paper/synthetic` is no folder, and its runs are none of `synthetic`.
#[test]
fn a_slash_in_the_name_of_a_preset_makes_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let short = ["--set", "iterations=1", "--set", "evaluation.episodes=1", "--json"];
    let arguments = [&["train", "paper/synthetic"][..], &short].concat();
    for wanted in ["runs/paper-synthetic-seed1", "runs/paper-synthetic-seed1-2"] {
        let line: Value = serde_json::from_str(&stdout(phalanx(&arguments, folder.path()))).unwrap();
        assert_eq!(line["run"].as_str(), Some(wanted));
        assert!(folder.path().join(wanted).join("policy.safetensors").is_file());
    }
}

#[test]
fn presets_are_listed_with_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let text = stdout(phalanx(&["presets"], folder.path()));
    for name in [
        "synthetic",
        "wireless",
        "epidemic",
        "epidemic-grid",
        "apprenticeship",
        "feasibility",
        "entropy",
        "paper/synthetic",
        "paper/wireless",
        "paper/wireless-random",
        "baselines/mappo-l-pistonball",
        "baselines/mappo-l-wireless",
    ] {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.len() > name.len() + 20, "{line}");
    }
}

#[test]
fn bench_measures_simulation() {
    let folder = tempfile::tempdir().unwrap();
    let text = stdout(phalanx(&["bench", "line", "--n", "50", "--threads", "1", "--json"], folder.path()));
    let line: Value = serde_json::from_str(&text).unwrap();
    assert!(line["agent_steps_per_s"].as_f64() > line["env_steps_per_s"].as_f64());
    // The squarest grid of at most 50 users has 7 rows of 7.
    let text =
        stdout(phalanx(&["bench", "wireless", "--n", "50", "--threads", "1", "--json"], folder.path()));
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((line["world"].as_str(), line["n"].as_u64()), (Some("wireless"), Some(49)));
    let text =
        stdout(phalanx(&["bench", "epidemic", "--n", "50", "--threads", "1", "--json"], folder.path()));
    let epidemic: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((epidemic["world"].as_str(), epidemic["n"].as_u64()), (Some("epidemic"), Some(49)));
    let ratio = line["agent_steps_per_s"].as_f64().unwrap() / line["env_steps_per_s"].as_f64().unwrap();
    assert!((ratio - 49.0).abs() < 1e-6, "{ratio}");
}

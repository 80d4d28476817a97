//! `phalanx sweep` with the real binary: every run that was asked for, none twice, none lost.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PHALANX: &str = env!("CARGO_BIN_EXE_phalanx");

const BASE: &str = r#"
iterations = 12
horizon = 10
batch = 2
[world]
kind = "line"
n = 4
[objective]
kind = "return"
[[constraint]]
kind = "state_entropy"
at_least = 0.1
[critic]
steps = 20
[evaluation]
episodes = 8
"#;

const GRID: &str = "base = \"base.toml\"\nseeds = 2\n[set]\ncritic.steps = 30\n[grid]\nkappa = [0, 1]\n\
                    \"constraint.0.at_least\" = [0.2, 0.3]\n";

/// A folder with `base.toml` and `sweep.toml`.
fn folder(sweep: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("base.toml"), BASE).unwrap();
    std::fs::write(folder.path().join("sweep.toml"), sweep).unwrap();
    folder
}

fn phalanx(arguments: &str, folder: &Path) -> Output {
    Command::new(PHALANX).args(arguments.split(' ')).current_dir(folder).output().unwrap()
}

/// Standard output of a command that succeeds.
fn succeeds(arguments: &str, folder: &Path) -> String {
    let output = phalanx(arguments, folder);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Standard error of a command that ends with `status`.
fn fails(arguments: &str, status: i32, folder: &Path) -> String {
    let output = phalanx(arguments, folder);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{arguments}: {message}");
    message
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.as_ref().display()))
}

/// The cells of a summary by column, for each run.
fn rows(csv: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = csv.lines().map(cells);
    let header = lines.next().unwrap();
    lines
        .map(|row| {
            assert_eq!(row.len(), header.len(), "{row:?}");
            header.iter().cloned().zip(row).collect()
        })
        .collect()
}

/// Commas between quotes are part of a cell.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    for c in line.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            c => cells.last_mut().unwrap().push(c),
        }
    }
    cells
}

fn seed_of(run: &Path) -> i64 {
    let config: toml::Table = toml::from_str(&read(run.join("config.toml"))).unwrap();
    config["seed"].as_integer().unwrap()
}

/// Files that must not depend on how the work was done.
fn results(run: &Path) -> [Vec<u8>; 3] {
    ["metrics.csv", "agents.csv", "policy.safetensors"].map(|name| std::fs::read(run.join(name)).unwrap())
}

#[test]
fn a_grid_has_a_folder_a_run_and_a_row_a_setting() {
    let folder = folder(GRID);
    let out = folder.path().join("runs/sweep");
    let said = succeeds("sweep sweep.toml --jobs 2", folder.path());
    assert_eq!(said.split("\nalso in ").next().unwrap().trim(), read(out.join("summary.md")).trim());
    let csv = read(out.join("summary.csv"));
    let table = rows(&csv);
    assert_eq!(table.len(), 8);
    let mut noise = Vec::new();
    for (k, row) in table.iter().enumerate() {
        let (kappa, bound, seed) = (["0", "1"][k / 4], ["0.2", "0.3"][k / 2 % 2], ["1", "2"][k % 2]);
        assert_eq!([&row["kappa"], &row["seed"], &row["index"]], [kappa, seed, &k.to_string()]);
        assert_eq!(
            [&row["constraint.0.at_least"], &row["status"], &row["iterations"]],
            [bound, "finished", "12"]
        );
        let run = out.join(format!("kappa={kappa},constraint.0.at_least={bound}-seed{seed}"));
        let config: toml::Table = toml::from_str(&read(run.join("config.toml"))).unwrap();
        assert_eq!(config["kappa"].as_integer().unwrap().to_string(), kappa);
        assert_eq!(config["critic"]["steps"].as_integer(), Some(30));
        // Numbers are those that the run itself left.
        let outcome: Value = serde_json::from_str(&read(run.join("outcome.json"))).unwrap();
        for field in ["objective", "violation_total", "return", "agent_steps"] {
            assert_eq!(row[field], outcome[field].to_string(), "{field}");
        }
        assert_eq!(row["exact.objective"], outcome["exact"]["objective"].to_string());
        assert_eq!(row["config_seed"], seed_of(&run).to_string());
        noise.push(seed_of(&run));
    }
    noise.sort();
    noise.dedup();
    assert_eq!(noise.len(), 8, "every run has noise of its own");
    // The mean over seeds of the first setting.
    let objective = |k: usize| table[k]["objective"].parse::<f64>().unwrap();
    let markdown = read(out.join("summary.md"));
    let row = markdown.lines().find(|line| line.contains("kappa=0,constraint.0.at_least=0.2 ")).unwrap();
    let (mean, error) = ((objective(0) + objective(1)) / 2.0, (objective(0) - objective(1)).abs() / 2.0);
    assert!(row.contains(&format!("{mean:.5} ± {error:.5} ({mean:.5})")), "{row}");
    // Nothing is done twice: not even the times of the runs change.
    succeeds("sweep sweep.toml", folder.path());
    assert_eq!(read(out.join("summary.csv")), csv);
}

#[test]
fn shared_noise_is_the_plain_seed() {
    let folder = folder("base = \"base.toml\"\nseeds = [7]\nnoise = \"shared\"\n[grid]\nbatch = [1, 2]\n");
    let line: Value =
        serde_json::from_str(&succeeds("sweep sweep.toml --out there --json", folder.path())).unwrap();
    assert_eq!([&line["runs"], &line["finished"], &line["failed"]], [2, 2, 0]);
    assert_eq!(line["summary_csv"], "there/summary.csv");
    assert!(
        ["1", "2"]
            .iter()
            .all(|batch| seed_of(&folder.path().join(format!("there/batch={batch}-seed7"))) == 7)
    );
}

#[test]
fn settings_at_random_stand_beside_a_grid() {
    let text = "base = \"base.toml\"\n[grid]\nkappa = [0, 1]\n[random]\nsamples = 3\nseed = 4\n\
                \"actor.eta_theta\" = { low = 0.001, high = 0.1, scale = \"log\" }\nbatch = [1, 2, 3]\n";
    let folder = folder(text);
    succeeds("sweep sweep.toml", folder.path());
    let table = rows(&read(folder.path().join("runs/sweep/summary.csv")));
    assert_eq!(table.len(), 6);
    for (k, row) in table.iter().enumerate() {
        // The same three samples at both points of the grid.
        assert_eq!(row["actor.eta_theta"], table[(k + 3) % 6]["actor.eta_theta"]);
        let step: f64 = row["actor.eta_theta"].parse().unwrap();
        assert!((0.001..=0.1).contains(&step), "{step}");
        let run = folder.path().join("runs/sweep").join(&row["run"]);
        let config: toml::Table = toml::from_str(&read(run.join("config.toml"))).unwrap();
        assert_eq!(config["actor"]["eta_theta"].as_float(), Some(step));
        assert_eq!(config["batch"].as_integer().unwrap().to_string(), row["batch"]);
    }
    assert_ne!(table[0]["actor.eta_theta"], table[1]["actor.eta_theta"]);
}

#[test]
fn numbers_of_jobs_and_threads_change_no_byte() {
    let folder = folder(GRID);
    succeeds("sweep sweep.toml --jobs 1 --threads 1 --out one", folder.path());
    succeeds("sweep sweep.toml --jobs 2 --threads 2 --out two", folder.path());
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let mut compared = 0;
    for entry in one.read_dir().unwrap().map(|entry| entry.unwrap()).filter(|entry| entry.path().is_dir()) {
        assert!(results(&entry.path()) == results(&two.join(entry.file_name())), "{:?}", entry.file_name());
        compared += 1;
    }
    assert_eq!(compared, 8);
}

const LONG: &str = "base = \"base.toml\"\nseeds = 3\n[set]\niterations = 20000\ncheckpoint.seconds = 0.01\n[grid]\nkappa = [1]\n";

/// Begins a long sweep and waits for a run's first checkpoint.
fn long_sweep(folder: &Path) -> std::process::Child {
    let mut process = Command::new(PHALANX)
        .args(["sweep", "sweep.toml", "--jobs", "1", "--out", "cut"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let checkpoints = folder.join("cut/kappa=1-seed1/checkpoints");
    let has_one = || {
        let mut entries = checkpoints.read_dir().into_iter().flatten().flatten();
        entries.any(|entry| entry.path().extension().is_some_and(|extension| extension == "json"))
    };
    let begin = Instant::now();
    while !has_one() {
        assert!(begin.elapsed() < Duration::from_secs(60), "no checkpoint");
        assert!(process.try_wait().unwrap().is_none(), "it ended too soon");
        std::thread::sleep(Duration::from_millis(2));
    }
    process
}

#[test]
fn a_killed_sweep_ends_in_the_same_bytes() {
    let folder = folder(LONG);
    let mut process = long_sweep(folder.path());
    process.kill().unwrap();
    process.wait().unwrap();
    assert!(!read(folder.path().join("cut/kappa=1-seed1/meta.json")).contains("finished"));
    succeeds("sweep sweep.toml --jobs 2 --out cut", folder.path());
    succeeds("sweep sweep.toml --jobs 2 --out whole", folder.path());
    for seed in 1..=3 {
        let run = |out: &str| folder.path().join(out).join(format!("kappa=1-seed{seed}"));
        assert!(results(&run("cut")) == results(&run("whole")), "seed {seed} differs");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_sweep_says_what_is_missing_and_goes_on() {
    let folder = folder(LONG);
    let process = long_sweep(folder.path());
    assert!(Command::new("kill").args(["-INT", &process.id().to_string()]).status().unwrap().success());
    let output = process.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("3 of 3 runs are stopped: kappa=1-seed1 kappa=1-seed2"), "{message}");
    let markdown = read(folder.path().join("cut/summary.md"));
    assert!(markdown.contains("| 0 ") && markdown.contains("seed 1 stopped, seed 2 stopped"), "{markdown}");
    // The first goes on from a checkpoint, the others begin.
    succeeds("sweep sweep.toml --jobs 2 --out cut", folder.path());
    assert!(!read(folder.path().join("cut/summary.md")).contains("stopped"));
}

#[test]
fn a_run_that_fails_is_named_and_the_others_are_finished() {
    let text = "base = \"base.toml\"\nseeds = 2\n[set]\niterations = 60\ndual.kind = \"descent\"\ndual.mu_max = inf\n\
                constraint.0.at_least = 0.8\nconstraint.0.allow_infeasible = true\n\
                [grid]\n\"dual.eta_mu\" = [1e308, 1.0]\n";
    let folder = folder(text);
    let message = fails("sweep sweep.toml --jobs 2", 1, folder.path());
    assert!(
        message.contains("2 of 4 runs failed: dual.eta_mu=1e308-seed1 dual.eta_mu=1e308-seed2"),
        "{message}"
    );
    assert!(message.contains("try a smaller"), "the reason is said: {message}");
    let markdown = read(folder.path().join("runs/sweep/summary.md"));
    let row = |setting: &str| markdown.lines().find(|line| line.contains(setting)).unwrap().to_string();
    assert!(row("dual.eta_mu=1.0 ").contains("| 2 "), "{markdown}");
    let failed = row("dual.eta_mu=1e308 ");
    assert!(failed.contains("| 0 ") && failed.contains("seed 1 failed, seed 2 failed"), "{markdown}");
    let table = rows(&read(folder.path().join("runs/sweep/summary.csv")));
    assert!(table[0]["status"].starts_with("failed: iteration"), "{:?}", table[0]);
    assert_eq!(table[2]["status"], "finished");
}

#[test]
fn an_array_job_makes_the_summary_when_all_runs_are_there() {
    let folder = folder("base = \"base.toml\"\nseeds = [3]\n[grid]\nkappa = [0, 1, 2]\n");
    let summary = folder.path().join("runs/sweep/summary.csv");
    let message = fails("sweep sweep.toml --index 3", 2, folder.path());
    assert_eq!(message, "error: --index: 3; there are 3 runs, numbered from 0 to 2\n");
    for (index, run) in [(2, "kappa=2-seed3"), (0, "kappa=0-seed3"), (1, "kappa=1-seed3")] {
        assert!(!summary.exists());
        succeeds(&format!("sweep sweep.toml --index {index} --json"), folder.path());
        assert!(folder.path().join("runs/sweep").join(run).join("outcome.json").is_file());
    }
    assert_eq!(rows(&read(&summary)).len(), 3);
    // The same as all at once.
    succeeds("sweep sweep.toml --out together", folder.path());
    let run = |out: &str| results(&folder.path().join(out).join("kappa=1-seed3"));
    assert!(run("runs/sweep") == run("together"));
}

#[test]
fn a_folder_of_another_setting_is_refused() {
    let folder = folder("base = \"base.toml\"\n[grid]\nkappa = [0, 1]\n");
    succeeds("sweep sweep.toml", folder.path());
    std::fs::write(folder.path().join("base.toml"), BASE.replace("batch = 2", "batch = 3")).unwrap();
    let message = fails("sweep sweep.toml", 2, folder.path());
    assert!(
        message.contains("kappa=0-seed1: was made with batch = 2, but this run asks for batch = 3"),
        "{message}"
    );
    // Files are looked up beside the sweep's own, wherever it is called from.
    std::fs::create_dir(folder.path().join("below")).unwrap();
    succeeds("sweep ../sweep.toml --out there", &folder.path().join("below"));
    assert!(folder.path().join("below/there/kappa=1-seed1/policy.safetensors").is_file());
}

//! `cargo xtask bench`: one table of the real command's speed.

use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cargo;

/// Network size and iterations of each row; the first is the preset itself.
const SIZES: [(usize, usize); 4] = [(10, 400), (1_000, 60), (10_000, 12), (100_000, 4)];

/// The same for the exact algorithm.
const EXACT_SIZES: [(usize, usize); 3] = [(5, 400), (10, 40), (12, 6)];

/// Presets with linear and network models, and iterations of each.
const MODELS: [(&str, usize); 5] = [
    ("wireless", 100),
    ("paper/wireless", 40),
    ("paper/synthetic", 100),
    ("pistonball", 100),
    ("paper/pistonball", 20),
];

/// Runs of each size; the table shows the median.
const REPEATS: usize = 5;

/// Trains `synthetic` and `exact` at several sizes, then presets with larger models, and prints time an iteration, its
/// breakdown by stage and the rate. At the end the networks alone, against the machine's arithmetic peak.
pub fn run() -> Result<()> {
    cargo(&["build", "--release"], &[])?;
    let folder = std::env::temp_dir().join(format!("phalanx-bench-{}", std::process::id()));
    println!("\nphalanx train synthetic, median of {REPEATS} runs; stages in nanoseconds an agent-step\n");
    println!(
        "| {:>7} | {:>9} | {:>16} | {:>8} | {:>9} | {:>6} | {:>8} | {:>6} |",
        "n", "ms an it.", "million as/s", "sampling", "occupancy", "critic", "gradient", "update"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (n, iterations) in SIZES {
        let mut runs = Vec::new();
        for repeat in 0..REPEATS {
            let out = folder.join(format!("{n}-{repeat}"));
            runs.push(measure("synthetic", Some(n), iterations, &out)?);
        }
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let run = &runs[REPEATS / 2];
        let stage =
            |name: &str| run.stages.iter().find(|(stage, _)| stage == name).map_or(f64::NAN, |(_, ns)| *ns);
        println!(
            "| {n:>7} | {:>9.3} | {:>16.1} | {:>8.2} | {:>9.2} | {:>6.2} | {:>8.2} | {:>6.2} |",
            1e3 * run.seconds / iterations as f64,
            run.rate / 1e6,
            stage("sampling_s"),
            stage("occupancy_s"),
            stage("critic_s"),
            stage("gradient_s"),
            stage("update_s"),
        );
    }
    println!(
        "\nphalanx train exact, median of {REPEATS} runs: Algorithm 1 without sampling, with E at every iteration\n"
    );
    println!("| {:>7} | {:>9} |\n|---:|---:|", "n", "ms an it.");
    for (n, iterations) in EXACT_SIZES {
        let out = |repeat| folder.join(format!("exact-{n}-{repeat}"));
        let runs = (0..REPEATS).map(|repeat| measure("exact", Some(n), iterations, &out(repeat)));
        let mut runs = runs.collect::<Result<Vec<_>>>()?;
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        println!("| {n:>7} | {:>9.3} |", 1e3 * runs[REPEATS / 2].seconds / iterations as f64);
    }
    models(&folder)?;
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    println!("\nnetworks alone, in this run\n");
    cargo(&["bench", "-p", "phalanx", "--bench", "net"], &[])
}

/// Presets with linear and network models.
fn models(folder: &std::path::Path) -> Result<()> {
    println!("\nphalanx train, median of {REPEATS} runs; stages in milliseconds an iteration\n");
    println!("| {:>15} | {:>9} | sampling | critic | gradient | update |", "preset", "ms an it.");
    println!("|---:|---:|---:|---:|---:|---:|");
    for (preset, iterations) in MODELS {
        let out = |repeat| folder.join(format!("{}-{repeat}", preset.replace('/', "-")));
        let runs = (0..REPEATS).map(|repeat| measure(preset, None, iterations, &out(repeat)));
        let mut runs = runs.collect::<Result<Vec<_>>>()?;
        runs.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let run = &runs[REPEATS / 2];
        let stage = |name: &str| {
            let ns = run.stages.iter().find(|(stage, _)| stage == name).map_or(f64::NAN, |(_, ns)| *ns);
            1e-6 * ns * run.rate * run.seconds / iterations as f64
        };
        println!(
            "| {preset:>15} | {:>9.2} | {:>8.2} | {:>6.2} | {:>8.2} | {:>6.2} |",
            1e3 * run.seconds / iterations as f64,
            stage("sampling_s"),
            stage("critic_s"),
            stage("gradient_s"),
            stage("update_s"),
        );
    }
    Ok(())
}

struct Run {
    seconds: f64,
    rate: f64,
    /// Column of `timings.csv` and its nanoseconds an agent-step.
    stages: Vec<(String, f64)>,
}

fn measure(preset: &str, n: Option<usize>, iterations: usize, out: &std::path::Path) -> Result<Run> {
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let output = Command::new(std::path::Path::new(&target).join("release/phalanx"))
        .args(["train", preset, "--json", "--set", "evaluation.episodes=1"])
        .args(n.iter().flat_map(|n| ["--set".to_string(), format!("world.n={n}")]))
        .args(["--set", &format!("iterations={iterations}")])
        .arg("--out")
        .arg(out)
        .output()
        .context("cannot run release/phalanx; start this from the project's folder")?;
    anyhow::ensure!(output.status.success(), "phalanx train: {}", String::from_utf8_lossy(&output.stderr));
    let line: Value = serde_json::from_slice(&output.stdout).context("no result of phalanx train")?;
    let number = |key: &str| line[key].as_f64().with_context(|| format!("`{key}` is missing"));
    let agent_steps = number("agent_steps")?;
    let timings = std::fs::read_to_string(out.join("timings.csv"))?;
    let mut lines = timings.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let mut totals = vec![0.0; names.len()];
    for line in lines {
        for (total, field) in totals.iter_mut().zip(line.split(',')) {
            *total += field.parse::<f64>()?;
        }
    }
    let stages = names.iter().zip(totals).map(|(name, total)| (name.to_string(), 1e9 * total / agent_steps));
    Ok(Run { seconds: number("wall_s")?, rate: number("agent_steps_per_s")?, stages: stages.collect() })
}

//! Time per iteration, by stage.

use anyhow::Result;
use serde_json::json;

use super::laboratory::{Measured, Trial};
use super::record::Record;

/// Graph size and iterations of each row; the first is the preset itself.
const SIZES: [(usize, usize); 4] = [(10, 400), (1_000, 60), (10_000, 12), (100_000, 4)];

/// The same for the exact algorithm.
const EXACT_SIZES: [(usize, usize); 3] = [(5, 400), (10, 40), (12, 6)];

/// Presets with linear and neural models, and iterations of each.
const MODELS: [(&str, usize); 5] = [
    ("wireless", 100),
    ("paper/wireless", 40),
    ("paper/synthetic", 100),
    ("pistonball", 100),
    ("paper/pistonball", 20),
];

/// Runs of each size; the table shows the median.
const REPEATS: usize = 5;

/// Trains `synthetic` and `exact` at several sizes, then presets with larger models, and prints time per
/// iteration, its breakdown by stage and the rate.
pub fn run(record: &mut Record) -> Result<()> {
    println!("\nphalanx train synthetic, median of {REPEATS} runs; stages in nanoseconds per agent-step\n");
    println!(
        "| {:>7} | {:>9} | {:>16} | {:>8} | {:>9} | {:>6} | {:>8} | {:>6} |",
        "n", "ms per it.", "million as/s", "sampling", "occupancy", "critic", "gradient", "update"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (n, iterations) in SIZES {
        let run = median(record, &Trial::of("synthetic", iterations).set("world.n", n))?;
        println!(
            "| {n:>7} | {:>9.3} | {:>16.1} | {:>8.2} | {:>9.2} | {:>6.2} | {:>8.2} | {:>6.2} |",
            1e3 * run.wall_s() / iterations as f64,
            run.rate() / 1e6,
            run.stage_ns("sampling_s"),
            run.stage_ns("occupancy_s"),
            run.stage_ns("critic_s"),
            run.stage_ns("gradient_s"),
            run.stage_ns("update_s"),
        );
    }
    println!(
        "\nphalanx train exact, median of {REPEATS} runs: Algorithm 1 without sampling, with E at every iteration\n"
    );
    println!("| {:>7} | {:>9} |\n|---:|---:|", "n", "ms per it.");
    for (n, iterations) in EXACT_SIZES {
        let run = median(record, &Trial::of("exact", iterations).set("world.n", n))?;
        println!("| {n:>7} | {:>9.3} |", 1e3 * run.wall_s() / iterations as f64);
    }
    models(record)
}

/// Presets with linear and neural models.
fn models(record: &mut Record) -> Result<()> {
    println!("\nphalanx train, median of {REPEATS} runs; stages in milliseconds per iteration\n");
    println!("| {:>15} | {:>9} | sampling | critic | gradient | update |", "preset", "ms per it.");
    println!("|---:|---:|---:|---:|---:|---:|");
    for (preset, iterations) in MODELS {
        let run = median(record, &Trial::of(preset, iterations))?;
        let stage = |name: &str| 1e-6 * run.stage_ns(name) * run.rate() * run.wall_s() / iterations as f64;
        println!(
            "| {preset:>15} | {:>9.2} | {:>8.2} | {:>6.2} | {:>8.2} | {:>6.2} |",
            1e3 * run.wall_s() / iterations as f64,
            stage("sampling_s"),
            stage("critic_s"),
            stage("gradient_s"),
            stage("update_s"),
        );
    }
    Ok(())
}

/// The run of several whose time is in the middle.
fn median(record: &mut Record, trial: &Trial) -> Result<Measured> {
    let mut runs = Vec::new();
    for repeat in 0..REPEATS {
        runs.push(record.measure("stages", json!({ "preset": trial.preset, "repeat": repeat }), trial)?);
    }
    runs.sort_by(|a, b| a.wall_s().total_cmp(&b.wall_s()));
    Ok(runs.swap_remove(REPEATS / 2))
}

//! Are results of the processor and of the card the same bytes?

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::trainer::Trainer;
use super::{GpuArgs, all_well};

/// Tables, from a line that one block simulates to one of many tiles, and linear models.
const SAME: [(&str, &str); 6] = [
    ("synthetic, n = 10", "synthetic --set iterations=50 --set evaluation.episodes=20"),
    ("synthetic, n = 1000", "synthetic --set world.n=1000 --set iterations=20 --set evaluation.episodes=20"),
    ("synthetic, n = 40000", "synthetic --set world.n=40000 --set iterations=5 --set evaluation.episodes=2"),
    ("wireless, LSTD", "wireless --set iterations=10 --set evaluation.episodes=20"),
    (
        "wireless, linear TD",
        "wireless --set iterations=10 --set critic.solver=td --set evaluation.episodes=20",
    ),
    ("epidemic, LSTD", "epidemic --set iterations=10 --set evaluation.episodes=20"),
];

/// Networks, whose bytes are those of an earlier run on the same card.
const AGAIN: [(&str, &str); 2] = [
    ("paper/wireless, twice on the card", "paper/wireless --set iterations=50 --set evaluation.episodes=20"),
    (
        "paper/synthetic, twice on the card",
        "paper/synthetic --set iterations=20 --set evaluation.episodes=20",
    ),
];

/// A run that is stopped and gone on with: long enough to be stopped half-way.
const STOPPED: &str = "synthetic --set world.n=200 --set iterations=2000 --set checkpoint.seconds=0 --set evaluation.episodes=20";

const FILES: [&str; 4] = ["metrics.csv", "agents.csv", "policy.safetensors", "multipliers.safetensors"];

/// Adds what was compared to the report; fails if anything differs.
pub fn compare(trainer: &Trainer, args: &GpuArgs, report: &mut String) -> Result<()> {
    let (mut wrong, mut rows) = (Vec::new(), String::new());
    let mut note = |what: &str, found: Result<Option<&str>>| {
        let words = match found {
            Ok(None) => "the same bytes".to_string(),
            Ok(Some(file)) => format!("**{file} differs**"),
            Err(error) => format!("**{error:#}**"),
        };
        println!("{what}: {words}");
        if words.starts_with('*') {
            wrong.push(format!("{what}: {words}"));
        }
        let _ = writeln!(rows, "| {what} | {words} |");
    };
    for (name, settings) in SAME.iter().filter(|(name, _)| args.wants(name)) {
        note(name, on_both(trainer, settings, ["cpu", &trainer.device]));
    }
    for (name, settings) in AGAIN.iter().filter(|(name, _)| args.wants(name)) {
        note(name, on_both(trainer, settings, [&trainer.device, &trainer.device]));
    }
    for [first, second] in [["cpu", &trainer.device], [&trainer.device, "cpu"]] {
        let name = format!("synthetic, n = 200, begun with {first}, gone on with {second}");
        if args.wants(&name) {
            note(&name, in_turn(trainer, first, second));
        }
    }
    if !rows.is_empty() {
        let _ = write!(
            report,
            "\n## Bytes\n\n{} of runs with `cpu` and `{}`.\n\n",
            FILES.join(", "),
            trainer.device
        );
        let _ = write!(report, "| run | result |\n|---|---|\n{rows}");
    }
    all_well(&wrong)
}

/// The first file in which runs on two devices differ.
fn on_both(trainer: &Trainer, settings: &str, devices: [&str; 2]) -> Result<Option<&'static str>> {
    let folder = tempfile::tempdir()?;
    let runs = ["first", "second"].map(|name| folder.path().join(name));
    for (device, run) in devices.iter().zip(&runs) {
        trainer.train(settings, device, run)?;
    }
    difference(&runs[0], &runs[1])
}

/// The first file in which a run that changed its device differs from one that did not.
fn in_turn(trainer: &Trainer, first: &str, second: &str) -> Result<Option<&'static str>> {
    let folder = tempfile::tempdir()?;
    let [whole, stopped] = ["whole", "stopped"].map(|name| folder.path().join(name));
    trainer.train(STOPPED, "cpu", &whole)?;
    trainer.train_half(STOPPED, first, &stopped)?;
    trainer.resume(&stopped, second)?;
    difference(&whole, &stopped)
}

fn difference(first: &Path, second: &Path) -> Result<Option<&'static str>> {
    for name in FILES {
        let read = |run: &Path| std::fs::read(run.join(name)).with_context(|| format!("{name} is not there"));
        if read(first)? != read(second)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

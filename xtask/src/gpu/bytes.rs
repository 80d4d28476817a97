//! Are results of the processor and of the card the same bytes?

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::trainer::Trainer;
use super::{GpuArgs, all_well};

/// Tables, from a line that one block simulates to one of many tiles.
const SAME: [(&str, &str); 3] = [
    ("synthetic, n = 10", "synthetic --set iterations=50 --set evaluation.episodes=20"),
    ("synthetic, n = 1000", "synthetic --set world.n=1000 --set iterations=20 --set evaluation.episodes=20"),
    ("synthetic, n = 40000", "synthetic --set world.n=40000 --set iterations=5 --set evaluation.episodes=2"),
];

/// A run that is stopped and gone on with: long enough to be stopped half-way.
const STOPPED: &str = "synthetic --set world.n=200 --set iterations=400 --set checkpoint.seconds=0 --set evaluation.episodes=20";

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
        note(name, on_both(trainer, settings));
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

/// The first file in which a run on the processor and one on the card differ.
fn on_both(trainer: &Trainer, settings: &str) -> Result<Option<&'static str>> {
    let folder = tempfile::tempdir()?;
    let [cpu, card] = ["cpu", "card"].map(|name| folder.path().join(name));
    trainer.train(settings, "cpu", &cpu)?;
    trainer.train(settings, &trainer.device, &card)?;
    difference(&cpu, &card)
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

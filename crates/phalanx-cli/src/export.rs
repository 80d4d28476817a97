//! `phalanx export`.

use std::path::PathBuf;

use phalanx::run::export::{ExportSettings, Exported, export};
use phalanx::run::{Evaluator, Registry};

use crate::{on_threads, print, say};

#[derive(clap::Args)]
pub struct ExportArgs {
    /// Folder of the run.
    run: PathBuf,
    /// What to write: onnx (models of ONNX), json (with a short Python program), c (C99 source).
    #[arg(long, value_name = "FORMAT")]
    to: String,
    /// Folder to write to: new, empty, or that of an earlier export to the same format.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Episodes that the verdicts of the card rest on.
    #[arg(long, value_name = "N", default_value_t = 400)]
    episodes: usize,
    /// Seed of these episodes; they share no numbers with training.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Confidence of all verdicts together.
    #[arg(long, default_value_t = 0.99)]
    confidence: f64,
    /// Threads to use [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one line of JSON.
    #[arg(long)]
    json: bool,
}

/// `phalanx export`.
pub fn run(args: &ExportArgs, registry: &Registry) -> anyhow::Result<()> {
    on_threads(args.threads, || {
        let ExportArgs { episodes, seed, confidence, .. } = *args;
        let (to, out) = (args.to.parse()?, args.out.clone());
        let evaluator = Evaluator::from_run(&args.run, registry)?;
        let exported = export(&evaluator, &ExportSettings { to, out, episodes, seed, confidence })?;
        if args.json {
            print(&format!("{}\n", serde_json::to_string(&exported)?));
        } else {
            say(&told(&exported));
        }
        Ok(())
    })?
}

/// What was written, and what it is worth.
fn told(Exported { out, files, card }: &Exported) -> String {
    format!(
        "{} agents as {} in {}: {} files; with {} % confidence {} agents are safe, {} undecided, {} unsafe (card.md)",
        card.agents,
        card.to,
        out.display(),
        files.len(),
        100.0 * card.assessment.confidence,
        card.verdicts.safe,
        card.verdicts.undecided,
        card.verdicts.unsafe_
    )
}

//! `phalanx train`.

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use phalanx::algorithm::Summary;
use phalanx::run::{self, Config, Provenance, RunFolder, Session};

use crate::{Source, on_threads, print, table};

#[derive(clap::Args)]
pub struct TrainArgs {
    #[command(flatten)]
    source: Source,
    /// Seed of all randomness (overrides the configuration's).
    #[arg(long)]
    seed: Option<u64>,
    /// Folder for the results; must be new or empty [default: runs/<name>-seed<seed>].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads to use [default: all cores]. Results do not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one line of JSON at the end and nothing else.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &TrainArgs) -> anyhow::Result<()> {
    let config = args.source.load(args.seed)?;
    if let Some(out) = &args.out {
        RunFolder::check_free(out)?;
    }
    on_threads(args.threads, || train(args, &config))?
}

fn train(args: &TrainArgs, config: &Config) -> anyhow::Result<()> {
    let mut session = Session::new(config)?;
    for warning in session.warnings() {
        eprintln!("warning: {warning}");
    }
    let folder = args.out.clone().unwrap_or_else(|| default_folder(&args.source.source, config.seed));
    let bar = progress_bar(config.iterations, args.json);
    let provenance = Provenance { commit: env!("PHALANX_COMMIT").into(), command_line: arguments() };
    let result = run::train(&mut session, &folder, provenance, |summary| show(&bar, summary));
    bar.finish_and_clear();
    let (outcome, evaluation) = result?;
    if args.json {
        print(&format!("{}\n", serde_json::to_string(&outcome)?));
    } else {
        print(&table::closing(&session, &outcome, &evaluation));
    }
    Ok(())
}

/// The command line, for the record.
fn arguments() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// `runs/<name>-seed<seed>`, numbered on if that exists.
fn default_folder(source: &str, seed: u64) -> PathBuf {
    let stem = std::path::Path::new(source).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let first = PathBuf::from("runs").join(format!("{stem}-seed{seed}"));
    let numbered = |k| PathBuf::from("runs").join(format!("{stem}-seed{seed}-{k}"));
    std::iter::once(first).chain((2..).map(numbered)).find(|path| !path.exists()).unwrap_or_default()
}

fn progress_bar(iterations: usize, json: bool) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(iterations as u64), ProgressDrawTarget::stderr_with_hz(8));
    if json {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {per_sec}, {eta} left") {
        bar.set_style(style);
    }
    bar
}

/// Brings the bar up to date, but not so often that it would cost time.
fn show(bar: &ProgressBar, summary: &Summary) {
    let done = summary.iteration as u64 + 1;
    if bar.is_hidden() || (bar.elapsed() < Duration::from_millis(100) && done > 1) {
        return;
    }
    bar.set_position(done);
    if done.is_multiple_of(bar.length().unwrap_or(1).div_ceil(200)) {
        let return_ = summary.return_.map(|r| format!("return {r:.3}, ")).unwrap_or_default();
        bar.set_message(format!("{return_}violation {:.3},", summary.violation_total));
    }
}

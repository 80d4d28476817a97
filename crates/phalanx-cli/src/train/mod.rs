//! `phalanx train` and `phalanx resume`.

#[cfg_attr(not(feature = "mpi"), path = "no_parts.rs")]
mod parts;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use phalanx::algorithm::Summary;
use phalanx::run::{self, Config, Ending, Provenance, Registry, ResumeOutcome, RunFolder, Session, preset};

use phalanx_pictures::plot;

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
    /// Start from the policy of another run.
    #[arg(long, value_name = "RUN")]
    init: Option<PathBuf>,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
pub struct ResumeArgs {
    /// Folder of the run.
    run: PathBuf,
    #[command(flatten)]
    how: How,
}

/// How a run is carried out and shown; nothing here changes its results.
#[derive(clap::Args)]
struct How {
    /// Threads to use [default: all cores; with --mpi this process's share of them].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one line of JSON at the end and nothing else.
    #[arg(long)]
    json: bool,
    /// Share the network out over the processes that `mpirun` has started (needs a build with MPI).
    #[arg(long)]
    mpi: bool,
}

/// `phalanx train`.
pub fn train(args: &TrainArgs, registry: &Registry) -> anyhow::Result<()> {
    if args.how.mpi {
        return parts::train(args, registry);
    }
    let config = args.source.load(args.seed, registry)?;
    if let Some(out) = &args.out {
        RunFolder::check_free(out)?;
    }
    on_threads(args.how.threads, || begin(args, &config))?
}

fn begin(args: &TrainArgs, config: &Config) -> anyhow::Result<()> {
    let mut session = Session::new(config)?;
    if let Some(init) = &args.init {
        session.warm_start(&init.join("policy.safetensors"))?;
    }
    for warning in session.warnings() {
        eprintln!("warning: {warning}");
    }
    let path = args.out.clone().unwrap_or_else(|| default_folder(&args.source.source, config.seed));
    let stop = stop_on_signals()?;
    let mut folder = RunFolder::create(&path, &session, provenance())?;
    go_on(&mut session, &mut folder, Duration::ZERO, &stop, &args.how)
}

/// `phalanx resume`.
pub fn resume(args: &ResumeArgs, registry: &Registry) -> anyhow::Result<()> {
    if args.how.mpi {
        return parts::resume(args, registry);
    }
    let stop = stop_on_signals()?;
    on_threads(args.how.threads, || match RunFolder::resume(&args.run, registry)? {
        ResumeOutcome::Finished => {
            eprintln!("{} is finished; there is nothing to resume", args.run.display());
            Ok(())
        }
        ResumeOutcome::Ready { mut session, mut folder, elapsed, notes } => {
            for note in notes {
                eprintln!("note: {note}");
            }
            go_on(&mut session, &mut folder, elapsed, &stop, &args.how)
        }
    })?
}

/// Trains to the end, or until the user interrupts.
fn go_on(
    session: &mut Session,
    folder: &mut RunFolder,
    elapsed: Duration,
    stop: &Arc<AtomicBool>,
    how: &How,
) -> anyhow::Result<()> {
    session.set_stop_flag(stop.clone());
    let bar = progress_bar(session.config().iterations, how.json);
    let ending = run::train(session, folder, elapsed, stop, |summary| show(&bar, summary));
    bar.finish_and_clear();
    match ending {
        Ok(Ending::Finished(outcome, ..)) if how.json => {
            print(&format!("{}\n", serde_json::to_string(&outcome)?))
        }
        Ok(Ending::Finished(outcome, evaluation, whole)) => {
            // The run is complete without its pictures: that they cannot be drawn is no failure of it.
            if let Err(error) = plot::plot_run(folder.path()) {
                eprintln!("warning: no plots: {error}");
            }
            print(&table::closing(&whole, &outcome, &evaluation));
        }
        Ok(Ending::Stopped { iteration }) => {
            anyhow::bail!("stopped after {iteration} iterations; {}", how_to_resume(folder.path()))
        }
        Err(error @ phalanx::Error::Write { .. }) if folder.path().is_dir() => {
            let whole = last_checkpoint(folder.path());
            let advice = format!("{whole}; once mended, {}", how_to_resume(folder.path()));
            return Err(anyhow::Error::from(error).context(advice));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn last_checkpoint(path: &Path) -> String {
    match RunFolder::last_checkpoint(path) {
        Some(iteration) => format!("the last checkpoint is of iteration {iteration}"),
        None => "there is no checkpoint yet".into(),
    }
}

fn how_to_resume(path: &Path) -> String {
    format!("go on with `phalanx resume {}`", path.display())
}

/// A flag that Ctrl-C and SIGTERM set; a second one ends the process at once.
pub fn stop_on_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 1, stop.clone())?;
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

/// Commit and command line, for the record.
pub fn provenance() -> Provenance {
    // An interpreter's is what a script was called with.
    let command_line = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    Provenance { commit: env!("PHALANX_COMMIT").into(), command_line }
}

/// `runs/<name>-seed<seed>`, numbered on if that exists. The preset `paper/wireless` is called `paper-wireless`: its run must
/// not be taken for one of `wireless`.
pub fn default_folder(source: &str, seed: u64) -> PathBuf {
    let stem = if preset::text(source).is_some() {
        source.replace('/', "-")
    } else {
        Path::new(source).file_stem().unwrap_or_default().to_string_lossy().into_owned()
    };
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

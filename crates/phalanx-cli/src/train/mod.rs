//! `phalanx train` and `phalanx resume`.

mod processes;

use std::path::PathBuf;
use std::sync::Arc;

use phalanx::Error;
use phalanx::algorithm::{DEVICE, DeviceChoice};
use phalanx::distributed::{Communicator, Halo};
use phalanx::run::{Ending, Provenance, Registry, ResumeOutcome, Run, RunFolder, Session, checksums};

use phalanx_pictures::plot;

use crate::progress::TrainingProgress;
use crate::shell::quoted;
use crate::stop::Stop;
use crate::{Source, print, say, table};

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
    execution: ExecutionArgs,
}

#[derive(clap::Args)]
pub struct ResumeArgs {
    /// Folder of the run.
    run: PathBuf,
    #[command(flatten)]
    execution: ExecutionArgs,
}

/// How a run is carried out and shown; nothing here changes its results.
#[derive(clap::Args)]
struct ExecutionArgs {
    /// Threads to use [default: all cores; with --mpi this process's share of them].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print one line of JSON at the end and nothing else.
    #[arg(long)]
    json: bool,
    /// Where to train: cpu, cuda, or auto (a GPU if there is one and the work is large enough) [default: the
    /// configuration's, which is cpu].
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Divide the graph over the processes that `mpirun` started (needs a build with MPI).
    #[arg(long)]
    mpi: bool,
}

/// `phalanx train`.
pub fn train(args: &TrainArgs, registry: &Registry) -> anyhow::Result<()> {
    processes::start(&args.execution, |peers, stop| {
        let config = args.source.load(args.seed, registry).and_then(|config| {
            let device = args.execution.device.as_deref().map(|device| (DEVICE, device));
            let config = config.with_all(device)?;
            args.out.iter().filter(|_| peers.rank() == 0).try_for_each(|out| RunFolder::check_free(out))?;
            Ok(config)
        });
        // Before there are agents: all processes fail if one does.
        let config = Halo::without_borders(peers.clone(), 0).all_ok(config)?;
        let mut session = Session::distributed(&config, peers.clone())?;
        if let Some(init) = &args.init {
            session.warm_start(&init.join("policy.safetensors"))?;
        }
        if peers.rank() == 0 {
            session.warnings().iter().for_each(|warning| say(&format!("warning: {warning}")));
            say_device(&session, args.execution.json);
        }
        let path = args.out.clone().unwrap_or_else(|| RunFolder::unused(&args.source.source, config.seed));
        let run = Run::begin(session, &path, provenance())?;
        run_to_end(run, peers, stop, args.execution.json)
    })
}

/// `phalanx resume`.
pub fn resume(args: &ResumeArgs, registry: &Registry) -> anyhow::Result<()> {
    processes::start(&args.execution, |peers, stop| match resumed(args, registry, peers)? {
        ResumeOutcome::Finished if peers.rank() > 0 => Ok(()),
        ResumeOutcome::Finished => {
            say(&format!("{} is finished; there is nothing to resume", args.run.display()));
            let damages = checksums::damages(&args.run)?;
            damages.iter().for_each(|damage| say(&format!("warning: {damage}")));
            let message = || format!("files that changed since the run ended: {}", damages.len());
            if damages.is_empty() { Ok(()) } else { Err(Error::file(&args.run, message()).into()) }
        }
        ResumeOutcome::Ready { run, notes } => {
            notes.iter().for_each(|note| say(&format!("note: {note}")));
            say_device(run.session(), args.execution.json);
            run_to_end(*run, peers, stop, args.execution.json)
        }
    })
}

fn resumed(
    args: &ResumeArgs,
    registry: &Registry,
    peers: &Arc<dyn Communicator>,
) -> phalanx::Result<ResumeOutcome> {
    let device = args.execution.device.as_deref().map(DeviceChoice::from_name).transpose()?;
    Run::resume_on(&args.run, registry, peers.clone(), device)
}

/// Says which GPU is used, if one is.
fn say_device(session: &Session, json: bool) {
    session.device().filter(|_| !json).iter().for_each(|device| say(&format!("device: {device}")));
}

/// Trains to the end, or until the user interrupts.
fn run_to_end(mut run: Run, peers: &Arc<dyn Communicator>, stop: &Stop, json: bool) -> anyhow::Result<()> {
    let path = run.path().to_path_buf();
    let how_to_resume = format!("go on with `phalanx resume {}`", quoted(&path));
    stop.advise(&how_to_resume);
    let advice = how_to_resume.clone();
    peers.advise(Box::new(move || format!("; {}; {advice}", RunFolder::describe_last_checkpoint(&path))));
    let iterations = run.session().config().iterations;
    let mut progress = TrainingProgress::new(iterations, json || peers.rank() > 0);
    let ending = run.train(&stop.flag, |summary| progress.show(summary));
    progress.clear();
    match ending {
        // The first process reports.
        Ok(Ending::Finished(None)) => {}
        Ok(Ending::Finished(Some(results))) => {
            stop.advise("the run is finished");
            if let Some(reason) = &results.inexact {
                say(&format!("warning: there is no exact evaluation: {reason}"));
            }
            if json {
                print(&format!("{}\n", serde_json::to_string(&results.outcome)?));
                return Ok(());
            }
            // The run is complete without its pictures: that they cannot be drawn is no failure of it.
            if let Err(error) = plot::plot_run(run.path()) {
                say(&format!("warning: no plots: {error}"));
            }
            print(&table::closing(&results.evaluator, &results.outcome, &results.evaluation));
        }
        Ok(Ending::Stopped { iteration }) => {
            anyhow::bail!("stopped after {iteration} iterations; {how_to_resume}")
        }
        Err(error @ Error::RunWrite { .. }) => {
            return Err(anyhow::Error::from(error).context(format!("once this is fixed, {how_to_resume}")));
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Commit and command line, for the record.
pub fn provenance() -> Provenance {
    // An interpreter's is what a script was called with.
    let command_line = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect();
    Provenance { commit: env!("PHALANX_COMMIT").into(), command_line }
}

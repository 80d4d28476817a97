//! `--mpi`: one run over several processes, of which the first reports.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use phalanx::distributed::mpi::{self, Mpi};
use phalanx::distributed::{Communicator, Halo, all_ok_among};
use phalanx::run::{self, PartEnding, Registry, RunFolder, Session};

use super::{
    How, ResumeArgs, TrainArgs, default_folder, how_to_resume, last_checkpoint, progress_bar, provenance,
    show, stop_on_signals,
};
use phalanx_pictures::plot;

use crate::{on_threads, print, table};

/// `phalanx train … --mpi`.
pub fn train(args: &TrainArgs, registry: &Registry) -> anyhow::Result<()> {
    with_ranks(&args.how, |peers, ranks, stop| {
        let config = args.source.load(args.seed, registry).and_then(|config| {
            args.out.iter().filter(|_| peers.rank() == 0).try_for_each(|out| RunFolder::check_free(out))?;
            Ok(config)
        });
        let config = all_ok_among(peers, config)?;
        let mut session = Session::shared_out(&config, peers.clone())?;
        let halo = session.halo().clone();
        if let Some(init) = &args.init {
            halo.all_ok(session.warm_start(&init.join("policy.safetensors")))?;
        }
        if halo.is_first() {
            session.warnings().iter().for_each(|warning| eprintln!("warning: {warning}"));
        }
        // A folder that is new to the first one need not be new to the others a moment later.
        let name = match &args.out {
            Some(out) => out.clone(),
            None => default_folder(&args.source.source, config.seed),
        };
        let name = halo.broadcast(name.to_string_lossy().into_owned().into_bytes())?;
        let path = Path::new(std::str::from_utf8(&name)?);
        let made = halo.is_first().then(|| RunFolder::create(path, &session, provenance())).transpose();
        let folder = halo.all_ok(made)?;
        advise(ranks, path);
        go_on(&mut session, folder, path, &halo, Duration::ZERO, stop, &args.how)
    })
}

/// `phalanx resume … --mpi`.
pub fn resume(args: &ResumeArgs, registry: &Registry) -> anyhow::Result<()> {
    with_ranks(&args.how, |peers, ranks, stop| {
        let Some(resumed) = run::resume_part(&args.run, registry, peers)? else {
            if peers.rank() == 0 {
                eprintln!("{} is finished; there is nothing to resume", args.run.display());
            }
            return Ok(());
        };
        resumed.notes.iter().for_each(|note| eprintln!("note: {note}"));
        advise(ranks, &args.run);
        let mut session = resumed.session;
        let halo = session.halo().clone();
        go_on(&mut session, resumed.folder, &args.run, &halo, resumed.elapsed, stop, &args.how)
    })
}

/// Starts MPI and runs `work` on this rank's share of the processors.
fn with_ranks(
    how: &How,
    work: impl FnOnce(&Arc<dyn Communicator>, &Mpi, &AtomicBool) -> anyhow::Result<()> + Send,
) -> anyhow::Result<()> {
    let stop = stop_on_signals()?;
    let (_mpi, ranks) = mpi::start(stop.clone())?;
    // Everybody finds the same errors, or is told of them; one of them says so.
    crate::be_quiet(ranks.rank() != 0);
    let peers: Arc<dyn Communicator> = ranks.clone();
    let threads = how.threads.unwrap_or_else(|| threads_here(ranks.count()));
    let result = on_threads(Some(threads), || work(&peers, &ranks, &stop));
    // Whatever it is, it is told; `mpirun` may stop the others for it.
    ranks.done();
    result?
}

/// What a rank says that has to give up.
fn advise(ranks: &Mpi, path: &Path) {
    let path = path.to_path_buf();
    ranks.advise(move || format!("; {}; {}", last_checkpoint(&path), how_to_resume(&path)));
}

/// Processors for each of the ranks on this machine.
fn threads_here(ranks: usize) -> usize {
    let here = std::env::var("OMPI_COMM_WORLD_LOCAL_SIZE").ok().and_then(|count| count.parse().ok());
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let all = std::fs::read_to_string("/proc/cpuinfo")
        .map_or(cores, |text| text.lines().filter(|line| line.starts_with("processor")).count());
    // `mpirun` may have tied a rank to some of them: then these are all its own.
    if cores < all { cores } else { (cores / here.unwrap_or(ranks)).max(1) }
}

/// Trains to the end, or until the user interrupts.
fn go_on(
    session: &mut Session,
    mut folder: Option<RunFolder>,
    path: &Path,
    halo: &Halo,
    elapsed: Duration,
    stop: &AtomicBool,
    how: &How,
) -> anyhow::Result<()> {
    let bar = progress_bar(session.config().iterations, how.json || !halo.is_first());
    let ending =
        run::train_part(session, folder.as_mut(), path, elapsed, stop, |summary| show(&bar, summary));
    bar.finish_and_clear();
    match ending? {
        PartEnding::Finished(outcome, _, _) if how.json => {
            print(&format!("{}\n", serde_json::to_string(&outcome)?))
        }
        PartEnding::Finished(outcome, evaluation, whole) => {
            if let Err(error) = plot::plot_run(path) {
                eprintln!("warning: no plots: {error}");
            }
            print(&table::closing(&whole, &outcome, &evaluation));
        }
        PartEnding::Elsewhere => {}
        PartEnding::Stopped { iteration } => {
            anyhow::bail!("stopped after {iteration} iterations; {}", how_to_resume(path))
        }
    }
    Ok(())
}

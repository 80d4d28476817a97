//! The processes that a run is carried out by: this one alone, or with `--mpi` those that `mpirun` has
//! started.

use std::sync::Arc;

use phalanx::distributed::{Communicator, SingleProcess};

use super::ExecutionArgs;
use crate::on_threads;
use crate::stop::Stop;

/// Runs `work` with all processes and a flag that Ctrl-C sets.
pub fn start(
    args: &ExecutionArgs,
    work: impl FnOnce(&Arc<dyn Communicator>, &Stop) -> anyhow::Result<()> + Send,
) -> anyhow::Result<()> {
    let stop = Stop::on_signals()?;
    if args.mpi {
        return start_mpi(args, stop, work);
    }
    let alone: Arc<dyn Communicator> = Arc::new(SingleProcess);
    on_threads(args.threads, || work(&alone, &stop))?
}

#[cfg(not(feature = "mpi"))]
fn start_mpi<W>(_: &ExecutionArgs, _: Stop, _: W) -> anyhow::Result<()> {
    let message = "this program was built without MPI; build it with `cargo build --release --features mpi`";
    Err(phalanx::Error::argument("mpi", message).into())
}

#[cfg(feature = "mpi")]
fn start_mpi(
    args: &ExecutionArgs,
    stop: Stop,
    work: impl FnOnce(&Arc<dyn Communicator>, &Stop) -> anyhow::Result<()> + Send,
) -> anyhow::Result<()> {
    let (_mpi, ranks) = phalanx::distributed::mpi::start(stop.flag.clone())?;
    // Everybody finds the same errors, or is told of them; one of them says so.
    crate::be_quiet(ranks.rank() != 0);
    let peers: Arc<dyn Communicator> = ranks.clone();
    let threads = args.threads.unwrap_or_else(|| threads_here(ranks.count()));
    let result = on_threads(Some(threads), || work(&peers, &stop));
    // Whatever it is, it is told; `mpirun` may stop the others for it.
    ranks.done();
    result?
}

/// Processors for each of the ranks on this machine.
#[cfg(feature = "mpi")]
fn threads_here(ranks: usize) -> usize {
    let here = std::env::var("OMPI_COMM_WORLD_LOCAL_SIZE").ok().and_then(|count| count.parse().ok());
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let all = std::fs::read_to_string("/proc/cpuinfo")
        .map_or(cores, |text| text.lines().filter(|line| line.starts_with("processor")).count());
    // `mpirun` may have tied a rank to some of them: then these are all its own.
    if cores < all { cores } else { (cores / here.unwrap_or(ranks)).max(1) }
}

//! More threads and more processes: the same line (strong scaling), and as many agents for each (weak
//! scaling).

use anyhow::Result;

use super::laboratory::{Measured, Trial};
use super::record::Record;
use super::scale::{LINE, about};

/// Agents for each process in weak scaling; strong scaling has those of two.
const SHARE: usize = 100_000;

/// Iterations of these runs.
const ITERATIONS: usize = 6;

/// Measures and prints the tables. `largest`: no graph has more agents.
pub fn run(record: &mut Record, largest: usize) -> Result<()> {
    let share = SHARE.min(largest / 2);
    let without_mpi = record.laboratory.without_mpi.clone();
    let mut measure = |n: usize, threads: usize, ranks: Option<usize>| {
        let trial = Trial { threads: Some(threads), ranks, ..LINE.trial(n, 1, ITERATIONS) };
        record.measure("ranks", about(&LINE, n, 1), &trial)
    };
    let row = |how: &str, run: &Measured, first: &Measured| {
        let megabytes = run.peak_bytes() / 1e6;
        let ratio = first.iteration_s() / run.iteration_s();
        println!("| {how} | {:.3} | {ratio:.2} | {megabytes:.0} |", run.iteration_s());
    };
    println!("\nline of {} agents, κ = 1: strong scaling\n", 2 * share);
    println!("| threads | s per iteration | speed-up | MB of all processes |\n|---:|---:|---:|---:|");
    let one = measure(2 * share, 1, None)?;
    row("1", &one, &one);
    row("2", &measure(2 * share, 2, None)?, &one);
    if let Some(why) = without_mpi {
        println!("\nruns over several processes were skipped: {why}");
        return record.skip("runs over several processes", &why);
    }
    row("1 process of 1", &measure(2 * share, 1, Some(1))?, &one);
    let both = measure(2 * share, 1, Some(2))?;
    row("2 processes of 1", &both, &one);
    println!("\nline, {share} agents and a thread per process, κ = 1: weak scaling\n");
    println!("| processes | s per iteration | efficiency | MB of all processes |\n|---:|---:|---:|---:|");
    let half = measure(share, 1, Some(1))?;
    row("1", &half, &half);
    row("2", &both, &half);
    Ok(())
}

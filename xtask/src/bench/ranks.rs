//! More threads and more processes: the same network (strong scaling), and as many agents for each (weak scaling).

use anyhow::Result;

use super::laboratory::{Laboratory, Measured, Trial};
use super::machine;
use super::record::Record;
use super::scale::about;
use super::worlds::{EPIDEMIC, LINE, World};

/// Agents for each process in weak scaling; strong scaling has those of two.
const SHARE: usize = 100_000;

/// Iterations of these runs.
const ITERATIONS: usize = 6;

/// Further networks on one and two processes, with their iterations, for the cost model: small ones, in which messages count, and
/// one with a long border.
const FURTHER: [(World, usize, usize); 3] = [(LINE, 2_000, 60), (LINE, 20_000, 12), (EPIDEMIC, 40_000, 3)];

/// Agents and processes of the runs that show what every process needs to set up.
const SET_UP: (usize, usize) = (400_000, 8);

/// How a run is shared out.
#[derive(Clone, Copy)]
enum Over {
    Threads(usize),
    /// With a thread each.
    Ranks(usize),
}

struct Bench<'a> {
    laboratory: &'a mut Laboratory,
    record: &'a mut Record,
}

impl Bench<'_> {
    fn measure(&mut self, world: &World, n: usize, over: Over, iterations: usize) -> Result<Measured> {
        let mut trial = world.trial(n, 1, iterations);
        (trial.threads, trial.ranks) = match over {
            Over::Threads(threads) => (Some(threads), None),
            Over::Ranks(ranks) => (Some(1), Some(ranks)),
        };
        let measured = self.laboratory.run(&trial)?;
        self.record.add("ranks", about(world, n, 1), &measured)?;
        Ok(measured)
    }

    /// Memory of processes that have little to simulate: what each needs to look at the whole network.
    fn set_up(&mut self, largest: usize) -> Result<()> {
        let (n, ranks) = (SET_UP.0.min(largest), SET_UP.1);
        println!(
            "\nκ = 1, {n} agents on {ranks} ranks, one iteration of two steps: bytes for each agent of the whole network\n"
        );
        println!("| world | rank 0 | another rank |\n|---|---:|---:|");
        let gigabytes = machine::free_memory() as f64 / 1e9;
        if gigabytes < 8.0 {
            println!("\nskipped: only {gigabytes:.1} GB are free");
            return self.record.skip("memory at set-up", "too little memory is free");
        }
        for world in [LINE, EPIDEMIC] {
            let small = |n: usize| {
                let trial = world.trial(n, 1, 1).set("horizon", 2).set("batch", 1).set("critic.steps", 2);
                Trial { threads: Some(1), ranks: Some(ranks), ..trial }
            };
            let tiny = self.laboratory.run(&small(64))?;
            let whole = self.laboratory.run(&small(n))?;
            self.record.add("set-up", about(&world, 64, 1), &tiny)?;
            self.record.add("set-up", about(&world, n, 1), &whole)?;
            let [first, other] = set_up_bytes(&tiny.peaks, &whole.peaks, n);
            println!("| {} | {first:.0} | {other:.0} |", world.name);
        }
        Ok(())
    }
}

/// Measures and prints the tables. `largest`: no network has more agents.
pub fn run(laboratory: &mut Laboratory, record: &mut Record, largest: usize) -> Result<()> {
    let mut bench = Bench { laboratory, record };
    let share = SHARE.min(largest / 2);
    println!("\nline of {} agents, κ = 1: strong scaling\n", 2 * share);
    println!(
        "| threads | ranks | s an iteration | speed-up | MB of all processes |\n|---:|---:|---:|---:|---:|"
    );
    let row = |threads: &str, ranks: &str, run: &Measured, first: &Measured| {
        let megabytes = run.peaks.iter().sum::<u64>() as f64 / 1e6;
        let speed_up = first.iteration_s() / run.iteration_s();
        println!("| {threads} | {ranks} | {:.3} | {speed_up:.2} | {megabytes:.0} |", run.iteration_s());
    };
    let one = bench.measure(&LINE, 2 * share, Over::Threads(1), ITERATIONS)?;
    row("1", "–", &one, &one);
    row("2", "–", &bench.measure(&LINE, 2 * share, Over::Threads(2), ITERATIONS)?, &one);
    if let Some(why) = bench.laboratory.without_mpi.clone() {
        println!("\nruns over several processes were skipped: {why}");
        return bench.record.skip("runs over several processes", &why);
    }
    let alone = bench.measure(&LINE, 2 * share, Over::Ranks(1), ITERATIONS)?;
    row("1 each", "1", &alone, &one);
    let both = bench.measure(&LINE, 2 * share, Over::Ranks(2), ITERATIONS)?;
    row("1 each", "2", &both, &one);
    let half = bench.measure(&LINE, share, Over::Ranks(1), ITERATIONS)?;
    println!("\nline, {share} agents a rank, κ = 1, a thread a rank: weak scaling\n");
    println!("| ranks | s an iteration | efficiency | MB of all processes |\n|---:|---:|---:|---:|");
    for (ranks, run) in [(1, &half), (2, &both)] {
        let megabytes = run.peaks.iter().sum::<u64>() as f64 / 1e6;
        let efficiency = half.iteration_s() / run.iteration_s();
        println!("| {ranks} | {:.3} | {efficiency:.2} | {megabytes:.0} |", run.iteration_s());
    }
    println!("\nκ = 1, a thread a rank: smaller networks, and a longer border\n");
    println!(
        "| world | n | s an iteration, 1 rank | 2 ranks | bytes sent by a rank |\n|---|---:|---:|---:|---:|"
    );
    for (world, n, iterations) in FURTHER {
        let n = n.min(largest);
        let alone = bench.measure(&world, n, Over::Ranks(1), iterations)?;
        let both = bench.measure(&world, n, Over::Ranks(2), iterations)?;
        let sent = sent(&both);
        println!(
            "| {} | {n} | {:.4} | {:.4} | {sent} |",
            world.name,
            alone.iteration_s(),
            both.iteration_s()
        );
    }
    let (world, n, iterations) = FURTHER[FURTHER.len() - 1];
    let n = n.min(largest);
    println!("\n{}, {n} agents, κ = 1, without MPI\n", world.name);
    println!("| threads | s an iteration |\n|---:|---:|");
    for threads in [1, 2] {
        let run = bench.measure(&world, n, Over::Threads(threads), iterations)?;
        println!("| {threads} | {:.4} |", run.iteration_s());
    }
    bench.set_up(largest)
}

/// Bytes that the process sends that sends most.
fn sent(measured: &Measured) -> u64 {
    let processes = measured.outcome["processes"].as_array().into_iter().flatten();
    processes.filter_map(|process| process["bytes"].as_u64()).max().unwrap_or(0)
}

/// Bytes an agent of the first process and of the largest other one, over those of a tiny network.
pub fn set_up_bytes(tiny: &[u64], whole: &[u64], n: usize) -> [f64; 2] {
    let of =
        |peaks: &[u64]| [peaks.first(), peaks.iter().skip(1).max()].map(|x| x.copied().unwrap_or(0) as f64);
    let (tiny, whole) = (of(tiny), of(whole));
    [0, 1].map(|k| (whole[k] - tiny[k]) / n as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_over_a_tiny_network() {
        assert_eq!(set_up_bytes(&[10, 5, 6], &[110, 56, 46], 10), [10.0, 5.0]);
    }
}

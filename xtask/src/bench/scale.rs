//! Speed and memory from a thousand to a million agents.

use anyhow::Result;
use serde_json::json;

use super::laboratory::{Measured, Trial};
use super::machine;
use super::record::Record;

/// A world with its preset, and how that is told the number of agents.
#[derive(Debug, Clone, Copy)]
pub struct World {
    pub name: &'static str,
    preset: &'static str,
    /// Whether the size is given as rows and columns.
    has_rows: bool,
}

/// Tables.
pub const LINE: World = World { name: "line", preset: "synthetic", has_rows: false };

/// All of them; the others have linear policies and critics.
pub const WORLDS: [World; 3] = [
    LINE,
    World { name: "wireless", preset: "wireless-grid", has_rows: true },
    World { name: "epidemic", preset: "epidemic-grid", has_rows: false },
];

impl World {
    /// A run with `n` agents.
    pub fn trial(&self, n: usize, kappa: usize, iterations: usize) -> Trial {
        let trial = Trial::of(self.preset, iterations).set("kappa", kappa).set("kappa_q", kappa);
        if !self.has_rows {
            return trial.set("world.n", n);
        }
        let rows = squarest(n);
        trial.set("world.rows", rows).set("world.columns", n / rows)
    }
}

/// Rows of the squarest grid.
fn squarest(n: usize) -> usize {
    (1..=n.isqrt()).rev().find(|rows| n.is_multiple_of(*rows)).unwrap_or(1)
}

const SIZES: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];
const RADII: [usize; 3] = [0, 1, 2];

/// Agents of the run whose memory is that of the program itself.
const TINY: usize = 16;

/// Seconds of training that a run aims at, and that it may take at most.
const AIM: f64 = 4.0;
const LONGEST: f64 = 120.0;

/// Bytes that a run may take at most.
const LARGEST: f64 = 12e9;

/// Measures all sizes and radii and prints the table. `largest`: no graph has more agents.
pub fn run(record: &mut Record, largest: usize) -> Result<()> {
    let sizes: Vec<usize> = SIZES.into_iter().filter(|&n| n <= largest).collect();
    println!(
        "\nphalanx train, {} threads: million agent-steps per second, and bytes per agent\n",
        machine::cores()
    );
    let heads = || sizes.iter().map(|n| format!(" n = 10^{} |", n.ilog10())).collect::<String>();
    println!("| world | κ |{} |{}", heads(), heads().replace("n =", "bytes,"));
    println!("|---|---:|{}---|{}", "---:|".repeat(sizes.len()), "---:|".repeat(sizes.len()));
    let mut notes = Vec::new();
    for world in WORLDS {
        for kappa in RADII {
            let own = record
                .measure("tiny", about(&world, TINY, kappa), &world.trial(TINY, kappa, 2))?
                .peak_bytes();
            let smallest = sizes.first().copied().unwrap_or(TINY);
            let first = record.laboratory.run(&world.trial(smallest, kappa, 2))?;
            let mut last = Cell::of(&first, smallest, own);
            let (mut rates, mut bytes) = (Vec::new(), Vec::new());
            for &n in &sizes {
                match last.iterations(n) {
                    Ok(iterations) => {
                        let trial = world.trial(n, kappa, iterations);
                        let measured = record.measure("scale", about(&world, n, kappa), &trial)?;
                        last = Cell::of(&measured, n, own);
                        rates.push(format!("{:.3}", measured.rate() / 1e6));
                        bytes.push(format!("{:.0}", last.bytes));
                    }
                    Err(why) => {
                        let what = format!("{} of {n}, κ = {kappa}", world.name);
                        record.skip(&what, &why)?;
                        notes.push(format!("– {what}: {why}"));
                        rates.push("–".into());
                        bytes.push("–".into());
                    }
                }
            }
            println!("| {} | {kappa} | {} | | {} |", world.name, rates.join(" | "), bytes.join(" | "));
        }
    }
    notes.iter().for_each(|note| println!("\n{note}"));
    Ok(())
}

/// Which run it is.
pub fn about(world: &World, n: usize, kappa: usize) -> serde_json::Value {
    json!({ "world": world.name, "n": n, "kappa": kappa })
}

/// What a run of some size took, to foretell a larger one.
#[derive(Debug, Clone, Copy)]
struct Cell {
    n: usize,
    /// Seconds per iteration, and of everything around the iterations.
    iteration_s: f64,
    rest_s: f64,
    /// Per agent.
    bytes: f64,
}

impl Cell {
    /// `own`: memory of the program itself.
    fn of(measured: &Measured, n: usize, own: f64) -> Self {
        let bytes = (measured.peak_bytes() - own).max(0.0) / n as f64;
        let rest_s = measured.whole_s() - measured.wall_s();
        Cell { n, iteration_s: measured.iteration_s(), rest_s, bytes }
    }

    /// Iterations of a run of `n` agents, or why there is none.
    fn iterations(&self, n: usize) -> Result<usize, String> {
        let factor = n as f64 / self.n as f64;
        let (iteration_s, rest_s) = (factor * self.iteration_s, factor * self.rest_s);
        let memory = LARGEST.min(0.8 * machine::free_memory() as f64);
        let expected = self.bytes * n as f64;
        if expected > memory {
            return Err(format!("skipped, would take {:.0} GB (limit {:.0})", expected / 1e9, memory / 1e9));
        }
        if iteration_s + rest_s > LONGEST {
            let seconds = iteration_s + rest_s;
            return Err(format!("skipped, would take {seconds:.0} s for one iteration (limit {LONGEST:.0})"));
        }
        // Two, unless that takes too long: memory is touched for the first time in the first one.
        let fitting = ((LONGEST - rest_s) / iteration_s).floor().max(1.0);
        Ok((AIM / iteration_s).ceil().clamp(2.0, 500.0).min(fitting) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_square() {
        assert_eq!([1000, 10_000, 100_000, 7].map(squarest), [25, 100, 250, 1]);
    }

    #[test]
    fn runs_are_seconds_long_or_skipped() {
        let cell = Cell { n: 1000, iteration_s: 0.01, rest_s: 0.1, bytes: 1000.0 };
        assert_eq!(cell.iterations(1000), Ok(400));
        assert_eq!(cell.iterations(1_000_000), Ok(2));
        let slow = Cell { iteration_s: 0.09, rest_s: 0.0, ..cell };
        assert_eq!(slow.iterations(1_000_000), Ok(1));
        assert!(Cell { iteration_s: 0.2, ..cell }.iterations(1_000_000).unwrap_err().contains("300 s"));
        assert!(Cell { bytes: 20_000.0, ..cell }.iterations(1_000_000).unwrap_err().contains("20 GB"));
    }
}

//! How long iterations take.

use std::fmt::Write;

use anyhow::Result;

use super::trainer::{Taken, Trainer};
use super::{GpuArgs, all_well};

/// What is measured.
struct Row {
    name: &'static str,
    settings: String,
    iterations: usize,
    /// Times that it is measured.
    times: usize,
    /// Whether it is left out where there is little time.
    is_long: bool,
    /// Milliseconds per iteration of a jitted JAX program on an H200, where that was measured.
    jax_ms: Option<f64>,
}

fn row(name: &'static str, settings: String, iterations: usize, jax_ms: Option<f64>) -> Row {
    Row { name, settings, iterations, times: 5, is_long: false, jax_ms }
}

fn rows() -> [Row; 7] {
    let line = |n: usize| format!("synthetic --set world.n={n}");
    let wide = |preset: &str| format!("{preset} --set world.rows=100 --set world.columns=100 --set batch=60");
    let million = row("line, tables, n = 1,000,000", line(1_000_000), 200, Some(189.0));
    let networks = row("wireless 100×100, networks, B = 60", wide("paper/wireless"), 30, Some(158.0));
    let ten_million = row("line, tables, n = 10,000,000", line(10_000_000), 20, None);
    [
        row("line, tables, n = 1,000", line(1_000), 200, Some(8.2)),
        row("line, tables, n = 100,000", line(100_000), 200, Some(18.5)),
        Row { is_long: true, ..million },
        Row { is_long: true, times: 1, ..ten_million },
        row("wireless 5×5 as published, networks", "paper/wireless".into(), 300, Some(1.83)),
        Row { times: 3, ..networks },
        row("wireless 100×100, linear, B = 60", wide("wireless"), 30, Some(50.0)),
    ]
}

/// Measured runs write no checkpoints and evaluate one episode only, on the processor.
const FIXED: &str = "--set checkpoint.seconds=inf --set evaluation.episodes=1";

/// Adds a table to the report; fails if a run does.
pub fn measure(trainer: &Trainer, args: &GpuArgs, report: &mut String) -> Result<()> {
    let mut wrong = Vec::new();
    let mut table = String::new();
    for row in rows() {
        if !args.wants(row.name) || args.quick && row.is_long {
            continue;
        }
        let settings = format!("{} --set iterations={} {FIXED}", row.settings, row.iterations);
        let times = if args.quick { 1 } else { row.times };
        match repeated(trainer, &settings, times) {
            Ok(taken) => table += &line(&row, &taken),
            Err(error) => {
                let _ = writeln!(table, "| {} | **{error:#}** | | | | | | |", row.name);
                wrong.push(format!("{}: {error:#}", row.name));
            }
        }
        println!("{}", table.lines().last().unwrap_or_default());
    }
    if !table.is_empty() {
        let _ = write!(report, "\n## Speed\n\n{ABOUT}\n\n{HEAD}\n{table}");
    }
    all_well(&wrong)
}

const ABOUT: &str = "Times are `wall_s` of the runs divided by their iterations: the median, and the smallest and largest. \
    Without checkpoints; the closing evaluation is not in them. JAX: a jitted program on one H200 that does the same work. \
    Memory of the host is the peak of the process, memory of the GPU what the line `device:` says, the whole command includes \
    set-up and evaluation.";

const HEAD: &str = "| work | ms per iteration | runs | agent-steps per second | JAX, ms | times as fast | memory of the host, of the GPU | whole command, s |\n\
                    |---|---:|---:|---:|---:|---:|---|---:|";

fn repeated(trainer: &Trainer, settings: &str, times: usize) -> Result<Vec<Taken>> {
    let mut all = Vec::new();
    for _ in 0..times {
        let folder = tempfile::tempdir()?;
        all.push(trainer.train(settings, &trainer.device, &folder.path().join("run"))?);
    }
    all.sort_by(|a, b| a.wall_s.total_cmp(&b.wall_s));
    Ok(all)
}

/// The row of a table; `taken` is sorted and not empty.
fn line(row: &Row, taken: &[Taken]) -> String {
    let [first, middle, last] = [0, taken.len() / 2, taken.len() - 1].map(|at| &taken[at]);
    let ms = |taken: &Taken| 1e3 * taken.wall_s / taken.iterations;
    let (of_jax, times) =
        row.jax_ms.map_or((String::new(), String::new()), |jax| (digits(jax), digits(jax / ms(middle))));
    let device = middle.device.as_deref().unwrap_or("the processor");
    // "NAME, 1.2 GB of its memory": the name is at the top of the report.
    let there = device.rsplit(", ").next().unwrap_or(device).trim_end_matches(" of its memory");
    let peak = taken.iter().map(|taken| taken.peak_bytes).max().unwrap_or(0) as f64 / 1e9;
    format!(
        "| {} | {} ({} to {}) | {} | {:.2e} | {of_jax} | {times} | {peak:.2} GB, {there} | {:.1} |\n",
        row.name,
        digits(ms(middle)),
        digits(ms(first)),
        digits(ms(last)),
        taken.len(),
        middle.agent_steps / middle.wall_s,
        middle.whole_s,
    )
}

/// Three digits, or all before the point.
fn digits(x: f64) -> String {
    let places = if x >= 100.0 {
        0
    } else if x >= 10.0 {
        1
    } else {
        2
    };
    format!("{x:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_tells_the_median_and_how_far_runs_are_apart() {
        let taken = [1.0, 2.0, 4.0].map(|wall_s| Taken {
            wall_s,
            whole_s: 9.0,
            iterations: 100.0,
            agent_steps: 1e9,
            peak_bytes: 2_000_000_000,
            device: Some("CARD, 1.5 GB of its memory".into()),
        });
        let expected = "| x | 20.0 (10.0 to 40.0) | 3 | 5.00e8 | 60.0 | 3.00 | 2.00 GB, 1.5 GB | 9.0 |\n";
        assert_eq!(line(&row("x", String::new(), 100, Some(60.0)), &taken), expected);
    }
}

//! The cost model of docs/scaling.md: seconds an iteration as a sum of what threads share, what they do not, messages and bytes.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::fit::fit;
use super::prediction::{self, Memory};
use super::ranks::set_up_bytes;
use super::record;
use super::worlds::{WORLDS, World};

/// A measured run as the model sees it.
struct Run {
    world: World,
    kappa: usize,
    n: usize,
    ranks: usize,
    threads: usize,
    /// Whether threads share the agents of a trajectory; in smaller networks each has a trajectory of its own.
    is_wide: bool,
    /// Bytes of the process that sends most.
    sent: f64,
    peaks: Vec<u64>,
    iteration_s: f64,
}

/// Agents from which on they do so in one process (`rollout::SPLIT_AGENTS`); processes of several always do.
const WIDE: usize = 1 << 15;

/// World and radius.
pub type Kind = (&'static str, usize);

/// Seconds that things take.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// Of a thread for an agent-step, by world and radius, where it was measured.
    pub agent_step: Vec<(Kind, f64)>,
    /// For an agent-step whatever the number of threads; only where there are runs on different numbers, elsewhere it is part
    /// of the other.
    pub serial: Vec<(Kind, f64)>,
    /// A message.
    pub message: f64,
    /// A byte that is sent.
    pub byte: f64,
}

/// Messages of a process in an iteration, one after the other: exchanges with neighbours, and those that all processes
/// have with the first one. Rank 0 deals with one from each of the others in every one of these.
pub fn messages(world: &World, ranks: usize) -> f64 {
    if ranks == 1 { 0.0 } else { (world.exchanges() + WITH_FIRST * (ranks - 1)) as f64 }
}

/// Two agreements of two messages each, sums and counts as length and content each, and a decision likewise.
pub const WITH_FIRST: usize = 10;

/// Fits the model to a file of `scale`, prints it, how far it is off, and what it foretells.
pub fn run(folder: &Path, file: Option<&Path>) -> Result<()> {
    let path = match file {
        Some(file) => file.to_path_buf(),
        None => record::newest("scale", folder)?,
    };
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let content: Value =
        serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))?;
    let of_group = |groups: &[&str]| -> Vec<Run> {
        let runs = content["runs"].as_array().into_iter().flatten();
        runs.filter(|run| groups.iter().any(|group| run["group"] == *group)).filter_map(read).collect()
    };
    let mut runs = of_group(&["scale", "ranks"]);
    runs.retain(|run| run.is_wide);
    ensure!(!runs.is_empty(), "{} has no runs to fit", path.display());
    println!("\nthe cost model, fitted to {} runs of {}\n", runs.len(), path.display());
    let costs = fitted(&runs);
    show(&costs);
    residuals(&runs, &costs);
    let (tiny, set_up) = (of_group(&["tiny"]), of_group(&["set-up"]));
    prediction::run(&costs, |world| memory(world, &runs, &tiny, &set_up));
    Ok(())
}

fn read(run: &Value) -> Option<Run> {
    let number = |value: &Value| value.as_u64().map(|x| x as usize);
    let peaks = run["peak_bytes"].as_array()?;
    let processes = run["outcome"]["processes"].as_array().into_iter().flatten();
    let n = number(&run["about"]["n"])?;
    Some(Run {
        world: WORLDS.into_iter().find(|world| run["about"]["world"] == world.name)?,
        kappa: number(&run["about"]["kappa"])?,
        n,
        ranks: number(&run["ranks"]).unwrap_or(1),
        threads: number(&run["threads"])?,
        is_wide: n >= WIDE || run["ranks"].is_number(),
        sent: processes.filter_map(|process| process["bytes"].as_f64()).fold(0.0, f64::max),
        peaks: peaks.iter().filter_map(Value::as_u64).collect(),
        iteration_s: run["iteration_s"].as_f64()?,
    })
}

impl Run {
    fn kind(&self) -> Kind {
        (self.world.name, self.kappa)
    }

    /// Agent-steps that each process simulates in an iteration.
    fn work(&self) -> f64 {
        self.n as f64 / self.ranks as f64 * self.world.pairs as f64
    }
}

/// What was measured, and of that what was measured on different numbers of threads.
fn kinds(runs: &[Run]) -> [Vec<Kind>; 2] {
    let mut kinds: Vec<Kind> = runs.iter().map(Run::kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let varies = |kind: &&Kind| {
        let mut threads = runs.iter().filter(|run| run.kind() == **kind).map(|run| run.threads);
        threads.next().is_some_and(|first| threads.any(|other| other != first))
    };
    let varied = kinds.iter().filter(varies).copied().collect();
    [kinds, varied]
}

fn fitted(runs: &[Run]) -> Costs {
    let [kinds, varied] = kinds(runs);
    let equation = |run: &Run| {
        let of = |kinds: &[Kind], work: f64| -> Vec<f64> {
            kinds.iter().map(|&kind| if kind == run.kind() { work } else { 0.0 }).collect()
        };
        let shared = of(&kinds, run.work() / run.threads as f64);
        let others = vec![messages(&run.world, run.ranks), run.sent];
        ([shared, of(&varied, run.work()), others].concat(), run.iteration_s)
    };
    let found = fit(&runs.iter().map(equation).collect::<Vec<_>>());
    let (own, others) = found.split_at(kinds.len());
    let (serial, others) = others.split_at(varied.len());
    Costs {
        agent_step: kinds.into_iter().zip(own.iter().copied()).collect(),
        serial: varied.into_iter().zip(serial.iter().copied()).collect(),
        message: others[0],
        byte: others[1],
    }
}

impl Costs {
    /// Of a thread for an agent-step.
    pub fn agent_step(&self, kind: Kind) -> Option<f64> {
        self.agent_step.iter().find(|(other, _)| *other == kind).map(|&(_, seconds)| seconds)
    }

    /// For an agent-step whatever the number of threads; nothing where it is not known.
    pub fn serial(&self, kind: Kind) -> f64 {
        self.serial.iter().find(|(other, _)| *other == kind).map_or(0.0, |&(_, seconds)| seconds)
    }

    fn of(&self, run: &Run) -> f64 {
        let shared = self.agent_step(run.kind()).unwrap_or(f64::NAN) / run.threads as f64;
        run.work() * (shared + self.serial(run.kind()))
            + self.message * messages(&run.world, run.ranks)
            + self.byte * run.sent
    }
}

fn show(costs: &Costs) {
    println!("| what | cost |\n|---|---:|");
    for ((world, kappa), seconds) in &costs.agent_step {
        println!("| agent-step of a thread, {world}, κ = {kappa} | {:.2} ns |", 1e9 * seconds);
    }
    for ((world, kappa), seconds) in &costs.serial {
        println!("| agent-step that threads do not share, {world}, κ = {kappa} | {:.2} ns |", 1e9 * seconds);
    }
    println!("| message on this machine | {:.2} µs |", 1e6 * costs.message);
    println!("| byte sent on this machine | {:.3} ns |", 1e9 * costs.byte);
    println!("\n0: the runs cannot tell it from nothing");
}

fn residuals(runs: &[Run], costs: &Costs) {
    println!("\n| world | κ | n | ranks | threads | measured, s an iteration | model | off by |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    let mut squares = 0.0;
    for run in runs {
        let model = costs.of(run);
        let off = model / run.iteration_s - 1.0;
        squares += off * off;
        println!(
            "| {} | {} | {} | {} | {} | {:.4} | {model:.4} | {:+.0} % |",
            run.world.name,
            run.kappa,
            run.n,
            run.ranks,
            run.threads,
            run.iteration_s,
            100.0 * off
        );
    }
    let typical = (squares / runs.len() as f64).sqrt();
    println!("\ntypically off by {:.0} % (root mean square)", 100.0 * typical);
}

/// Bytes an agent with κ = 1, as far as they were measured.
fn memory(world: &World, runs: &[Run], tiny: &[Run], set_up: &[Run]) -> Memory {
    let is_it = |run: &&Run| run.world.name == world.name && run.kappa == 1;
    let peak = |run: &Run| run.peaks.iter().sum::<u64>() as f64;
    let own = tiny.iter().find(is_it).map_or(0.0, peak);
    let largest = runs.iter().filter(is_it).filter(|run| run.ranks == 1).max_by_key(|run| run.n);
    let bounds = [
        set_up.iter().filter(is_it).min_by_key(|run| run.n),
        set_up.iter().filter(is_it).max_by_key(|run| run.n),
    ];
    let [first, other] = match bounds {
        [Some(tiny), Some(whole)] if tiny.n < whole.n => set_up_bytes(&tiny.peaks, &whole.peaks, whole.n),
        _ => [f64::NAN; 2],
    };
    Memory { agent: largest.map_or(f64::NAN, |run| (peak(run) - own) / run.n as f64), first, other }
}

#[cfg(test)]
mod tests {
    use super::super::worlds::{EPIDEMIC, LINE};
    use super::*;

    #[test]
    fn costs_are_found_again() {
        let truth = Costs {
            agent_step: vec![(("epidemic", 1), 5e-7), (("line", 1), 1e-8)],
            serial: vec![(("line", 1), 1e-9), (("epidemic", 1), 4e-8)],
            message: 3e-6,
            byte: 0.0,
        };
        let run = |world: World, n: usize, ranks: usize, threads: usize| {
            let mut run = Run {
                world,
                kappa: 1,
                n,
                ranks,
                threads,
                is_wide: true,
                sent: 0.0,
                peaks: Vec::new(),
                iteration_s: 0.0,
            };
            run.iteration_s = truth.of(&run);
            run
        };
        let runs = [
            run(LINE, 1000, 1, 1),
            run(LINE, 100_000, 1, 2),
            run(LINE, 1000, 2, 1),
            run(LINE, 50_000, 2, 2),
            run(EPIDEMIC, 10_000, 1, 2),
            run(EPIDEMIC, 10_000, 2, 1),
            run(EPIDEMIC, 10_000, 1, 1),
        ];
        let found = fitted(&runs);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-4 * b;
        let (line, epidemic) = (("line", 1), ("epidemic", 1));
        assert!(near(found.agent_step(line).unwrap(), 1e-8) && near(found.serial(line), 1e-9), "{found:?}");
        assert!(
            near(found.agent_step(epidemic).unwrap(), 5e-7) && near(found.serial(epidemic), 4e-8),
            "{found:?}"
        );
        assert!(near(found.message, 3e-6) && found.byte == 0.0, "{found:?}");
    }
}

//! `phalanx exact`.

use std::path::PathBuf;

use phalanx::exact::{Case, Dynamics, System, optimum, report};
use serde_json::{Value, json};

use crate::{on_threads, print};

#[derive(clap::Args)]
pub struct ExactArgs {
    /// Model with policy and multipliers (the `input` object of the file).
    #[arg(value_name = "FILE.json")]
    file: PathBuf,
    /// Print the constrained optimum over all policies instead.
    #[arg(long)]
    optimum: bool,
    /// Threads to use [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// Prints everything that can be said exactly about the case in a file, or its optimum, as one line of JSON.
pub fn exact(args: &ExactArgs) -> anyhow::Result<()> {
    let case = Case::read(&args.file)?;
    on_threads(args.threads, || {
        let value = if args.optimum { best(&case) } else { report(&case) };
        let value = value.map_err(|error| phalanx::Error::file(&args.file, error.to_string()))?;
        print(&format!("{value}\n"));
        Ok(())
    })?
}

/// The optimum over all policies, and how far the file's policy is from it.
fn best(case: &Case) -> phalanx::Result<Value> {
    let found = optimum(&Dynamics::new(&case.world)?, &case.problem)?;
    let system = System::new(&case.world, &case.problem, &case.policy)?;
    let signals = system.under(&case.policy)?.signals(&case.problem);
    let objective = signals.objective.iter().sum::<f64>() / signals.objective.len() as f64;
    let violation = signals.slack.data().iter().fold(0.0, |m: f64, g| m.max(-g));
    Ok(json!({
        "F": found.value,
        "accuracy": found.gap,
        "lambda": found.occupancy.iter().collect::<Vec<_>>(),
        "mu": found.multipliers.iter().collect::<Vec<_>>(),
        "g": found.slack.iter().collect::<Vec<_>>(),
        "policy": { "F": objective, "violation_max": violation, "optimality_gap": found.value - objective },
    }))
}

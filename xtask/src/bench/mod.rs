//! `cargo xtask bench`: how fast the real command is, and how much memory it takes.

mod laboratory;
pub mod machine;
mod ranks;
pub mod record;
mod scale;
mod stages;

use std::path::PathBuf;

use anyhow::Result;

use crate::cargo;
use laboratory::Laboratory;
use record::Record;

#[derive(clap::Args)]
pub struct BenchArgs {
    /// The table to make [default: all].
    what: Option<Table>,
    /// No graph above N agents in `scale`.
    #[arg(long, value_name = "N", default_value_t = usize::MAX, hide_default_value = true)]
    largest: usize,
    /// Where raw results go.
    #[arg(long, value_name = "DIR", default_value = "bench-runs")]
    into: PathBuf,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Table {
    /// Iterations by stage, the exact algorithm, linear and neural models.
    Stages,
    /// The neural networks of policies and critics alone, against the machine's peak.
    Networks,
    /// Agent-steps per second and bytes per agent from a thousand to a million agents; threads and MPI.
    Scale,
}

/// Prints the tables that are asked for.
pub fn run(args: &BenchArgs) -> Result<()> {
    let wants = |table: Table| args.what.is_none_or(|what| what == table);
    if wants(Table::Stages) || wants(Table::Scale) {
        let laboratory = Laboratory::new()?;
        if wants(Table::Stages) {
            stages::run(&mut Record::new("stages", &args.into, &laboratory)?)?;
        }
        if wants(Table::Scale) {
            let mut record = Record::new("scale", &args.into, &laboratory)?;
            scale::run(&mut record, args.largest)?;
            ranks::run(&mut record, args.largest)?;
        }
    }
    if wants(Table::Networks) {
        println!("\nneural networks alone, in this run\n");
        cargo(&["bench", "-p", "phalanx", "--bench", "net"], &[])?;
    }
    Ok(())
}

//! `phalanx exact`.

use std::path::PathBuf;

use phalanx::exact::{Case, report};

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

/// Prints everything that can be said exactly about the case in a file.
pub fn exact(args: &ExactArgs) -> anyhow::Result<()> {
    let case = Case::read(&args.file)?;
    on_threads(args.threads, || {
        let value = report(&case)?;
        print(&format!("{value}\n"));
        Ok(())
    })?
}

//! `cargo xtask bench`: how fast the real command is, and how much memory it takes.

mod laboratory;
mod machine;
mod memory;
mod ranks;
mod record;
mod scale;
mod stages;
mod worlds;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::cargo;
use laboratory::Laboratory;
use record::Record;

/// Tables that can be asked for, and what they are.
const HELP: &str = "\
cargo xtask bench            all tables: stages, networks, scale
  … stages                   iterations by stage, the exact algorithm, linear and neural models
  … networks                 the neural networks of policies and critics alone, against the machine's peak
  … scale                    agent-steps per second and bytes per agent from a thousand to a million agents; threads and MPI
  --largest N                no graph above N agents in `scale`
  --into DIR                 where raw results go [default: bench-runs]
PHALANX_BIN                  a program to measure instead of building one";

/// What was asked for.
struct Options {
    what: Option<String>,
    largest: usize,
    into: PathBuf,
}

impl Options {
    fn read(arguments: &[String]) -> Result<Self> {
        let mut options = Options { what: None, largest: usize::MAX, into: PathBuf::from("bench-runs") };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--largest" => options.largest = value()?.parse().context("--largest: a number is needed")?,
                "--into" => options.into = value()?.into(),
                "stages" | "networks" | "scale" if options.what.is_none() => {
                    options.what = Some(argument.clone());
                }
                _ => bail!("`{argument}` is no table or option\n{HELP}"),
            }
        }
        Ok(options)
    }

    fn wants(&self, what: &str) -> bool {
        self.what.as_deref().is_none_or(|chosen| chosen == what)
    }
}

/// Prints the tables that `arguments` ask for, all by default.
pub fn run(arguments: &[String]) -> Result<()> {
    if arguments.first().is_some_and(|first| matches!(first.as_str(), "help" | "--help" | "-h")) {
        println!("{HELP}");
        return Ok(());
    }
    let options = Options::read(arguments)?;
    if options.wants("stages") || options.wants("scale") {
        let mut laboratory = Laboratory::new()?;
        if options.wants("stages") {
            let mut record = Record::new("stages", &options.into, &laboratory)?;
            stages::run(&mut laboratory, &mut record)?;
        }
        if options.wants("scale") {
            let mut record = Record::new("scale", &options.into, &laboratory)?;
            scale::run(&mut laboratory, &mut record, options.largest)?;
            ranks::run(&mut laboratory, &mut record, options.largest)?;
        }
    }
    if options.wants("networks") {
        println!("\nneural networks alone, in this run\n");
        cargo(&["bench", "-p", "phalanx", "--bench", "net"], &[])?;
    }
    Ok(())
}

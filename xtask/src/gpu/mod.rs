//! `cargo xtask gpu`: does a card do what the processor does, and how fast?
//!
//! The machine with the card may have no Rust: `xtask gpu --program PATH` needs nothing but that program.

mod bytes;
mod returns;
mod speed;
mod trainer;

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use self::trainer::Trainer;
use crate::bench::machine;
use crate::bench::record::unused;
use crate::{cargo, run, target};

#[derive(clap::Args)]
pub struct GpuArgs {
    /// A program to measure instead of building one; the cargo tests are left out then unless cargo is there.
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
    /// A compiled test program to run on the card where there is no cargo; may be given several times.
    #[arg(long, value_name = "PATH")]
    tests: Vec<PathBuf>,
    /// Where the report goes [default: bench-runs/YYYY-MM-DD-gpu.md].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Every row once, without those of 10^6 agents and more.
    #[arg(long)]
    quick: bool,
    /// Only rows and comparisons whose name has this in it, without the cargo tests.
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
    /// Another device to compare with the processor, to try the command where there is no card.
    #[arg(long, value_name = "DEVICE", default_value = "cuda")]
    device: String,
}

impl GpuArgs {
    fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|word| name.contains(word.as_str()))
    }
}

/// Tests, comparisons and measurements; the report is written even if one of them fails.
pub fn measure(args: &GpuArgs) -> Result<()> {
    let program = match &args.program {
        Some(program) => std::path::absolute(program)?,
        None => {
            cargo(&["build", "--release"], &[])?;
            target()?.join("release/phalanx")
        }
    };
    let trainer = Trainer { program, device: args.device.clone() };
    let path = match &args.out {
        Some(path) => path.clone(),
        None => unused("gpu", "md", "bench-runs".as_ref())?,
    };
    let devices = trainer.said(&["devices"]).unwrap_or_else(|error| format!("{error:#}"));
    let mut report = format!(
        "# On a GPU\n\n{}, {}; {}.\n\n{}\n",
        trainer.said(&["--version"])?,
        devices.replace('\n', "; "),
        machine::describe(),
        tests(args)?
    );
    let compared = bytes::compare(&trainer, args, &mut report);
    let learnt = returns::compare(&trainer, args, &mut report);
    let measured = speed::measure(&trainer, args, &mut report);
    std::fs::write(&path, &report).with_context(|| format!("{}", path.display()))?;
    println!("{}", path.display());
    compared.and(learnt).and(measured)
}

/// The tests of kernels on the card, where there is cargo; in words.
fn tests(args: &GpuArgs) -> Result<String> {
    if args.only.is_some() {
        return Ok("The tests of kernels were left out.".into());
    }
    let card = [("PHALANX_DEVICE", args.device.as_str())];
    if !args.tests.is_empty() {
        for program in &args.tests {
            run(Command::new(program).envs(card))?;
        }
        return Ok(format!("The tests of kernels passed (PHALANX_DEVICE={}).", args.device));
    }
    let has_cargo =
        Command::new("cargo").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has_cargo || !PathBuf::from("Cargo.toml").exists() {
        println!("the tests of kernels are left out: there is no cargo, or no sources");
        return Ok("The tests of kernels were left out: there was no cargo, or no sources.".into());
    }
    cargo(&["test", "-p", "phalanx-gpu"], &card)?;
    cargo(&["test", "--release", "-p", "phalanx", "--test", "device"], &card)?;
    cargo(&["test", "--release", "-p", "phalanx", "--lib", "cuda"], &card)?;
    Ok(format!(
        "The tests of kernels passed (`phalanx-gpu`, and `--test device` and `--lib cuda` with PHALANX_DEVICE={}).",
        args.device
    ))
}

/// Fails with what went wrong, if anything did.
fn all_well(wrong: &[String]) -> Result<()> {
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

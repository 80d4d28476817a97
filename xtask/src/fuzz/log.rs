//! What came of a fuzz run, as a table.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::target::Fuzzed;
use crate::bench::machine;
use crate::bench::record::unused;

/// The table's head.
pub const HEAD: &str = "| target | inputs | per second | past the first check | accepted | edges | of its own files | corpus | slowest | memory | findings |\n\
                        |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|";

/// A target's row.
pub fn row(fuzzed: &Fuzzed) -> String {
    let rate = fuzzed.executions as f64 / fuzzed.wall.as_secs_f64().max(1e-9);
    format!(
        "| {} | {} | {rate:.0} | {:.0} % | {:.0} % | {} | {} | {} | {:.0} ms | {} MB | {} |",
        fuzzed.name,
        fuzzed.executions,
        100.0 * fuzzed.past_first_check,
        100.0 * fuzzed.accepted,
        share([fuzzed.edges, fuzzed.all_edges]),
        share(fuzzed.own_edges),
        fuzzed.corpus,
        1000.0 * fuzzed.slowest.as_secs_f64(),
        fuzzed.peak_mb,
        fuzzed.findings.len(),
    )
}

/// Edges that were reached, of all where that is known.
fn share([reached, all]: [u64; 2]) -> String {
    match (reached, all) {
        (0, 0) => "".into(),
        (_, 0) => reached.to_string(),
        _ => format!("{reached} of {all}"),
    }
}

/// Writes the table with what is needed to read it; returns the file.
pub fn write(folder: &Path, fuzzed: &[Fuzzed], at_once: usize) -> Result<PathBuf> {
    let path = unused("fuzz", "md", folder)?;
    let executions: u64 = fuzzed.iter().map(|fuzzed| fuzzed.executions).sum();
    let seconds: f64 = fuzzed.iter().map(|fuzzed| fuzzed.wall.as_secs_f64()).sum();
    let rows: Vec<String> = fuzzed.iter().map(row).collect();
    let text = format!(
        "# Fuzzing\n\n{executions} inputs in {:.1} minutes, {at_once} targets at a time; {}.\n\n{HEAD}\n{}\n\n\
         An input is a list of choices, from which a document is made: a valid one with a few changes. The first check is \
         that of syntax, names and types. Edges are those of our own crates that libFuzzer saw, of all there are, \
         training and drawing included; those of its own files are in the sources that read it, where code that writes, \
         and code that asks the disk, cannot be reached. Of Python (`environment`, `keywords`) they are edges of \
         functions of the package that atheris saw, and of how many is not known. An input is a finding if it panics, takes more than a second, or asks for more \
         than 1 GB.\n{}",
        seconds / 60.0 / at_once as f64,
        machine::describe(),
        rows.join("\n"),
        reproduce(fuzzed),
    );
    std::fs::write(&path, text)?;
    Ok(path)
}

/// A command for every finding.
pub fn reproduce(fuzzed: &[Fuzzed]) -> String {
    let command = |fuzzed: &Fuzzed, file: &String| match &fuzzed.reproduced_by {
        None => format!("cargo run --package phalanx-fuzz --bin reproduce -- {} {file}\n", fuzzed.name),
        Some(start) => format!("PHALANX_FUZZ_TARGET={} {start} {file}\n", fuzzed.name),
    };
    fuzzed.iter().flat_map(|fuzzed| fuzzed.findings.iter().map(move |file| command(fuzzed, file))).collect()
}

//! `claims.json`: everything that other programs may want to read.

use std::collections::BTreeMap;

use serde::Serialize;

use super::gathered::Absent;
use super::{Report, counts};
use crate::claims::{CLAIMS, Judged, Untested, Verdict};
use crate::context::Record;

#[derive(Serialize)]
struct Document<'a> {
    version: &'static str,
    commit: &'a str,
    /// `whole`, or what is not.
    length: String,
    /// Whether anything here counts.
    evidence: bool,
    /// Of the paper's own claims.
    counts: BTreeMap<&'static str, usize>,
    /// Of the claims that what it published is reached.
    published: BTreeMap<&'static str, usize>,
    claims: &'a [Judged],
    untested: &'a [Untested],
    experiments: Vec<Experiment<'a>>,
    missing: &'a [Absent],
}

#[derive(Serialize)]
struct Experiment<'a> {
    id: &'a str,
    title: &'a str,
    label: &'a str,
    command: &'a str,
    commit: &'a str,
    length: &'a str,
    seeds: &'a [u64],
    /// Runs without a result.
    missing_seeds: Vec<String>,
    wall_s: &'a f64,
    cores: &'a usize,
}

/// The whole file.
pub fn write(report: &Report) -> anyhow::Result<String> {
    let experiments = report.gathered.experiments.iter().map(|found| {
        let Record { id, command, commit, length, seeds, wall_s, cores, .. } = &found.record;
        let (title, label, missing_seeds) = (&found.title, &found.label, found.failures());
        Experiment { id, title, label, command, commit, length, seeds, missing_seeds, wall_s, cores }
    });
    let [own, published] = report.claims_apart().map(|claims| {
        counts(claims).map(|(verdict, count): (Verdict, usize)| (verdict.word(), count)).into()
    });
    let document = Document {
        version: env!("CARGO_PKG_VERSION"),
        commit: &report.commit,
        length: report.lengths().join(", "),
        evidence: report.warning().is_none(),
        counts: own,
        published,
        claims: &report.claims,
        untested: &CLAIMS.untested,
        experiments: experiments.collect(),
        missing: &report.gathered.absent,
    };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

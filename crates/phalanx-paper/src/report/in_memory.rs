//! A report on one experiment whose files are at hand: for tests that try very many of them.

use std::collections::BTreeMap;
use std::path::Path;

use phalanx::Result;
use serde_json::Value;

use super::gathered::{CompleteExperiment, Gathered};
use super::{Report, document, json};
use crate::claims;
use crate::context::Record;
use crate::sheet::Sheet;

/// How far to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Read the files.
    Read,
    /// Judge the claims, too.
    Judge,
    /// Make `claims.json`, `REPORT.md` and `report.html`, too.
    Write,
}

/// What an `experiment.json` and a `results.csv` come to.
pub fn report(record: &str, results: &[u8], depth: Depth) -> Result<()> {
    let record = Record::parse(record, Path::new("experiment.json"))?;
    let sheet = Sheet::parse(results, Path::new("results.csv"))?;
    let experiment = CompleteExperiment {
        record,
        title: String::new(),
        label: String::new(),
        sheets: BTreeMap::from([("results".into(), sheet)]),
        figures: Vec::new(),
        frames: Vec::new(),
    };
    let gathered = Gathered { experiments: vec![experiment], absent: Vec::new(), tuning: Value::Null };
    let found = &gathered.experiments[0];
    found.failures();
    found.settings();
    if depth == Depth::Read {
        return Ok(());
    }
    let claims = claims::judge(&gathered.evidence());
    let report = Report { commit: String::new(), claims, gathered };
    if depth == Depth::Write {
        let failed = |error: anyhow::Error| phalanx::Error::config("report", error.to_string());
        let document = document::document(&report).map_err(failed)?;
        json::write(&report).map_err(failed)?;
        document::markdown(&document);
        document::page(&document);
    }
    Ok(())
}

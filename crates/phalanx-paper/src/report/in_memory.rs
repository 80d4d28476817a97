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

/// What an `experiment.json` and a `results.csv` come to: how many claims are judged; with `is_written`, also
/// as `claims.json`, `REPORT.md` and `report.html`.
pub fn report(record: &str, results: &[u8], is_written: bool) -> Result<usize> {
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
    let claims = claims::judge(&gathered.evidence());
    let report = Report { commit: String::new(), claims, gathered };
    let found = &report.gathered.experiments[0];
    let judged = report.claims.len() + found.failures().len() + found.settings().len();
    if is_written {
        let failed = |error: anyhow::Error| phalanx::Error::config("report", error.to_string());
        let document = document::document(&report).map_err(failed)?;
        let texts =
            [json::write(&report).map_err(failed)?, document::markdown(&document), document::page(&document)];
        return Ok(judged + texts.iter().map(String::len).sum::<usize>());
    }
    Ok(judged)
}

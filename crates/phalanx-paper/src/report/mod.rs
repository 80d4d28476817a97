//! `phalanx paper report`: what became of the paper's claims, as `claims.json`, `REPORT.md` and `report.html`.

mod base64;
mod gathered;
mod html;
mod json;
mod markdown;
mod tables;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use gathered::Gathered;
use phalanx::Error;

use super::claims::{self, Judged, Verdict};

/// Everything that is said, in whatever form.
struct Report {
    /// Commit of the program that judged.
    commit: String,
    claims: Vec<Judged>,
    gathered: Gathered,
}

/// Judges what is in `root`, and writes the report there.
pub fn write(root: &Path, commit: &str) -> anyhow::Result<Vec<PathBuf>> {
    let report = Report::of(root, commit)?;
    std::fs::create_dir_all(root).map_err(|error| Error::write(root, error))?;
    let mut files = Vec::new();
    for (name, text) in [
        ("claims.json", json::write(&report)?),
        ("REPORT.md", markdown::write(&report)),
        ("report.html", html::write(&report)?),
    ] {
        let file = root.join(name);
        std::fs::write(&file, text).map_err(|error| Error::write(&file, error))?;
        files.push(file);
    }
    Ok(files)
}

impl Report {
    fn of(root: &Path, commit: &str) -> phalanx::Result<Report> {
        let gathered = Gathered::read(root)?;
        let claims = claims::judge(&gathered.evidence());
        Ok(Report { commit: commit.into(), claims, gathered })
    }

    /// How many claims have each verdict.
    fn counts(&self) -> [(Verdict, usize); 4] {
        Verdict::ALL
            .map(|verdict| (verdict, self.claims.iter().filter(|claim| claim.verdict == verdict).count()))
    }

    /// Lengths of the training runs, each once.
    fn lengths(&self) -> Vec<&str> {
        let mut lengths: Vec<&str> = Vec::new();
        for found in &self.gathered.experiments {
            if !lengths.contains(&found.record.length.as_str()) {
                lengths.push(&found.record.length);
            }
        }
        lengths
    }

    /// Why nothing here is evidence, if that is so.
    fn warning(&self) -> Option<String> {
        let shortened: Vec<&str> = self.lengths().into_iter().filter(|length| *length != "whole").collect();
        if shortened.is_empty() {
            return None;
        }
        let lengths = shortened.join(", ");
        Some(format!(
            "Nothing in this report is evidence: training runs were shortened ({lengths}). It shows that everything works, not \
             what the paper claims."
        ))
    }

    /// Everything that is not there: experiments, and runs of those that are.
    fn gaps(&self) -> Vec<String> {
        let experiments = self
            .gathered
            .absent
            .iter()
            .map(|absent| format!("{} ({}): {}", absent.id, absent.title, absent.reason));
        let runs = self.gathered.experiments.iter().flat_map(|found| {
            found.failures().into_iter().map(|failure| format!("{}: {failure}", found.record.id))
        });
        experiments.chain(runs).collect()
    }
}

/// How verdicts are reached, for readers.
const METHOD: &str = "Verdicts are computed from results.csv. A difference of means over seeds is judged by its 95 % bootstrap \
    interval (4000 resamples, seeds of both sides drawn apart): a claim holds where the interval lies on its side, fails where it \
    lies on the other, and is undecided where it has both, or with fewer than two seeds. “Comparable” means that the \
    interval lies within the margin that is said beside it. Interquartile means (IQM) stand beside the means and decide \
    nothing. A claim with several parts holds if all of them do. Intervals are per test, not corrected for their number; with few \
    seeds they are too narrow rather than too wide. Computed numbers without seeds are compared as they are.";

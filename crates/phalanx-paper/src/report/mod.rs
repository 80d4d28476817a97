//! `phalanx paper report`: what became of the paper's claims, as `claims.json`, `REPORT.md` and
//! `report.html`.

mod coverage;
mod document;
mod gathered;
pub mod in_memory;
mod json;
mod picture;
mod tables;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use gathered::{Absent, Gathered};
use phalanx::Error;
use phalanx::base::durable;

use super::claims::{self, Judged, Verdict};
use super::distinct;

/// Everything that is said, in whatever form.
struct Report {
    /// Commit of the program that judged.
    commit: String,
    claims: Vec<Judged>,
    gathered: Gathered,
}

/// Judges what is in `root`, and writes the report there.
pub fn write(root: &Path, commit: &str) -> anyhow::Result<Vec<PathBuf>> {
    let gathered = Gathered::read(root)?;
    let claims = claims::judge(&gathered.evidence());
    let report = Report { commit: commit.into(), claims, gathered };
    let document = document::document(&report)?;
    durable::create_dirs(root).map_err(|error| Error::write(root, error))?;
    for found in &report.gathered.experiments {
        if let Some(summary) = found.sheets.get("summary") {
            let file = root.join(&found.record.id).join("summary.csv");
            durable::replace_bytes(&file, summary.to_csv().as_bytes())?;
        }
    }
    let mut files = Vec::new();
    for (name, text) in [
        ("claims.json", json::write(&report)?),
        ("claims.svg", picture::svg(&report)),
        ("REPORT.md", document::markdown(&document)),
        ("report.html", document::page(&document)),
    ] {
        let file = root.join(name);
        durable::replace_bytes(&file, text.as_bytes())?;
        files.push(file);
    }
    Ok(files)
}

/// Whether there is an experiment in `root`, complete or not.
pub fn holds_experiments(root: &Path) -> phalanx::Result<bool> {
    Ok(!gathered::folders(root)?.is_empty())
}

/// How many claims have each verdict.
fn counts<'a>(claims: impl IntoIterator<Item = &'a Judged> + Clone) -> [(Verdict, usize); 6] {
    let count = |verdict| claims.clone().into_iter().filter(|claim| claim.verdict == verdict).count();
    Verdict::ALL.map(|verdict| (verdict, count(verdict)))
}

impl Report {
    /// The paper's own claims, and those that what it published is reached.
    fn claims_apart(&self) -> [Vec<&Judged>; 2] {
        let (published, own) = self.claims.iter().partition(|claim| claim.group() == claims::PUBLISHED);
        [own, published]
    }

    /// Lengths of the training runs, each once.
    fn lengths(&self) -> Vec<&str> {
        distinct(self.gathered.experiments.iter().map(|found| found.record.length.as_str()))
    }

    /// Why nothing here is evidence, if that is so.
    fn warning(&self) -> Option<String> {
        let shortened: Vec<&str> = self.lengths().into_iter().filter(|length| *length != "whole").collect();
        let lengths = shortened.join(", ");
        let warning = format!(
            "Nothing in this report is evidence: training runs were shortened ({lengths}). It shows that \
             everything works, not what the paper claims."
        );
        (!shortened.is_empty()).then_some(warning)
    }

    /// Everything that is not there: experiments, and runs of those that are.
    fn gaps(&self) -> Vec<String> {
        let experiment = |Absent { id, title, reason }: &Absent| format!("{id} ({title}): {reason}");
        let experiments = self.gathered.absent.iter().map(experiment);
        let unmade = self.gathered.experiments.iter().map(|found| (&found.record.id, found.unmade()));
        let unmade = unmade.filter(|(_, settings)| !settings.is_empty());
        let unmade = unmade.map(|(id, settings)| format!("{id}: no runs of {}", settings.join("; ")));
        let runs = self.gathered.experiments.iter().flat_map(|found| {
            found.failures().into_iter().map(|failure| format!("{}: {failure}", found.record.id))
        });
        experiments.chain(unmade).chain(runs).collect()
    }
}

//! Reproducing the paper: its experiments, one by one or all together, and what became of its claims.

#![forbid(unsafe_code)]

mod archive;
mod baseline_table;
mod catalogue;
mod claims;
mod context;
mod cost;
mod curves;
mod drawing;
mod estimate;
mod frontier;
mod models;
mod rate;
mod report;
mod samples;
mod setting;
mod sheet;
mod summary;
mod terminal_tables;
mod trained;
mod training_metrics;
mod truncation;
mod visual;

use catalogue::{ALL, Experiment};
pub use context::{Length, Reproduction, RunJobs};
use phalanx::base::own_folder;
use phalanx::{Error, Result};
#[doc(hidden)]
pub use report::in_memory;

/// Makes the experiments that `what` names by their IDs, or `all`; and a report, if it asks for `all` or
/// `report`.
pub fn reproduce(what: &[String], reproduction: &Reproduction) -> anyhow::Result<()> {
    let (wanted, root) = (wanted(what)?, &reproduction.root);
    let is_made = || report::holds_experiments(root).unwrap_or(false);
    if wanted.is_empty() && !is_made() {
        let message = "holds no experiment to report on; make some first, or name the folder that has them";
        return Err(Error::file(root, message).into());
    }
    own_folder::claim(root, "paper", is_made)?;
    if reproduction.length == Length::Whole && !wanted.is_empty() {
        (reproduction.print)(&estimate::words(&wanted, reproduction)?);
    }
    for experiment in wanted {
        reproduction.check()?;
        (reproduction.print)(&format!("{}: {} ({})\n", experiment.id, experiment.title, experiment.label));
        reproduction.make(experiment)?;
        (reproduction.print)(&format!("  {}\n", reproduction.folder(&experiment.id).display()));
    }
    if what.iter().any(|word| matches!(word.as_str(), "all" | "report")) {
        for file in report::write(&reproduction.root, &reproduction.provenance.commit)? {
            (reproduction.print)(&format!("{}\n", file.display()));
        }
    }
    Ok(())
}

/// All experiments, a line each: ID, title and the label in the paper.
pub fn list() -> String {
    let width = ALL.iter().map(|experiment| experiment.id.len()).max().unwrap_or(0);
    let line = |Experiment { id, title, label, .. }: &Experiment| format!("{id:width$}  {title} ({label})\n");
    ALL.iter().map(line).collect()
}

/// The experiments that were asked for, in the paper's order.
fn wanted(what: &[String]) -> Result<Vec<&'static Experiment>> {
    for word in what.iter().filter(|word| !matches!(word.as_str(), "all" | "report")) {
        if catalogue::find(word).is_none() {
            let known: Vec<&str> = ALL.iter().map(|experiment| experiment.id.as_str()).collect();
            let message =
                format!("`{word}` is unknown; allowed are list, all, report and {}", known.join(", "));
            return Err(Error::config("ID", message));
        }
    }
    let all = what.iter().any(|word| word == "all");
    Ok(ALL.iter().filter(|experiment| all || what.contains(&experiment.id)).collect())
}

/// Runs `work` on one thread, as every training run of an experiment does.
fn on_one_thread<T: Send>(work: impl FnOnce() -> T + Send) -> anyhow::Result<T> {
    Ok(rayon::ThreadPoolBuilder::new().num_threads(1).build()?.install(work))
}

/// Each of them once, in the order in which they come.
fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

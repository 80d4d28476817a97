//! `phalanx plot --loss`: what policies achieve against the share of messages that are lost.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use phalanx::base::own_folder;
use phalanx::policy::LOSS;
use phalanx::run::{Evaluator, Registry};
use phalanx_pictures::plot;

use crate::links::LinkArgs;
use crate::print;

/// Evaluates every run at every loss, prints a table, draws and gives the files.
pub fn draw(
    runs: &[PathBuf],
    losses: &[f64],
    episodes: usize,
    out: &Path,
    registry: &Registry,
) -> anyhow::Result<Vec<PathBuf>> {
    if runs.len() > 1 {
        // Before the long work.
        own_folder::check(out, "plot", || plot::is_earlier(out))?;
    }
    let width = runs.iter().map(|run| run.display().to_string().chars().count()).max().unwrap_or(0).max(3);
    let mut text = format!(
        "{:<width$}  {:>6}  {:>10}  {:>10}  {:>9}\n",
        "run", "loss", "return", "violation", "largest"
    );
    let (mut all, mut has_return) = (Vec::new(), true);
    for run in runs {
        let mut curve = Vec::new();
        for &loss in losses {
            let value = format!("{loss:?}").to_lowercase();
            let evaluator = Evaluator::from_run_in(run, registry, &[(LOSS, &value)]);
            let found = evaluator.map_err(LinkArgs::name_flag)?.assess(episodes, 1, 0.99)?;
            has_return &= found.return_.is_some();
            let achieved = found.return_.unwrap_or(found.objective).value;
            let (violation, largest) = (found.violation_total, found.violation_max);
            let _ = writeln!(
                text,
                "{:<width$}  {loss:>6}  {achieved:>10.5}  {violation:>10.5}  {largest:>9.5}",
                run.display().to_string()
            );
            curve.push(plot::AtLoss { loss, achieved, violation });
        }
        all.push((run.clone(), curve));
    }
    print(&text);
    plot::plot_loss(&all, has_return, out)
}

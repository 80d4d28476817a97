//! The figures of a run from its files as bytes at hand: for tests that try very many of them.

use std::path::Path;

use phalanx::Result;

use super::canvas::Figure;
use super::{Metrics, figures, read};

/// What `phalanx plot` draws from `metrics.csv`, `agents.csv` and `agents-summary.csv`.
pub fn of_run(metrics: &[u8], agents: &[u8], summary: &[u8]) -> Result<Vec<(&'static str, Figure)>> {
    let [path, agents_path, summary_path] =
        ["metrics.csv", "agents.csv", "agents-summary.csv"].map(Path::new);
    let rows = Metrics::parse(metrics, path)?;
    let margins = read::parse_margins(agents, agents_path)?;
    let spreads = read::parse_spreads(summary, summary_path)?;
    let header = metrics.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let stationarity = header.trim_ascii_end().ends_with(b",X,Y,E");
    let stationarity =
        stationarity.then(|| read::read_columns(metrics, path, "iteration,X,Y,E")).transpose()?;
    Ok(figures("run", &rows, stationarity, &margins, &spreads))
}

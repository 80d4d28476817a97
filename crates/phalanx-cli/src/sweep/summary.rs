//! What all runs of a sweep have reached: a row per run, and a row per setting.

use std::fmt::Write;

use phalanx::run::Outcome;
use serde_json::Value;

use super::Plan;
use super::settings::plain;
use super::statistics::Spread;
use crate::batch::JobOutcome;

/// Fields of a run's outcome, with those of its exact evaluation.
const FIELDS: [&str; 12] = [
    "iterations",
    "return",
    "objective",
    "violation_total",
    "violation_max",
    "violation_mean",
    "wall_s",
    "agent_steps",
    "agent_steps_per_s",
    "comm_bytes",
    "scaling",
    "evaluation_episodes",
];
const EXACT: [&str; 8] =
    ["return", "objective", "violation_total", "violation_max", "violation_mean", "X", "Y", "E"];

/// `summary.csv`: one row per run, whatever became of it.
pub fn csv(plan: &Plan, finishes: &[JobOutcome]) -> String {
    let keys: Vec<&String> = plan.keys().collect();
    // What a setting says already, as the number of iterations, needs no second column.
    let fields = || FIELDS.into_iter().filter(|field| !keys.iter().any(|key| key == field));
    let mut header = vec!["index".to_string(), "run".into()];
    header.extend(keys.iter().map(|key| key.to_string()));
    header.extend(["seed", "config_seed", "status"].map(Into::into));
    header.extend(fields().map(Into::into));
    header.extend(EXACT.map(|name| format!("exact.{name}")));
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory cannot fail, and rows are of equal length.
    let _ = writer.write_record(&header);
    for (k, ((&(setting, seed), job), finish)) in plan.runs.iter().zip(&plan.jobs).zip(finishes).enumerate() {
        let mut row = vec![k.to_string(), job.name.clone()];
        row.extend(plan.settings[setting].values.iter().map(|(_, value)| plain(value)));
        row.extend([seed.to_string(), job.config.seed.to_string(), status(finish)]);
        let outcome = match finish {
            JobOutcome::Done(outcome) => serde_json::to_value(outcome).unwrap_or_default(),
            _ => Value::Null,
        };
        row.extend(fields().map(|name| cell(&outcome[name])));
        row.extend(EXACT.map(|name| cell(&outcome["exact"][name])));
        let _ = writer.write_record(&row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

fn status(finish: &JobOutcome) -> String {
    match finish {
        JobOutcome::Done(_) => "finished".into(),
        JobOutcome::Failed(reason) => format!("failed: {reason}"),
        JobOutcome::Busy => "in use".into(),
        JobOutcome::Stopped => "stopped".into(),
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `summary.md`: one row per setting. Runs that are not finished are named, not averaged over.
pub fn markdown(plan: &Plan, finishes: &[JobOutcome]) -> String {
    let mut rows =
        vec![["setting", "seeds", "return", "objective", "violation_total", "missing"].map(String::from)];
    for (number, setting) in plan.settings.iter().enumerate() {
        let runs = || plan.runs.iter().zip(finishes).filter(|((of, _), _)| *of == number);
        let done: Vec<&Outcome> = (runs())
            .filter_map(
                |(_, finish)| if let JobOutcome::Done(outcome) = finish { Some(&**outcome) } else { None },
            )
            .collect();
        let missing: Vec<String> = (runs())
            .filter(|(_, finish)| !matches!(finish, JobOutcome::Done(_)))
            .map(|((_, seed), finish)| {
                let status = status(finish);
                format!("seed {seed} {}", status.split(':').next().unwrap_or_default())
            })
            .collect();
        let returns: Vec<f64> = done.iter().filter_map(|outcome| outcome.return_).collect();
        let column = |pick: fn(&Outcome) -> f64| done.iter().map(|outcome| pick(outcome)).collect::<Vec<_>>();
        let label = setting.label();
        rows.push([
            if label.is_empty() { plan.base.clone() } else { label }.replace('|', "\\|"),
            done.len().to_string(),
            shown(&returns, 4),
            shown(&column(|outcome| outcome.objective), 5),
            shown(&column(|outcome| outcome.violation_total), 5),
            missing.join(", "),
        ]);
    }
    let mut text = aligned(&rows);
    text += "\nMean over seeds ± standard error (interquartile mean).\n";
    let failed = plan.jobs.iter().zip(finishes).filter_map(|(job, finish)| match finish {
        JobOutcome::Failed(reason) => Some((&job.name, reason)),
        _ => None,
    });
    for (k, (name, reason)) in failed.enumerate() {
        let blank = if k == 0 { "\n" } else { "" };
        // Writing to memory cannot fail.
        let _ = writeln!(text, "{blank}- `{name}` failed: {}", crate::one_line(reason));
    }
    text
}

fn shown(values: &[f64], digits: usize) -> String {
    let Some(Spread { mean, error, iqm }) = Spread::of(values) else { return String::new() };
    match error {
        Some(error) => format!("{mean:.digits$} ± {error:.digits$} ({iqm:.digits$})"),
        None => format!("{mean:.digits$}"),
    }
}

/// A table in Markdown that can be read as it is.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for (k, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("| {cell:width$} "));
        text += &(cells.collect::<String>() + "|\n");
        if k == 0 {
            text += &(widths.map(|width| format!("|{}", "-".repeat(width + 2))).concat() + "|\n");
        }
    }
    text
}

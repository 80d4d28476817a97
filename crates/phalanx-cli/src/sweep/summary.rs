//! What all runs of a sweep have reached: a row per run, and a row per setting.

use std::fmt::Write;

use phalanx::base::text;
use phalanx::run::Outcome;
use phalanx_pictures::statistics::{deviation, interquartile_mean, mean};
use serde_json::Value;

use super::Plan;
use super::settings::plain;
use crate::batch::JobOutcome;

/// Columns of a run's outcome, and of its exact evaluation.
const FIELDS: &str = "iterations,return,objective,violation_total,violation_max,violation_mean,\
                      wall_s,agent_steps,agent_steps_per_s,comm_bytes,scaling,evaluation_episodes";
const EXACT: &str = "return,objective,violation_total,violation_max,violation_mean,X,Y,E";

/// `summary.csv`: one row per run, whatever became of it.
pub fn csv(plan: &Plan, finishes: &[JobOutcome]) -> String {
    let keys: Vec<&str> = plan.keys().collect();
    // What a setting says already, as the number of iterations, needs no second column.
    let fields = || FIELDS.split(',').filter(|field| !keys.iter().any(|key| key == field));
    let mut header = vec!["index".to_string(), "run".into()];
    header.extend(keys.iter().map(|key| key.to_string()));
    header.extend(["seed", "config_seed", "status"].map(Into::into));
    header.extend(fields().map(Into::into));
    header.extend(EXACT.split(',').map(|name| format!("exact.{name}")));
    let mut writer = csv::Writer::from_writer(Vec::new());
    // Writing to memory cannot fail, and rows are of equal length.
    let _ = writer.write_record(&header);
    for (k, ((&(setting, seed), job), finish)) in plan.runs.iter().zip(&plan.jobs).zip(finishes).enumerate() {
        let mut row = vec![k.to_string(), job.name.clone()];
        row.extend(plan.settings[setting].values.iter().map(|(_, value)| plain(value)));
        let status = match finish {
            JobOutcome::Failed(reason) => format!("failed: {reason}"),
            finish => ending(finish).into(),
        };
        row.extend([seed.to_string(), job.config.seed.to_string(), status]);
        let outcome = match finish {
            JobOutcome::Done(outcome) => serde_json::to_value(outcome).unwrap_or_default(),
            _ => Value::Null,
        };
        row.extend(fields().map(|name| cell(&outcome[name])));
        row.extend(EXACT.split(',').map(|name| cell(&outcome["exact"][name])));
        let _ = writer.write_record(&row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// How a run ended, in a word or two.
pub fn ending(finish: &JobOutcome) -> &'static str {
    match finish {
        JobOutcome::Done(_) => "finished",
        JobOutcome::Failed(_) => "failed",
        JobOutcome::Busy => "in use",
        JobOutcome::Stopped => "stopped",
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
        let runs = plan.runs.iter().zip(finishes).filter(|((of, _), _)| *of == number);
        let (mut done, mut missing): (Vec<&Outcome>, Vec<String>) = Default::default();
        for ((_, seed), finish) in runs {
            match finish {
                JobOutcome::Done(outcome) => done.push(outcome),
                finish => missing.push(format!("seed {seed} {}", ending(finish))),
            }
        }
        let returns: Vec<f64> = done.iter().filter_map(|outcome| outcome.return_).collect();
        let column = |pick: fn(&Outcome) -> f64| done.iter().map(|outcome| pick(outcome)).collect::<Vec<_>>();
        let label = setting.label();
        rows.push([
            text::markdown(&if label.is_empty() { plan.base.clone() } else { label }),
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
        let _ = writeln!(text, "{blank}- `{name}` failed: {}", text::markdown(reason));
    }
    text
}

/// Mean over seeds, with standard error and interquartile mean if there are several.
fn shown(values: &[f64], digits: usize) -> String {
    let average = mean(values);
    match values.len() {
        0 => String::new(),
        1 => format!("{average:.digits$}"),
        count => {
            let (error, iqm) = (deviation(values) / (count as f64).sqrt(), interquartile_mean(values));
            format!("{average:.digits$} ± {error:.digits$} ({iqm:.digits$})")
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_numbers() {
        assert_eq!(shown(&[], 3), "");
        assert_eq!(shown(&[2.5], 3), "2.500");
        // Variance 20/3 over four values: an error of √(5/3); the middle two are 2 and 4.
        assert_eq!(shown(&[6.0, 0.0, 4.0, 2.0], 12), "3.000000000000 ± 1.290994448736 (3.000000000000)");
        // An outlier does not move the interquartile mean.
        assert!(shown(&[1.0, 2.0, 3.0, 1e9], 12).ends_with("(2.500000000000)"));
        // A quarter of three values is three quarters of the first: (0.25·1 + 2 + 0.25·6)/1.5.
        assert!(shown(&[1.0, 2.0, 6.0], 12).ends_with("(2.500000000000)"));
    }
}

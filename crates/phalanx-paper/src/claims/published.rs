//! Whether the published figures are reached: one claim per panel, from the rows that are to reach them.

use super::evidence::Sample;
use super::verdict::{Estimate, Finding, Verdict, short};
use super::{Evidence, Judged, Judgement, Rows};
use crate::catalogue::{ALL, Experiment};
use crate::distinct;
use crate::setting::{OURS, Setting};
use crate::sheet::Sheet;
use phalanx_pictures::statistics::mean;

/// What their names begin with.
pub const GROUP: &str = "published";

/// One claim for every experiment with figures to reach.
pub fn judge(evidence: &Evidence) -> Vec<Judged> {
    ALL.iter()
        .filter(|experiment| experiment.settings.iter().any(Setting::counts))
        .map(|experiment| of(experiment, evidence))
        .collect()
}

fn of(experiment: &Experiment, evidence: &Evidence) -> Judged {
    let (names, findings): (Vec<String>, Vec<Finding>) = match evidence.sheets.get(&experiment.id) {
        Some(sheet) => settings(sheet)
            .into_iter()
            .map(|(method, setting)| {
                (named(&method, &setting), reaches(evidence, &experiment.id, &method, &setting))
            })
            .unzip(),
        None => {
            let test = "return at least, violation at most the published one".into();
            (
                vec![String::new()],
                vec![Finding::plain(test, Verdict::Missing, format!("no results of {}", experiment.id))],
            )
        }
    };
    let with = |verdict: Verdict| -> Vec<&str> {
        let found = names.iter().zip(&findings).filter(|(_, finding)| finding.verdict == verdict);
        found.map(|(name, _)| name.as_str()).collect()
    };
    let parts = [("Not reached", with(Verdict::Fails)), ("Undecided", with(Verdict::Undecided))];
    let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
    let why: Vec<String> = parts.map(|(what, names)| format!("{what}: {}.", names.join("; "))).collect();
    let judgement = Judgement::of("all", findings);
    Judged {
        id: format!("{GROUP}.{}", experiment.id),
        place: experiment.label.clone(),
        sentence: format!("Our returns and violations reach the published ones. ({})", experiment.title),
        experiments: vec![experiment.id.clone()],
        verdict: judgement.verdict,
        judgements: vec![judgement],
        why: why.join(" "),
    }
}

/// Methods and settings that count, each once.
fn settings(sheet: &Sheet) -> Vec<(String, String)> {
    let counting = sheet.rows.iter().filter(|row| sheet.text(row, "counts") == "true");
    distinct(counting.map(|row| (sheet.text(row, "method").into(), sheet.text(row, "setting").into())))
}

fn named(method: &str, setting: &str) -> String {
    match (method, setting) {
        (OURS, setting) if !setting.is_empty() => setting.into(),
        (method, "") => method.into(),
        (method, setting) => format!("{method}, {setting}"),
    }
}

fn reaches(evidence: &Evidence, experiment: &str, method: &str, setting: &str) -> Finding {
    let label = named(method, setting);
    let test = format!("{label}: mean return at least, mean violation at most the published one");
    let rows = Rows { label, ..Rows::setting(experiment, setting).with("counts", "true") };
    let sample = |column: &str| evidence.sample(&rows, method, column);
    let found = (|| {
        Ok::<_, String>([
            (sample("return")?, sample("published_return")?),
            (sample("violation_total")?, sample("published_violation")?),
        ])
    })();
    match found {
        Ok([(return_, goal), (violation, most)]) => {
            let (goal, most) = (mean(&goal.values), mean(&most.values));
            let parts = [one(&return_, |value| value >= goal), one(&violation, |value| value <= most)];
            let text = |sample: &Sample, goal: f64| {
                let estimate = Estimate::of_mean(&sample.values);
                let crosses =
                    if estimate.low < goal && goal < estimate.high { " (in the interval)" } else { "" };
                format!("{}, published {}{crosses}", estimate.text(), short(goal))
            };
            let numbers = format!("return {}; violation {}", text(&return_, goal), text(&violation, most));
            let verdict = match Verdict::of_all(parts) {
                // What is left of a setting with failed seeds does not reach anything.
                Verdict::Holds if !return_.absent.is_empty() => Verdict::Undecided,
                verdict => verdict,
            };
            Finding { absent: return_.absent, ..Finding::plain(test, verdict, numbers) }
        }
        Err(reason) => Finding::plain(test, Verdict::Missing, reason),
    }
}

/// By the mean over seeds; where it falls short but the published figure is in its interval, nothing is
/// decided.
fn one(sample: &Sample, reached: impl Fn(f64) -> bool) -> Verdict {
    let Estimate { mean, low, high, seeds, .. } = Estimate::of_mean(&sample.values);
    match (seeds, reached(mean), reached(low) || reached(high)) {
        (0 | 1, ..) => Verdict::Undecided,
        (_, true, _) => Verdict::Holds,
        (_, false, true) => Verdict::Undecided,
        (_, false, false) => Verdict::Fails,
    }
}

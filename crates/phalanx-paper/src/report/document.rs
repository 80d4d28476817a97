//! What the report says, for its templates: `report.html`, one file that needs nothing else, not even a
//! network, and `REPORT.md`.

use std::path::Path;

use phalanx::Error;
use phalanx_pictures::page::{STYLE, data_uri, fill};
use serde_json::{Value, json};

use super::gathered::CompleteExperiment;
use super::{Report, counts, coverage, tables};
use crate::claims::{CLAIMS, Finding, Judged, Verdict};
use crate::distinct;
use crate::terminal_tables::{self, Reproduces, reproduces};

const METHOD: &str = include_str!("method.txt");

/// The whole page.
pub fn page(document: &Value) -> String {
    let template = include_str!("page.html")
        .replace("{{>style}}", STYLE)
        .replace("{{>script}}", include_str!("page.js"))
        .replace("{{>method}}", METHOD.trim_end())
        .replace("{{>table}}", include_str!("table.html").trim_end());
    fill(&template, &[document], "html")
}

/// `REPORT.md`.
pub fn markdown(document: &Value) -> String {
    let template = include_str!("report.md")
        .replace("{{>method}}", METHOD.trim_end())
        .replace("{{>table}}", include_str!("table.md").trim_end());
    fill(template.trim_end(), &[document], "text")
}

/// Everything that the templates name.
pub fn document(report: &Report) -> anyhow::Result<Value> {
    let gathered = &report.gathered;
    let count = |(verdict, count): (Verdict, usize)| json!({ "verdict": verdict, "count": count, "said": verdict.word_of_many() });
    let [own, published] = report.claims_apart();
    let experiments = gathered.experiments.iter().map(|found| experiment(report, found));
    let untested = CLAIMS.untested.iter().map(|it| [&it.place, &it.sentence, &it.reason]);
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": report.commit,
        "warning": report.warning(),
        "number_of_claims": own.len(),
        "counts": counts(own.iter().copied()).map(count),
        "number_of_published": published.len(),
        "published_counts": counts(published.iter().copied()).map(count),
        "number_of_all": report.claims.len(),
        "counts_of_all": counts(&report.claims).map(count),
        "coverage": coverage::table(),
        "gaps": report.gaps(),
        "groups": groups(report),
        "open": report.claims.iter().filter(|it| !matches!(it.verdict, Verdict::Holds | Verdict::Missing)).map(|it| claim(report, it)).collect::<Vec<_>>(),
        "literal": literal(&gathered.experiments),
        "trained_heading": terminal_tables::HEADING,
        "trained": gathered.experiments.iter().flat_map(trained).collect::<Vec<_>>(),
        "tuning_place": "tuning.md",
        "claims": report.claims.iter().map(|it| claim(report, it)).collect::<Vec<_>>(),
        "untested": { "heading": ["paper", "sentence", "why not"], "rows": untested.collect::<Vec<_>>() },
        "experiments": experiments.collect::<anyhow::Result<Vec<_>>>()?,
        "tuning": gathered.tuning,
    }))
}

/// Where the published code, run here, does not come out where the paper does; none without such runs.
fn literal(experiments: &[CompleteExperiment]) -> Option<String> {
    let summaries = experiments.iter().filter_map(|found| found.sheets.get("summary"));
    let rows = summaries.flat_map(|summary| summary.rows.iter().map(move |row| reproduces(summary, row)));
    let all: Vec<Reproduces> = rows.flatten().collect();
    let count = |wanted: Reproduces| all.iter().filter(|it| **it == wanted).count();
    let [both, no_return, no_violation, neither] =
        [Reproduces::Both, Reproduces::ViolationOnly, Reproduces::ReturnOnly, Reproduces::Neither].map(count);
    let words = format!(
        "What the published code does, run here, reproduces {both} of {} published points: there both \
         published numbers lie in the 95 % intervals, or next to them by no more than 2 % of the panel's largest \
         published number, to which they were read off figures. The return alone is missed in {no_return}, the violation \
         alone in {no_violation}, both in {neither}.",
        all.len()
    );
    (!all.is_empty()).then_some(words)
}

/// Rows of the table of all trained settings.
fn trained(found: &CompleteExperiment) -> Vec<Value> {
    let shown = found.sheets.get("summary").map(terminal_tables::shown);
    let rows = shown.into_iter().flat_map(|shown| shown.rows);
    rows.map(|cells| json!({ "experiment": found.record.id, "cells": cells })).collect()
}

/// Claims by group, in their order.
fn groups(report: &Report) -> Vec<Value> {
    let group = |name: &str| {
        let title = CLAIMS.groups.get(name).map_or(name, String::as_str);
        let members = report.claims.iter().filter(|claim| claim.group() == name);
        let members: Vec<Value> = members.map(|it| claim(report, it)).collect();
        json!({ "name": name, "title": title, "members": members })
    };
    distinct(report.claims.iter().map(Judged::group)).into_iter().map(group).collect()
}

/// Findings of a claim that the page shows without being asked for.
const MOST_SHOWN: usize = 2;

fn claim(report: &Report, claim: &Judged) -> Value {
    let whose = |method: &str| if method == "all" { String::new() } else { method.into() };
    let made = |id: &String| report.gathered.experiments.iter().any(|found| found.record.id == *id);
    let needs = claim.experiments.iter().map(|id| json!({ "id": id, "made": made(id) }));
    let judgements = claim.judgements.iter().map(|judgement| {
        json!({
            "whose": whose(&judgement.method),
            "verdict": judgement.verdict,
            "findings": judgement.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    });
    let beside = claim.judgements.get(1);
    let beside = beside.map(|judgement| format!("{}: {}", judgement.method, judgement.verdict.word()));
    // The first findings that the verdict rests on.
    let findings = claim.judgements.first().into_iter().flat_map(|judgement| &judgement.findings);
    let resting = findings.filter(|it| it.verdict == claim.verdict && it.verdict != Verdict::Missing);
    json!({
        "id": claim.id,
        "place": claim.place,
        "sentence": claim.sentence,
        "verdict": claim.verdict,
        "beside": beside.unwrap_or_default(),
        "needs": needs.collect::<Vec<_>>(),
        "why": claim.why,
        "deciding": resting.take(MOST_SHOWN).map(finding).collect::<Vec<_>>(),
        "judgements": judgements.collect::<Vec<_>>(),
    })
}

fn finding(Finding { test, verdict, numbers, absent, .. }: &Finding) -> Value {
    json!({ "test": test, "verdict": verdict, "numbers": numbers, "without": absent.join("; ") })
}

fn experiment(report: &Report, found: &CompleteExperiment) -> anyhow::Result<Value> {
    let record = &found.record;
    let resting = report.claims.iter().filter(|claim| claim.experiments.contains(&record.id));
    let resting = resting.map(|claim| json!({ "id": claim.id, "verdict": claim.verdict }));
    let mut figures = Vec::new();
    for file in &found.figures {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        figures.push(json!({ "name": name, "source": inline(file)? }));
    }
    let frames = found.frames.iter().map(|file| inline(file)).collect::<anyhow::Result<Vec<_>>>()?;
    let replay = match frames.first() {
        Some(first) => {
            json!({ "count": frames.len(), "first": first, "frames": serde_json::to_string(&frames)? })
        }
        None => Value::Null,
    };
    Ok(json!({
        "id": record.id,
        "title": found.title,
        "label": found.label,
        "command": record.command,
        "length": record.length,
        "seeds": seeds(&record.seeds),
        "commits": found.commits(),
        "time": tables::duration(record.wall_s),
        "cores": record.cores,
        "failures": found.failures().join("; "),
        "resting": resting.collect::<Vec<_>>(),
        "table": tables::of(found),
        "figures": figures,
        "replay": replay,
        "settings": found.settings(),
    }))
}

/// `1 to 5`, or all of them.
fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [first, .., last] if seeds.len() > 2 && seeds.is_sorted_by(|a, b| a.checked_add(1) == Some(*b)) => {
            format!("{first} to {last}")
        }
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// A picture's file as a data URI.
fn inline(file: &Path) -> anyhow::Result<String> {
    let kind = if file.extension().is_some_and(|extension| extension == "svg") { "svg+xml" } else { "png" };
    let bytes = std::fs::read(file).map_err(|error| Error::file(file, format!("cannot be read: {error}")))?;
    Ok(data_uri(kind, &bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_in_a_row_are_named_by_their_ends() {
        for (list, words) in [
            (&[1, 2, 3][..], "1 to 3"),
            (&[1, 2], "1, 2"),
            (&[1, 5, 3], "1, 5, 3"),
            (&[3, 2, 1], "3, 2, 1"),
            (&[u64::MAX, 0, 1], "18446744073709551615, 0, 1"),
        ] {
            assert_eq!(seeds(list), words);
        }
    }
}

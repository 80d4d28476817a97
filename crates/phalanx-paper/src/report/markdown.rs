//! `REPORT.md`.

use super::gathered::{CompleteExperiment, Tuning};
use super::tables::{self, Table};
use super::{METHOD, Report};
use crate::claims::{CLAIMS, Judged, Judgement};

/// The whole file.
pub fn write(report: &Report) -> String {
    let mut text = String::from("# What became of the paper's claims\n\n");
    if let Some(warning) = report.warning() {
        text += &format!("**{warning}**\n\n");
    }
    let counts: Vec<String> =
        report.counts().map(|(verdict, count)| format!("{count} {}", verdict.word())).into();
    text += &format!("{} claims: {}.\n\n", report.claims.len(), counts.join(", "));
    text += &format!("{METHOD}\n\n");
    text += &format!("Judged by phalanx {} (commit {}).\n\n", env!("CARGO_PKG_VERSION"), report.commit);
    let gaps = report.gaps();
    if !gaps.is_empty() {
        text += "## What is not there\n\n";
        text += &gaps.iter().map(|gap| format!("- {}\n", one_line(gap))).collect::<String>();
        text += "\n";
    }
    text += "## Claims\n\n";
    text +=
        &rows(&["claim", "paper", "sentence", "verdict", "beside it"], report.claims.iter().map(claim_row));
    text += "\n## How each was judged\n\n";
    text += &report.claims.iter().map(judged).collect::<String>();
    text += "## Sentences that are not tested\n\n";
    let untested =
        CLAIMS.untested.iter().map(|it| vec![it.place.clone(), it.sentence.clone(), it.reason.clone()]);
    text += &rows(&["paper", "sentence", "why not"], untested);
    text += "\n## Experiments\n\n";
    text += &report.gathered.experiments.iter().map(experiment).collect::<String>();
    match &report.gathered.tuning {
        Tuning::Words(words) => text += &format!("## Tuning budget\n\n{}\n", words.trim()),
        Tuning::Table(sheet) => text += &format!("## Tuning budget\n\n{}", table(&tables::whole(sheet))),
    }
    text
}

fn claim_row(claim: &Judged) -> Vec<String> {
    let second = claim.judgements.get(1);
    let second = second.map(|judgement| format!("{}: {}", judgement.method, judgement.verdict.word()));
    let id = &claim.id;
    vec![
        format!("`{id}`"),
        claim.place.clone(),
        claim.sentence.clone(),
        format!("**{}**", claim.verdict.word()),
        second.unwrap_or_default(),
    ]
}

fn judged(claim: &Judged) -> String {
    let needs: Vec<String> = claim.experiments.iter().map(|id| format!("`{id}`")).collect();
    let mut text = format!("### {}\n\n> {}\n\nNeeds {}.", claim.id, claim.sentence, needs.join(", "));
    if !claim.why.is_empty() {
        text += &format!(" Why: {}", claim.why);
    }
    text += "\n\n";
    text += &claim.judgements.iter().map(judgement).collect::<String>();
    text + "\n"
}

fn judgement(judgement: &Judgement) -> String {
    let whose = if judgement.method == "all" { String::new() } else { format!("{}: ", judgement.method) };
    let mut text = format!("- {whose}**{}**\n", judgement.verdict.word());
    for finding in &judgement.findings {
        let absent = if finding.absent.is_empty() {
            String::new()
        } else {
            format!(" Without: {}.", finding.absent.join("; "))
        };
        let line = format!("{}: {} ({}).{absent}", finding.verdict.word(), finding.test, finding.numbers);
        text += &format!("  - {}\n", one_line(&line));
    }
    text
}

fn experiment(found: &CompleteExperiment) -> String {
    let record = &found.record;
    let mut text = format!("### {}: {}\n\n", record.id, found.title);
    let place = if found.label.is_empty() { String::new() } else { format!("{}; ", found.label) };
    text += &format!(
        "{place}`{}`; {} runs, seeds {}; commit {}; {} on {} cores.\n\n",
        record.command,
        record.length,
        seeds(&record.seeds),
        record.commit,
        tables::duration(record.wall_s),
        record.cores
    );
    let failures = found.failures();
    if !failures.is_empty() {
        text += &format!("**Without a result:** {}\n\n", one_line(&failures.join("; ")));
    }
    if let Some(shown) = tables::of(found) {
        text += &table(&shown);
        text += "\n";
    }
    for figure in &found.figures {
        // PNG beside SVG: every viewer of Markdown shows it.
        let Some(stem) = figure.file_stem().map(|stem| stem.to_string_lossy()) else { continue };
        text += &format!("![{}, {stem}]({}/figures/{stem}.png)\n\n", found.title, record.id);
    }
    if !found.frames.is_empty() {
        text += &format!("A replay of {} steps is in report.html.\n\n", found.frames.len());
    }
    let settings = found.settings();
    if !settings.is_empty() {
        text += "Settings:\n\n";
        let cells = settings.into_iter().map(|[method, setting, preset, set]| {
            vec![
                method,
                setting,
                format!("`{preset}`"),
                if set.is_empty() { set } else { format!("`{set}`") },
            ]
        });
        text += &rows(&["method", "setting", "preset", "on top of it"], cells);
        text += "\n";
    }
    text
}

/// `1 to 5`, or all of them.
pub fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [first, .., last] if seeds.len() > 2 && last - first + 1 == seeds.len() as u64 => {
            format!("{first} to {last}")
        }
        _ => seeds.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    }
}

fn table(table: &Table) -> String {
    let heading: Vec<&str> = table.heading.iter().map(String::as_str).collect();
    let mut text = rows(&heading, table.rows.iter().cloned());
    if table.left_out > 0 {
        text += &format!("\n{} more rows are in results.csv.\n", table.left_out);
    }
    text
}

fn rows(heading: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(heading.iter().map(|name| name.to_string()).collect());
    text += &format!("|{}\n", "---|".repeat(heading.len()));
    text += &rows.map(|row| line(row.iter().map(|cell| escaped(cell)).collect())).collect::<String>();
    text
}

/// A cell must not end itself.
fn escaped(cell: &str) -> String {
    one_line(cell).replace('|', "\\|")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

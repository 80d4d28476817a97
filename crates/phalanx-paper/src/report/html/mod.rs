//! `report.html`: one file that needs nothing else, not even a network.

mod claims;
mod experiments;
mod picture;

use super::gathered::Tuning;
use super::tables::{self, Table};
use super::{METHOD, Report};
use crate::claims::{CLAIMS, Verdict};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The whole page.
pub fn write(report: &Report) -> anyhow::Result<String> {
    let mut page = String::from("<!DOCTYPE html>\n<html lang=\"en-GB\">\n<head>\n<meta charset=\"utf-8\">\n");
    page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
    page += "<meta name=\"color-scheme\" content=\"light dark\">\n";
    // An icon of its own, or browsers ask for one.
    page += "<link rel=\"icon\" href=\"data:,\">\n<title>What became of the paper's claims</title>\n";
    page += &format!("<style>\n{STYLE}</style>\n</head>\n<body>\n");
    page += "<a class=\"skip\" href=\"#claims\">To the claims</a>\n<div class=\"layout\">\n";
    page += &contents(report);
    page += "<main>\n";
    page += &summary(report);
    let made = report.gathered.experiments.iter().map(|found| found.record.id.as_str());
    page += &claims::section(&report.claims, &made.collect::<Vec<_>>());
    page += &untested();
    page += "<section id=\"experiments\">\n<h2>Experiments</h2>\n";
    for found in &report.gathered.experiments {
        page += &experiments::section(found, &report.claims)?;
    }
    page += "</section>\n";
    page += &tuning(report);
    page += &format!("</main>\n</div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    Ok(page)
}

/// The table of contents beside everything.
fn contents(report: &Report) -> String {
    let mut text = String::from("<nav aria-label=\"Contents\">\n<p class=\"brand\">Phalanx</p>\n<ul>\n");
    text += "<li><a href=\"#summary\">Summary</a></li>\n<li><a href=\"#claims\">Claims</a>\n<ul>\n";
    for (group, title) in claims::groups(&report.claims) {
        text += &format!("<li><a href=\"#group-{group}\">{}</a></li>\n", escaped(&title));
    }
    text += "</ul></li>\n<li><a href=\"#untested\">Not tested</a></li>\n";
    text += "<li><a href=\"#experiments\">Experiments</a>\n<ul>\n";
    for found in &report.gathered.experiments {
        let id = escaped(&found.record.id);
        text += &format!("<li><a href=\"#{id}\">{id}</a></li>\n");
    }
    text += "</ul></li>\n";
    text += "<li><a href=\"#tuning\">Tuning budget</a></li>\n";
    text + "</ul>\n</nav>\n"
}

fn summary(report: &Report) -> String {
    let mut text = String::from("<header id=\"summary\">\n<h1>What became of the paper's claims</h1>\n");
    if let Some(warning) = report.warning() {
        text += &format!("<p class=\"warning\" role=\"alert\"><strong>{}</strong></p>\n", escaped(&warning));
    }
    text += "<p class=\"lead\">Scalable Primal-Dual Actor-Critic Method for Safe Multi-Agent RL with General Utilities: every \
             sentence of its experimental section that can be true or false.</p>\n";
    text += "<ul class=\"counts\">\n";
    for (verdict, count) in report.counts() {
        let word = verdict.word();
        text += &format!("<li class=\"{word}\"><b>{count}</b> {}</li>\n", said(verdict));
    }
    text += "</ul>\n";
    text += &format!("<details><summary>How verdicts are reached</summary>\n<p>{}</p>\n", escaped(METHOD));
    let (version, commit) = (env!("CARGO_PKG_VERSION"), escaped(&report.commit));
    text += &format!("<p>Judged by phalanx {version}, commit <code>{commit}</code>.</p></details>\n");
    let gaps = report.gaps();
    if !gaps.is_empty() {
        let entries: String = gaps.iter().map(|gap| format!("<li>{}</li>\n", escaped(gap))).collect();
        text += &format!(
            "<details open class=\"gaps\"><summary>What is not there</summary>\n<ul>\n{entries}</ul></details>\n"
        );
    }
    text + "</header>\n"
}

/// A verdict under a number of claims.
fn said(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "hold",
        Verdict::Fails => "fail",
        Verdict::Undecided => "undecided",
        Verdict::Missing => "missing",
    }
}

fn untested() -> String {
    let rows =
        CLAIMS.untested.iter().map(|it| vec![it.place.clone(), it.sentence.clone(), it.reason.clone()]);
    let heading = ["paper", "sentence", "why not"].map(String::from).into();
    let table = Table { heading, rows: rows.collect(), left_out: 0 };
    format!(
        "<section id=\"untested\">\n<h2>Sentences that are not tested</h2>\n{}</section>\n",
        self::table(&table)
    )
}

fn tuning(report: &Report) -> String {
    let content = match &report.gathered.tuning {
        Tuning::Words(words) => format!("<pre class=\"words\">{}</pre>\n", escaped(words.trim())),
        Tuning::Table(sheet) => table(&tables::whole(sheet)),
    };
    format!("<section id=\"tuning\">\n<h2>Tuning budget</h2>\n{content}</section>\n")
}

/// A table that can be scrolled where it is too wide.
fn table(table: &Table) -> String {
    let mut text = String::from("<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr>");
    for name in &table.heading {
        text += &format!("<th scope=\"col\">{}</th>", escaped(name));
    }
    text += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escaped(cell))).collect();
        text += &format!("<tr>{cells}</tr>\n");
    }
    text += "</tbody></table></div>\n";
    if table.left_out > 0 {
        text += &format!("<p>{} more rows are in results.csv.</p>\n", table.left_out);
    }
    text
}

/// For text and attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            c => out.push(c),
        }
    }
    out
}

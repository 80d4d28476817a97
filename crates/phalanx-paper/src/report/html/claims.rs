//! Claims, in groups, each with its numbers and the way to its figures.

use super::escaped;
use crate::claims::{Finding, Judged, Judgement, Verdict};

/// Groups by name, with what they are called, in the order of the claims.
pub fn groups(claims: &[Judged]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for claim in claims {
        let group = claim.group();
        if found.iter().any(|(name, _)| name == group) {
            continue;
        }
        let title = match group {
            "synthetic" => "Synthetic line",
            "pistonball" => "Pistonball",
            "pistonball20" => "Twenty pistons",
            "wireless" => "Wireless",
            "baselines" => "Baselines",
            "penalty" => "Entropy penalty",
            "cost" => "Cost",
            "theory" => "Theory",
            "published" => "Published figures",
            other => other,
        };
        found.push((group.into(), title.into()));
    }
    found
}

/// All claims, with buttons that show some. `made` are the experiments that there are links to.
pub fn section(claims: &[Judged], made: &[&str]) -> String {
    let mut text = String::from("<section id=\"claims\">\n<h2>Claims</h2>\n");
    text += "<div class=\"filters\" role=\"group\" aria-label=\"Show claims by verdict\">\n";
    text += &format!(
        "<button type=\"button\" data-filter=\"all\" aria-pressed=\"true\">all <b>{}</b></button>\n",
        claims.len()
    );
    for verdict in Verdict::ALL {
        let (word, count) = (verdict.word(), claims.iter().filter(|claim| claim.verdict == verdict).count());
        text += &format!(
            "<button type=\"button\" class=\"{word}\" data-filter=\"{word}\" aria-pressed=\"false\">{word} <b>{count}</b></button>\n"
        );
    }
    text += "</div>\n<p class=\"shown\" role=\"status\"></p>\n";
    for (group, title) in groups(claims) {
        text += &format!("<div class=\"group\">\n<h3 id=\"group-{group}\">{}</h3>\n", escaped(&title));
        text += &claims
            .iter()
            .filter(|claim| claim.group() == group)
            .map(|it| claim(it, made))
            .collect::<String>();
        text += "</div>\n";
    }
    text + "</section>\n"
}

fn claim(claim: &Judged, made: &[&str]) -> String {
    let (id, word) = (escaped(&claim.id), claim.verdict.word());
    let mut text =
        format!("<article class=\"claim\" data-verdict=\"{word}\" id=\"claim-{id}\">\n<p class=\"badges\">");
    text += &claim.judgements.iter().map(badge).collect::<String>();
    text += &format!("</p>\n<blockquote>{}</blockquote>\n", escaped(&claim.sentence));
    text += &deciding(claim);
    let links = claim.experiments.iter().map(|id| {
        let name = escaped(id);
        if made.contains(&id.as_str()) { format!("<a href=\"#{name}\">{name}</a>") } else { name }
    });
    let links: Vec<String> = links.collect();
    text += &format!(
        "<p class=\"source\"><code>{id}</code> · {} · {}</p>\n",
        escaped(&claim.place),
        links.join(", ")
    );
    if !claim.why.is_empty() {
        text += &format!("<p class=\"why\"><b>Why:</b> {}</p>\n", escaped(&claim.why));
    }
    text += "<details><summary>All tests and numbers</summary>\n";
    text += &claim.judgements.iter().map(judgement).collect::<String>();
    text + "</details>\n</article>\n"
}

/// Findings that are shown without being asked for.
const MOST_SHOWN: usize = 2;

/// The first findings that the verdict rests on.
fn deciding(claim: &Judged) -> String {
    let findings = claim.judgements.first().into_iter().flat_map(|judgement| &judgement.findings);
    let resting = findings.into_iter().filter(|finding| finding.verdict == claim.verdict);
    let shown = resting.filter(|_| claim.verdict != Verdict::Missing).take(MOST_SHOWN);
    let line = |finding: &Finding| {
        let (test, numbers) = (escaped(&finding.test), escaped(&finding.numbers));
        format!("<p class=\"deciding\">{test}: <span class=\"numbers\">{numbers}</span></p>\n")
    };
    shown.map(line).collect()
}

fn badge(judgement: &Judgement) -> String {
    let word = judgement.verdict.word();
    let whose = if judgement.method == "all" { String::new() } else { format!("{}: ", judgement.method) };
    format!("<span class=\"badge {word}\">{}{word}</span> ", escaped(&whose))
}

fn judgement(judgement: &Judgement) -> String {
    let whose = if judgement.method == "all" {
        String::new()
    } else {
        format!("<h4>{}</h4>\n", escaped(&judgement.method))
    };
    let findings: String = judgement.findings.iter().map(finding).collect();
    format!("{whose}<ul class=\"findings\">\n{findings}</ul>\n")
}

fn finding(finding: &Finding) -> String {
    let absent = if finding.absent.is_empty() {
        String::new()
    } else {
        format!(" <strong>Without: {}.</strong>", escaped(&finding.absent.join("; ")))
    };
    let word = finding.verdict.word();
    format!(
        "<li><span class=\"badge {word}\">{word}</span> {}: <span class=\"numbers\">{}</span>{absent}</li>\n",
        escaped(&finding.test),
        escaped(&finding.numbers)
    )
}

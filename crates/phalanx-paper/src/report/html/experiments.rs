//! An experiment: how it was made, its table, its figures, its replay.

use super::super::gathered::CompleteExperiment;
use super::super::markdown::seeds;
use super::super::tables::{self, Table};
use super::{escaped, picture, table};
use crate::claims::Judged;

/// Everything about it.
pub fn section(found: &CompleteExperiment, claims: &[Judged]) -> anyhow::Result<String> {
    let record = &found.record;
    let id = escaped(&record.id);
    let mut text =
        format!("<section class=\"experiment\" id=\"{id}\">\n<h3>{}</h3>\n", escaped(&found.title));
    text += "<dl class=\"facts\">\n";
    for (name, value) in [
        ("paper", found.label.clone()),
        ("command", record.command.clone()),
        ("runs", record.length.clone()),
        ("seeds", seeds(&record.seeds)),
        ("commit", record.commit.clone()),
        ("time", format!("{} on {} cores", tables::duration(record.wall_s), record.cores)),
    ] {
        if !value.is_empty() {
            text += &format!("<div><dt>{name}</dt><dd>{}</dd></div>\n", escaped(&value));
        }
    }
    text += "</dl>\n";
    let failures = found.failures();
    if !failures.is_empty() {
        let words = escaped(&failures.join("; "));
        text += &format!("<p class=\"warning\"><strong>Without a result:</strong> {words}</p>\n");
    }
    text += &about(&record.id, claims);
    if let Some(shown) = tables::of(found) {
        text += &table(&shown);
    }
    for file in &found.figures {
        let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let caption = escaped(&format!("{}: {name}", found.title));
        text += &format!(
            "<figure><img src=\"{}\" alt=\"{caption}\"><figcaption>{caption}</figcaption></figure>\n",
            picture::inline(file)?
        );
    }
    if !found.frames.is_empty() {
        text += &player(&id, found)?;
    }
    text += &settings(found);
    Ok(text + "</section>\n")
}

/// Links back to the claims that rest on it.
fn about(id: &str, claims: &[Judged]) -> String {
    let resting = claims.iter().filter(|claim| claim.experiments.iter().any(|needed| needed == id));
    let links = resting.map(|claim| {
        let (name, word) = (escaped(&claim.id), claim.verdict.word());
        format!("<a class=\"badge {word}\" href=\"#claim-{name}\">{name}: {word}</a>")
    });
    let links: Vec<String> = links.collect();
    if links.is_empty() { String::new() } else { format!("<p class=\"about\">{}</p>\n", links.join(" ")) }
}

/// The frames of an episode with a button and a slider.
fn player(id: &str, found: &CompleteExperiment) -> anyhow::Result<String> {
    let frames = found.frames.iter().map(|file| picture::inline(file)).collect::<anyhow::Result<Vec<_>>>()?;
    let (count, title) = (frames.len(), escaped(&found.title));
    let first = frames.first().map_or("", String::as_str);
    let rest = serde_json::to_string(&frames)?;
    Ok(format!(
        "<figure class=\"replay\" id=\"replay-{id}\" data-frame=\"1\">\n\
         <img src=\"{first}\" alt=\"{title}: one episode, step by step\">\n\
         <div class=\"controls\"><button type=\"button\" class=\"play\" aria-label=\"Play\">▶</button>\n\
         <input type=\"range\" min=\"1\" max=\"{count}\" value=\"1\" aria-label=\"Step\">\n\
         <output>1 / {count}</output></div>\n\
         <figcaption>{title}: replay</figcaption>\n\
         <script type=\"application/json\">{rest}</script>\n</figure>\n"
    ))
}

fn settings(found: &CompleteExperiment) -> String {
    let rows: Vec<Vec<String>> = found.settings().into_iter().map(Vec::from).collect();
    if rows.is_empty() {
        return String::new();
    }
    let heading = ["method", "setting", "preset", "on top of it"].map(String::from).into();
    let shown = table(&Table { heading, rows, left_out: 0 });
    format!("<details><summary>Settings</summary>\n{shown}</details>\n")
}

//! Summaries as tables for the terminal and for the report.

use super::sheet::Sheet;

/// Heading and cells of a summary, as the terminal and the report show it.
pub fn rows(summary: &Sheet) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let heading = vec!["method", "setting", "return", "violation", "published", "reached", "seeds", "s"];
    let rows = summary.rows.iter().map(|row| {
        let text = |column: &str| summary.text(row, column).to_string();
        let number = |column: &str| summary.number(row, column);
        let pm = |name: &str, digits: usize| {
            let (mean, sd) = (number(&format!("{name}_mean")), number(&format!("{name}_sd")));
            if mean.is_nan() { "none".into() } else { format!("{mean:.digits$} ± {sd:.digits$}") }
        };
        let published = match (text("published_return"), text("published_violation")) {
            (a, _) if a.is_empty() => String::new(),
            (a, b) => format!("{a} / {b}"),
        };
        let missing = text("missing");
        let missing = if missing.is_empty() { missing } else { format!(" (missing: {missing})") };
        vec![
            text("method"),
            text("setting"),
            pm("return", 2),
            pm("violation", 3),
            published,
            text("reaches"),
            text("seeds") + &missing,
            format!("{:.0}", number("wall_s")),
        ]
    });
    (heading, rows.collect())
}

/// For the terminal.
pub fn summary(summary: &Sheet) -> String {
    let (heading, rows) = rows(summary);
    let all =
        || std::iter::once(heading.iter().map(|cell| cell.to_string()).collect()).chain(rows.iter().cloned());
    let widths: Vec<usize> = (0..heading.len())
        .map(|k| all().map(|row: Vec<String>| row[k].chars().count()).max().unwrap_or(0))
        .collect();
    let line = |row: Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        format!("  {}\n", cells.join("  ").trim_end())
    };
    all().map(line).collect()
}

//! Summaries as tables for the terminal and for the report.

use super::sheet::Sheet;

/// Its columns.
pub const HEADING: [&str; 11] = [
    "method",
    "setting",
    "return [95 %]",
    "violation [95 %]",
    "published",
    "reached",
    "seeds",
    "collapsed",
    "iterations",
    "agent-steps",
    "s",
];

/// A summary as the terminal and the report show it.
pub fn shown(summary: &Sheet) -> Sheet {
    let mut table = Sheet { columns: HEADING.map(String::from).into(), rows: Vec::new() };
    for row in &summary.rows {
        let text = |column: &str| summary.text(row, column).to_string();
        let number = |column: &str| summary.number(row, column);
        let published = match (text("published_return"), text("published_violation")) {
            (a, _) if a.is_empty() => String::new(),
            (a, b) => format!("{a} / {b}"),
        };
        table.push(vec![
            text("method"),
            text("setting"),
            interval(["return_mean", "return_low", "return_high"].map(number), 2),
            interval(
                ["violation_mean", "violation_low", "violation_high"].map(number).map(|it| it.max(0.0)),
                3,
            ),
            published,
            text("reaches"),
            seeds(summary, row),
            text("collapsed"),
            text("iterations"),
            text("agent_steps"),
            if text("wall_s").is_empty() { String::new() } else { format!("{:.0}", number("wall_s")) },
        ]);
    }
    table
}

/// A mean with its interval.
fn interval([mean, low, high]: [f64; 3], digits: usize) -> String {
    match () {
        () if !mean.is_finite() => "none".into(),
        () if low == high => format!("{mean:.digits$}"),
        () => format!("{mean:.digits$} [{low:.digits$}, {high:.digits$}]"),
    }
}

/// A mean with its deviation; none if there is no number.
pub fn plus_minus(mean: f64, deviation: f64, digits: usize) -> Option<String> {
    (!mean.is_nan()).then(|| format!("{mean:.digits$} ± {deviation:.digits$}"))
}

/// How many seeds there are, and which are not.
pub fn seeds(sheet: &Sheet, row: &[String]) -> String {
    let (seeds, missing) = (sheet.text(row, "seeds"), sheet.text(row, "missing"));
    if missing.is_empty() { seeds.into() } else { format!("{seeds} (missing: {missing})") }
}

/// For the terminal.
pub fn summary(summary: &Sheet) -> String {
    let table = shown(summary);
    let lines = || std::iter::once(&table.columns).chain(&table.rows);
    let width = |k: usize| lines().map(|row| row[k].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        format!("  {}\n", cells.join("  ").trim_end())
    };
    lines().map(line).collect()
}

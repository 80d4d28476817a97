//! Summaries as tables for the terminal and for the report.

use super::sheet::Sheet;

/// A summary as the terminal and the report show it.
pub fn shown(summary: &Sheet) -> Sheet {
    let mut table =
        Sheet::new("method,setting,return,violation,published,reached,seeds,iterations,agent-steps,s");
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
            plus_minus(number("return_mean"), number("return_sd"), 2).unwrap_or("none".into()),
            plus_minus(number("violation_mean"), number("violation_sd"), 3).unwrap_or("none".into()),
            published,
            text("reaches"),
            seeds(summary, row),
            text("iterations"),
            text("agent_steps"),
            if text("wall_s").is_empty() { String::new() } else { format!("{:.0}", number("wall_s")) },
        ]);
    }
    table
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

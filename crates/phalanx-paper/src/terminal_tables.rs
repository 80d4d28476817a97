//! Summaries as tables for the terminal and for the report.

use super::setting::LITERAL;
use super::sheet::Sheet;

/// Its columns.
pub const HEADING: [&str; 12] = [
    "method",
    "setting",
    "return [95 %]",
    "violation [95 %]",
    "published",
    "reached",
    "reproduces",
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
            interval(["violation_mean", "violation_low", "violation_high"].map(number), 3),
            published,
            text("reaches"),
            reproduces(summary, row).map_or("", Reproduces::word).into(),
            seeds(summary, row),
            text("collapsed"),
            text("iterations"),
            text("agent_steps"),
            if text("wall_s").is_empty() { String::new() } else { format!("{:.0}", number("wall_s")) },
        ]);
    }
    table
}

/// Published numbers were read off figures to 2 % of an axis, which reaches the largest of a panel at least.
const READING_ERROR: f64 = 0.02;

/// Whether what is published lies in the intervals of the published code's runs, as far as it could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reproduces {
    Both,
    ReturnOnly,
    ViolationOnly,
    Neither,
}

impl Reproduces {
    /// In a cell.
    pub fn word(self) -> &'static str {
        match self {
            Reproduces::Both => "yes",
            Reproduces::ReturnOnly => "no: violation",
            Reproduces::ViolationOnly => "no: return",
            Reproduces::Neither => "no: both",
        }
    }
}

/// Of the published code's runs, where something is published.
pub fn reproduces(summary: &Sheet, row: &[String]) -> Option<Reproduces> {
    if summary.text(row, "method") != LITERAL {
        return None;
    }
    let is_inside = |published: &str, low: &str, high: &str| {
        let largest = summary.rows.iter().map(|row| summary.number(row, published).abs()).fold(0.0, f64::max);
        let error = READING_ERROR * largest;
        let [published, low, high] = [published, low, high].map(|column| summary.number(row, column));
        let is_inside = low - error <= published && published <= high + error;
        (published.is_finite() && low.is_finite()).then_some(is_inside)
    };
    let return_ = is_inside("published_return", "return_low", "return_high")?;
    let violation = is_inside("published_violation", "violation_low", "violation_high")?;
    Some(match (return_, violation) {
        (true, true) => Reproduces::Both,
        (true, false) => Reproduces::ReturnOnly,
        (false, true) => Reproduces::ViolationOnly,
        (false, false) => Reproduces::Neither,
    })
}

/// A mean with its interval.
fn interval([mean, low, high]: [f64; 3], digits: usize) -> String {
    match () {
        () if !mean.is_finite() => "none".into(),
        // Of a single seed nothing is known.
        () if low == high || !low.is_finite() => format!("{mean:.digits$}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_runs_say_whether_they_come_out_where_published() {
        let mut summary = Sheet::new(
            "method,setting,seeds,return_mean,return_low,return_high,violation_mean,violation_low,\
             violation_high,published_return,published_violation",
        );
        for (method, interval, published) in [
            (LITERAL, ["1.5", "1", "2", "0.1", "-0.1", "0.3"], ["1.8", "0"]),
            (LITERAL, ["1.5", "1", "2", "0.1", "-0.1", "0.3"], ["1.8", "0.4"]),
            (LITERAL, ["1.5", "1", "2", "0", "0", "0"], ["2.5", "0"]),
            // Beyond the interval, but by less than 2 % of 2.5, and of 0.4.
            (LITERAL, ["1.5", "1", "2", "0", "0", "0"], ["2.04", "0.007"]),
            (LITERAL, ["1.5", "1", "2", "0.1", "-0.1", "0.3"], ["2.5", "0.4"]),
            (LITERAL, ["", "", "", "", "", ""], ["2.5", "0.4"]),
            (LITERAL, ["1.5", "1", "2", "0.1", "-0.1", "0.3"], ["", ""]),
            ("ours", ["1.5", "1", "2", "0.1", "-0.1", "0.3"], ["1.8", "0"]),
        ] {
            let cells = [&[method, "κ = 1", "5"][..], &interval, &published].concat();
            summary.push(cells.into_iter().map(String::from).collect());
        }
        let table = shown(&summary);
        let words: Vec<&str> = table.rows.iter().map(|row| table.text(row, "reproduces")).collect();
        assert_eq!(words, ["yes", "no: violation", "no: return", "yes", "no: both", "", "", ""]);
        // As in texts: an interval of a mean may reach below what single values can be.
        assert_eq!(table.text(&table.rows[0], "violation [95 %]"), "0.100 [-0.100, 0.300]");
    }
}

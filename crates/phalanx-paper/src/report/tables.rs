//! Tables of an experiment as the report shows them: a heading and cells.

use serde::Serialize;

use super::gathered::CompleteExperiment;
use crate::claims;
use crate::sheet::Sheet;
use crate::terminal_tables;

/// A table with its heading.
#[derive(Serialize)]
pub struct Table {
    /// Names of columns.
    pub heading: Vec<String>,
    /// As many cells each.
    pub rows: Vec<Vec<String>>,
    /// How many rows were left out.
    pub left_out: usize,
}

/// Longer tables are cut.
const MOST_ROWS: usize = 80;

/// The summary of a trained experiment; of another the table that it made for readers, or its results.
pub fn of(found: &CompleteExperiment) -> Option<Table> {
    if let Some(summary) = found.sheets.get("summary") {
        let Sheet { columns, rows } = terminal_tables::shown(summary);
        return Some(Table { heading: columns, rows, left_out: 0 });
    }
    found.sheets.get("table").or(found.sheets.get("results")).map(whole)
}

/// A sheet as it is, its numbers shortened.
pub fn whole(sheet: &Sheet) -> Table {
    let cells = |row: &Vec<String>| row.iter().map(|cell| shortened(cell)).collect();
    Table {
        heading: sheet.columns.clone(),
        rows: sheet.rows.iter().take(MOST_ROWS).map(cells).collect(),
        left_out: sheet.rows.len().saturating_sub(MOST_ROWS),
    }
}

/// Whole numbers and words as they are.
fn shortened(cell: &str) -> String {
    match cell.parse::<f64>() {
        Ok(number) if number.is_finite() && cell.contains(['.', 'e']) => claims::short(number),
        _ => cell.into(),
    }
}

/// Seconds, minutes or hours.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 6000.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shortened_words_are_not() {
        assert_eq!(
            ["0.123456", "12", "κ = 1", "1e-9", ""].map(shortened),
            ["0.123", "12", "κ = 1", "1.00e-9", ""]
        );
    }

    #[test]
    fn long_tables_say_what_is_left_out() {
        let mut sheet = Sheet::new("a");
        (0..100).for_each(|k| sheet.push(vec![k.to_string()]));
        let table = whole(&sheet);
        assert_eq!((table.rows.len(), table.left_out), (80, 20));
    }

    #[test]
    fn durations() {
        assert_eq!([12.4, 130.0, 7200.0].map(duration), ["12 s", "2 min", "2.0 h"]);
    }
}

//! A small table as CSV: what experiments write and the report reads.

use std::path::Path;

use phalanx::{Error, Result};

/// Columns by name, rows of text.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sheet {
    /// Names.
    pub columns: Vec<String>,
    /// One cell per column.
    pub rows: Vec<Vec<String>>,
}

impl Sheet {
    /// An empty one; commas separate the names of its columns.
    pub fn new(columns: &str) -> Self {
        Sheet { columns: columns.split(',').map(String::from).collect(), rows: Vec::new() }
    }

    /// Adds a row; `cells` are as many as the columns.
    pub fn push(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// The number of a column, by name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// A cell; empty if there is none.
    pub fn text<'a>(&'a self, row: &'a [String], column: &str) -> &'a str {
        self.column(column).and_then(|k| row.get(k)).map_or("", String::as_str)
    }

    /// A cell as a number; NaN if it is none.
    pub fn number(&self, row: &[String], column: &str) -> f64 {
        self.text(row, column).parse().unwrap_or(f64::NAN)
    }

    /// Points of two columns over the rows that `keep` keeps.
    pub fn points(&self, x: &str, y: &str, keep: impl Fn(&[String]) -> bool) -> Vec<(f64, f64)> {
        let rows = self.rows.iter().filter(|row| keep(row));
        rows.map(|row| (self.number(row, x), self.number(row, y))).collect()
    }

    /// As CSV. Cells with commas, quotes or line breaks are quoted.
    pub fn to_csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        // Writing to memory cannot fail, and rows are of equal length.
        for row in std::iter::once(&self.columns).chain(&self.rows) {
            let _ = writer.write_record(row);
        }
        String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
    }

    /// Reads what [`Sheet::to_csv`] wrote; none if there is no such file.
    pub fn read(file: &Path) -> Result<Option<Sheet>> {
        let Some(text) = if_there(file, std::fs::read(file))? else { return Ok(None) };
        Sheet::parse(&text, file).map(Some)
    }

    /// The same from bytes at hand; `file` is what errors call them.
    pub fn parse(text: &[u8], file: &Path) -> Result<Sheet> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
        let records = reader.deserialize().collect::<std::result::Result<Vec<Vec<String>>, _>>();
        let mut rows = records.map_err(|error| Error::file(file, format!("cannot be read: {error}")))?;
        let columns = if rows.is_empty() { Vec::new() } else { rows.remove(0) };
        if let Some(k) = rows.iter().position(|row| row.len() != columns.len()) {
            let message = format!("row {} has {} cells, the header {}", k + 1, rows[k].len(), columns.len());
            return Err(Error::file(file, message));
        }
        Ok(Sheet { columns, rows })
    }
}

/// What was read of `path`; none if there is no such file or folder.
pub fn if_there<T>(path: &Path, read: std::io::Result<T>) -> Result<Option<T>> {
    match read {
        Ok(read) => Ok(Some(read)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::file(path, format!("cannot be read: {error}"))),
    }
}

/// Six digits. Numbers that are smaller than rounding errors, which differ between machines, are 0; NaN is an
/// empty cell.
pub fn number(x: f64) -> String {
    const ROUNDING: f64 = 1e-12;
    match x {
        x if x.is_nan() => String::new(),
        x if x.abs() < ROUNDING => "0".into(),
        x if x == x.round() => format!("{x}"),
        x => format!("{x:.5e}").parse::<f64>().map_or_else(|_| String::new(), |x| format!("{x:?}")),
    }
}

/// A number that there may not be.
pub fn optional(x: Option<f64>) -> String {
    number(x.unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_back() {
        let mut sheet = Sheet::new("setting,return");
        sheet.push(vec!["κ = 1, c = \"0.2\"".into(), "3.5".into()]);
        sheet.push(vec!["two\nlines".into(), String::new()]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("results.csv");
        assert!(Sheet::read(&file).unwrap().is_none());
        std::fs::write(&file, sheet.to_csv()).unwrap();
        let read = Sheet::read(&file).unwrap().unwrap();
        assert_eq!(read, sheet);
        assert_eq!(read.number(&read.rows[0], "return"), 3.5);
        assert!(read.number(&read.rows[1], "return").is_nan());
        std::fs::write(&file, "a,b\n1\n").unwrap();
        assert!(Sheet::read(&file).unwrap_err().to_string().contains("row 1 has 1 cells, the header 2"));
    }
}

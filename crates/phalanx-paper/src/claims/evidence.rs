//! What experiments found: their `results.csv`, and which rows a claim is about.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};

use serde::Deserialize;

use crate::sheet::Sheet;

/// The results of every complete experiment.
#[derive(Debug, Default)]
pub struct Evidence {
    /// `results.csv` by the ID of the experiment, other tables of it as `ID/name`.
    pub sheets: BTreeMap<String, Sheet>,
}

/// Rows of an experiment: all seeds of one setting, say.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "Selection")]
pub struct Rows {
    /// ID of the experiment, or `ID/name` for another table of it than `results.csv`.
    pub experiment: String,
    /// In words.
    pub label: String,
    /// What cells of these columns must hold.
    pub wanted: BTreeMap<String, String>,
    /// Whether the method that is judged selects rows, too.
    pub by_method: bool,
}

/// One number per seed, and the seeds that have none.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// In the order of the sheet.
    pub values: Vec<f64>,
    /// Seeds without a result, each with the reason.
    pub absent: Vec<String>,
}

/// Rows as `claims.toml` names them.
#[derive(Deserialize)]
#[serde(untagged, expecting = "\"EXPERIMENT: SETTING\", or a table with `experiment`, `where` and `label`")]
enum Selection {
    /// Of a setting, of the method that is judged.
    Setting(String),
    /// With these cells, whoever trained them.
    Cells {
        experiment: String,
        #[serde(default)]
        r#where: BTreeMap<String, String>,
        label: Option<String>,
    },
}

impl From<Selection> for Rows {
    fn from(selection: Selection) -> Rows {
        match selection {
            Selection::Setting(text) => {
                let (experiment, setting) = text.split_once(": ").unwrap_or((&text, ""));
                Rows::setting(experiment, setting)
            }
            Selection::Cells { experiment, r#where: wanted, label } => {
                let cells = || wanted.values().cloned().collect::<Vec<_>>().join(", ");
                Rows { experiment, label: label.unwrap_or_else(cells), wanted, by_method: false }
            }
        }
    }
}

impl Display for Rows {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.label)
    }
}

impl Rows {
    /// Those of a setting, of the method that is judged.
    pub fn setting(experiment: &str, setting: &str) -> Rows {
        let wanted = [("setting".into(), setting.into())].into();
        Rows { experiment: experiment.into(), label: setting.into(), wanted, by_method: true }
    }

    /// Those of them that hold `cell` in `column`.
    pub fn with(mut self, column: &str, cell: &str) -> Rows {
        self.wanted.insert(column.into(), cell.into());
        self
    }

    /// ID of the experiment.
    pub fn id(&self) -> &str {
        self.experiment.split('/').next().unwrap_or_default()
    }
}

impl Evidence {
    /// The rows of `method`; the reason if there are none.
    pub fn rows<'a>(&'a self, rows: &Rows, method: &str) -> Result<(&'a Sheet, Vec<&'a [String]>), String> {
        let Some(sheet) = self.sheets.get(&rows.experiment) else {
            return Err(format!("no results of {}", rows.experiment));
        };
        let keep = |row: &&Vec<String>| {
            let asked = rows.wanted.iter().all(|(column, cell)| is_same(sheet.text(row, column), cell));
            asked && (!rows.by_method || sheet.text(row, "method") == method)
        };
        let found: Vec<&[String]> = sheet.rows.iter().filter(keep).map(Vec::as_slice).collect();
        if found.is_empty() {
            let whose = if rows.by_method { format!(" of {method}") } else { String::new() };
            return Err(format!("{} has no rows for {}{whose}", rows.experiment, rows.label));
        }
        Ok((sheet, found))
    }

    /// `column` of those rows; the reason if there is not one number.
    pub fn sample(&self, rows: &Rows, method: &str, column: &str) -> Result<Sample, String> {
        let (sheet, found) = self.rows(rows, method)?;
        sample_of(sheet, &found, rows, column)
    }

    /// The same without rows that have no number although they were measured, because a row with the same
    /// cell in the column `by` was refused; and how many these are.
    pub fn sample_beside_refused(
        &self,
        rows: &Rows,
        method: &str,
        column: &str,
        by: &str,
    ) -> Result<(Sample, usize), String> {
        let (sheet, found) = self.rows(rows, method)?;
        let was_refused = |row: &[String]| {
            let mut same = sheet.rows.iter().filter(|other| sheet.text(other, by) == sheet.text(row, by));
            same.any(|other| sheet.text(other, "status").starts_with("refused"))
        };
        let was_measured = |row: &[String]| sheet.text(row, "status") == "measured";
        let is_excused =
            |row: &&[String]| !sheet.number(row, column).is_finite() && was_measured(row) && was_refused(row);
        let (excused, kept): (Vec<&[String]>, Vec<&[String]>) = found.into_iter().partition(is_excused);
        Ok((sample_of(sheet, &kept, rows, column)?, excused.len()))
    }
}

fn sample_of(sheet: &Sheet, found: &[&[String]], rows: &Rows, column: &str) -> Result<Sample, String> {
    let mut sample = Sample { values: Vec::new(), absent: Vec::new() };
    for row in found {
        let values = numbers(sheet.text(row, column));
        if !values.is_empty() {
            // Readings of several seeds in one cell say which runs they are without.
            let missing = sheet.text(row, "missing");
            sample.absent.extend((!missing.is_empty()).then(|| missing.to_string()));
            sample.values.extend(values);
            continue;
        }
        let (seed, status) = (sheet.text(row, "seed"), sheet.text(row, "status"));
        let reason =
            if status.is_empty() || status == "finished" { format!("no {column}") } else { status.into() };
        sample.absent.push(format!("{}, seed {seed}: {reason}", rows.label));
    }
    if sample.values.is_empty() {
        return Err(format!("{} has no {column} for {}", rows.experiment, rows.label));
    }
    Ok(sample)
}

/// A number, or several with spaces between them; nothing if one of them is none.
fn numbers(cell: &str) -> Vec<f64> {
    let values =
        cell.split_whitespace().map(|word| word.parse().ok().filter(|value: &f64| value.is_finite()));
    values.collect::<Option<Vec<f64>>>().unwrap_or_default()
}

/// Numbers are the same however they are written.
fn is_same(found: &str, wanted: &str) -> bool {
    match (found.parse::<f64>(), wanted.parse::<f64>()) {
        (Ok(found), Ok(wanted)) => found == wanted,
        _ => found == wanted,
    }
}

//! Tables over (state, action) as written in model files.

use serde::{Deserialize, Serialize};

use super::LocalSpace;
use crate::base::error::ensure;
use crate::{Error, Result};

/// A table over (s_i, a_i), in either of the two forms files use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a table: a list of numbers (or \"inf\", \"-inf\"), or one such list per state"
)]
pub enum LocalTable {
    /// All entries in row-major order: `[0, 0, 1, 1]`.
    Flat(Vec<Entry>),
    /// One row per state: `[[0, 0], [1, 1]]`.
    Rows(Vec<Vec<Entry>>),
}

impl LocalTable {
    /// All entries in row-major order, whatever the shape.
    pub(super) fn numbers(&self) -> Vec<f64> {
        match self {
            LocalTable::Flat(entries) => entries.iter().map(|entry| entry.0).collect(),
            LocalTable::Rows(rows) => rows.iter().flatten().map(|entry| entry.0).collect(),
        }
    }

    /// All entries in row-major order, once their number is right. `field` names the table in error messages.
    pub fn entries(&self, space: LocalSpace, field: &str) -> Result<Vec<f64>> {
        let LocalSpace { states, actions, .. } = space;
        match self {
            LocalTable::Flat(entries) => check_length(entries.len(), space, field)?,
            LocalTable::Rows(rows) => {
                let length = rows.len();
                ensure(length == states, || {
                    Error::config(field, format!("has {length} rows, but the agent has {states} states"))
                })?;
                for (state, row) in rows.iter().enumerate() {
                    ensure(row.len() == actions, || {
                        let length = row.len();
                        let message = format!("has {length} entries, but the agent has {actions} actions");
                        Error::config(format!("{field}[{state}]"), message)
                    })?;
                }
            }
        }
        Ok(self.numbers())
    }
}

/// Whether `length` is the number of entries of a table.
pub(super) fn check_length(length: usize, space: LocalSpace, field: &str) -> Result<()> {
    let LocalSpace { states, actions, .. } = space;
    ensure(length == space.cells(), || {
        let size = format!("{states} states x {actions} actions = {}", space.cells());
        Error::config(field, format!("has {length} entries, but the agent's table has {size}"))
    })
}

/// A number of a table. An infinite one, which JSON has no number for, may be written `"inf"` or `"-inf"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Entry(pub f64);

/// The form on file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Infinite(Infinite),
}

#[derive(Serialize, Deserialize)]
enum Infinite {
    #[serde(rename = "inf")]
    Above,
    #[serde(rename = "-inf")]
    Below,
}

impl From<Written> for Entry {
    fn from(written: Written) -> Entry {
        match written {
            Written::Number(number) => Entry(number),
            Written::Infinite(Infinite::Above) => Entry(f64::INFINITY),
            Written::Infinite(Infinite::Below) => Entry(f64::NEG_INFINITY),
        }
    }
}

impl From<Entry> for Written {
    fn from(Entry(number): Entry) -> Written {
        match number {
            f64::INFINITY => Written::Infinite(Infinite::Above),
            f64::NEG_INFINITY => Written::Infinite(Infinite::Below),
            _ => Written::Number(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: LocalSpace = LocalSpace { states: 2, actions: 3, gamma: 0.9 };

    fn entries(json: &str) -> Result<Vec<f64>> {
        serde_json::from_str::<LocalTable>(json).unwrap().entries(SPACE, "lo")
    }

    #[test]
    fn both_forms_mean_the_same() {
        let want = [0.0, 1.5, f64::INFINITY, f64::NEG_INFINITY, -2.0, 3.0];
        assert_eq!(entries(r#"[0, 1.5, "inf", "-inf", -2, 3]"#).unwrap(), want);
        assert_eq!(entries(r#"[[0, 1.5, "inf"], ["-inf", -2, 3]]"#).unwrap(), want);
    }

    #[test]
    fn wrong_shapes_are_named() {
        let message = |json| entries(json).unwrap_err().to_string();
        assert_eq!(
            message("[1, 2]"),
            "lo: has 2 entries, but the agent's table has 2 states x 3 actions = 6"
        );
        assert_eq!(message("[[1, 2, 3]]"), "lo: has 1 rows, but the agent has 2 states");
        assert_eq!(message("[[1, 2, 3], [1, 2]]"), "lo[1]: has 2 entries, but the agent has 3 actions");
        for json in [r#"[1, "many"]"#, "[1, [2, 3]]", "3", "[null]"] {
            let error = serde_json::from_str::<LocalTable>(json).unwrap_err().to_string();
            assert!(error.starts_with("expected a table: a list of numbers"), "{json}: {error}");
        }
    }

    #[test]
    fn writing_and_reading_restores_every_bit() {
        let row = |numbers: [f64; 2]| numbers.map(Entry).to_vec();
        let table = LocalTable::Rows(vec![row([0.1 + 0.2, f64::INFINITY]), row([f64::NEG_INFINITY, -0.0])]);
        let json = serde_json::to_string(&table).unwrap();
        assert_eq!(json, r#"[[0.30000000000000004,"inf"],["-inf",-0.0]]"#);
        assert_eq!(serde_json::from_str::<LocalTable>(&json).unwrap(), table);
    }
}

//! Tables over (state, action) as written in model files.

use serde::{Deserialize, Serialize};

use super::LocalSpace;
use crate::base::error::ensure;
use crate::{Error, Result};

/// A table over (s_i, a_i), in either of the two forms files use. Infinite entries, which JSON has no number
/// for, may be written `"inf"` and `"-inf"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub enum LocalTable {
    /// All entries in row-major order: `[0, 0, 1, 1]`.
    Flat(Vec<f64>),
    /// One row per state: `[[0, 0], [1, 1]]`.
    Rows(Vec<Vec<f64>>),
}

impl LocalTable {
    /// All entries in row-major order, once their number is right. `field` names the table in error messages.
    pub fn entries(&self, space: LocalSpace, field: &str) -> Result<Vec<f64>> {
        let LocalSpace { states, actions, .. } = space;
        match self {
            LocalTable::Flat(entries) => {
                check_length(entries.len(), space, field)?;
                Ok(entries.clone())
            }
            LocalTable::Rows(rows) if rows.len() != states => {
                let message = format!("has {} rows, but the agent has {states} states", rows.len());
                Err(Error::config(field, message))
            }
            LocalTable::Rows(rows) => match rows.iter().position(|row| row.len() != actions) {
                Some(state) => {
                    let length = rows[state].len();
                    let message = format!("has {length} entries, but the agent has {actions} actions");
                    Err(Error::config(format!("{field}[{state}]"), message))
                }
                None => Ok(rows.concat()),
            },
        }
    }
}

/// All entries in row-major order, whatever the shape.
impl From<LocalTable> for Vec<f64> {
    fn from(table: LocalTable) -> Vec<f64> {
        match table {
            LocalTable::Flat(entries) => entries,
            LocalTable::Rows(rows) => rows.concat(),
        }
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

/// The form on file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a table: a list of numbers (or \"inf\", \"-inf\"), or one such list per state"
)]
enum Written {
    Flat(Vec<Entry>),
    Rows(Vec<Vec<Entry>>),
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(untagged)]
enum Entry {
    Number(f64),
    Infinite(Infinite),
}

#[derive(Clone, Copy, Serialize, Deserialize)]
enum Infinite {
    #[serde(rename = "inf")]
    Above,
    #[serde(rename = "-inf")]
    Below,
}

impl From<Entry> for f64 {
    fn from(entry: Entry) -> f64 {
        match entry {
            Entry::Number(number) => number,
            Entry::Infinite(Infinite::Above) => f64::INFINITY,
            Entry::Infinite(Infinite::Below) => f64::NEG_INFINITY,
        }
    }
}

impl From<f64> for Entry {
    fn from(number: f64) -> Entry {
        match number {
            f64::INFINITY => Entry::Infinite(Infinite::Above),
            f64::NEG_INFINITY => Entry::Infinite(Infinite::Below),
            _ => Entry::Number(number),
        }
    }
}

fn convert<From: Into<To>, To>(row: Vec<From>) -> Vec<To> {
    row.into_iter().map(Into::into).collect()
}

impl From<Written> for LocalTable {
    fn from(written: Written) -> LocalTable {
        match written {
            Written::Flat(entries) => LocalTable::Flat(convert(entries)),
            Written::Rows(rows) => LocalTable::Rows(rows.into_iter().map(convert).collect()),
        }
    }
}

impl From<LocalTable> for Written {
    fn from(table: LocalTable) -> Written {
        match table {
            LocalTable::Flat(entries) => Written::Flat(convert(entries)),
            LocalTable::Rows(rows) => Written::Rows(rows.into_iter().map(convert).collect()),
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
        let table = LocalTable::Rows(vec![vec![0.1 + 0.2, f64::INFINITY], vec![f64::NEG_INFINITY, -0.0]]);
        let json = serde_json::to_string(&table).unwrap();
        assert_eq!(json, r#"[[0.30000000000000004,"inf"],["-inf",-0.0]]"#);
        assert_eq!(serde_json::from_str::<LocalTable>(&json).unwrap(), table);
    }
}

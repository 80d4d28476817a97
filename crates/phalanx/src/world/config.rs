//! `[world]`: which world, and its settings.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{EpidemicSpec, PistonballSpec, Start, WirelessSpec};
use crate::base::document::{section, take};
use crate::{Error, Result};

/// `[world]`.
#[derive(Debug, Clone)]
pub enum WorldConfig {
    /// The paper's synthetic line.
    Line {
        /// Number of agents.
        n: usize,
        /// Law of the start states.
        start: Start,
        /// Weight toward uniform transitions.
        mixing: f64,
    },
    /// The paper's wireless access network.
    Wireless(WirelessSpec),
    /// The physical game of PettingZoo, or the paper's on it.
    Pistonball(PistonballSpec),
    /// A disease on a network of contacts, which is that of `[network]`.
    Epidemic(EpidemicSpec),
    /// A factored model from a file.
    Table {
        /// The file.
        file: PathBuf,
        /// Train even if no occupancy can meet one of the file's own constraints.
        allow_infeasible: bool,
    },
    /// One from the [`Registry`].
    Own {
        /// Its name there.
        kind: String,
        /// Its keys.
        keys: toml::Table,
    },
}

impl Serialize for WorldConfig {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "kind", rename_all = "lowercase")]
        enum BuiltIn<'a> {
            Line { n: usize, start: Start, mixing: f64 },
            Wireless(&'a WirelessSpec),
            Pistonball(&'a PistonballSpec),
            Epidemic(&'a EpidemicSpec),
            Table { file: &'a Path, allow_infeasible: bool },
        }
        match self {
            WorldConfig::Line { n, start, mixing } => {
                BuiltIn::Line { n: *n, start: *start, mixing: *mixing }.serialize(serializer)
            }
            WorldConfig::Wireless(spec) => BuiltIn::Wireless(spec).serialize(serializer),
            WorldConfig::Pistonball(spec) => BuiltIn::Pistonball(spec).serialize(serializer),
            WorldConfig::Epidemic(spec) => BuiltIn::Epidemic(spec).serialize(serializer),
            WorldConfig::Table { file, allow_infeasible } => {
                BuiltIn::Table { file, allow_infeasible: *allow_infeasible }.serialize(serializer)
            }
            WorldConfig::Own { kind, keys } => {
                let mut table = keys.clone();
                table.insert("kind".into(), kind.as_str().into());
                table.serialize(serializer)
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineKeys {
    n: usize,
    #[serde(default)]
    start: Start,
    #[serde(default)]
    mixing: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableKeys {
    file: PathBuf,
    #[serde(default)]
    allow_infeasible: bool,
}

impl WorldConfig {
    /// From the table as it was written.
    pub(crate) fn read(mut table: toml::Table) -> Result<Self> {
        let kind: Option<String> = take(&mut table, "world", "kind")?;
        match kind.as_deref() {
            Some("line") => {
                let LineKeys { n, start, mixing } = section(table, "world")?;
                Ok(WorldConfig::Line { n, start, mixing })
            }
            Some("wireless") => Ok(WorldConfig::Wireless(section(table, "world")?)),
            Some("pistonball") => Ok(WorldConfig::Pistonball(section(table, "world")?)),
            Some("epidemic") => {
                Ok(WorldConfig::Epidemic(section::<EpidemicSpec>(table, "world")?.completed()))
            }
            Some("table") => {
                let TableKeys { file, allow_infeasible } = section(table, "world")?;
                Ok(WorldConfig::Table { file, allow_infeasible })
            }
            Some(kind) => Ok(WorldConfig::Own { kind: kind.into(), keys: table }),
            None => {
                let message = "is missing; allowed are `line`, `wireless`, `pistonball`, `epidemic`, `table`";
                Err(Error::config("world.kind", message))
            }
        }
    }
}

//! Sections of the configuration that name their places in errors themselves.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{ConstraintConfig, GraphConfig, UtilityConfig, WorldConfig};
use crate::Result;

/// `[world]`.
pub(super) fn world<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<WorldConfig, D::Error> {
    WorldConfig::read(toml::Table::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// `[network]`.
pub(super) fn network<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<GraphConfig>, D::Error> {
    GraphConfig::read(toml::Table::deserialize(deserializer)?).map(Some).map_err(D::Error::custom)
}

/// `[objective]`.
pub(super) fn objective<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<UtilityConfig>, D::Error> {
    let table = toml::Table::deserialize(deserializer)?;
    UtilityConfig::read(table, "objective").map(Some).map_err(D::Error::custom)
}

/// `[[constraint]]`.
pub(super) fn constraints<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<Vec<ConstraintConfig>>, D::Error> {
    let list = Vec::<toml::Table>::deserialize(deserializer)?.into_iter().enumerate();
    let list = list.map(|(k, table)| ConstraintConfig::read(table, k));
    list.collect::<Result<_>>().map(Some).map_err(D::Error::custom)
}

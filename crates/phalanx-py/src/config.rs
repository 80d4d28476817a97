//! Configurations: a preset, a file or a dict, with settings on top.

use std::path::Path;
use std::sync::Arc;

use phalanx::run::Config;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toml::Value;

use crate::errors::{bad, exception};
use crate::own::Own;
use crate::values::{table, to_toml};
use crate::watch::watch_all;

/// Sections that are replaced whole where a dict says another `kind`: keys of the old kind would not fit the
/// new one.
const REPLACED: [&str; 3] = ["world", "objective", "network"];

/// All sections but the list of constraints.
const SECTIONS: [&str; 11] = [
    "world",
    "objective",
    "network",
    "policy",
    "critic",
    "dual",
    "actor",
    "mappo",
    "evaluation",
    "checkpoint",
    "output",
];

/// Everything that a run is made from.
#[pyclass(frozen, module = "phalanx._phalanx")]
pub struct Configuration(pub Config);

#[pymethods]
impl Configuration {
    /// The configuration that `source` names, with `settings` on top. Dicts are merged into sections; lists
    /// replace lists.
    #[new]
    fn new(source: &Bound<'_, PyAny>, settings: &Bound<'_, PyDict>, own: &Bound<'_, Own>) -> PyResult<Self> {
        let base = if let Ok(source) = source.cast::<PyDict>() {
            let text = table(source, "", 0)?.to_string();
            Config::from_toml(&text, Path::new("."))
        } else if let Ok(path) = source.extract::<String>() {
            Config::open(&path)
        } else {
            let kind = source.get_type().name()?.to_string();
            return Err(bad("source", format!("`{kind}`; give a preset's name, a TOML file or a dict")));
        };
        let base = base.map_err(|error| exception(&error))?.with_registry(own.borrow().registry.clone());
        let mut flat = Vec::new();
        for (key, value) in settings {
            let key: String = key.extract()?;
            let value = to_toml(&value, &key, 0)?;
            if SECTIONS.contains(&key.as_str()) && !value.is_table() {
                return Err(bad(&key, format!("{value}; it is a section: give a dict")));
            }
            flatten(&key, value, &mut flat);
        }
        let settings = flat.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        base.with_all(settings).map(Configuration).map_err(|error| exception(&error))
    }

    /// How many iterations it asks for.
    #[getter]
    fn iterations(&self) -> usize {
        self.0.iterations
    }

    /// The same with every setting resolved, as TOML.
    fn resolve(&self, py: Python<'_>) -> PyResult<String> {
        let resolved = watch_all(py, None, &Arc::default(), || phalanx::run::resolve(&self.0))?;
        Ok(resolved.to_toml())
    }
}

/// One setting for each entry of a section.
fn flatten(key: &str, value: Value, out: &mut Vec<(String, String)>) {
    match value {
        // Nothing is said of a section.
        Value::Table(table) if table.is_empty() && SECTIONS.contains(&key) => {}
        Value::Table(table)
            if !(table.is_empty() || REPLACED.contains(&key) && table.contains_key("kind")) =>
        {
            for (name, value) in table {
                flatten(&format!("{key}.{name}"), value, out);
            }
        }
        value => out.push((key.into(), value.to_string())),
    }
}

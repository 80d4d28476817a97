//! Configurations: a preset, a file or a dict, with settings on top.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use phalanx::run::{Config, preset};
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
    /// replace lists. `defaults` are settings by dotted name for what neither of them says.
    #[new]
    fn new(
        source: &Bound<'_, PyAny>,
        settings: &Bound<'_, PyDict>,
        own: &Bound<'_, Own>,
        defaults: HashMap<String, String>,
    ) -> PyResult<Self> {
        let (base, written) = if let Ok(source) = source.cast::<PyDict>() {
            let written = table(source, "", 0)?;
            (Config::from_toml(&written.to_string(), Path::new(".")), written)
        } else if let Ok(path) = source.extract::<String>() {
            (Config::open(&path), written(&path))
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
        for (key, value) in defaults {
            if !says(&written, &key) && flat.iter().all(|(given, _)| *given != key) {
                flat.push((key, value));
            }
        }
        let settings = flat.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        base.with_all(settings).map(Configuration).map_err(|error| exception(&error))
    }

    /// How many iterations it asks for.
    #[getter]
    fn iterations(&self) -> usize {
        self.0.iterations
    }

    /// `primal-dual`, …
    #[getter]
    fn algorithm(&self) -> &'static str {
        self.0.algorithm.name
    }

    #[getter]
    fn policy_kind(&self) -> &'static str {
        self.0.policy.kind
    }

    #[getter]
    fn critic_kind(&self) -> &'static str {
        self.0.critic.kind
    }

    /// The same with every setting resolved, as TOML.
    fn resolve(&self, py: Python<'_>) -> PyResult<String> {
        let resolved = watch_all(py, None, &Arc::default(), || phalanx::run::resolve(&self.0))?;
        Ok(resolved.to_toml())
    }
}

/// What a preset or a file says, before defaults; nothing if it cannot be read.
fn written(source: &str) -> toml::Table {
    let text = match preset::text(source) {
        Some(text) => text.to_string(),
        None => std::fs::read_to_string(source).unwrap_or_default(),
    };
    toml::from_str(&text).unwrap_or_default()
}

/// Whether there is an entry with a dotted name.
fn says(table: &toml::Table, key: &str) -> bool {
    let mut names = key.split('.');
    let first = names.next().and_then(|name| table.get(name));
    names.try_fold(first, |value, name| value.map(|value| value.get(name))).flatten().is_some()
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

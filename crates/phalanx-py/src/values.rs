//! Settings: from Python values to those of a configuration file.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use toml::Value;

use crate::errors::{bad, wrong_type};

/// Nested deeper than any setting is; a list that holds itself ends here.
const DEEPEST: usize = 16;

/// A value as it would stand in a file. `field` is its dotted name, `depth` the number of values around it.
pub fn to_toml(value: &Bound<'_, PyAny>, field: &str, depth: usize) -> PyResult<Value> {
    if depth > DEEPEST {
        return Err(bad(field, "is nested too deeply"));
    }
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Value::Boolean(value.is_true()));
    }
    if let Ok(value) = value.cast::<PyInt>() {
        let number = value.extract::<i64>().map_err(|_| bad(field, "is too large a number"))?;
        return Ok(Value::Integer(number));
    }
    if let Ok(value) = value.cast::<PyFloat>() {
        return Ok(Value::Float(value.extract()?));
    }
    if let Ok(value) = value.cast::<PyString>() {
        return Ok(Value::String(value.extract()?));
    }
    if let Ok(value) = value.cast::<PyDict>() {
        return Ok(Value::Table(table(value, field, depth + 1)?));
    }
    if let Ok(mapping) = value.cast::<PyMapping>() {
        let dict = PyDict::new(value.py());
        dict.update(mapping)?;
        return Ok(Value::Table(table(&dict, field, depth + 1)?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let entries = value.try_iter()?.enumerate();
        let entries = entries.map(|(k, entry)| to_toml(&entry?, &format!("{field}.{k}"), depth + 1));
        return Ok(Value::Array(entries.collect::<PyResult<_>>()?));
    }
    // Arrays and numbers of NumPy.
    if value.hasattr("tolist")? {
        return to_toml(&value.call_method0("tolist")?, field, depth + 1);
    }
    if value.hasattr("__fspath__")? {
        return Ok(Value::String(value.call_method0("__fspath__")?.extract()?));
    }
    let kind = value.get_type().name()?.to_string();
    let message = "is no setting; numbers, strings, lists and dicts are (arrays of NumPy, too)";
    Err(wrong_type(field, format!("`{kind}` {message}")))
}

/// A section.
pub fn table(value: &Bound<'_, PyDict>, field: &str, depth: usize) -> PyResult<toml::Table> {
    let mut table = toml::Table::new();
    for (key, value) in value {
        let Ok(key) = key.extract::<String>() else {
            let whose = if field.is_empty() { "source" } else { field };
            return Err(wrong_type(whose, format!("the key {} is no string", key.repr()?)));
        };
        let of = if field.is_empty() { key.clone() } else { format!("{field}.{key}") };
        table.insert(key, to_toml(&value, &of, depth)?);
    }
    Ok(table)
}

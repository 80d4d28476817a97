//! `--set`: one setting by its dotted name.

use std::path::Path;

use crate::graph::NETWORK_KIND;
use crate::run::preset;
use crate::{Error, Result};

/// Sets `key` (dotted, numbers address list entries) in a table.
pub(super) fn set(table: &mut toml::Table, key: &str, value: &str) -> Result<()> {
    let parsed = toml::from_str::<toml::Table>(&format!("x = {value}")).ok().filter(|table| table.len() == 1);
    let parsed = parsed.and_then(|mut table| table.remove("x"));
    let mut value = parsed.unwrap_or_else(|| toml::Value::String(value.to_string()));
    if key.rsplit('.').next() == Some("file")
        && let toml::Value::String(file) = &mut value
        && preset::builtin(Path::new(file.as_str())).is_none()
        && let Ok(path) = std::path::absolute(&*file)
    {
        *file = path.display().to_string();
    }
    let parts: Vec<&str> = key.split('.').collect();
    let (last, path) = match parts.split_last() {
        Some((last, path)) if parts.iter().all(|part| !part.is_empty()) => (*last, path),
        _ => return Err(Error::argument("set", format!("`{key}` is not a dotted name such as dual.eta_mu"))),
    };
    let entry = |list: &toml::value::Array, part: &str| {
        part.parse::<usize>().ok().filter(|&k| k < list.len()).ok_or_else(|| {
            Error::argument("set", format!("`{key}`: there is no entry {part}; the list has {}", list.len()))
        })
    };
    let not_a_section =
        |part: &str| Error::argument("set", format!("`{key}`: `{part}` is a value, not a section"));
    let mut at = table;
    let mut parts = path.iter();
    while let Some(part) = parts.next() {
        let child = at.entry(*part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        at = match child {
            toml::Value::Table(table) => table,
            toml::Value::Array(list) => {
                // The number of an entry follows the list's name; a list of plain values ends the path.
                let Some(number) = parts.next() else {
                    let k = entry(list, last)?;
                    list[k] = value;
                    return Ok(());
                };
                let k = entry(list, number)?;
                list[k].as_table_mut().ok_or_else(|| not_a_section(number))?
            }
            _ => return Err(not_a_section(part)),
        };
    }
    if key == NETWORK_KIND && at.get(last) != Some(&value) {
        // Another generator has keys of its own.
        at.clear();
    }
    at.insert(last.to_string(), value);
    Ok(())
}

//! Reading typed documents, JSON or TOML, with errors that name the place.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::files;
use super::value::Value;
use crate::{Error, Result};

/// Reads `path` as JSON, or as TOML if it ends in `.toml`.
///
/// `wrappers` are keys that may be wrapped around the content, outermost first: with `["input", "model"]` the
/// content may stand at the root, under `model`, or under `input.model`.
pub fn read<T: DeserializeOwned>(path: &Path, wrappers: &[&str]) -> Result<T> {
    let text = files::read_text(path)?;
    parse(&text, path, wrappers)
}

/// As [`read`], for text already at hand; `path` says the format and is named in errors.
pub fn parse<T: DeserializeOwned>(text: &str, path: &Path, wrappers: &[&str]) -> Result<T> {
    let unparsable = |e: String| Error::file(path, format!("cannot be parsed: {}", one_line(&e)));
    let place = |e: String| Error::file(path, e);
    if path.extension().is_some_and(|e| e == "toml") {
        let mut value =
            toml::Value::Table(toml::from_str(text).map_err(|e: toml::de::Error| unparsable(e.to_string()))?);
        reject_nan(&value, "").map_err(place)?;
        for key in wrappers {
            if let Some(inner) = value.as_table_mut().and_then(|table| table.remove(*key)) {
                value = inner;
            }
        }
        return typed(Value::Toml(value), "").map_err(place);
    }
    let mut value: serde_json::Value = serde_json::from_str(text).map_err(|e| unparsable(e.to_string()))?;
    for key in wrappers {
        if let Some(inner) = value.get_mut(key) {
            value = inner.take();
        }
    }
    if !value.is_object() {
        return Err(place("an object { … } is expected".into()));
    }
    typed(Value::Json(value), "").map_err(place)
}

/// Reads a section, naming the field that does not fit.
pub(crate) fn section<T: DeserializeOwned>(table: toml::Table, name: &str) -> Result<T> {
    typed(Value::Toml(table.into()), name).map_err(split_field)
}

/// A section as it is written, with every default.
pub(crate) fn to_table(settings: &dyn erased_serde::Serialize, name: &str) -> Result<toml::Table> {
    toml::Table::try_from(settings).map_err(|e| Error::config(name, e.to_string()))
}

/// Reads a value, or says which field below `prefix` does not fit.
fn typed<T: DeserializeOwned>(value: Value, prefix: &str) -> std::result::Result<T, String> {
    T::deserialize(value).map_err(|misfit| describe(prefix, &misfit.place, &misfit.message))
}

/// `field: message` as an error; a message without a field is about the file as a whole.
pub(crate) fn split_field(text: String) -> Error {
    match text.split_once(": ") {
        Some((field, message)) if !field.contains(' ') => Error::config(field, message),
        _ => Error::config("config", text),
    }
}

/// Takes one key out of a section.
pub(crate) fn take<T: DeserializeOwned>(
    table: &mut toml::Table,
    section: &str,
    key: &str,
) -> Result<Option<T>> {
    table
        .remove(key)
        .map(|value| typed(Value::Toml(value), &format!("{section}.{key}")).map_err(split_field))
        .transpose()
}

/// Words for a deserialisation error: the field, then what is wrong, in the reader's terms.
fn describe(prefix: &str, path: &str, error: &str) -> String {
    let message = one_line(error)
        .replace("expected usize", "expected a whole number of at least 0")
        .replace("expected u64", "expected a whole number of at least 0")
        .replace("expected i64", "expected a whole number")
        .replace("expected a map", "expected a section")
        .replace(
            "expected internally tagged enum Schedule",
            "expected a section such as { kind = \"constant\" }",
        )
        .replace("expected f64", "expected a number");
    let field = match (prefix, path) {
        ("", "") => return message,
        // What reads a section by itself names the place in full.
        ("", path) if message.strip_prefix(path).is_some_and(|rest| rest.starts_with(['.', ':'])) => {
            return message;
        }
        (prefix, "") => prefix.to_string(),
        ("", path) => path.to_string(),
        (prefix, path) => format!("{prefix}.{path}"),
    };
    format!("{field}: {message}")
}

/// Fails on the first NaN, with its dotted name.
pub(crate) fn reject_nan(value: &toml::Value, name: &str) -> std::result::Result<(), String> {
    let child = |key: &str| if name.is_empty() { key.to_string() } else { format!("{name}.{key}") };
    match value {
        toml::Value::Float(x) if x.is_nan() => Err(format!("{name}: nan is not a number that can be used")),
        toml::Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(k, item)| reject_nan(item, &child(&k.to_string())))
        }
        toml::Value::Table(table) => table.iter().try_for_each(|(key, item)| reject_nan(item, &child(key))),
        _ => Ok(()),
    }
}

/// Parsers print excerpts over several lines; a message is one line.
pub(crate) fn one_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !is_excerpt(line) && !line.starts_with("in `"))
        .collect::<Vec<_>>()
        .join("; ")
}

/// Whether a line is an excerpt of the text, as in `3 | n = `.
fn is_excerpt(line: &str) -> bool {
    line.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start().starts_with('|')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Content {
        size: usize,
        weights: Vec<f64>,
    }

    fn parse_as(text: &str, path: &str) -> Result<Content> {
        parse(text, Path::new(path), &["input", "model"])
    }

    #[test]
    fn the_same_content_in_json_and_toml_wrapped_or_not() {
        let expected = Content { size: 2, weights: vec![0.5, 1.0] };
        for (text, path) in [
            (r#"{"size": 2, "weights": [0.5, 1]}"#, "a.json"),
            (r#"{"model": {"size": 2, "weights": [0.5, 1]}}"#, "a.json"),
            (r#"{"input": {"model": {"size": 2, "weights": [0.5, 1]}}, "output": 3}"#, "a.json"),
            ("size = 2\nweights = [0.5, 1.0]", "a.toml"),
            ("[input.model]\nsize = 2\nweights = [0.5, 1.0]", "a.toml"),
        ] {
            assert_eq!(parse_as(text, path).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn errors_are_one_line_and_name_the_place() {
        for (text, path, wanted) in [
            (r#"{"size": 2, "weights": [0.5, "x"]}"#, "a.json", "a.json: weights[1]: invalid type"),
            (r#"{"size": 2, "weights": [0.5"#, "a.json", "cannot be parsed: EOF"),
            (r#"{"size": -2, "weights": []}"#, "a.json", "size: invalid value"),
            ("size = 2\nweights = [0.5, nan]", "a.toml", "weights.1: nan"),
            ("size = \nweights = []", "a.toml", "cannot be parsed"),
            ("size = 1\nweights = []\ncolour = 3", "a.toml", "unknown field `colour`"),
        ] {
            let message = parse_as(text, path).unwrap_err().to_string();
            assert!(message.contains(wanted), "{message:?} should contain {wanted:?}");
            assert!(!message.contains('\n'), "{message:?}");
        }
    }
}

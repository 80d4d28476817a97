//! Values of JSON and TOML documents, read into types by one deserialiser that knows the place of an error.
//!
//! The formats' own deserialisers, with a crate around them that follows the place, are compiled for each
//! type, format and wrapper: that was a sixth of the code of this crate.

use std::fmt::{self, Display};
use std::vec;

use serde::de::{self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, Unexpected, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};

type Read<T> = Result<T, Misfit>;

/// What does not fit, and where: `weights[1]`.
#[derive(Debug)]
pub(super) struct Misfit {
    pub place: String,
    pub message: String,
}

impl Misfit {
    /// The same of an element of a list.
    fn at(self, index: usize) -> Self {
        self.within(&format!("[{index}]"))
    }

    /// The same of something that lies at `step` of a larger value.
    fn within(mut self, step: &str) -> Self {
        let joint = if self.place.is_empty() || self.place.starts_with('[') { "" } else { "." };
        self.place = format!("{step}{joint}{}", self.place);
        self
    }
}

impl Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Misfit {}

impl de::Error for Misfit {
    fn custom<T: Display>(message: T) -> Self {
        Misfit { place: String::new(), message: message.to_string() }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match found {
            Unexpected::Unit => de::Error::custom(format_args!("invalid type: null, expected {expected}")),
            // Not with all the zeros of 1e300.
            Unexpected::Float(x) => {
                de::Error::custom(format_args!("invalid type: floating point `{x:?}`, expected {expected}"))
            }
            found => de::Error::custom(format_args!("invalid type: {found}, expected {expected}")),
        }
    }
}

/// A value of either format.
pub(super) enum Value {
    Json(serde_json::Value),
    Toml(toml::Value),
}

/// The same by what it holds.
enum Content {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    String(String),
    List(vec::IntoIter<Value>),
    Map(vec::IntoIter<(String, Value)>),
}

impl Value {
    fn content(self) -> Content {
        match self {
            Value::Json(value) => match value {
                serde_json::Value::Null => Content::Null,
                serde_json::Value::Bool(x) => Content::Bool(x),
                serde_json::Value::Number(x) => match (x.as_u64(), x.as_i64()) {
                    (Some(x), _) => Content::Unsigned(x),
                    (None, Some(x)) => Content::Signed(x),
                    // A number that is no integer is an f64.
                    (None, None) => Content::Float(x.as_f64().unwrap_or(f64::NAN)),
                },
                serde_json::Value::String(x) => Content::String(x),
                serde_json::Value::Array(list) => Content::list(list, Value::Json),
                serde_json::Value::Object(map) => Content::map(map, Value::Json),
            },
            Value::Toml(value) => match value {
                toml::Value::Boolean(x) => Content::Bool(x),
                toml::Value::Integer(x) => Content::Signed(x),
                toml::Value::Float(x) => Content::Float(x),
                toml::Value::String(x) => Content::String(x),
                toml::Value::Datetime(x) => Content::String(x.to_string()),
                toml::Value::Array(list) => Content::list(list, Value::Toml),
                toml::Value::Table(map) => Content::map(map, Value::Toml),
            },
        }
    }
}

impl Content {
    fn list<V>(list: Vec<V>, value: fn(V) -> Value) -> Self {
        Content::List(list.into_iter().map(value).collect::<Vec<_>>().into_iter())
    }

    fn map<V>(map: impl IntoIterator<Item = (String, V)>, value: fn(V) -> Value) -> Self {
        let entries: Vec<_> = map.into_iter().map(|(key, item)| (key, value(item))).collect();
        Content::Map(entries.into_iter())
    }
}

impl<'de> Deserializer<'de> for Value {
    type Error = Misfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self.content() {
            Content::Null => visitor.visit_unit(),
            Content::Bool(x) => visitor.visit_bool(x),
            Content::Signed(x) => visitor.visit_i64(x),
            Content::Unsigned(x) => visitor.visit_u64(x),
            Content::Float(x) => visitor.visit_f64(x),
            Content::String(x) => visitor.visit_string(x),
            Content::List(items) => {
                let all = items.len();
                let mut list = List { items, read: 0 };
                let read = visitor.visit_seq(&mut list)?;
                if list.items.len() > 0 {
                    return Err(de::Error::invalid_length(all, &"fewer elements in array"));
                }
                Ok(read)
            }
            Content::Map(entries) => visitor.visit_map(Map { entries, next: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Read<V::Value> {
        match self {
            Value::Json(serde_json::Value::Null) => visitor.visit_none(),
            value => visitor.visit_some(value),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Read<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    /// Variants are names: none holds anything.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Read<V::Value> {
        visitor.visit_enum(String::deserialize(self)?.into_deserializer())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

struct List {
    items: vec::IntoIter<Value>,
    read: usize,
}

impl<'de> de::SeqAccess<'de> for &mut List {
    type Error = Misfit;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Read<Option<T::Value>> {
        let Some(item) = self.items.next() else { return Ok(None) };
        self.read += 1;
        seed.deserialize(item).map(Some).map_err(|misfit| misfit.at(self.read - 1))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Map {
    entries: vec::IntoIter<(String, Value)>,
    next: Option<(String, Value)>,
}

impl<'de> de::MapAccess<'de> for Map {
    type Error = Misfit;

    fn next_key_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Read<Option<T::Value>> {
        self.next = self.entries.next();
        let Some((key, _)) = &self.next else { return Ok(None) };
        seed.deserialize(key.as_str().into_deserializer())
            .map(Some)
            .map_err(|misfit: Misfit| misfit.within(key))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Read<T::Value> {
        let (key, value) = self.next.take().ok_or_else(|| de::Error::custom("a value without its key"))?;
        seed.deserialize(value).map_err(|misfit| misfit.within(&key))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, Debug, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Colour {
        Red,
    }

    #[derive(Deserialize, Debug, PartialEq, Default)]
    #[serde(deny_unknown_fields, default)]
    struct Part {
        c: Option<f64>,
        pair: (u8, u8),
        colour: Option<Colour>,
        name: String,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    struct Whole {
        b: Vec<Part>,
    }

    #[derive(Deserialize, Debug, PartialEq)]
    struct Document {
        a: Whole,
    }

    fn from_json(part: &str) -> Read<Part> {
        let text = format!(r#"{{"a": {{"b": [{{}}, {part}]}}}}"#);
        let mut document = Document::deserialize(Value::Json(serde_json::from_str(&text).unwrap()))?;
        Ok(document.a.b.remove(1))
    }

    fn from_toml(part: &str) -> Read<Part> {
        Part::deserialize(Value::Toml(toml::Value::Table(toml::from_str(part).unwrap())))
    }

    #[test]
    fn both_formats_are_read_alike() {
        let expected = Part { c: Some(2.0), pair: (1, 2), colour: Some(Colour::Red), name: "x".into() };
        let json = r#"{"c": 2, "pair": [1, 2], "colour": "red", "name": "x"}"#;
        assert_eq!(from_json(json).unwrap(), expected);
        assert_eq!(from_toml("c = 2.0\npair = [1, 2]\ncolour = 'red'\nname = 'x'").unwrap(), expected);
        assert_eq!(from_json(r#"{"c": null}"#).unwrap(), Part::default());
        assert_eq!(from_toml("c = inf").unwrap().c, Some(f64::INFINITY));
        assert_eq!(from_toml("name = 2026-11-17").unwrap().name, "2026-11-17");
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        for (part, place, message) in [
            (r#"{"c": "x"}"#, "a.b[1].c", r#"invalid type: string "x", expected f64"#),
            (r#"{"pair": [1, 300]}"#, "a.b[1].pair[1]", "invalid value: integer `300`, expected u8"),
            (r#"{"pair": [1, 2, 3]}"#, "a.b[1].pair", "invalid length 3, expected fewer elements in array"),
            (r#"{"colour": 1}"#, "a.b[1].colour", "invalid type: integer `1`, expected a string"),
            (r#"{"colour": "blue"}"#, "a.b[1].colour", "unknown variant `blue`, expected `red`"),
            (r#"{"name": 1e300}"#, "a.b[1].name", "invalid type: floating point `1e300`, expected a string"),
            (r#"{"name": null}"#, "a.b[1].name", "invalid type: null, expected a string"),
            (r#"{"size": 1}"#, "a.b[1].size", "unknown field `size`"),
            ("3", "a.b[1]", "invalid type: integer `3`, expected struct Part"),
        ] {
            let misfit = from_json(part).unwrap_err();
            assert_eq!(misfit.place, place, "{part}");
            assert!(misfit.message.starts_with(message), "{part}: {misfit}");
        }
        assert_eq!(from_toml("pair = [1, 'x']").unwrap_err().place, "pair[1]");
    }
}

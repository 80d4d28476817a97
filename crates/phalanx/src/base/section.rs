//! A section of the configuration with a `kind`, whose keys belong to several kinds.
//!
//! Every kind reads its keys into types of its own, groups of keys that it may share with other kinds. All
//! kinds read, also those that were not chosen: their keys are checked and kept, so that a kind can be
//! swapped with one setting.

use std::fmt::{self, Debug};
use std::ops::Deref;
use std::sync::Arc;

use serde::de::value::Error as NoValue;
use serde::de::{DeserializeOwned, Error as _, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, forward_to_deserialize_any};
use toml::Value;

use super::document;
use crate::{Error, Result};

/// A line in a family's list of kinds.
pub struct Kind<S: ?Sized> {
    /// Its name in the configuration.
    pub name: &'static str,
    /// Takes its settings from a section.
    pub read: fn(&mut Keys) -> Result<Arc<S>>,
}

/// Kinds of something, of which a section chooses one. `Self` is what the settings of all of them can do.
pub trait Family: Debug + 'static {
    /// Name of the section.
    const SECTION: &'static str;

    /// One line per kind; the first is the default.
    fn kinds() -> &'static [Kind<Self>];
}

/// A section as it was written, and what its readers have made of it.
pub struct Keys {
    section: &'static str,
    written: toml::Table,
    known: Vec<(&'static str, Option<Value>)>,
    of_kind: Vec<(&'static str, Option<Value>)>,
}

impl Keys {
    /// The keys of `T` as they are written, or their defaults.
    pub fn read<T: DeserializeOwned + Serialize>(&mut self) -> Result<T> {
        let group: T = read_group(self.section, &self.written)?;
        let values = document::to_table(&group, self.section)?;
        self.of_kind.extend(names::<T>().iter().map(|&name| (name, values.get(name).cloned())));
        Ok(group)
    }

    /// Ends the reading of a kind: keys that are new come before the next one that is known already.
    fn end_kind(&mut self) {
        let mut place = self.known.len();
        for (name, value) in self.of_kind.drain(..).rev() {
            match self.known.iter().position(|(known, _)| *known == name) {
                Some(known) => place = known,
                None => self.known.insert(place, (name, value)),
            }
        }
    }
}

fn read_group<T: DeserializeOwned>(section: &str, table: &toml::Table) -> Result<T> {
    let known = |key: &&String| names::<T>().contains(&key.as_str());
    let own: toml::Table =
        table.iter().filter(|(key, _)| known(key)).map(|(k, v)| (k.clone(), v.clone())).collect();
    document::section(own, section)
}

/// The chosen kind with its settings, and the keys of all kinds.
pub struct Section<S: ?Sized> {
    /// Name of the kind.
    pub kind: &'static str,
    settings: Arc<S>,
    keys: Vec<(&'static str, Option<Value>)>,
}

impl<S: Family + ?Sized> Section<S> {
    fn read(mut written: toml::Table) -> Result<Self> {
        let section = S::SECTION;
        let kinds = S::kinds();
        let chosen: Option<String> = document::take(&mut written, section, "kind")?;
        let chosen = chosen.unwrap_or_else(|| kinds[0].name.to_string());
        let mut keys = Keys { section, written, known: Vec::new(), of_kind: Vec::new() };
        let mut found = None;
        for kind in kinds {
            let settings = (kind.read)(&mut keys)?;
            keys.end_kind();
            if kind.name == chosen {
                found = Some((kind.name, settings));
            }
        }
        let quoted = |names: &mut dyn Iterator<Item = &'static str>| {
            names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        let Some((kind, settings)) = found else {
            let names = quoted(&mut kinds.iter().map(|kind| kind.name));
            let message = format!("unknown variant `{chosen}`, expected one of {names}");
            return Err(Error::config(format!("{section}.kind"), message));
        };
        let is_known = |key: &str| keys.known.iter().any(|(known, _)| *known == key);
        if let Some(key) = keys.written.keys().find(|key| !is_known(key)) {
            let names = quoted(&mut std::iter::once("kind").chain(keys.known.iter().map(|(name, _)| *name)));
            let message = format!("unknown field `{key}`, expected one of {names}");
            return Err(Error::config(format!("{section}.{key}"), message));
        }
        Ok(Section { kind, settings, keys: keys.known })
    }

    /// A group of keys, whichever kind uses it.
    pub fn keys<T: DeserializeOwned>(&self) -> Result<T> {
        let values = self.keys.iter().filter_map(|(key, value)| Some((key.to_string(), value.clone()?)));
        read_group(S::SECTION, &values.collect())
    }
}

impl<S: ?Sized> Deref for Section<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.settings
    }
}

impl<S: ?Sized> Clone for Section<S> {
    fn clone(&self) -> Self {
        Section { kind: self.kind, settings: self.settings.clone(), keys: self.keys.clone() }
    }
}

impl<S: Debug + ?Sized> Debug for Section<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

impl<S: ?Sized> Serialize for Section<S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> std::result::Result<T::Ok, T::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kind", self.kind)?;
        for (key, value) in &self.keys {
            if let Some(value) = value {
                map.serialize_entry(key, value)?;
            }
        }
        map.end()
    }
}

impl<'de, S: Family + ?Sized> Deserialize<'de> for Section<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Section::read(toml::Table::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl<S: Family + ?Sized> Default for Section<S> {
    fn default() -> Self {
        // Every kind can be read from nothing; a test of each family sees to it.
        Section::read(toml::Table::new()).unwrap_or_else(|e| unreachable!("{e}"))
    }
}

/// Names of a struct's fields, in their order.
fn names<T: DeserializeOwned>() -> &'static [&'static str] {
    struct Names<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Names<'_> {
        type Error = NoValue;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> std::result::Result<V::Value, NoValue> {
            Err(NoValue::custom("not a struct"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> std::result::Result<V::Value, NoValue> {
            *self.0 = fields;
            Err(NoValue::custom("its fields are all that is asked for"))
        }

        forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    let mut names: &'static [&'static str] = &[];
    let _ = T::deserialize(Names(&mut names));
    names
}

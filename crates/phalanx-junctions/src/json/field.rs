//! Values with the place they have in their file, so that what is wrong can be named.

use super::{Data, Number, Value};
use crate::error::out_of_range;
use crate::error::{Error, Result, Source};

/// A thing of a file (a road, a flow, …) whose members are asked for.
#[derive(Clone, Copy)]
pub(crate) struct Item<'a> {
    value: &'a Value,
    members: &'a [(String, Value)],
    source: Source,
    place: &'a str,
}

/// A member of an item, or an entry of an array in it.
#[derive(Clone, Copy)]
pub(crate) struct Field<'a> {
    value: &'a Value,
    source: Source,
    place: &'a str,
    name: &'a str,
}

impl<'a> Item<'a> {
    /// `value` as an object that messages call `place`.
    pub fn new(value: &'a Value, source: Source, place: &'a str) -> Result<Self> {
        match &value.data {
            Data::Object(members) => Ok(Self { value, members, source, place }),
            other => {
                Err(content(source, value.line, place, format!("must be an object, is {}", other.kind())))
            }
        }
    }

    /// The same object under another name.
    pub fn called(self, place: &'a str) -> Self {
        Self { place, ..self }
    }

    /// An error about this item as a whole.
    pub fn error(&self, what: impl Into<String>) -> Error {
        content(self.source, self.value.line, self.place, what.into())
    }

    /// A member that may be missing.
    pub fn optional(&self, name: &'a str) -> Option<Field<'a>> {
        let value = &self.members.iter().find(|member| member.0 == name)?.1;
        Some(Field { value, source: self.source, place: self.place, name })
    }

    /// A member that must be there.
    pub fn field(&self, name: &'a str) -> Result<Field<'a>> {
        self.optional(name).ok_or_else(|| self.error(format!("{name} is missing")))
    }
}

impl<'a> Field<'a> {
    /// An error about this member.
    pub fn error(&self, what: impl Into<String>) -> Error {
        content(self.source, self.value.line, self.place, format!("{}: {}", self.name, what.into()))
    }

    fn wrong(&self, wanted: &str) -> Error {
        self.error(format!("must be {wanted}, is {}", self.value.data.kind()))
    }

    /// Its entries.
    pub fn array(&self) -> Result<impl ExactSizeIterator<Item = Field<'a>> + use<'a>> {
        let Data::Array(values) = &self.value.data else { return Err(self.wrong("an array")) };
        let field = *self;
        Ok(values.iter().map(move |value| Field { value, ..field }))
    }

    /// It as an object of its own.
    pub fn item(&self) -> Result<Item<'a>> {
        match &self.value.data {
            Data::Object(members) => {
                Ok(Item { value: self.value, members, source: self.source, place: self.place })
            }
            _ => Err(self.wrong("an object")),
        }
    }

    /// Its text.
    pub fn text(&self) -> Result<&'a str> {
        match &self.value.data {
            Data::String(text) => Ok(text),
            _ => Err(self.wrong("a string")),
        }
    }

    /// Its truth value.
    pub fn flag(&self) -> Result<bool> {
        match self.value.data {
            Data::Bool(flag) => Ok(flag),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// Its number.
    pub fn number(&self) -> Result<Number> {
        match self.value.data {
            Data::Number(number) => Ok(number),
            _ => Err(self.wrong("a number")),
        }
    }

    /// Its number, which must lie from `least` to `most`.
    pub fn within(&self, least: f64, most: f64) -> Result<f64> {
        let value = self.number()?.value;
        if (least..=most).contains(&value) {
            Ok(value)
        } else {
            Err(self.error(out_of_range(value, least, most)))
        }
    }

    /// Its number as an index below `count`; `what` says of what.
    pub fn index(&self, count: usize, what: &str) -> Result<usize> {
        let number = self.number()?;
        let index = number.integer.and_then(|integer| usize::try_from(integer).ok());
        index.filter(|&index| index < count).ok_or_else(|| {
            let value = number.value;
            match count {
                0 => self.error(format!("there is no {what} number {value}, there are none")),
                _ => {
                    self.error(format!("there is no {what} number {value}, they go from 0 to {}", count - 1))
                }
            }
        })
    }
}

fn content(source_file: Source, line: usize, place: &str, what: String) -> Error {
    Error::Content { source_file, line, place: place.to_string(), what }
}

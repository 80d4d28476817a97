//! A small reader of JSON that keeps line numbers and rounds decimal numbers as CityFlow does.

mod field;
mod number;
mod parse;

pub(crate) use field::{Field, Item};
pub(crate) use number::Number;
pub(crate) use parse::parse;

/// A JSON value and the line on which it starts.
#[derive(Debug)]
pub(crate) struct Value {
    pub line: usize,
    pub data: Data,
}

/// What a value is.
#[derive(Debug)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Value>),
    /// Members in the order of the file; of members with the same name the first counts.
    Object(Vec<(String, Value)>),
}

impl Data {
    /// What messages call a value of this type.
    pub fn kind(&self) -> &'static str {
        match self {
            Data::Null => "null",
            Data::Bool(_) => "true or false",
            Data::Number(_) => "a number",
            Data::String(_) => "a string",
            Data::Array(_) => "an array",
            Data::Object(_) => "an object",
        }
    }
}

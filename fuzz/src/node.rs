//! Documents as trees, whatever their format: what edits work on.

use toml::Value as Toml;

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    /// `null`; an empty cell of a table.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number; formats hold fewer than these.
    Whole(i128),
    /// Any other number.
    Real(f64),
    /// Text.
    Text(String),
    /// A list; a table's rows, and their cells.
    List(Vec<Node>),
    /// Keys and values in the order of the file; a key may be there twice.
    Map(Vec<(String, Node)>),
}

impl Node {
    /// A JSON document.
    pub fn json(text: &str) -> Self {
        serde_json::from_str::<serde_json::Value>(text).map_or(Node::Null, Node::from)
    }

    /// A TOML document.
    pub fn toml(text: &str) -> Self {
        toml::from_str::<toml::Table>(text).map_or(Node::Null, |table| Node::from(Toml::Table(table)))
    }

    /// A table: rows of cells.
    pub fn csv(text: &str) -> Self {
        let mut reader =
            csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        let rows = reader.records().flatten();
        Node::List(rows.map(|row| Node::List(row.iter().map(Node::cell).collect())).collect())
    }

    /// What a cell says.
    fn cell(text: &str) -> Self {
        let whole = text.parse().map(Node::Whole);
        // Zeros in front belong to a string of digits.
        let is_plain = whole.as_ref().is_ok_and(|_| text.len() == 1 || !text.starts_with('0'));
        match (whole, text.parse()) {
            _ if text.is_empty() => Node::Null,
            (Ok(whole), _) if is_plain => whole,
            (Err(_), Ok(real)) => Node::Real(real),
            _ => Node::Text(text.into()),
        }
    }

    /// A list of numbers.
    pub fn reals(numbers: impl IntoIterator<Item = f64>) -> Self {
        Node::List(numbers.into_iter().map(Node::Real).collect())
    }

    /// A list of whole numbers.
    pub fn wholes(numbers: impl IntoIterator<Item = usize>) -> Self {
        Node::List(numbers.into_iter().map(|number| Node::Whole(number as i128)).collect())
    }

    /// How many values it holds directly.
    pub fn len(&self) -> usize {
        match self {
            Node::List(items) => items.len(),
            Node::Map(entries) => entries.len(),
            _ => 0,
        }
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of the values that it holds.
    pub fn child_mut(&mut self, place: usize) -> Option<&mut Node> {
        match self {
            Node::List(items) => items.get_mut(place),
            Node::Map(entries) => entries.get_mut(place).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match self {
            Node::Map(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Every value below it, itself included.
    pub fn for_each<'a>(&'a self, visit: &mut dyn FnMut(&'a Node)) {
        visit(self);
        match self {
            Node::List(items) => items.iter().for_each(|item| item.for_each(visit)),
            Node::Map(entries) => entries.iter().for_each(|(_, value)| value.for_each(visit)),
            _ => {}
        }
    }
}

impl From<serde_json::Value> for Node {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Node::Null,
            serde_json::Value::Bool(x) => Node::Bool(x),
            serde_json::Value::Number(x) => match x.as_i128() {
                Some(whole) => Node::Whole(whole),
                None => Node::Real(x.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(x) => Node::Text(x),
            serde_json::Value::Array(list) => Node::List(list.into_iter().map(Node::from).collect()),
            serde_json::Value::Object(map) => {
                Node::Map(map.into_iter().map(|(key, value)| (key, Node::from(value))).collect())
            }
        }
    }
}

impl From<Toml> for Node {
    fn from(value: Toml) -> Self {
        match value {
            Toml::Boolean(x) => Node::Bool(x),
            Toml::Integer(x) => Node::Whole(x.into()),
            Toml::Float(x) => Node::Real(x),
            Toml::String(x) => Node::Text(x),
            Toml::Datetime(x) => Node::Text(x.to_string()),
            Toml::Array(list) => Node::List(list.into_iter().map(Node::from).collect()),
            Toml::Table(map) => {
                Node::Map(map.into_iter().map(|(key, value)| (key, Node::from(value))).collect())
            }
        }
    }
}

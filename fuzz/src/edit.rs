//! A few changes to a valid document, of the kind that keeps most of it valid.

use std::collections::BTreeMap;

use crate::choices::Choices;
use crate::node::Node;

/// Valid documents of one format, and what stands in them.
pub struct Seeds {
    documents: Vec<Node>,
    /// Values by the key that they stand under, and those of lists under none.
    values: BTreeMap<String, Vec<Node>>,
    keys: Vec<String>,
}

impl Seeds {
    /// Documents to start from.
    pub fn new(documents: impl IntoIterator<Item = Node>) -> Self {
        let mut seeds =
            Seeds { documents: documents.into_iter().collect(), values: BTreeMap::new(), keys: Vec::new() };
        let (documents, values) = (&seeds.documents, &mut seeds.values);
        for document in documents {
            document.for_each(&mut |node| note(node, values));
        }
        seeds.keys = seeds.values.keys().filter(|key| !key.is_empty()).cloned().collect();
        seeds
    }

    /// More values for a key, which no document has.
    pub fn with(mut self, key: &str, words: &[&str]) -> Self {
        self.values.entry(key.into()).or_default().extend(words.iter().map(|&word| Node::Text(word.into())));
        self
    }

    /// The first document, as it is.
    pub fn plain(&self) -> Node {
        self.documents.first().cloned().unwrap_or(Node::Null)
    }

    /// One of the documents, changed.
    pub fn document(&self, choices: &mut Choices<'_>) -> Node {
        let mut document = choices.pick(&self.documents).cloned().unwrap_or(Node::Null);
        for _ in 0..[1, 1, 1, 1, 2, 2, 3, 6][choices.below(8)] {
            self.edit(&mut document, choices);
        }
        document
    }

    /// A key that some document has, with a value that stands under it, perhaps changed.
    pub fn entry(&self, choices: &mut Choices<'_>) -> (String, Node) {
        let key = choices.pick(&self.keys).cloned().unwrap_or_default();
        let mut value = self.value(&key, choices).unwrap_or(Node::Null);
        if choices.one_in(4) {
            self.edit(&mut value, choices);
        }
        (key, value)
    }

    fn value(&self, key: &str, choices: &mut Choices<'_>) -> Option<Node> {
        self.values.get(key).and_then(|values| choices.pick(values)).cloned()
    }

    /// Changes one place of a document.
    pub fn edit(&self, document: &mut Node, choices: &mut Choices<'_>) {
        let mut place = document;
        while !place.is_empty() && !choices.one_in(5) {
            let child = choices.below(place.len());
            // What is not empty has this child.
            place = match place.child_mut(child) {
                Some(child) => child,
                None => return,
            };
        }
        if choices.one_in(24) {
            *place = other_type(choices);
            return;
        }
        match place {
            Node::Whole(number) => *place = changed_whole(*number, choices),
            Node::Real(number) => *place = changed_real(*number, choices),
            Node::Text(text) => *text = self.changed_text(text, choices),
            Node::Bool(value) => *value = !*value,
            Node::Null => *place = other_type(choices),
            Node::List(items) => self.change_list(items, choices),
            Node::Map(entries) => self.change_map(entries, choices),
        }
    }

    /// Changes one number or word of a document, and nothing of its form.
    pub fn edit_leaf(&self, document: &mut Node, choices: &mut Choices<'_>) {
        let mut place = document;
        while !place.is_empty() {
            let child = choices.below(place.len());
            place = match place.child_mut(child) {
                Some(child) => child,
                None => return,
            };
        }
        match place {
            Node::Whole(number) => *place = changed_whole(*number, choices),
            Node::Real(number) => *place = changed_real(*number, choices),
            Node::Text(text) => *text = self.changed_text(text, choices),
            Node::Bool(value) => *value = !*value,
            Node::Null | Node::List(_) | Node::Map(_) => {}
        }
    }

    fn change_map(&self, entries: &mut Vec<(String, Node)>, choices: &mut Choices<'_>) {
        let place = choices.below(entries.len());
        let other = choices.below(entries.len());
        match choices.below(16) {
            // The value of the same key in another document: most often what fits.
            0..=6 => {
                if let Some((key, value)) = entries.get_mut(place)
                    && let Some(found) = self.value(key, choices)
                {
                    *value = found;
                }
            }
            7 | 8 if !entries.is_empty() => {
                entries.remove(place);
            }
            9 if !entries.is_empty() => {
                let copy = entries[place].clone();
                entries.insert(other, copy);
            }
            10 if !entries.is_empty() => {
                entries[place].0 = choices.pick(&self.keys).cloned().unwrap_or_default();
            }
            11 if !entries.is_empty() => {
                let value = entries[other].1.clone();
                entries[place].1 = value;
            }
            12 if !entries.is_empty() => entries.swap(place, other),
            13 => entries.clear(),
            _ => entries.push(self.entry(choices)),
        }
    }

    fn change_list(&self, items: &mut Vec<Node>, choices: &mut Choices<'_>) {
        let place = choices.below(items.len());
        let other = choices.below(items.len());
        match choices.below(10) {
            0 | 1 if !items.is_empty() => {
                items.remove(place);
            }
            2 | 3 if !items.is_empty() => {
                let copy = items[place].clone();
                items.insert(other, copy);
            }
            4 if !items.is_empty() => items.swap(place, other),
            5 if !items.is_empty() => {
                let copy = items[place].clone();
                let times = [1, 2, 17, 65][choices.below(4)];
                items.extend(std::iter::repeat_n(copy, times));
                items.truncate(LONGEST);
            }
            6 => items.truncate(place),
            7 if !items.is_empty() => items[place] = items[other].clone(),
            8 => items.push(other_type(choices)),
            _ => items.extend(self.value("", choices)),
        }
    }

    fn changed_text(&self, text: &str, choices: &mut Choices<'_>) -> String {
        let cut =
            text.char_indices().map(|(place, _)| place).nth(choices.below(text.chars().count())).unwrap_or(0);
        let changed = match choices.below(8) {
            0..=2 => {
                // A word that stands somewhere, as the names of kinds do.
                let key = choices.pick(&self.keys).cloned().unwrap_or_default();
                match self.value(&key, choices) {
                    Some(Node::Text(word)) => word,
                    _ => key,
                }
            }
            3 => WORDS[choices.below(WORDS.len())].into(),
            4 => text[..cut].into(),
            5 => format!("{text}{text}"),
            6 => format!("{}{}{}", &text[..cut], choices.byte() as char, &text[cut..]),
            _ => text.repeat(choices.below(64)),
        };
        changed.chars().take(LONGEST).collect()
    }
}

/// Letters of a text, and entries of a list, that edits make at most: what is long by itself shall not become
/// so long that reading it is all that is done.
const LONGEST: usize = 1000;

fn note(node: &Node, values: &mut BTreeMap<String, Vec<Node>>) {
    let mut push = |key: &str, value: &Node| {
        let known = values.entry(key.into()).or_default();
        if known.len() < 64 && !known.contains(value) {
            known.push(value.clone());
        }
    };
    match node {
        Node::Map(entries) => entries.iter().for_each(|(key, value)| push(key, value)),
        Node::List(items) => items.iter().for_each(|value| push("", value)),
        _ => {}
    }
}

/// Texts that readers stumble over.
const WORDS: [&str; 12] = [
    "",
    " ",
    "0",
    "-1",
    "nan",
    "inf",
    "../x",
    "a.b",
    "é\u{202e}\u{0}",
    "\n",
    "1e999",
    "preset:line-expert.json",
];

/// Whole numbers at the ends of what types hold.
const WHOLES: [i128; 20] = [
    0,
    1,
    2,
    3,
    -1,
    255,
    256,
    257,
    65_535,
    65_536,
    1_000_000,
    (1 << 31) - 1,
    1 << 31,
    u32::MAX as i128,
    1 << 32,
    1 << 53,
    i64::MAX as i128,
    i64::MIN as i128,
    u64::MAX as i128,
    1 << 64,
];

/// Numbers at the ends of what doubles hold, and of ranges.
const REALS: [f64; 20] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    2.0,
    1.0 - f64::EPSILON / 2.0,
    1.0 + f64::EPSILON,
    0.999999,
    f64::MIN_POSITIVE,
    5e-324,
    1e-300,
    1e16,
    1e155,
    1e300,
    f64::MAX,
    f64::MIN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];

fn changed_whole(number: i128, choices: &mut Choices<'_>) -> Node {
    Node::Whole(match choices.below(12) {
        0 => number + 1,
        1 => number - 1,
        2 => number.saturating_mul(2),
        3 => number / 2,
        4..=6 => choices.below(9) as i128,
        7 => number + choices.below(64) as i128,
        8 => return changed_real(number as f64, choices),
        9 => i128::from(choices.number() as i64),
        _ => WHOLES[choices.below(WHOLES.len())],
    })
}

fn changed_real(number: f64, choices: &mut Choices<'_>) -> Node {
    Node::Real(match choices.below(12) {
        0 => number * 2.0,
        1 => number / 2.0,
        2 => -number,
        3 => number + 1.0,
        4..=6 => f64::from(choices.byte()) / 256.0,
        7 => f64::from_bits(number.to_bits().wrapping_add(1)),
        8 => return Node::Whole(number as i64 as i128),
        9 => f64::from_bits(choices.number()),
        _ => REALS[choices.below(REALS.len())],
    })
}

fn other_type(choices: &mut Choices<'_>) -> Node {
    match choices.below(7) {
        0 => Node::Null,
        1 => Node::Bool(true),
        2 => changed_whole(1, choices),
        3 => changed_real(1.0, choices),
        4 => Node::Text(WORDS[choices.below(WORDS.len())].into()),
        5 => Node::List(Vec::new()),
        _ => Node::Map(Vec::new()),
    }
}

/// Every setting of a document by its dotted name, sections included.
pub fn settings(document: &Node) -> Vec<(String, Node)> {
    let entries: Vec<(String, &Node)> = match document {
        Node::Map(entries) => entries.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Node::List(items) => items.iter().enumerate().map(|(k, value)| (k.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for (key, value) in entries {
        found.extend(settings(value).into_iter().map(|(rest, value)| (format!("{key}.{rest}"), value)));
        found.push((key, value.clone()));
    }
    found
}

/// Changes single bytes of a file, in one of `rarity` cases. The file is made then.
pub fn splice(bytes: &mut Vec<u8>, rarity: u8, choices: &mut Choices<'_>) {
    let times = if choices.one_in(rarity) { 1 + choices.below(3) } else { 0 };
    for _ in 0..times {
        let place = choices.below(bytes.len());
        match choices.below(4) {
            0 if !bytes.is_empty() => bytes[place] = choices.byte(),
            1 if !bytes.is_empty() => {
                bytes.remove(place);
            }
            2 => bytes.truncate(place),
            _ => bytes.insert(place, choices.byte()),
        }
    }
    choices.show(bytes);
}

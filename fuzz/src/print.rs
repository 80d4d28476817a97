//! Trees as files: JSON, TOML, CSV, edge lists and safetensors. What formats do not allow (a key twice, a
//! number that is none) is written all the same.

use std::fmt::Write;

use crate::node::Node;

/// As JSON.
pub fn json(node: &Node) -> String {
    let mut text = String::new();
    write_json(node, &mut text);
    text
}

fn write_json(node: &Node, out: &mut String) {
    // Writing to memory cannot fail.
    let _ = match node {
        Node::Null => write!(out, "null"),
        Node::Bool(x) => write!(out, "{x}"),
        Node::Whole(x) => write!(out, "{x}"),
        Node::Real(x) if x.is_nan() => write!(out, "null"),
        Node::Real(x) if x.is_infinite() => write!(out, "{}1e999", if *x < 0.0 { "-" } else { "" }),
        Node::Real(x) => write!(out, "{x:?}"),
        Node::Text(x) => return write_string(x, out),
        Node::List(items) => return write_between(out, ["[", "]"], items, write_json),
        Node::Map(entries) => {
            return write_between(out, ["{", "}"], entries, |(key, value), out| {
                write_string(key, out);
                out.push(':');
                write_json(value, out);
            });
        }
    };
}

/// In quotes, with escapes that JSON and TOML share.
fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if (c as u32) < 32 || c as u32 == 127 => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Items with commas between them.
fn write_between<T>(
    out: &mut String,
    [open, close]: [&str; 2],
    items: &[T],
    mut one: impl FnMut(&T, &mut String),
) {
    out.push_str(open);
    for (k, item) in items.iter().enumerate() {
        if k > 0 {
            out.push(',');
        }
        one(item, out);
    }
    out.push_str(close);
}

/// As TOML: a line per key of the document, sections as inline tables.
pub fn toml(node: &Node) -> String {
    let mut text = String::new();
    if let Node::Map(entries) = node {
        for (key, value) in entries {
            write_string(key, &mut text);
            text.push('=');
            write_toml(value, &mut text);
            text.push('\n');
        }
    }
    text
}

/// A value as TOML.
pub fn toml_value(node: &Node) -> String {
    let mut text = String::new();
    write_toml(node, &mut text);
    text
}

fn write_toml(node: &Node, out: &mut String) {
    match node {
        Node::Real(x) if x.is_nan() => out.push_str("nan"),
        Node::Real(x) if x.is_infinite() => out.push_str(if *x < 0.0 { "-inf" } else { "inf" }),
        Node::List(items) => write_between(out, ["[", "]"], items, write_toml),
        Node::Map(entries) => write_between(out, ["{", "}"], entries, |(key, value), out| {
            write_string(key, out);
            out.push('=');
            write_toml(value, out);
        }),
        plain => write_json(plain, out),
    }
}

/// Rows of cells, which `separator` parts.
pub fn table(node: &Node, separator: char) -> String {
    let mut text = String::new();
    let Node::List(rows) = node else { return json(node) };
    for row in rows {
        match row {
            Node::List(cells) => {
                for (k, cell) in cells.iter().enumerate() {
                    if k > 0 {
                        text.push(separator);
                    }
                    write_cell(cell, separator, &mut text);
                }
            }
            cell => write_cell(cell, separator, &mut text),
        }
        text.push('\n');
    }
    text
}

fn write_cell(cell: &Node, separator: char, out: &mut String) {
    match cell {
        Node::Null => {}
        Node::Text(x) if x.contains([separator, '"', '\n']) && separator == ',' => {
            out.push('"');
            out.push_str(&x.replace('"', "\"\""));
            out.push('"');
        }
        Node::Text(x) => out.push_str(x),
        Node::Real(x) => {
            let _ = write!(out, "{x:?}");
        }
        other => write_json(other, out),
    }
}

/// Kinds of numbers that the format knows.
const DTYPES: [&str; 7] = ["F64", "F32", "U64", "U32", "I64", "U8", "BF16"];

/// As safetensors: names, kinds and shapes in front, numbers behind. Every tensor is a map with `dtype`,
/// `shape` and `data`. Where `is_repaired`, kinds are ones that the format knows, and a shape that does not
/// fit its numbers becomes their count: what is wrong then is for the reader behind the format to find.
pub fn safetensors(node: &Node, is_repaired: bool) -> Vec<u8> {
    let Node::Map(entries) = node else { return json(node).into_bytes() };
    let (mut header, mut data) = (Vec::new(), Vec::new());
    for (name, tensor) in entries {
        let numbers = match tensor.get("data") {
            Some(Node::List(numbers)) => &numbers[..],
            _ if name == "__metadata__" || !is_repaired => {
                header.push((name.clone(), tensor.clone()));
                continue;
            }
            _ => &[],
        };
        let mut dtype = match tensor.get("dtype") {
            Some(Node::Text(dtype)) => dtype.as_str(),
            _ => "",
        };
        if is_repaired && !DTYPES.contains(&dtype) {
            dtype = DTYPES[dtype.len() % DTYPES.len()];
        }
        let shape = tensor.get("shape").filter(|shape| !is_repaired || volume(shape) == Some(numbers.len()));
        let begin = data.len();
        numbers.iter().for_each(|number| write_number(number, dtype, &mut data));
        header.push((
            name.clone(),
            Node::Map(vec![
                ("dtype".into(), Node::Text(dtype.into())),
                ("shape".into(), shape.cloned().unwrap_or_else(|| Node::wholes([numbers.len()]))),
                ("data_offsets".into(), Node::wholes([begin, data.len()])),
            ]),
        ));
    }
    let header = json(&Node::Map(header));
    let length = (header.len() as u64).to_le_bytes();
    [&length[..], header.as_bytes(), &data].concat()
}

fn volume(shape: &Node) -> Option<usize> {
    let Node::List(sizes) = shape else { return None };
    sizes.iter().try_fold(1usize, |volume, size| match size {
        Node::Whole(size) => volume.checked_mul(usize::try_from(*size).ok()?),
        _ => None,
    })
}

fn write_number(number: &Node, dtype: &str, out: &mut Vec<u8>) {
    let real = match number {
        Node::Real(x) => *x,
        Node::Whole(x) => *x as f64,
        _ => 0.0,
    };
    let whole = match number {
        Node::Whole(x) => *x as u64,
        _ => real as u64,
    };
    match dtype {
        "F32" => out.extend((real as f32).to_le_bytes()),
        "F16" | "BF16" | "U16" | "I16" => out.extend((whole as u16).to_le_bytes()),
        "U32" | "I32" => out.extend((whole as u32).to_le_bytes()),
        "U64" | "I64" => out.extend(whole.to_le_bytes()),
        "U8" | "I8" | "BOOL" => out.push(whole as u8),
        _ => out.extend(real.to_le_bytes()),
    }
}

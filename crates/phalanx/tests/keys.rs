//! Does a new key touch few files? For every key of the configuration: the files that name it, by the field
//! that declares it or in a string.

use std::collections::BTreeSet;

#[path = "support/sources.rs"]
mod sources;

use phalanx::run::{Config, preset};
use sources::{code, sources};
use toml::{Table, Value};

/// Key, end of a file's path, and what the word means there instead.
const OTHER_MEANINGS: &[(&str, &str, &str)] = &[
    ("batch", "onnx/graph.rs", "a dimension of ONNX models"),
    ("constraint.kind", "base/section.rs", "the kind of a policy or critic"),
    ("objective.kind", "base/section.rs", "the kind of a policy or critic"),
    ("critic.steps", "critic/neural.rs", "a field of checkpoints: steps taken"),
    ("critic.steps", "critic/returns.rs", "a field of checkpoints: steps taken"),
    ("gamma", "cuda/shape.rs", "a number that kernel text reads"),
    ("gamma", "phalanx-cli/src/eval.rs", "a field of the file of occupancies"),
    ("gamma", "phalanx-cli/src/check.rs", "a line of the table: γ of the model"),
    ("iterations", "phalanx-cli/src/table.rs", "a line of the table: how many were made"),
    ("iterations", "phalanx-cli/src/progress/training.rs", "a word: what is counted"),
    ("iterations", "xtask/src/python.rs", "an argument in Python"),
    ("scaling", "phalanx-cli/src/table.rs", "a line of the table"),
    ("seed", "phalanx-cli/src/eval.rs", "a field of the assessment: --seed"),
    ("seed", "phalanx-cli/src/lib.rs", "an argument: --seed"),
    ("seed", "sweep/file.rs", "a key of sweeps: random.seed"),
    ("seed", "sweep/summary.rs", "a column: the seed in the sweep"),
    ("seed", "graph/config.rs", "network.seed"),
    ("seed", "phalanx-junctions/src/configuration.rs", "a key of CityFlow's configuration"),
    ("seed", "xtask/src/python.rs", "an argument in Python"),
    ("batch", "xtask/src/gpu/speed.rs", "a command line that is measured, as a user writes it"),
    ("checkpoint.seconds", "xtask/src/gpu/bytes.rs", "a command line that is measured, as a user writes it"),
    ("checkpoint.seconds", "xtask/src/gpu/speed.rs", "a command line that is measured, as a user writes it"),
    ("evaluation.episodes", "xtask/src/gpu/bytes.rs", "a command line that is measured, as a user writes it"),
    ("evaluation.episodes", "xtask/src/gpu/speed.rs", "a command line that is measured, as a user writes it"),
    (
        "evaluation.episodes",
        "xtask/src/gpu/returns.rs",
        "a command line that is measured, as a user writes it",
    ),
    ("iterations", "xtask/src/gpu/bytes.rs", "a command line that is measured, as a user writes it"),
    ("iterations", "xtask/src/gpu/speed.rs", "a command line that is measured, as a user writes it"),
    ("iterations", "xtask/src/gpu/trainer.rs", "a command line that is measured, as a user writes it"),
    ("world.n", "xtask/src/gpu/bytes.rs", "a command line that is measured, as a user writes it"),
    ("world.n", "xtask/src/gpu/speed.rs", "a command line that is measured, as a user writes it"),
];

/// Graphs that no preset has.
const GRAPHS: [&[(&str, &str)]; 5] = [
    &[("network.kind", "grid"), ("network.rows", "2"), ("network.columns", "2")],
    &[("network.kind", "geometric"), ("network.radius", "0.5"), ("network.seed", "1")],
    &[("network.kind", "erdos_renyi"), ("network.probability", "0.5"), ("network.seed", "1")],
    &[
        ("network.kind", "small_world"),
        ("network.neighbours", "2"),
        ("network.rewire", "0.5"),
        ("network.seed", "1"),
    ],
    &[("network.kind", "scale_free"), ("network.links", "1"), ("network.seed", "1")],
];

/// Every key of every preset, graph, critic, policy and algorithm, dotted, with the kind that it belongs to
/// in `[world]` and `[network]`, where every kind declares its own.
fn keys() -> BTreeSet<(String, String)> {
    let presets = preset::names().map(|name| Config::preset(name).unwrap());
    let mut configs: Vec<Config> = presets.collect();
    let synthetic = Config::preset("synthetic").unwrap();
    configs.extend(GRAPHS.iter().map(|graph| synthetic.with_all(graph.iter().copied()).unwrap()));
    for key in ["critic.kind", "policy.kind", "algorithm"] {
        // The message that refuses an unknown kind lists them.
        let refused = synthetic.with(key, "unknown").unwrap_err().to_string();
        for kind in refused.split('`').skip(3).step_by(2) {
            let of_kind = synthetic.with(key, kind);
            configs.push(
                of_kind.or_else(|_| synthetic.with_all([(key, kind), ("policy.kind", "network")])).unwrap(),
            );
        }
    }
    let mut keys = BTreeSet::new();
    for config in configs {
        let table: Table = config.to_toml().parse().unwrap();
        let mut names = Vec::new();
        add_keys(&table, "", &mut names);
        let kind = |name: &str| match name.split_once('.') {
            Some((section @ ("world" | "network"), _)) => {
                table[section]["kind"].as_str().unwrap().to_string()
            }
            _ => String::new(),
        };
        keys.extend(names.into_iter().map(|name| (kind(&name), name)));
    }
    keys
}

fn add_keys(table: &Table, section: &str, keys: &mut Vec<String>) {
    for (key, value) in table {
        let name = format!("{section}{key}");
        match value {
            Value::Table(table) => add_keys(table, &format!("{name}."), keys),
            Value::Array(list) if list.first().is_some_and(Value::is_table) => {
                let tables = list.iter().filter_map(Value::as_table);
                tables.for_each(|table| add_keys(table, &format!("{name}."), keys));
            }
            _ => keys.push(name),
        }
    }
}

struct Source {
    file: String,
    literals: Vec<String>,
    /// Structs with their documentation, and their fields.
    structs: Vec<(String, BTreeSet<String>)>,
}

impl Source {
    /// Whether a field or its serde name declares the key. What a struct's keys belong to is said by its
    /// documentation: the section, and the kind if it is of one.
    fn declares(&self, kind: &str, key: &str) -> bool {
        let (section, name) = key.split_once('.').unwrap_or(("", key));
        let has_section = |head: &str| match section {
            "" => head.contains("struct Config {"),
            "constraint" => head.contains("`[[constraint]]`"),
            section => {
                let is_of_kind = head.contains(&format!("kind = \"{kind}\"")) || !head.contains("kind = ");
                head.contains(&format!("`[{section}]`")) && is_of_kind
            }
        };
        self.structs.iter().any(|(head, fields)| has_section(head) && fields.contains(name))
    }

    /// Whether a string names the key.
    fn names(&self, key: &str) -> bool {
        let name = key.rsplit('.').next().unwrap_or(key);
        self.literals.iter().any(|text| match key.split_once('.') {
            None => text == key || places(text, key).any(|place| is_of_root(key, place)),
            // Their names are put together: `{field}.scale`.
            Some(("objective" | "constraint", _)) => text.ends_with(&format!("}}.{name}")),
            Some(_) => places(text, key).next().is_some(),
        })
    }
}

/// What stands before and after `word` wherever it stands by itself.
fn places<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let around = text.match_indices(word).map(move |(at, _)| (&text[..at], &text[at + word.len()..]));
    around.filter(move |(before, after)| {
        !before.ends_with(|c| is_part(c) || c == '.') && !after.starts_with(is_part)
    })
}

/// Whether a word is meant as a key, neither a value to print (`{seed}`), a flag (`--seed`) nor a part of a
/// formula (`2/gamma`). Some are words of everyday language unless something is said of their value.
fn is_of_root(key: &str, (before, after): (&str, &str)) -> bool {
    let is_other = before.ends_with(['{', '-', '/']);
    let has_value = before.ends_with('`') || after.trim_start().starts_with(['=', '<', '>', ':']);
    !is_other && (has_value || key.starts_with("kappa") || key.contains('_'))
}

/// The strings of a source.
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['"', '\'']) {
        let (before, from) = rest.split_at(at);
        if let Some(after) = from.strip_prefix('\'') {
            // A character, or else a lifetime.
            let escaped = after.strip_prefix('\\').map_or(0, |_| 1);
            let mut chars = after.char_indices().skip(escaped + 1);
            rest = match chars.next() {
                Some((end, '\'')) => &after[end + 1..],
                _ => after,
            };
            continue;
        }
        let hashes = before.len() - before.trim_end_matches('#').len();
        let is_raw = before[..before.len() - hashes].ends_with('r');
        let text = &from[1..];
        let closing = format!("\"{}", "#".repeat(if is_raw { hashes } else { 0 }));
        let is_end = |end: usize| {
            let slashes = text[..end].len() - text[..end].trim_end_matches('\\').len();
            is_raw || slashes % 2 == 0
        };
        let end =
            text.match_indices(&closing).map(|(end, _)| end).find(|&end| is_end(end)).unwrap_or(text.len());
        found.push(text[..end].to_string());
        rest = text.get(end + closing.len()..).unwrap_or("");
    }
    found
}

/// Structs with the comments and attributes above them, and their fields.
fn structs(source: &str) -> Vec<(String, BTreeSet<String>)> {
    let (mut found, mut head) = (Vec::new(), String::new());
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("///") || line.starts_with("#[") {
            head += line;
        } else if line.contains("struct ") && line.ends_with('{') {
            let body = lines.by_ref().take_while(|line| *line != "}");
            found.push((std::mem::take(&mut head) + line, body.filter_map(field).collect()));
        } else {
            head.clear();
        }
    }
    found
}

/// The field that a line declares, or the name that serde knows it by.
fn field(line: &str) -> Option<String> {
    if let Some((_, renamed)) = line.split_once("rename = \"") {
        return renamed.split('"').next().map(str::to_string);
    }
    let name = line.split_once(": ")?.0.rsplit(' ').next()?.trim_start_matches("r#");
    (!line.starts_with(['/', '#'])).then(|| name.to_string())
}

#[test]
fn a_key_is_named_in_two_files_at_most() {
    let sources: Vec<Source> = sources()
        .into_iter()
        .map(|(file, source)| Source { file, literals: literals(&code(&source)), structs: structs(&source) })
        .collect();
    let mut wrong = String::new();
    for (kind, key) in keys() {
        let elsewhere =
            |file: &str| OTHER_MEANINGS.iter().any(|(other, end, _)| *other == key && file.ends_with(end));
        let named = sources
            .iter()
            .filter(|source| source.declares(&kind, &key) || source.names(&key) && !elsewhere(&source.file));
        let files: Vec<&str> = named.map(|source| source.file.as_str()).collect();
        let line = format!("`{key}` {kind}: {} files: {}\n", files.len(), files.join(", "));
        print!("{line}");
        // Keys within keys (`schedule.kind`) are those of a type, which declares them for all.
        let least = if key.matches('.').count() > 1 { 0 } else { 1 };
        if !(least..=2).contains(&files.len()) {
            wrong += &line;
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

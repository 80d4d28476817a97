//! The paper map is complete and true.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "toml") {
            let text = std::fs::read_to_string(&path).unwrap();
            found.push((path, text));
        }
    }
}

fn all_sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in
        ["crates/phalanx/src", "crates/phalanx/tests", "crates/phalanx-paper/src", "crates/phalanx-cli/src"]
    {
        sources(&root().join(folder), &mut found);
    }
    found
}

const PREFIXES: [&str; 12] =
    ["eq", "alg", "def", "assump", "prop", "lemma", "thm", "exp", "sec", "subsec", "fig", "tab"];

/// Labels of the paper cited in comments: `eq:dual_update`, `subsec: synthetic`, `sec:problem formulation`.
fn cited_labels(text: &str) -> BTreeSet<String> {
    let mut labels = BTreeSet::new();
    for line in text.lines().filter(|line| line.trim_start().starts_with("//")) {
        for (at, _) in line.match_indices(':') {
            let prefix = line[..at].rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
            let rest = &line[at + 1..];
            let spaced = rest.strip_prefix(' ').filter(|_| prefix == "subsec");
            let rest = spaced.unwrap_or(rest);
            let word_end = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
                .unwrap_or(rest.len());
            if !PREFIXES.contains(&prefix) || word_end == 0 {
                continue;
            }
            let mut end = word_end;
            if rest[..end] == *"problem" && rest[end..].starts_with(" formulation") {
                end += " formulation".len();
            }
            let space = if spaced.is_some() { " " } else { "" };
            labels.insert(format!("{prefix}:{space}{}", &rest[..end]));
        }
    }
    labels
}

#[test]
fn citations_are_recognised() {
    let text = "// Paper: alg:pdac line 7, eq:dual_update (see sec:problem formulation).\n/// subsec: synthetic.\n\
                let x = eq::y; // std::mem";
    let expected = ["alg:pdac", "eq:dual_update", "sec:problem formulation", "subsec: synthetic"];
    assert_eq!(cited_labels(text).into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn every_cited_label_is_listed() {
    let map = std::fs::read_to_string(root().join("docs/paper-map.md")).unwrap();
    let mut cited = 0;
    for (path, text) in all_sources() {
        if path.ends_with("tests/paper_map.rs") {
            continue;
        }
        for label in cited_labels(&text) {
            cited += 1;
            assert!(map.contains(&format!("`{label}`")), "{}: {label} is not in the map", path.display());
        }
    }
    assert!(cited > 20, "only {cited} citations were recognised");
}

#[test]
fn every_listed_item_exists() {
    let map = std::fs::read_to_string(root().join("docs/paper-map.md")).unwrap();
    let sources = all_sources();
    let rows = map.lines().filter(|line| line.starts_with("| `"));
    let mut checked = 0;
    for row in rows {
        let item = row.trim_end_matches(['|', ' ']).rsplit("| ").next().unwrap().trim_matches('`');
        let (module, name) =
            item.split_once("::").unwrap_or_else(|| panic!("{row}: `{item}` is not module::Item"));
        let defined = ["struct", "enum", "trait", "fn"].map(|word| format!("pub {word} {name}"));
        let exists = sources.iter().any(|(path, text)| {
            path.components().any(|part| Path::new(part.as_os_str()).file_stem().is_some_and(|s| s == module))
                && defined.iter().any(|definition| text.contains(definition.as_str()))
        });
        assert!(exists, "{row}: there is no `{item}`");
        checked += 1;
    }
    assert!(checked > 20, "only {checked} rows");
}

#[test]
fn every_erratum_that_is_cited_is_explained() {
    let errata = std::fs::read_to_string(root().join("docs/errata.md")).unwrap();
    for (path, text) in all_sources() {
        for (at, _) in text.match_indices("errata ") {
            let list =
                text[at + 7..].split(|c: char| !(c.is_ascii_digit() || c == ',' || c == ' ')).next().unwrap();
            for number in list.split(',').map(str::trim).filter(|number| !number.is_empty()) {
                let listed = errata.contains(&format!("\n| {number} |"));
                assert!(listed, "{}: erratum {number} is not explained", path.display());
            }
        }
    }
}

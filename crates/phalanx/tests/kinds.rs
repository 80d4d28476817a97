//! Does a new kind touch few files? For every world, utility and critic of the library: the files that name
//! it.

#[path = "support/sources.rs"]
mod sources;

use phalanx::run::{Config, Registry};
use phalanx::utility::KNOWN_KINDS;
use sources::{code, sources};

/// Family, kind, end of a file's path or a folder in it, and what the word means there instead.
const OTHER_MEANINGS: &[(&str, &str, &str, &str)] = &[
    ("world", "line", "graph/config.rs", "the generator of graphs"),
    ("world", "table", "sweep/file.rs", "a section of TOML"),
    ("world", "table", "config/difference.rs", "a section of TOML"),
    ("world", "table", "neural/architecture.rs", "embeddings"),
    ("world", "table", "neural/pass.rs", "embeddings"),
    ("world", "table", "phalanx-agent/src/policy.rs", "a rule"),
    ("utility", "linear", "phalanx-agent/src/policy.rs", "a rule"),
    ("critic", "linear", "phalanx-agent/src/policy.rs", "a rule"),
    ("critic", "network", "phalanx-agent/src/policy.rs", "a network as data"),
    ("critic", "network", "neural/portable.rs", "a network as data"),
    ("critic", "network", "policy/linked.rs", "a network as data"),
    ("critic", "network", "policy/shared/mod.rs", "a network as data"),
    ("critic", "network", "run/evaluate.rs", "a section of the configuration"),
    ("critic", "network", "policy/linear.rs", "a network as data"),
    ("critic", "network", "policy/tabular.rs", "a network as data"),
    ("critic", "network", "export/c/data.rs", "a network as data"),
    ("critic", "network", "export/onnx/mod.rs", "a network as data"),
    ("world", "table", "exact/contraction.rs", "a law by state and action"),
    ("utility", "linear", "sweep/file.rs", "a scale of numbers"),
    ("utility", "linear", "base/schedule.rs", "a schedule"),
    ("utility", "linear", "neural/architecture.rs", "a layer"),
    ("utility", "linear", "neural/pass.rs", "a layer"),
    ("utility", "linear", "neural/online.rs", "a layer"),
    ("utility", "linear", "utility/conic.rs", "a curvature"),
    ("utility", "linear", "run/config/mod.rs", "a policy and a critic"),
    ("utility", "linear", "policy/mod.rs", "a policy"),
    ("utility", "linear", "algorithm/critics.rs", "a critic"),
    ("utility", "linear", "platoon/mod.rs", "a rule to compare with"),
    ("critic", "linear", "platoon/mod.rs", "a rule to compare with"),
    ("critic", "td", "critic/linear.rs", "a solver of the linear critic"),
    ("critic", "td", "exact/truncation.rs", "a truncation"),
    ("critic", "td", "run/check/td.rs", "a check"),
    ("critic", "lstd", "critic/linear.rs", "a solver of the linear critic"),
    ("critic", "linear", "sweep/file.rs", "a scale of numbers"),
    ("critic", "linear", "base/schedule.rs", "a schedule"),
    ("critic", "linear", "neural/architecture.rs", "a layer"),
    ("critic", "linear", "neural/pass.rs", "a layer"),
    ("critic", "linear", "neural/online.rs", "a layer"),
    ("critic", "linear", "utility/conic.rs", "a curvature"),
    ("critic", "linear", "utility/kinds.rs", "a utility"),
    ("critic", "linear", "utility/linear.rs", "a utility"),
    ("critic", "linear", "policy/mod.rs", "a policy"),
    ("critic", "network", "phalanx-py/src/config.rs", "the section of the graph"),
    ("critic", "network", "graph/config.rs", "the section of the graph"),
    ("critic", "network", "export/card.rs", "the section of the graph"),
    ("critic", "network", "world/registry.rs", "the section of the graph"),
    ("critic", "network", "policy/neural.rs", "a policy"),
    ("critic", "network", "policy/mod.rs", "a policy"),
    ("critic", "network", "phalanx-junctions/src/", "roads"),
    ("critic", "network", "world/junctions/", "roads"),
    ("critic", "network", "replay/junctions.rs", "roads"),
    ("critic", "exact", "phalanx-cli/src/eval.rs", "the exact evaluation"),
    ("critic", "exact", "phalanx-cli/src/lib.rs", "the command"),
    ("critic", "exact", "sweep/summary.rs", "the exact evaluation"),
    ("critic", "exact", "phalanx-py/src/session.rs", "the exact evaluation"),
    ("critic", "exact", "algorithm/kind.rs", "the exact algorithm"),
    ("critic", "exact", "learn/actor.rs", "the exact algorithm"),
];

/// Whether a source names a kind: by its string, or by its type, whose name is the same in capitals. A name
/// behind that of another type (`Schedule::Linear`) belongs to that type.
fn names(code: &str, kind: &str) -> bool {
    let type_name = kind.replace('_', "");
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_type = |(at, word): (usize, &str)| {
        let is_camel = word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase);
        let owner =
            code[..at].strip_suffix("::").map(|before| before.rsplit(|c| !is_part(c)).next().unwrap_or(""));
        let is_foreign = owner
            .is_some_and(|owner| owner == "toml" || owner.starts_with(char::is_uppercase) && owner != "Kind");
        is_camel && word.to_lowercase() == type_name && !is_foreign
    };
    let words =
        code.split(|c| !is_part(c)).map(|word| (word.as_ptr() as usize - code.as_ptr() as usize, word));
    code.contains(&format!("\"{kind}\"")) || words.into_iter().any(is_type)
}

/// Fails where a kind of the family is named in more than `most` files; shows all of them.
fn assert_few(family: &str, kinds: &[String], most: usize) {
    assert!(!kinds.is_empty());
    let sources: Vec<(String, String)> =
        sources().into_iter().map(|(file, source)| (file, code(&source))).collect();
    let mut too_many = String::new();
    for kind in kinds {
        let elsewhere = |file: &str| {
            let is = |(f, k, place, _): &&(&str, &str, &str, &str)| {
                let is_there = file.ends_with(place) || place.ends_with('/') && file.contains(place);
                *f == family && k == kind && is_there
            };
            OTHER_MEANINGS.iter().any(|other| is(&other))
        };
        let named = sources.iter().filter(|(file, code)| names(code, kind) && !elsewhere(file));
        let files: Vec<&str> = named.map(|(file, _)| file.as_str()).collect();
        println!("{family} `{kind}`: {}", files.join(", "));
        assert!(!files.is_empty(), "{kind} is named nowhere");
        if files.len() > most {
            too_many +=
                &format!("{family} `{kind}` is named in {} files: {}\n", files.len(), files.join(", "));
        }
    }
    assert!(too_many.is_empty(), "{too_many}");
}

#[test]
fn a_world_is_named_in_four_files_at_most() {
    let kinds: Vec<String> = Registry::default().worlds().map(|kind| kind.name().to_string()).collect();
    assert_few("world", &kinds, 4);
}

#[test]
fn a_utility_is_named_in_two_files_at_most() {
    let kinds: Vec<String> = KNOWN_KINDS.iter().map(|kind| kind.to_string()).collect();
    assert_few("utility", &kinds, 2);
}

#[test]
fn a_critic_is_named_in_two_files_at_most() {
    // The message that refuses an unknown one lists them.
    let refused =
        Config::preset("synthetic").unwrap().with("critic.kind", "unknown").unwrap_err().to_string();
    let kinds: Vec<String> = refused.split('`').skip(3).step_by(2).map(str::to_string).collect();
    assert_few("critic", &kinds, 2);
}

//! Configurations: TOML, and settings on top.

use std::path::Path;
use std::sync::LazyLock;

use phalanx::Result;
use phalanx::run::{Config, Session, preset};

use crate::Verdict;
use crate::choices::Choices;
use crate::edit::{self, Seeds, splice};
use crate::node::Node;
use crate::print;

/// Configurations beside the presets: what these do not use.
const MORE: [&str; 4] = [
    "kappa=1\n[world]\nkind=\"line\"\nn=3\n[objective]\nkind=\"return\"\n[critic]\nkind=\"lstd\"\n[policy]\nkind=\"direct\"",
    "[world]\nkind=\"line\"\nn=4\n[network]\nkind=\"ring\"\n[objective]\nkind=\"sa_entropy\"\n[critic]\nkind=\"montecarlo\"\n[dual]\nkind=\"proximal\"\n[output]\nagents=\"all\"\n[checkpoint]\nseconds=1.0",
    "[world]\nkind=\"epidemic\"\n[network]\nkind=\"small_world\"\nn=8\nk=2\np=0.25\n[objective]\nkind=\"return\"\n[policy]\nkind=\"linear\"",
    "[world]\nkind=\"wireless\"\n[network]\nkind=\"erdos_renyi\"\nn=6\np=0.5\n[objective]\nkind=\"return\"\n[critic]\nkind=\"returns\"\nlambda=0.5\n[actor.schedule]\nkind=\"cosine\"",
];

static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    let presets = preset::names().filter_map(preset::text);
    Seeds::new(presets.chain(MORE).map(Node::toml).map(small)).with("file", &["preset:karate-club.txt"])
});

/// The same with few agents: what is built shall be built often.
fn small(mut document: Node) -> Node {
    if let Node::Map(entries) = &mut document {
        for (key, value) in entries {
            match (key.as_str(), value) {
                ("horizon", Node::Whole(number)) => *number = (*number).min(8),
                ("batch", Node::Whole(number)) => *number = (*number).min(3),
                ("world" | "network" | "policy" | "critic" | "mappo", Node::Map(section)) => {
                    section.iter_mut().for_each(|(_, value)| shrink(value));
                }
                _ => {}
            }
        }
    }
    document
}

fn shrink(value: &mut Node) {
    match value {
        Node::Whole(number) => *number = (*number).min(6),
        Node::List(items) => items.iter_mut().for_each(shrink),
        _ => {}
    }
}

/// A preset's sections, changed.
pub fn document(choices: &mut Choices<'_>) -> Verdict {
    let document = SEEDS.document(choices);
    let mut bytes = print::toml(&document).into_bytes();
    splice(&mut bytes, 16, choices);
    let text = String::from_utf8_lossy(&bytes);
    verdict(Config::from_toml(&text, Path::new(".")), choices)
}

static PRESETS: LazyLock<Vec<Config>> = LazyLock::new(|| {
    let documents =
        preset::names().filter_map(preset::text).map(|text| print::toml(&small(Node::toml(text))));
    documents.filter_map(|text| Config::from_toml(&text, Path::new(".")).ok()).collect()
});

/// Dotted names and values, of all presets.
static SETTINGS: LazyLock<Vec<(String, Node)>> = LazyLock::new(|| {
    let documents = preset::names().filter_map(preset::text).chain(MORE).map(Node::toml).map(small);
    documents.flat_map(|document| edit::settings(&document)).collect()
});

/// Settings on top of a preset.
pub fn settings(choices: &mut Choices<'_>) -> Verdict {
    let mut pairs = Vec::new();
    for _ in 0..=choices.below(3) {
        let (key, mut value) = choices.pick(&SETTINGS).cloned().unwrap_or((String::new(), Node::Null));
        if !choices.one_in(4) {
            SEEDS.edit(&mut value, choices);
        }
        pairs.push([key, print::toml_value(&value)].map(|text| {
            let mut bytes = text.into_bytes();
            splice(&mut bytes, 24, choices);
            String::from_utf8_lossy(&bytes).into_owned()
        }));
    }
    let Some(base) = choices.pick(&PRESETS) else { return Verdict::Malformed };
    verdict(base.with_all(pairs.iter().map(|[key, value]| (key.as_str(), value.as_str()))), choices)
}

/// How far a configuration gets: now and then it is built, if it is small, or written down and read again.
fn verdict(config: Result<Config>, choices: &Choices<'_>) -> Verdict {
    let built = config.and_then(|config| match choices.lot(16) {
        1 => {
            read_again(&config);
            Ok(())
        }
        2 | 3 if is_small(&config) => Session::new(&config).map(drop),
        _ => Ok(()),
    });
    Verdict::of(&built)
}

fn read_again(config: &Config) {
    let text = config.to_toml();
    let again = Config::from_toml(&text, Path::new("."));
    let again = again.unwrap_or_else(|error| panic!("{error}: what was written is not read:\n{text}"));
    assert_eq!(again.first_difference(config), None, "what was written is not what is read:\n{text}");
}

/// Whether it is built in no time: few agents, short trajectories, small networks.
fn is_small(config: &Config) -> bool {
    let Node::Map(sections) = Node::toml(&config.to_toml()) else { return false };
    let mut largest = config.kappa.max(config.kappa_q) as i128;
    let sized = ["world", "network", "policy", "critic", "mappo"];
    for (_, section) in sections.iter().filter(|(key, _)| sized.contains(&key.as_str())) {
        section.for_each(&mut |node| {
            if let Node::Whole(number) = node {
                largest = largest.max(*number);
            }
        });
    }
    largest <= 40 && config.horizon.saturating_mul(config.batch) <= 1000
}

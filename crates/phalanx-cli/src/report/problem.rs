//! What the page says of the problem: settings, objective and constraints, and the graph. Nothing of it
//! changes while the run trains.

use std::collections::BTreeMap;
use std::path::Path;

use phalanx::Error;
use phalanx::base::files;
use phalanx::base::key::{ALGORITHM, BATCH, GAMMA, HORIZON, KAPPA, SEED, WORLD_N};
use phalanx::run::{self, Config, Registry};
use phalanx::utility::UtilitySpec;
use phalanx::world::World;
use phalanx_pictures::page::data_uri;
use phalanx_pictures::plot;
use phalanx_pictures::render::agent_map;
use serde_json::{Value, json};

/// The resolved configuration in the folder of a run.
pub const CONFIG: &str = "config.toml";
/// Longer settings are cut: the whole configuration stands on the page as well.
const MOST_SHOWN: usize = 200;

/// The problem of a run.
pub struct ProblemPart {
    /// The text of its configuration.
    pub config: String,
    pub iterations: usize,
    /// Settings by name.
    pub facts: Vec<Value>,
    /// The objective and the constraints.
    pub utilities: Vec<Value>,
    /// The agents and their links, as a picture.
    pub map: Option<String>,
    /// One line about the run, for a reader who knows nothing of it.
    pub lead: String,
    /// Why the environment could not be looked at.
    pub warnings: Vec<String>,
}

impl ProblemPart {
    /// That of the run in a folder.
    pub fn of(run: &Path, registry: &Registry) -> anyhow::Result<Self> {
        if !run.is_dir() {
            return Err(Error::file(run, "is not the folder of a run").into());
        }
        let path = run.join(CONFIG);
        let text = files::read_text(&path)?;
        let settings: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            Error::file(&path, format!("cannot be read: {}", error.message()))
        })?;
        let config = Config::of_run(run)?.with_registry(registry.clone());
        // A page without the environment is better than none.
        let (world, warnings) = match run::world(&config) {
            Ok(world) => (Some(world), Vec::new()),
            Err(error) => (None, vec![format!("The environment cannot be made: {error}")]),
        };
        let world = world.as_deref();
        let map = world.map(|world| agent_map(world, &plot::name_of(run))).transpose()?;
        Ok(ProblemPart {
            iterations: config.iterations,
            facts: facts(&settings, world),
            utilities: utilities(&settings, world),
            map: map.map(|png| data_uri("png", &png)),
            lead: lead(&settings, world),
            config: text,
            warnings,
        })
    }
}

fn lead(settings: &toml::Table, world: Option<&dyn World>) -> String {
    let kind = settings.get("world").and_then(|world| world.get("kind")).and_then(toml::Value::as_str);
    let who = match world.map(|world| world.graph().agents()) {
        None => "Agents".into(),
        Some(1) => "1 agent".into(),
        Some(agents) => format!("{agents} agents"),
    };
    let kind = kind.unwrap_or("unknown");
    format!("{who} in the environment “{kind}”, trained together; constraints are per agent.")
}

/// Settings that say what was asked for, by name.
fn facts(settings: &toml::Table, world: Option<&dyn World>) -> Vec<Value> {
    let section = |name: &str| {
        let mut facts = Vec::new();
        settings
            .get(name)
            .and_then(toml::Value::as_table)
            .iter()
            .for_each(|table| flatten(name, table, &mut facts));
        facts
    };
    let (kind, others): (Vec<_>, Vec<_>) =
        section("world").into_iter().partition(|(name, _)| name.strip_prefix("world.") == Some("kind"));
    let mut facts: Vec<Value> = kind.into_iter().map(|(_, value)| fact("environment", value)).collect();
    if let Some(world) = world {
        let graph = world.graph();
        let ends: usize = (0..graph.agents()).map(|agent| graph.neighbours(agent).len()).sum();
        facts.push(fact("agents", graph.agents().to_string()));
        facts.push(fact("links", (ends / 2).to_string()));
    }
    let others = others.into_iter().filter(|(name, _)| world.is_none() || name != WORLD_N);
    let around = ["network", "links", "safety"].into_iter().flat_map(section);
    facts.extend(others.chain(around).map(|(name, value)| fact(&name, value)));
    for (key, name) in [
        (ALGORITHM, "learning method"),
        (KAPPA, "communication range κ"),
        (GAMMA, "discount γ"),
        (HORIZON, "steps per episode"),
        (BATCH, "episodes per iteration"),
        (SEED, "seed of training"),
    ] {
        facts.extend(settings.get(key).map(|value| fact(name, shown(value))));
    }
    facts
}

/// Every setting of a section and of the sections in it, by its whole key.
fn flatten(name: &str, table: &toml::Table, found: &mut Vec<(String, String)>) {
    for (key, value) in table {
        let name = format!("{name}.{key}");
        match value {
            toml::Value::Table(inner) => flatten(&name, inner, found),
            value => found.push((name, shown(value))),
        }
    }
}

/// A setting's name and value, as the page has them.
pub fn fact(name: &str, value: String) -> Value {
    json!({ "name": name, "value": value })
}

fn shown(value: &toml::Value) -> String {
    shortened(value.as_str().map_or_else(|| value.to_string(), String::from))
}

fn shortened(text: String) -> String {
    if text.chars().count() <= MOST_SHOWN {
        text
    } else {
        text.chars().take(MOST_SHOWN).chain(['…']).collect()
    }
}

/// The objective and the constraints: those of the configuration, else those that the environment brings
/// along, such as a model in a file.
fn utilities(settings: &toml::Table, world: Option<&dyn World>) -> Vec<Value> {
    let own = world.and_then(World::own_problem);
    let mut rows = Vec::new();
    match (settings.get("objective"), own) {
        (Some(utility), _) => rows.push(of_config("objective", utility)),
        (None, Some(own)) => rows.extend(of_world("objective", own.objectives.iter())),
        (None, None) => {}
    }
    match (settings.get("constraint").and_then(toml::Value::as_array), own) {
        (Some(list), _) => rows.extend(list.iter().map(|utility| of_config("constraint", utility))),
        (None, Some(own)) => rows.extend(of_world("constraint", own.constraints.iter().flatten())),
        (None, None) => {}
    }
    rows
}

fn of_config(role: &str, utility: &toml::Value) -> Value {
    let table = utility.as_table();
    let kind = table.and_then(|table| table.get("kind")).map(shown).unwrap_or_default();
    let others = table.into_iter().flatten().filter(|(key, _)| *key != "kind");
    let others: Vec<String> = others.map(|(key, value)| shortened(format!("{key} = {value}"))).collect();
    json!({ "role": role, "kind": kind, "settings": others.join(", ") })
}

/// A row for each kind among the environment's own: every agent has its own numbers.
fn of_world<'a>(role: &str, own: impl Iterator<Item = &'a UtilitySpec>) -> Vec<Value> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    own.for_each(|spec| *counts.entry(&spec.kind).or_default() += 1);
    let row = |(kind, count): (&str, usize)| {
        let bound = if role == "constraint" { ", each at_least = 0" } else { "" };
        let settings = format!("defined by the environment, {count} in all{bound}");
        json!({ "role": role, "kind": kind, "settings": settings })
    };
    counts.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_within_sections_are_shown() {
        let settings: toml::Table = "seed = 1\n[world]\nkind = \"junctions\"\nphases = 8\n\
                                     [world.town]\ngrid = [4, 4]\n[network]\nkind = \"ring\"\n"
            .parse()
            .unwrap();
        let facts: Vec<(String, String)> = facts(&settings, None)
            .iter()
            .map(|fact| (fact["name"].as_str().unwrap().into(), fact["value"].as_str().unwrap().into()))
            .collect();
        let expected = [
            ("environment", "junctions"),
            ("world.phases", "8"),
            ("world.town.grid", "[4, 4]"),
            ("network.kind", "ring"),
            ("seed of training", "1"),
        ];
        assert_eq!(facts, expected.map(|(name, value)| (name.to_string(), value.to_string())));
    }

    #[test]
    fn long_settings_are_cut() {
        let table: toml::Table = format!("r = [{}]", "1.0, ".repeat(500)).parse().unwrap();
        let row = of_config("objective", &toml::Value::Table(table));
        assert!(row["settings"].as_str().unwrap().chars().count() == MOST_SHOWN + 1);
    }
}

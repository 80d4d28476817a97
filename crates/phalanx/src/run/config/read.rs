//! From TOML to a typed [`Config`], naming the field that does not fit.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{
    ActorConfig, Algorithm, CheckpointConfig, Config, ConstraintConfig, CriticConfig, CriticKind,
    DEFAULT_GAMMA, DualConfig, EvaluationConfig, GraphConfig, OutputConfig, PolicyConfig, UtilityConfig,
    WorldConfig,
};
use crate::algorithm::MappoRule;
use crate::base::document::{describe, reject_nan};
use crate::policy::Baseline;
use crate::run::registry::Registry;
use crate::utility::problem::Scaling;
use crate::world::{EpidemicSpec, Start};
use crate::{Error, Result};

/// The file as a whole, sections unread.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    #[serde(default)]
    algorithm: Algorithm,
    #[serde(default = "default_iterations")]
    iterations: usize,
    #[serde(default = "default_seed")]
    seed: u64,
    gamma: Option<f64>,
    #[serde(default = "default_horizon")]
    horizon: usize,
    #[serde(default = "default_batch")]
    batch: usize,
    #[serde(default = "default_kappa")]
    kappa: usize,
    kappa_q: Option<usize>,
    kappa_g: Option<usize>,
    #[serde(default)]
    scaling: Scaling,
    #[serde(default)]
    occupancy_average: f64,
    world: toml::Table,
    network: Option<GraphConfig>,
    objective: Option<toml::Table>,
    constraint: Option<Vec<toml::Table>>,
    #[serde(default)]
    policy: PolicyConfig,
    #[serde(default)]
    critic: CriticConfig,
    #[serde(default)]
    dual: DualConfig,
    #[serde(default)]
    actor: ActorConfig,
    #[serde(default)]
    mappo: MappoRule,
    #[serde(default)]
    evaluation: EvaluationConfig,
    #[serde(default)]
    checkpoint: CheckpointConfig,
    #[serde(default)]
    output: OutputConfig,
}

fn default_iterations() -> usize {
    400
}
fn default_seed() -> u64 {
    1
}
fn default_horizon() -> usize {
    125
}
fn default_batch() -> usize {
    5
}
fn default_kappa() -> usize {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineKeys {
    n: usize,
    #[serde(default)]
    start: Start,
    #[serde(default)]
    mixing: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableKeys {
    file: PathBuf,
    #[serde(default)]
    allow_infeasible: bool,
}

impl Config {
    /// Reads, completes and checks what the user wrote; relative files are looked up in `base`.
    pub(super) fn from_table(source: toml::Table, base: PathBuf) -> Result<Self> {
        reject_nan(&toml::Value::Table(source.clone()), "").map_err(split_field)?;
        let raw: Raw = section(source.clone(), "")?;
        let constraint = raw
            .constraint
            .map(|list| list.into_iter().enumerate().map(|(k, table)| read_constraint(table, k)).collect())
            .transpose()?;
        let mut config = Config {
            source,
            base,
            registry: Registry::default(),
            algorithm: raw.algorithm,
            iterations: raw.iterations,
            seed: raw.seed,
            gamma: raw.gamma,
            horizon: raw.horizon,
            batch: raw.batch,
            kappa: raw.kappa,
            kappa_q: raw.kappa_q.unwrap_or(raw.kappa),
            kappa_g: raw.kappa_g.or(raw.kappa_q).unwrap_or(raw.kappa),
            scaling: raw.scaling,
            occupancy_average: raw.occupancy_average,
            world: read_world(raw.world)?,
            network: raw.network,
            objective: raw.objective.map(|table| read_utility(table, "objective")).transpose()?,
            constraint,
            policy: raw.policy,
            critic: raw.critic,
            dual: raw.dual,
            actor: raw.actor,
            mappo: raw.mappo,
            evaluation: raw.evaluation,
            checkpoint: raw.checkpoint,
            output: raw.output,
        };
        if matches!(
            config.world,
            WorldConfig::Line { .. }
                | WorldConfig::Wireless(_)
                | WorldConfig::Pistonball(_)
                | WorldConfig::Epidemic(_)
        ) {
            config.gamma.get_or_insert(DEFAULT_GAMMA);
        }
        config.actor.baseline.get_or_insert(match (raw.scaling, config.critic.kind) {
            (Scaling::Paper | Scaling::Authors, _) => Baseline::None,
            (Scaling::Normalised, CriticKind::Montecarlo | CriticKind::Network) => Baseline::Mean,
            (Scaling::Normalised, CriticKind::Returns) => Baseline::None,
            (Scaling::Normalised, _) => Baseline::Counterfactual,
        });
        config.check()?;
        Ok(config)
    }
}

/// Reads a section, naming the field that does not fit.
fn section<T: DeserializeOwned>(table: toml::Table, name: &str) -> Result<T> {
    serde_path_to_error::deserialize(toml::Value::Table(table)).map_err(|e| split_field(describe(name, e)))
}

/// `field: message` as an error; a message without a field is about the file as a whole.
fn split_field(text: String) -> Error {
    match text.split_once(": ") {
        Some((field, message)) if !field.contains(' ') => Error::config(field, message),
        _ => Error::config("config", text),
    }
}

/// Takes one key out of a section.
fn take<T: DeserializeOwned>(table: &mut toml::Table, section: &str, key: &str) -> Result<Option<T>> {
    table
        .remove(key)
        .map(|value| {
            serde_path_to_error::deserialize(value)
                .map_err(|e| split_field(describe(&format!("{section}.{key}"), e)))
        })
        .transpose()
}

fn read_world(mut table: toml::Table) -> Result<WorldConfig> {
    let kind: Option<String> = take(&mut table, "world", "kind")?;
    match kind.as_deref() {
        Some("line") => {
            let LineKeys { n, start, mixing } = section(table, "world")?;
            Ok(WorldConfig::Line { n, start, mixing })
        }
        Some("wireless") => Ok(WorldConfig::Wireless(section(table, "world")?)),
        Some("pistonball") => Ok(WorldConfig::Pistonball(section(table, "world")?)),
        Some("epidemic") => Ok(WorldConfig::Epidemic(section::<EpidemicSpec>(table, "world")?.completed())),
        Some("table") => {
            let TableKeys { file, allow_infeasible } = section(table, "world")?;
            Ok(WorldConfig::Table { file, allow_infeasible })
        }
        Some(kind) => Ok(WorldConfig::Own { kind: kind.into(), keys: table }),
        None => {
            let message = "is missing; allowed are `line`, `wireless`, `pistonball`, `epidemic`, `table`";
            Err(Error::config("world.kind", message))
        }
    }
}

fn read_utility(mut table: toml::Table, name: &str) -> Result<UtilityConfig> {
    if !table.contains_key("kind") {
        return Err(Error::config(format!("{name}.kind"), "is missing, e.g. `return` or `state_entropy`"));
    }
    Ok(UtilityConfig {
        channel: take(&mut table, name, "channel")?,
        file: take(&mut table, name, "file")?,
        spec: section(table, name)?,
    })
}

fn read_constraint(mut table: toml::Table, number: usize) -> Result<ConstraintConfig> {
    let section = format!("constraint.{number}");
    let name: Option<String> = take(&mut table, &section, "name")?;
    let at_least: Option<f64> = take(&mut table, &section, "at_least")?;
    let at_most: Option<f64> = take(&mut table, &section, "at_most")?;
    if at_least.is_some() == at_most.is_some() {
        return Err(Error::config(section, "give exactly one of `at_least` and `at_most`"));
    }
    for (key, threshold) in [("at_least", at_least), ("at_most", at_most)] {
        if let Some(threshold) = threshold.filter(|t| !t.is_finite()) {
            return Err(Error::config(
                format!("{section}.{key}"),
                format!("{threshold}; a finite number is needed"),
            ));
        }
    }
    let agents = take(&mut table, &section, "agents")?;
    let allow_infeasible: Option<bool> = take(&mut table, &section, "allow_infeasible")?;
    let shadow_scale: Option<f64> = take(&mut table, &section, "shadow_scale")?;
    if let Some(scale) = shadow_scale.filter(|scale| !scale.is_finite()) {
        return Err(Error::config(
            format!("{section}.shadow_scale"),
            format!("{scale}; a finite number is needed"),
        ));
    }
    let utility = read_utility(table, &section)?;
    Ok(ConstraintConfig {
        name: name.unwrap_or_else(|| utility.spec.kind.clone()),
        utility,
        at_least,
        at_most,
        agents,
        allow_infeasible: allow_infeasible.unwrap_or(false),
        shadow_scale,
    })
}

//! From TOML to a typed [`Config`], naming the field that does not fit.

use std::path::PathBuf;

use serde::Deserialize;

use super::{
    ActorConfig, Algorithm, CheckpointConfig, Config, ConstraintConfig, CriticConfig, CriticKind,
    DEFAULT_GAMMA, DualConfig, EvaluationConfig, GraphConfig, OutputConfig, PolicyConfig, UtilityConfig,
    WorldConfig,
};
use crate::Result;
use crate::algorithm::MappoRule;
use crate::base::document::{reject_nan, section, split_field};
use crate::policy::Baseline;
use crate::utility::problem::Scaling;
use crate::world::Registry;

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
    network: Option<toml::Table>,
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

impl Config {
    /// Reads, completes and checks what the user wrote; relative files are looked up in `base`.
    pub(super) fn from_table(source: toml::Table, base: PathBuf) -> Result<Self> {
        reject_nan(&toml::Value::Table(source.clone()), "").map_err(split_field)?;
        let raw: Raw = section(source.clone(), "")?;
        let constraint = raw
            .constraint
            .map(|list| {
                list.into_iter().enumerate().map(|(k, table)| ConstraintConfig::read(table, k)).collect()
            })
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
            world: WorldConfig::read(raw.world)?,
            network: raw.network.map(GraphConfig::read).transpose()?,
            objective: raw.objective.map(|table| UtilityConfig::read(table, "objective")).transpose()?,
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
        // A model file, or a world of one's own, may state it.
        if config.world.settings().is_some_and(|settings| settings.file().is_none()) {
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

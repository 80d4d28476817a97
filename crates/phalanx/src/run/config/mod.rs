//! The typed configuration of a run: what the user wrote, checked and completed.

mod difference;
mod set;

use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::agents::AgentsOutput;
use super::preset;
pub use difference::Difference;

use crate::algorithm::{AlgorithmChoice, DEVICE, DeviceChoice, MappoSettings, Plan};
use crate::base::document::{one_line, reject_nan, section, split_field};
use crate::base::error::ensure;
use crate::base::files;
use crate::base::key;
use crate::base::range::{
    CountTo, Discount, Iterations, Share, Steps, Trajectories, UpperEnd, optional, plain,
};
pub use crate::graph::GraphConfig;
use crate::graph::NETWORK_KIND;
use crate::learn::actor::{ActorSettings, MIXING};
use crate::learn::critic::{CriticSection, check_sharing};
use crate::learn::dual::DualSettings;
use crate::learn::shield::{SHIELD, SafetySettings};
use crate::policy::{self, Baseline, LinkSettings, PolicySection};
use crate::utility::problem::Scaling;
pub use crate::utility::{ConstraintConfig, UtilityConfig};
use crate::world::Registry;
pub use crate::world::WorldConfig;
use crate::{Error, Result};

/// The discount factor when neither the configuration nor a model file states one.
pub const DEFAULT_GAMMA: f64 = 0.99;

/// Everything that determines a run. Field names are the keys of the file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What the user wrote, before defaults: [`Config::with`] starts over from it.
    #[serde(skip)]
    source: toml::Table,
    /// Folder that relative files are looked up in.
    #[serde(skip)]
    base: PathBuf,
    /// Worlds beside the built-in ones.
    #[serde(skip)]
    pub(super) registry: Registry,
    /// `primal-dual`, `exact`, `penalty` or `mappo-l`.
    #[serde(default)]
    pub algorithm: AlgorithmChoice,
    /// T.
    #[serde(default = "number::<_, 400>", deserialize_with = "plain::<_, Iterations>")]
    pub iterations: usize,
    /// Seed of all randomness.
    #[serde(default = "number::<_, 1>")]
    pub seed: u64,
    /// `cpu`, `cuda` or `auto`: where training runs.
    #[serde(default, skip_serializing_if = "DeviceChoice::is_cpu")]
    pub device: DeviceChoice,
    /// γ; a `table` world's file may say it, else 0.99.
    #[serde(default, deserialize_with = "optional::<_, Discount>", skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// H.
    #[serde(default = "number::<_, 125>", deserialize_with = "plain::<_, Steps>")]
    pub horizon: usize,
    /// B.
    #[serde(default = "number::<_, 5>", deserialize_with = "plain::<_, Trajectories>")]
    pub batch: usize,
    /// κ: radius of policies.
    pub kappa: usize,
    /// κ_q: radius of truncated Q-functions.
    pub kappa_q: usize,
    /// κ_g: radius within which neighbours' constraints enter an agent's gradient, at most κ_q.
    pub kappa_g: usize,
    /// How occupancies and steps are scaled.
    #[serde(default)]
    pub scaling: Scaling,
    /// Where episodes end early: occupancies are sums over the steps that were lived, as in the authors'
    /// code, not laws over them. For `scaling = "authors"`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw_lives: bool,
    /// Share of the running occupancy that is kept at an iteration, before constraints and shadow rewards are
    /// worked out; 0 for the batch alone.
    #[serde(default, deserialize_with = "plain::<_, Share>")]
    pub occupancy_average: f64,
    /// The environment.
    pub world: WorldConfig,
    /// Who talks to whom, if not the world's own links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<GraphConfig>,
    /// f_i, if not the world's own.
    #[serde(default, deserialize_with = "read_objective", skip_serializing_if = "Option::is_none")]
    pub objective: Option<UtilityConfig>,
    /// g_ik, if not the world's own.
    #[serde(default, deserialize_with = "read_constraints", skip_serializing_if = "Option::is_none")]
    pub constraint: Option<Vec<ConstraintConfig>>,
    /// π.
    #[serde(default)]
    pub policy: PolicySection,
    /// Line 6.
    #[serde(default)]
    pub critic: CriticSection,
    /// Line 7.
    #[serde(default)]
    pub dual: DualSettings,
    /// Lines 8 and 9.
    #[serde(default)]
    pub actor: ActorSettings,
    /// What keeps agents safe while they learn.
    #[serde(default, skip_serializing_if = "SafetySettings::is_off")]
    pub safety: SafetySettings,
    /// What happens to messages between agents.
    #[serde(default, skip_serializing_if = "LinkSettings::is_off")]
    pub links: LinkSettings,
    /// MAPPO-Lagrangian, in place of critic, dual and actor.
    #[serde(default)]
    pub mappo: MappoSettings,
    /// The closing evaluation.
    #[serde(default)]
    pub evaluation: EvaluationConfig,
    /// How often the state is saved.
    #[serde(default)]
    pub checkpoint: CheckpointConfig,
    /// What is written at the end.
    #[serde(default)]
    pub output: OutputConfig,
}

/// A default that stands beside its field.
fn number<T: From<u16>, const NUMBER: u16>() -> T {
    NUMBER.into()
}

/// `[objective]`, which names its place in errors itself.
fn read_objective<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<UtilityConfig>, D::Error> {
    let table = toml::Table::deserialize(deserializer)?;
    UtilityConfig::read(table, "objective").map(Some).map_err(D::Error::custom)
}

/// `[[constraint]]`, as well.
fn read_constraints<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<Vec<ConstraintConfig>>, D::Error> {
    let list = Vec::<toml::Table>::deserialize(deserializer)?.into_iter().enumerate();
    let list = list.map(|(k, table)| ConstraintConfig::read(table, k));
    list.collect::<Result<_>>().map(Some).map_err(D::Error::custom)
}

/// `[checkpoint]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckpointConfig {
    /// Least time between checkpoints; more where writing one takes more than a fiftieth of it. 0 for one
    /// after every iteration, `inf` for none.
    pub seconds: UpperEnd,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        CheckpointConfig { seconds: UpperEnd(0.25) }
    }
}

/// `[output]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputConfig {
    /// Which agents are listed: all of them, or in a large graph the worst.
    pub agents: AgentsOutput,
}

/// `[evaluation]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluationConfig {
    /// Fresh episodes of the closing evaluation.
    pub episodes: Trajectories,
    /// Fewer episodes are run where these would exceed so many agent-steps.
    pub max_agent_steps: u64,
}

impl Default for EvaluationConfig {
    fn default() -> Self {
        EvaluationConfig { episodes: CountTo(400), max_agent_steps: 200_000_000 }
    }
}

impl Config {
    /// Reads, completes and checks what the user wrote; relative files are looked up in `base`.
    fn from_table(source: toml::Table, base: PathBuf) -> Result<Self> {
        reject_nan(&toml::Value::Table(source.clone()), "").map_err(split_field)?;
        let mut table = source.clone();
        // Radii that are not given are those of the one before.
        let mut radius = toml::Value::Integer(1);
        for key in ["kappa", "kappa_q", "kappa_g"] {
            radius = table.entry(key).or_insert(radius).clone();
        }
        let config: Config = section(table, "")?;
        let mut config = Config { source, base, ..config };
        // A model file, or a world that users add, may state it.
        if config.world.settings().is_some_and(|settings| settings.file().is_none()) {
            config.gamma.get_or_insert(DEFAULT_GAMMA);
        }
        config.actor.baseline.get_or_insert(match config.scaling {
            Scaling::Paper | Scaling::Authors => Baseline::None,
            Scaling::Normalised => config.critic.baseline(),
        });
        config.check()?;
        Ok(config)
    }

    /// Whether the settings go together; each by itself was checked when it was read.
    fn check(&self) -> Result<()> {
        self.dual.check()?;
        self.links.check()?;
        let Config { kappa_q, kappa_g, .. } = self;
        ensure(kappa_g <= kappa_q, || {
            Error::config("kappa_g", format!("{kappa_g} is above kappa_q = {kappa_q}"))
        })?;
        let is_exact = self.algorithm.is_exact();
        ensure(!is_exact || kappa_g == kappa_q, || key::sampled_only("kappa_g"))?;
        ensure(!is_exact || self.occupancy_average == 0.0, || key::sampled_only("occupancy_average"))?;
        ensure(
            self.device.is_cpu() || self.device == DeviceChoice::Auto || self.algorithm.is_local(),
            || {
                Error::config(
                    DEVICE,
                    "\"cuda\" is for the algorithms `primal-dual` and `penalty`; use \"cpu\"",
                )
            },
        )?;
        ensure(self.safety.is_off() || self.algorithm.is_local(), || key::sampled_only(SHIELD))?;
        ensure(kappa_g == kappa_q || !self.critic.is_merged(), || {
            Error::config("kappa_g", "must be kappa_q with critic.merged: one neural network has both")
        })?;
        self.critic.check(self.batch, is_exact)?;
        check_sharing(&self.critic, self.policy.is_shared())?;
        let enumerates = is_exact || self.critic.enumerates();
        ensure(!enumerates || self.policy.tables().is_some(), policy::not_tables)?;
        self.actor.check(is_exact, &self.policy, &self.critic, &self.dual)?;
        ensure(*self.actor.mixing == 0.0 || self.scaling == Scaling::Authors, || {
            Error::config(MIXING, "is for scaling = \"authors\", where actors use a mean over neighbourhoods")
        })?;
        ensure(!self.raw_lives || self.scaling == Scaling::Authors, || {
            Error::config("raw_lives", "is for scaling = \"authors\"; \"paper\" never rescales")
        })?;
        self.policy.check()?;
        self.mappo.widths().check("mappo")?;
        self.algorithm.check(&self.plan())
    }

    /// What the algorithm is made from.
    pub(super) fn plan(&self) -> Plan {
        Plan {
            iterations: self.iterations,
            seed: self.seed,
            device: self.device,
            horizon: self.horizon,
            batch: self.batch,
            kappa: self.kappa,
            kappa_q: self.kappa_q,
            kappa_g: self.kappa_g,
            occupancy_average: self.occupancy_average,
            policy: self.policy.clone(),
            critic: self.critic.clone(),
            dual: self.dual,
            actor: self.actor.clone(),
            safety: self.safety,
            links: self.links.clone(),
            mappo: self.mappo.clone(),
        }
    }

    /// A built-in preset.
    pub fn preset(name: &str) -> Result<Self> {
        let text = preset::text(name).ok_or_else(|| {
            let names: Vec<&str> = preset::names().collect();
            Error::config("preset", format!("`{name}` is neither a preset ({}) nor a file", names.join(", ")))
        })?;
        Config::parse(text, Path::new(name), Path::new("."))
    }

    /// The configuration of the run in a folder.
    pub fn of_run(run: &Path) -> Result<Self> {
        let path = run.join("config.toml");
        ensure(path.is_file(), || Error::file(run, "is not a run: it has no config.toml"))?;
        Config::read(&path)
    }

    /// A TOML file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = files::read_text(path)?;
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Config::parse(&text, path, folder)
    }

    /// A preset or a file, whichever `spec` names.
    pub fn open(spec: &str) -> Result<Self> {
        if preset::text(spec).is_none() && (Path::new(spec).exists() || spec.ends_with(".toml")) {
            return Config::read(Path::new(spec));
        }
        Config::preset(spec)
    }

    /// TOML at hand; relative files in it are looked up in `folder`.
    pub fn from_toml(text: &str, folder: &Path) -> Result<Self> {
        Config::parse(text, Path::new("config"), folder)
    }

    fn parse(text: &str, path: &Path, base: &Path) -> Result<Self> {
        let source = toml::from_str(text)
            .map_err(|e| Error::file(path, format!("cannot be parsed: {}", one_line(&e.to_string()))))?;
        Config::from_table(source, base.to_path_buf())
    }

    /// The same with one more setting, named as for `--set` (`constraint.0.at_least`). A value that is not
    /// TOML is a string; a relative `file` is looked up in the current folder.
    pub fn with(&self, key: &str, value: &str) -> Result<Self> {
        self.with_all([(key, value)])
    }

    /// The same with another number of iterations.
    pub fn with_iterations(&self, iterations: usize) -> Result<Self> {
        self.with("iterations", &iterations.to_string())
    }

    /// As [`Config::with`], for settings that only make sense together.
    pub fn with_all<'a>(&self, settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let mut source = self.source.clone();
        // Another kind of graph comes first: it has keys of its own, and takes away those of the one
        // before.
        let (kinds, others): (Vec<_>, Vec<_>) =
            settings.into_iter().partition(|(key, _)| *key == NETWORK_KIND);
        for (key, value) in kinds.into_iter().chain(others) {
            set::set(&mut source, key, value)?;
        }
        Ok(Config::from_table(source, self.base.clone())?.with_registry(self.registry.clone()))
    }

    /// The same with worlds beside the built-in ones.
    pub fn with_registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Worlds beside the built-in ones.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// What was written, without comments and without defaults: the same where later versions have more keys.
    pub fn written(&self) -> String {
        self.source.to_string()
    }

    /// The fully resolved configuration as TOML.
    pub fn to_toml(&self) -> String {
        let mut resolved = self.clone();
        let absolute = |file: &mut PathBuf| *file = self.locate(file);
        let locate = |file: &Path| self.locate(file);
        resolved.world = resolved.world.located(&locate);
        resolved.network = resolved.network.map(|network| network.located(&locate));
        let utilities = resolved.constraint.iter_mut().flatten().map(|c| &mut c.utility);
        let files = utilities.chain(&mut resolved.objective).filter_map(|utility| utility.file.as_mut());
        files.for_each(absolute);
        let resolved: &dyn erased_serde::Serialize = &resolved;
        toml::to_string(resolved).unwrap_or_else(|e| format!("# cannot be written: {e}\n"))
    }

    /// Every file that the configuration names, built-in ones apart.
    pub fn input_files(&self) -> Vec<PathBuf> {
        let utilities = self.constraint.iter().flatten().map(|c| &c.utility).chain(&self.objective);
        let utilities = utilities.filter_map(|utility| utility.file.as_deref());
        let network = self.network.as_ref().and_then(|network| network.file());
        let world = self.world.files().into_iter().map(|(_, file)| file);
        let files = world.chain(utilities).chain(network);
        files.filter(|file| preset::builtin(file).is_none()).map(|file| self.locate(file)).collect()
    }

    /// Where a file named in the configuration is; names of built-in files stay as they are.
    pub fn locate(&self, file: &Path) -> PathBuf {
        if preset::builtin(file).is_some() {
            return file.to_path_buf();
        }
        let joined = self.base.join(file);
        std::path::absolute(&joined).unwrap_or(joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::dual::DualKind;

    const SMALL: &str = "[world]\nkind = \"line\"\nn = 4\n[objective]\nkind = \"return\"\n\
                         [[constraint]]\nkind = \"state_entropy\"\nat_least = 0.5\n";

    fn small() -> Config {
        Config::parse(SMALL, Path::new("small.toml"), Path::new(".")).unwrap()
    }

    #[test]
    fn settings_reach_every_level() {
        let config = small()
            .with_all([
                ("constraint.0.at_least", "0.25"),
                ("dual.kind", "proximal"),
                ("kappa", "2"),
                ("policy.box", "[-1, 1]"),
                ("policy.box.0", "-3.5"),
            ])
            .unwrap();
        let constraint = &config.constraint.as_ref().unwrap()[0];
        assert_eq!(
            (constraint.at_least, config.dual.kind, config.kappa_q),
            (Some(0.25), DualKind::Proximal, 2)
        );
        assert_eq!(config.policy.theta_box(), Some([-3.5, 1.0]));
    }

    #[test]
    fn resolved_configuration_is_itself_one() {
        let config = small().with("critic.kind", "montecarlo").unwrap();
        let text = config.to_toml();
        let again = Config::parse(&text, Path::new("again.toml"), Path::new(".")).unwrap();
        assert_eq!(again.to_toml(), text);
        assert_eq!(again.actor.baseline, Some(Baseline::Mean));
    }

    #[test]
    fn mistakes_are_named() {
        for (key, value, wanted) in [
            ("kapa", "1", "unknown field `kapa`"),
            ("kappa", "-1", "kappa: invalid value: integer `-1`"),
            ("gamma", "1.0", "gamma: 1; a discount factor"),
            ("gamma", "nan", "gamma: nan"),
            ("world.n", "\"ten\"", "world.n: invalid type: string \"ten\""),
            ("world.nn", "3", "world.nn: unknown field `nn`"),
            ("dual.mu_max", "-1", "dual.mu_max"),
            ("dual.kind", "magic", "dual.kind: unknown variant `magic`"),
            ("constraint.3.at_least", "1", "there is no entry 3"),
            ("constraint.0.at_most", "1", "exactly one of"),
            ("constraint.0.at_lest", "1", "constraint.0.at_lest: unknown field `at_lest`"),
            ("iterations", "0", "iterations: 0"),
            ("critic.h", "200", "the first step is 2"),
            ("actor.schedule.kind", "linear", "actor.schedule"),
        ] {
            let message = small().with(key, value).unwrap_err().to_string();
            assert!(message.contains(wanted), "{key}={value}: {message:?} should contain {wanted:?}");
            assert!(!message.contains('\n'), "{message:?}");
        }
    }
}

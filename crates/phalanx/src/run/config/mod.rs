//! The typed configuration of a run: what the user wrote, checked and completed.

mod check;
mod difference;
mod read;
mod set;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::agents::AgentsOutput;
use super::preset;
pub(super) use check::check_gamma;
pub use difference::Difference;

use crate::algorithm::MappoRule;
use crate::base::document::one_line;
use crate::base::schedule::Schedule;
use crate::exact::Truncation;
pub use crate::graph::GraphConfig;
use crate::learn::critic::CriticFeatures;
use crate::learn::dual::DualKind;
use crate::learn::optimizer::OptimizerKind;
use crate::policy::Baseline;
use crate::policy::{Parameterisation, PolicyFeatures};
use crate::utility::problem::Scaling;
pub use crate::utility::{ConstraintConfig, UtilityConfig};
use crate::world::Registry;
pub use crate::world::WorldConfig;
use crate::{Error, Result};

/// The discount factor when neither the configuration nor a model file states one.
pub const DEFAULT_GAMMA: f64 = 0.99;

/// Everything that determines a run. Field names are the keys of the file.
#[derive(Debug, Clone, Serialize)]
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
    pub algorithm: Algorithm,
    /// T.
    pub iterations: usize,
    /// Seed of all randomness.
    pub seed: u64,
    /// γ; a `table` world's file may say it, else 0.99.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// H.
    pub horizon: usize,
    /// B.
    pub batch: usize,
    /// κ: radius of policies.
    pub kappa: usize,
    /// κ_q: radius of truncated Q-functions.
    pub kappa_q: usize,
    /// κ_g: radius within which neighbours' constraints enter an agent's gradient, at most κ_q.
    pub kappa_g: usize,
    /// How occupancies and steps are scaled.
    pub scaling: Scaling,
    /// Share of the running occupancy that is kept at an iteration, before constraints and shadow rewards are
    /// worked out; 0 for the batch alone.
    pub occupancy_average: f64,
    /// The environment.
    pub world: WorldConfig,
    /// Who talks to whom, if not the world's own links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<GraphConfig>,
    /// f_i, if not the world's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objective: Option<UtilityConfig>,
    /// g_ik, if not the world's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<Vec<ConstraintConfig>>,
    /// π.
    pub policy: PolicyConfig,
    /// Line 6.
    pub critic: CriticConfig,
    /// Line 7.
    pub dual: DualConfig,
    /// Lines 8 and 9.
    pub actor: ActorConfig,
    /// MAPPO-Lagrangian, in place of critic, dual and actor.
    pub mappo: MappoRule,
    /// The closing evaluation.
    pub evaluation: EvaluationConfig,
    /// How often the state is saved.
    pub checkpoint: CheckpointConfig,
    /// What is written at the end.
    pub output: OutputConfig,
}

/// Which algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Algorithm 1 of the paper.
    #[default]
    PrimalDual,
    /// The same without sampling: the exact setting.
    Exact,
    /// The same with multipliers that stay at `dual.mu_0`: a fixed penalty on violated constraints, or with 0 and
    /// `actor.entropy` a fixed entropy penalty.
    Penalty,
    /// MAPPO-Lagrangian, to compare with.
    MappoL,
}

/// `[policy]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PolicyConfig {
    /// `softmax` or `direct` (tables), `linear` or `network`.
    pub kind: PolicyKind,
    /// Standard deviation of the initial parameters around uniform (tables, linear).
    pub init_std: f64,
    /// Θ_i as a box `[low, high]`, for `softmax`.
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    pub theta_box: Option<[f64; 2]>,
    /// `pair`, `additive` or `own` (linear).
    pub features: PolicyFeatures,
    /// Add the features that the world knows, if it does (linear).
    pub world_features: bool,
    /// Dimension of the embedding of a neighbour's state (network).
    pub embedding: usize,
    /// Width of the layer that each row of a world's own view goes through, before rows are put together (network).
    pub row_hidden: usize,
    /// Widths of the hidden layers (network).
    pub hidden: Vec<usize>,
    /// Size of the last layer's initial weights: a small one starts near uniform (network).
    pub output_gain: f64,
}

/// Which policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PolicyKind {
    /// A table of logits.
    Softmax,
    /// A table of probabilities.
    Direct,
    /// Logits that are sums over neighbours.
    Linear,
    /// A neural network an agent.
    Network,
}

impl PolicyKind {
    /// How θ makes π, if it is a table.
    pub fn parameterisation(self) -> Option<Parameterisation> {
        match self {
            PolicyKind::Softmax => Some(Parameterisation::Softmax),
            PolicyKind::Direct => Some(Parameterisation::Direct),
            PolicyKind::Linear | PolicyKind::Network => None,
        }
    }
}

impl Default for PolicyConfig {
    fn default() -> Self {
        PolicyConfig {
            kind: PolicyKind::Softmax,
            init_std: 0.0,
            theta_box: None,
            features: PolicyFeatures::Pair,
            world_features: true,
            embedding: 4,
            row_hidden: 32,
            hidden: vec![32],
            output_gain: 0.01,
        }
    }
}

/// Which critic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CriticKind {
    /// Algorithm 2.
    Td,
    /// Its fixed point on the samples, solved at once.
    Lstd,
    /// Sampled returns.
    Montecarlo,
    /// Sums of features over neighbours.
    Linear,
    /// A neural network an agent and utility.
    Network,
    /// Sampled λ-returns minus a learnt baseline.
    Returns,
    /// The truth, by enumeration.
    Exact,
}

/// How a linear critic learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CriticSolver {
    /// The fixed point on the samples.
    Lstd,
    /// One pass of temporal differences.
    Td,
}

/// Which samples a linear or network critic learns from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CriticOn {
    /// The batch.
    Batch,
    /// K transitions of their own.
    Chain,
}

/// A network critic's loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CriticLoss {
    /// δ².
    Mse,
    /// ½·δ² within 1, linear beyond.
    Huber,
}

/// Where TD starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CriticStart {
    /// From the last iteration's tables.
    Warm,
    /// From zero, as Algorithm 2 says.
    Cold,
}

/// TD's step sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CriticStep {
    /// h/(k + k1).
    Harmonic,
    /// `eta_q` throughout.
    Constant,
}

/// `[critic]`. Keys that the chosen kind does not use have no effect, so that kinds can be swapped with `--set`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CriticConfig {
    /// `td` or `lstd` (tables), `montecarlo`, `returns`, `linear`, `network` or `exact`.
    pub kind: CriticKind,
    /// K: TD updates, transitions of LSTD, linear and network critics, or steps that Monte-Carlo returns look beyond
    /// the horizon.
    pub steps: usize,
    /// `warm` or `cold` (TD on tables).
    pub start: CriticStart,
    /// `harmonic` or `constant` (TD, also linear).
    pub step: CriticStep,
    /// h of the harmonic rule.
    pub h: f64,
    /// k1 of the harmonic rule.
    pub k1: f64,
    /// The constant rule's step.
    pub eta_q: f64,
    /// LSTD's ridge (also linear).
    pub ridge: f64,
    /// `chain` (K transitions of their own) or `batch` (linear, network).
    pub on: CriticOn,
    /// Transitions after which the K start over from ρ₀; 0 for one chain of K (linear, network).
    pub episode: usize,
    /// `lstd` or `td` (linear).
    pub solver: CriticSolver,
    /// Share of the last iteration's equations that LSTD keeps (linear).
    pub average: f64,
    /// `own`, `additive` or `pair` (linear).
    pub features: CriticFeatures,
    /// Add the features that the world knows, if it does (linear).
    pub world_features: bool,
    /// λ of sampled returns: 1 for rewards alone, less to trust the learnt baseline (returns).
    pub lambda: f64,
    /// Dimension of the embeddings of states and actions (network, returns).
    pub embedding: usize,
    /// Width of the layer that each row of a world's own view goes through (network, returns).
    pub row_hidden: usize,
    /// Widths of the hidden layers (network, returns).
    pub hidden: Vec<usize>,
    /// `adam` or `sgd` (network, returns).
    pub optimizer: OptimizerKind,
    /// Step size of the optimiser (network, returns).
    pub learning_rate: f64,
    /// Transitions of a gradient step (network, returns); 0 for one at a time, in order (network).
    pub minibatch: usize,
    /// Passes over the K transitions (network, with minibatches) or the batch (returns).
    pub passes: usize,
    /// `mse` or `huber` (network, with minibatches; returns).
    pub loss: CriticLoss,
    /// Share of itself that the target network keeps at each step; 0 for no target (network).
    pub polyak: f64,
    /// Largest norm of a gradient; `inf` for any (network, with minibatches; returns).
    pub clip: f64,
    /// Two critics, of which the smaller value counts; without minibatches each learns from its own (network).
    pub twin: bool,
    /// One critic for f + Σ μ·g instead of one for each utility (network).
    pub merged: bool,
    /// `fixed`, `averaged`, `td` or `none`: which truncated Q the exact critic and the exact algorithm use.
    pub truncation: Truncation,
}

impl Default for CriticConfig {
    fn default() -> Self {
        CriticConfig {
            kind: CriticKind::Td,
            steps: 500,
            start: CriticStart::Warm,
            step: CriticStep::Harmonic,
            h: 50.0,
            k1: 100.0,
            eta_q: 0.3,
            ridge: 1e-6,
            on: CriticOn::Chain,
            episode: 0,
            solver: CriticSolver::Lstd,
            average: 0.0,
            features: CriticFeatures::Pair,
            world_features: true,
            lambda: 0.95,
            embedding: 4,
            row_hidden: 32,
            hidden: vec![32],
            optimizer: OptimizerKind::Adam,
            learning_rate: 1e-3,
            minibatch: 64,
            passes: 1,
            loss: CriticLoss::Mse,
            polyak: 0.95,
            clip: f64::INFINITY,
            twin: false,
            merged: false,
            truncation: Truncation::default(),
        }
    }
}

/// `[dual]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DualConfig {
    /// `proximal`, `descent` or `pi`.
    pub kind: DualKind,
    /// η_μ.
    pub eta_mu: f64,
    /// Integral gain of `pi`.
    pub eta_integral: f64,
    /// U = [0, mu_max]; `inf` for none.
    pub mu_max: f64,
    /// Start of every multiplier.
    pub mu_0: f64,
    /// Centre of the `proximal` term.
    pub centre: f64,
    /// Slack that multipliers aim at: every g ≥ margin instead of g ≥ 0. Violations are reported without it.
    pub margin: f64,
    /// Change of η_μ (and the integral gain) over the iterations.
    pub schedule: Schedule,
}

impl Default for DualConfig {
    fn default() -> Self {
        DualConfig {
            kind: DualKind::Pi,
            eta_mu: 10.0,
            eta_integral: 0.5,
            mu_max: 50.0,
            mu_0: 0.0,
            centre: 0.0,
            margin: 0.0,
            schedule: Schedule::default(),
        }
    }
}

/// Where η_θ comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepRuleKind {
    /// `eta_theta`.
    Constant,
    /// 1/(L_θθ + 4·L_θμ²·η_μ) with the constants that the paper bounds.
    Theorem,
    /// The same with constants estimated around the initial policy.
    Local,
}

/// `[actor]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ActorConfig {
    /// `adam` or `sgd`.
    pub optimizer: OptimizerKind,
    /// η_θ.
    pub eta_theta: f64,
    /// `constant` (η_θ as given), `theorem` or `local` (from smoothness constants; exact algorithm).
    pub rule: StepRuleKind,
    /// `none`, `mean` or `counterfactual`. Default: what the scaling and the critic allow.
    pub baseline: Option<Baseline>,
    /// Sum over all actions with their probabilities instead of using the one taken.
    pub all_actions: bool,
    /// Weight of the entropy of π(·|x), which is added to what is maximised.
    pub entropy: f64,
    /// Largest norm of an agent's gradient; `inf` for any.
    pub clip: f64,
    /// Step k counts γ^k in the gradient, as the estimator says; `false`: every step that was lived counts alike.
    pub discount: bool,
    /// Divide an agent's advantages by their standard deviation over the batch.
    pub normalise: bool,
    /// Change of η_θ over the iterations.
    pub schedule: Schedule,
    /// Change of the entropy's weight over the iterations.
    pub entropy_schedule: Schedule,
}

impl Default for ActorConfig {
    fn default() -> Self {
        ActorConfig {
            optimizer: OptimizerKind::Adam,
            eta_theta: 0.02,
            rule: StepRuleKind::Constant,
            baseline: None,
            all_actions: false,
            entropy: 0.0,
            clip: f64::INFINITY,
            discount: true,
            normalise: false,
            schedule: Schedule::default(),
            entropy_schedule: Schedule::default(),
        }
    }
}

/// `[checkpoint]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CheckpointConfig {
    /// Least time between checkpoints; more where writing one takes more than a fiftieth of it. `inf` for none.
    pub seconds: f64,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        CheckpointConfig { seconds: 0.25 }
    }
}

/// `[output]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OutputConfig {
    /// Which agents are listed: all of them, or in a large network the worst.
    pub agents: AgentsOutput,
}

/// `[evaluation]`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EvaluationConfig {
    /// Fresh episodes of the closing evaluation.
    pub episodes: usize,
    /// Fewer episodes are run where these would exceed so many agent-steps.
    pub max_agent_steps: u64,
}

impl Default for EvaluationConfig {
    fn default() -> Self {
        EvaluationConfig { episodes: 400, max_agent_steps: 200_000_000 }
    }
}

impl Config {
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
        if !path.is_file() {
            return Err(Error::file(run, "is not a run: it has no config.toml"));
        }
        Config::read(&path)
    }

    /// A TOML file.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).map_err(|e| Error::file(path, format!("cannot be read: {e}")))?;
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

    /// The same with one more setting, named as for `--set` (`constraint.0.at_least`). A value that is not TOML is a
    /// string; a relative `file` is looked up in the current folder.
    pub fn with(&self, key: &str, value: &str) -> Result<Self> {
        self.with_all([(key, value)])
    }

    /// As [`Config::with`], for settings that only make sense together.
    pub fn with_all<'a>(&self, settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let mut source = self.source.clone();
        for (key, value) in settings {
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
        toml::to_string(&resolved).unwrap_or_else(|e| format!("# cannot be written: {e}\n"))
    }

    /// Every file that the configuration names, built-in ones apart.
    pub fn input_files(&self) -> Vec<PathBuf> {
        let utilities = self.constraint.iter().flatten().map(|c| &c.utility).chain(&self.objective);
        let utilities = utilities.filter_map(|utility| utility.file.as_deref());
        let network = self.network.as_ref().and_then(|network| network.file());
        let files = self.world.file().into_iter().chain(utilities).chain(network);
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
        assert_eq!(config.policy.theta_box, Some([-3.5, 1.0]));
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

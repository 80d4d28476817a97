//! The experiments of the paper by their IDs; `experiments.toml` lists them with what they train.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::context::ExperimentContext;
use super::setting::{LITERAL, Setting};
use super::visual::{self, Shown};
use super::{baseline_table, cost, frontier, rate, samples, trained, truncation};

/// An environment, and who is trained on it in all its panels.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Environment {
    id: String,
    /// The recommended settings.
    ours: Learner,
    /// What the published code does.
    authors: Option<Learner>,
    /// When the paper's runs ended.
    published_iterations: usize,
}

/// A preset with settings on top of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Learner {
    preset: String,
    #[serde(default)]
    set: Vec<String>,
    /// The most seeds that are run.
    seeds: Option<usize>,
}

/// An experiment.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name on the command line, and its folder's.
    pub id: String,
    /// What it is, in a line.
    pub title: String,
    /// Where the paper has it.
    pub label: String,
    /// Environment of settings that name no preset.
    #[serde(default)]
    environment: String,
    /// Preset of settings that name none, where there is no environment.
    #[serde(default)]
    preset: String,
    /// What the panel holds fixed, on top of that.
    #[serde(default)]
    set: Vec<String>,
    /// The most seeds that are run; all that are asked for by default.
    seeds: Option<usize>,
    /// Experiment whose methods with published figures are run under each of the `bounds`.
    #[serde(default)]
    methods_of: String,
    /// Of the first constraint.
    #[serde(default)]
    pub bounds: Vec<f64>,
    /// When the paper's runs ended; that of the environment, if nothing is said.
    pub published_iterations: Option<usize>,
    /// What is trained; empty if it is computed.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// Policies of others that it shows.
    #[serde(default)]
    shown: Vec<Shown>,
}

/// All of them, in the order of the paper.
pub static ALL: LazyLock<Vec<Experiment>> = LazyLock::new(|| {
    let Catalogue { environments, experiments } = catalogue();
    let all = experiments.into_iter().map(|experiment| experiment.completed(&environments));
    let mut all: Vec<Experiment> = all.collect();
    for k in 0..all.len() {
        let settings = under_bounds(&all[k], &all);
        all[k].settings.extend(settings);
    }
    all
});

/// The settings of an experiment that runs another one's methods under several bounds.
fn under_bounds(experiment: &Experiment, all: &[Experiment]) -> Vec<Setting> {
    let source = all.iter().find(|other| other.id == experiment.methods_of);
    let methods =
        source.into_iter().flat_map(|source| &source.settings).filter(|it| it.published().is_some());
    let under = |method: &Setting| -> Vec<Setting> {
        experiment.bounds.iter().map(|bound| method.with_bound(*bound, experiment.seeds)).collect()
    };
    methods.flat_map(under).collect()
}

/// `experiments.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    #[serde(rename = "environment")]
    environments: Vec<Environment>,
    #[serde(rename = "experiment")]
    experiments: Vec<Experiment>,
}

fn catalogue() -> Catalogue {
    toml::from_str(include_str!("experiments.toml")).expect("a test reads this file")
}

/// The entries called `name` of a file that is part of the program.
pub fn listed<T: DeserializeOwned>(text: &str, name: &str) -> Vec<T> {
    let mut file: BTreeMap<String, Vec<T>> = toml::from_str(text).expect("a test reads this file");
    file.remove(name).unwrap_or_default()
}

impl Experiment {
    /// With everything that a setting leaves to its environment or to the experiment, and with the authors'
    /// runs.
    fn completed(mut self, environments: &[Environment]) -> Self {
        let environment = environments.iter().find(|environment| environment.id == self.environment);
        let mut settings = Vec::new();
        for setting in std::mem::take(&mut self.settings) {
            let twin = setting.authors.then(|| setting.clone().of_authors());
            for mut setting in std::iter::once(setting).chain(twin) {
                let learner = environment.filter(|_| setting.preset.is_empty()).and_then(|environment| {
                    if setting.method == LITERAL {
                        environment.authors.as_ref()
                    } else {
                        Some(&environment.ours)
                    }
                });
                let below = learner.map_or(&[][..], |learner| &learner.set);
                setting.set.splice(..0, below.iter().chain(&self.set).cloned());
                setting.seeds = setting.seeds.or(self.seeds).or(learner.and_then(|learner| learner.seeds));
                if setting.preset.is_empty() {
                    setting.preset = learner.map_or(&self.preset, |learner| &learner.preset).clone();
                }
                settings.push(setting);
            }
        }
        self.settings = settings;
        let of_environment = environment.map(|environment| environment.published_iterations);
        self.published_iterations = self.published_iterations.or(of_environment);
        self
    }

    /// Its settings by the figure that shows their curves: what the published code does has one of its own.
    pub fn figures(&self) -> BTreeMap<&'static str, Vec<&Setting>> {
        let mut figures: BTreeMap<&str, Vec<&Setting>> = BTreeMap::new();
        for setting in self.settings.iter().filter(|_| self.bounds.is_empty()) {
            let name = if setting.method == LITERAL { "curves-authors" } else { "curves" };
            figures.entry(name).or_default().push(setting);
        }
        figures
    }

    /// What it computes: a checksum of its part of the program, of what that reads, and of the settings that
    /// it shows. None of what is trained alone: those rows name the commit of every run.
    pub fn definition(&self) -> Option<String> {
        let mut parts: Vec<String> = match self.id.as_str() {
            "table" => vec![program(include_str!("baseline_table.rs"))],
            "rate" => vec![program(include_str!("rate.rs")), include_str!("rate.toml").into()],
            "truncation" => {
                vec![program(include_str!("truncation.rs")), program(include_str!("models.rs"))]
            }
            "samples" => vec![program(include_str!("samples.rs")), include_str!("samples.toml").into()],
            "cost" => vec![program(include_str!("cost.rs")), include_str!("cost.toml").into()],
            _ if !self.shown.is_empty() => vec![program(include_str!("visual.rs"))],
            _ if !self.bounds.is_empty() => {
                vec![program(include_str!("frontier.rs")), format!("{:?}", self.bounds)]
            }
            _ => return None,
        };
        parts.extend(self.shown.iter().map(|shown| format!("{shown:?} {:?}", shown.setting().ok())));
        Some(format!("{:08x}", crc32c::crc32c(parts.join("\n").as_bytes())))
    }

    /// Makes it, or what is missing of it. What is computed writes `results.csv` and figures itself.
    pub fn make(&'static self, context: &ExperimentContext<'_>) -> anyhow::Result<()> {
        match self.id.as_str() {
            "table" => baseline_table::make(context),
            "rate" => rate::make(context),
            "truncation" => truncation::make(context),
            "samples" => samples::make(context),
            "cost" => cost::make(context),
            _ if !self.shown.is_empty() => visual::make(context, &self.shown),
            _ if !self.bounds.is_empty() => frontier::make(context, self),
            _ => trained::make(context, self),
        }
    }
}

/// A part of the program without its tests, comments and spaces, which change no result.
fn program(source: &str) -> String {
    let program = source.split("#[cfg(test)]").next().unwrap_or_default();
    let lines = program.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    lines.flat_map(|line| line.split_whitespace()).collect()
}

/// The experiment called `id`.
pub fn find(id: &str) -> Option<&'static Experiment> {
    ALL.iter().find(|experiment| experiment.id == id)
}

/// The setting of an experiment that a method is trained with and that is called so.
pub fn setting(id: &str, method: &str, name: &str) -> anyhow::Result<Setting> {
    let settings = find(id).into_iter().flat_map(|experiment| &experiment.settings);
    let found = settings.into_iter().find(|setting| setting.method == method && setting.name == name);
    found.cloned().ok_or_else(|| anyhow::anyhow!("{id} has no setting {name}"))
}

#[cfg(test)]
mod tests {
    use phalanx::run::Registry;

    use super::*;
    use crate::context::Length;
    use crate::setting::{OURS, key_and_value};

    #[test]
    fn ours_is_one_setting_per_environment() {
        for environment in &catalogue().environments {
            let panels = ALL.iter().filter(|experiment| experiment.environment == environment.id);
            let Learner { preset, set, .. } = &environment.ours;
            for setting in panels.flat_map(|experiment| &experiment.settings).filter(|it| it.method == OURS) {
                assert!(setting.preset == *preset && setting.set.starts_with(set), "{setting:?}");
            }
        }
    }

    #[test]
    fn compared_methods_are_set_as_their_search_found() {
        let best = include_str!("report/tuning.md").lines().filter(|line| line.ends_with("| yes |"));
        let rows: Vec<Vec<&str>> =
            best.map(|line| line.trim_matches(['|', ' ']).split('|').map(str::trim).collect()).collect();
        assert_eq!(rows.len(), 8);
        for row in rows {
            let [environment, method, found, ..] = row[..] else { panic!("{row:?}") };
            let pairs = found.split(", ").filter_map(|pair| pair.rsplit_once(' '));
            let mut searched: Vec<String> = match found {
                "the preset" => Vec::new(),
                _ => pairs.map(|(key, value)| format!("{key}={value}")).collect(),
            };
            let Setting { set, .. } = setting(&format!("baselines-{environment}"), method, "").unwrap();
            // What is given to all, or says which method it is.
            let given = ["constraint", "iterations", "batch", "dual.kind", "mappo.scope", "mappo.actor_sees"];
            let is_searched = |set: &String| !given.contains(&key_and_value(set).0);
            let mut own: Vec<String> = set.into_iter().filter(is_searched).collect();
            searched.sort();
            own.sort();
            assert_eq!(searched, own, "{environment}: {method}");
        }
    }

    #[test]
    fn what_is_computed_has_a_definition_of_its_own() {
        let computed = ALL.iter().filter(|experiment| experiment.settings.is_empty());
        let all: Vec<String> = computed.map(|experiment| experiment.definition().unwrap()).collect();
        assert!(all.iter().enumerate().all(|(k, one)| !all[..k].contains(one)), "{all:?}");
        let is_trained_alone = |it: &&Experiment| !it.settings.is_empty() && it.bounds.is_empty();
        assert!(ALL.iter().filter(is_trained_alone).all(|it| it.definition().is_none()));
        assert!(ALL.iter().filter(|it| !it.bounds.is_empty()).all(|it| it.definition().is_some()));
        let same = program("// a\nfn f() {\n    1\n}\n#[cfg(test)]\nmod tests {}");
        assert_eq!(same, program("fn f() { 1 } // a").replace("//a", ""));
        assert_ne!(same, program("fn f() { 2 }"));
    }

    #[test]
    fn ids_are_distinct_and_every_setting_is_a_run() {
        for (k, experiment) in ALL.iter().enumerate() {
            assert!(ALL[..k].iter().all(|other| other.id != experiment.id));
            let settings = &experiment.settings;
            for (k, setting) in settings.iter().enumerate() {
                let name = |setting: &Setting| (setting.method.clone(), setting.name.clone());
                assert!(
                    settings[..k].iter().all(|other| name(other) != name(setting)),
                    "{:?}",
                    name(setting)
                );
                let config = setting.config(1, Length::Whole, &Registry::default());
                let resolved = config.and_then(|config| phalanx::run::resolve(&config));
                resolved.unwrap_or_else(|error| panic!("{} {}: {error}", experiment.id, setting.name));
            }
        }
    }
}

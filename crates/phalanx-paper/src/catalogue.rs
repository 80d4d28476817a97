//! The experiments of the paper by their IDs; `experiments.toml` lists them with what they train.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::context::ExperimentContext;
use super::setting::Setting;
use super::visual::{self, Shown};
use super::{baseline_table, cost, rate, samples, trained, truncation};

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
    /// Preset of settings that name none.
    #[serde(default)]
    preset: String,
    /// What every setting begins with.
    #[serde(default)]
    set: Vec<String>,
    /// What is trained; empty if it is computed.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// Policies of others that it shows.
    #[serde(default)]
    shown: Vec<Shown>,
}

/// All of them, in the order of the paper.
pub static ALL: LazyLock<Vec<Experiment>> = LazyLock::new(|| {
    let all: Vec<Experiment> = listed(include_str!("experiments.toml"), "experiment");
    all.into_iter().map(Experiment::completed).collect()
});

/// The entries called `name` of a file that is part of the program.
pub fn listed<T: DeserializeOwned>(text: &str, name: &str) -> Vec<T> {
    let mut file: BTreeMap<String, Vec<T>> = toml::from_str(text).expect("a test reads this file");
    file.remove(name).unwrap_or_default()
}

impl Experiment {
    fn completed(mut self) -> Self {
        for setting in &mut self.settings {
            setting.set.splice(..0, self.set.iter().cloned());
            if setting.preset.is_empty() {
                setting.preset.clone_from(&self.preset);
            }
        }
        self
    }

    /// Makes it, or what is missing of it. What is computed writes `results.csv` and figures itself.
    pub fn make(&self, context: &ExperimentContext<'_>) -> anyhow::Result<()> {
        match self.id.as_str() {
            "table" => baseline_table::make(context),
            "rate" => rate::make(context),
            "truncation" => truncation::make(context),
            "samples" => samples::make(context),
            "cost" => cost::make(context),
            _ if !self.shown.is_empty() => visual::make(context, &self.shown),
            _ => trained::make(context, &self.title, &self.settings),
        }
    }
}

/// The experiment called `id`.
pub fn find(id: &str) -> Option<&'static Experiment> {
    ALL.iter().find(|experiment| experiment.id == id)
}

/// The setting of an experiment that is trained with a preset and called so.
pub fn setting(id: &str, preset: &str, name: &str) -> anyhow::Result<Setting> {
    let settings = find(id).into_iter().flat_map(|experiment| &experiment.settings);
    let found = settings.into_iter().find(|setting| setting.preset == preset && setting.name == name);
    found.cloned().ok_or_else(|| anyhow::anyhow!("{id} has no setting {name}"))
}

#[cfg(test)]
mod tests {
    use phalanx::run::Registry;

    use super::*;
    use crate::context::Length;

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

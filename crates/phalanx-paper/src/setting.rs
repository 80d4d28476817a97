//! What an experiment trains: a preset with settings on top, and what the paper reports for it.

use phalanx::run::{Config, Registry};

use super::lab::Length;

/// One point of a panel, or one line of a table; trained once for every seed.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Who is trained: [`OURS`], [`LITERAL`], or a baseline.
    pub method: &'static str,
    /// What is varied, e.g. `κ = 1`.
    pub name: String,
    /// The preset.
    pub preset: &'static str,
    /// Settings on top of it.
    pub sets: Vec<(String, String)>,
    /// What the paper reports.
    pub published: Option<Published>,
    /// Whether this method is to reach what is published; else the comparison is for information.
    pub counts: bool,
}

/// The paper's method with the recommended settings.
pub const OURS: &str = "ours";
/// The paper's method as literally published, as far as that is known.
pub const LITERAL: &str = "as published";

/// A result that the paper reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Published {
    /// Final return.
    pub return_: f64,
    /// Final total violation.
    pub violation: f64,
}

impl Setting {
    /// `method` on `preset`, as it is.
    pub fn new(method: &'static str, name: impl Into<String>, preset: &'static str) -> Self {
        Setting { method, name: name.into(), preset, sets: Vec::new(), published: None, counts: false }
    }

    /// With one more setting.
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.sets.push((key.into(), value.to_string()));
        self
    }

    /// With all three radii set to `kappa`.
    pub fn kappa(self, kappa: usize) -> Self {
        self.set("kappa", kappa).set("kappa_q", kappa).set("kappa_g", kappa)
    }

    /// With what the paper reports, which is to be reached.
    pub fn published(self, return_: f64, violation: f64) -> Self {
        Setting { published: Some(Published { return_, violation }), counts: true, ..self }
    }

    /// With what the paper reports, for information.
    pub fn reported(self, return_: f64, violation: f64) -> Self {
        Setting { counts: false, ..self.published(return_, violation) }
    }

    /// The configuration of the run with `seed`.
    pub fn config(&self, seed: u64, length: Length, registry: &Registry) -> phalanx::Result<Config> {
        let seed = seed.to_string();
        let config = Config::preset(self.preset)?.with_registry(registry.clone());
        let sets = self.sets.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let config = config.with_all(sets.chain([("seed", seed.as_str())]))?;
        match length.iterations(config.iterations) {
            None => Ok(config),
            Some(iterations) => {
                let (iterations, episodes) = (iterations.to_string(), length.episodes().to_string());
                config.with_all([("iterations", &*iterations), ("evaluation.episodes", &*episodes)])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_length_changes_iterations_and_evaluation_alone() {
        let setting = Setting::new(OURS, "κ = 0", "synthetic").kappa(0);
        let registry = Registry::default();
        let whole = setting.config(2, Length::Whole, &registry).unwrap();
        let cut = setting.config(2, Length::Cut(3), &registry).unwrap();
        assert_eq!((whole.iterations, whole.kappa_q, whole.seed), (400, 0, 2));
        assert_eq!((cut.iterations, cut.kappa_q, cut.seed), (3, 0, 2));
    }
}

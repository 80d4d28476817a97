//! What an experiment trains: a preset with settings on top, and what the paper reports for it.

use phalanx::run::{Config, Registry};
use serde::Deserialize;

use super::context::Length;

/// One point of a panel, or one line of a table; trained once for every seed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Who is trained: [`OURS`], [`LITERAL`], or a baseline.
    #[serde(default = "ours")]
    pub method: String,
    /// What is varied, e.g. `κ = 1`.
    #[serde(default)]
    pub name: String,
    /// The preset.
    #[serde(default)]
    pub preset: String,
    /// Settings on top of it, each `key=value`.
    #[serde(default)]
    pub set: Vec<String>,
    /// What the paper reports, which is to be reached: final return and total violation.
    published: Option<[f64; 2]>,
    /// What the paper reports, for information.
    reported: Option<[f64; 2]>,
    /// Deviation of the reported return.
    pub return_sd: Option<f64>,
    /// The most seeds that are run.
    pub seeds: Option<usize>,
    /// Whether the published code is run beside it.
    #[serde(default)]
    pub authors: bool,
    /// How many seeds the published code has, where a claim needs more than the other settings have.
    pub authors_seeds: Option<usize>,
    /// As many seeds, once `seeds` are asked for.
    #[serde(skip)]
    many: Option<usize>,
}

/// The paper's method with the recommended settings.
pub const OURS: &str = "ours";
/// What the published code does, as far as that is known.
pub const LITERAL: &str = "authors";

fn ours() -> String {
    OURS.into()
}

/// The parts of a setting `key=value`.
pub fn key_and_value(set: &str) -> (&str, &str) {
    set.split_once('=').unwrap_or((set, ""))
}

impl Setting {
    /// The same with the published code, for information.
    pub fn of_authors(self) -> Setting {
        let (reported, many) = (self.published(), self.authors_seeds);
        Setting { method: LITERAL.into(), reported, published: None, many, ..self }
    }

    /// The same under a bound of the first constraint, with nothing published for it.
    pub fn with_bound(&self, bound: f64, seeds: Option<usize>) -> Setting {
        let set = [&self.set[..], &[format!("constraint.0.at_most={bound}")]].concat();
        Setting {
            name: format!("at most {bound}"),
            set,
            seeds,
            published: None,
            reported: None,
            ..self.clone()
        }
    }

    /// Who is trained and what is varied.
    pub fn title(&self) -> String {
        let words = [&self.method, &self.name].into_iter().filter(|word| !word.is_empty());
        words.map(String::as_str).collect::<Vec<_>>().join(": ")
    }

    /// Those of the seeds that were asked for that are run, and those after them that it needs.
    pub fn seeds(&self, asked: &[u64]) -> Vec<u64> {
        let most = self.seeds.unwrap_or(asked.len());
        match (self.many, asked.last()) {
            (Some(many), Some(&last)) if asked.len() >= most => {
                asked.iter().copied().chain(last.saturating_add(1)..).take(many).collect()
            }
            _ => asked.iter().copied().take(most).collect(),
        }
    }

    /// Final return and total violation that the paper reports.
    pub fn published(&self) -> Option<[f64; 2]> {
        self.published.or(self.reported)
    }

    /// Whether this method is to reach what is published; else the comparison is for information.
    pub fn counts(&self) -> bool {
        self.published.is_some()
    }

    /// The configuration of the run with `seed`.
    pub fn config(&self, seed: u64, length: Length, registry: &Registry) -> phalanx::Result<Config> {
        let seed = seed.to_string();
        let config = Config::preset(&self.preset)?.with_registry(registry.clone());
        let sets = self.set.iter().map(|set| key_and_value(set));
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
    fn more_seeds_are_run_where_a_claim_needs_them() {
        let setting: Setting =
            toml::from_str("preset = \"synthetic\"\nseeds = 5\nauthors_seeds = 7").unwrap();
        let authors = setting.clone().of_authors();
        let seeds = |setting: &Setting, asked: u64| setting.seeds(&(1..=asked).collect::<Vec<_>>()).len();
        assert_eq!([1, 4, 5, 6, 10].map(|asked| seeds(&setting, asked)), [1, 4, 5, 5, 5]);
        assert_eq!([1, 4, 5, 6, 10].map(|asked| seeds(&authors, asked)), [1, 4, 7, 7, 7]);
        assert_eq!(authors.seeds(&[1, 2, 3, 4, 5]), [1, 2, 3, 4, 5, 6, 7], "plain ones, in a row");
    }

    #[test]
    fn a_shorter_length_changes_iterations_and_evaluation_alone() {
        let setting: Setting =
            toml::from_str("preset = \"synthetic\"\nset = [\"kappa=0\", \"kappa_q=0\", \"kappa_g=0\"]")
                .unwrap();
        let registry = Registry::default();
        let whole = setting.config(2, Length::Whole, &registry).unwrap();
        let cut = setting.config(2, Length::Cut(3), &registry).unwrap();
        assert_eq!((whole.iterations, whole.kappa_q, whole.seed), (400, 0, 2));
        assert_eq!((cut.iterations, cut.kappa_q, cut.seed), (3, 0, 2));
    }
}

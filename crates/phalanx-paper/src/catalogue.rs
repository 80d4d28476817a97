//! The experiments of the paper by their IDs.

use super::lab::Bench;
use super::setting::Setting;
use super::{baseline_table, cost, panels, rate, samples, trained, truncation, versus, visual};

/// An experiment.
pub struct Experiment {
    /// Its name on the command line, and its folder's.
    pub id: &'static str,
    /// What it is, in a line.
    pub title: &'static str,
    /// Where the paper has it.
    pub label: &'static str,
    /// How it is made.
    pub kind: Kind,
}

/// How an experiment is made.
pub enum Kind {
    /// Training runs, drawn as curves.
    Trained(fn() -> Vec<Setting>),
    /// Anything else: writes `results.csv` and figures itself.
    Computed(fn(&Bench<'_>) -> anyhow::Result<()>),
}

/// All of them, in the order of the paper.
pub const ALL: &[Experiment] = &[
    trained(
        "synthetic-kappa",
        "Synthetic line: communication ranges",
        "fig:exp, left",
        panels::synthetic_kappa,
    ),
    trained(
        "synthetic-threshold",
        "Synthetic line: thresholds",
        "fig:exp, middle",
        panels::synthetic_threshold,
    ),
    trained("synthetic-eta", "Synthetic line: dual step sizes", "fig:exp, right", panels::synthetic_eta),
    trained(
        "pistonball-kappa",
        "Pistonball: communication ranges",
        "fig:exp_piston, left",
        panels::pistonball_kappa,
    ),
    trained(
        "pistonball-threshold",
        "Pistonball: thresholds",
        "fig:exp_piston, middle",
        panels::pistonball_threshold,
    ),
    trained("pistonball-eta", "Pistonball: dual step sizes", "fig:exp_piston, right", panels::pistonball_eta),
    trained("pistonball20", "Pistonball with twenty pistons", "fig:piston20", panels::pistonball20),
    trained(
        "wireless-kappa",
        "Wireless: communication ranges",
        "fig:exp_wireless, left",
        panels::wireless_kappa,
    ),
    trained(
        "wireless-threshold",
        "Wireless: thresholds",
        "fig:exp_wireless, middle",
        panels::wireless_threshold,
    ),
    trained("wireless-eta", "Wireless: dual step sizes", "fig:exp_wireless, right", panels::wireless_eta),
    trained(
        "baselines-pistonball",
        "Pistonball: cumulative constraints, against MAPPO-Lagrangian",
        "fig:baseline",
        versus::pistonball,
    ),
    trained(
        "baselines-wireless",
        "Wireless: cumulative constraints, against MAPPO-Lagrangian",
        "fig:baseline_wire",
        versus::wireless,
    ),
    computed("table", "Comparison with MAPPO-Lagrangian", "tab:baseline", baseline_table::make),
    trained("penalty", "Wireless: a general utility against a penalty", "fig:grad_penalty", versus::penalty),
    computed("rate", "Stationarity against iterations, exact gradients", "thm:convergence", rate::make),
    computed(
        "truncation",
        "Truncated gradients against their bounds",
        "lemma:truncated_grad",
        truncation::make,
    ),
    computed("samples", "What samples are worth", "thm:sample_complexity", samples::make),
    computed("cost", "Time and traffic against the radius", "sec:numerical_exp", cost::make),
    computed(
        "visual-pistonball",
        "Pistonball: what is learnt",
        "fig:visualization, fig:neighbor",
        visual::pistonball,
    ),
    computed("visual-wireless", "Wireless: what is learnt", "fig:wire-visual", visual::wireless),
];

const fn trained(
    id: &'static str,
    title: &'static str,
    label: &'static str,
    settings: fn() -> Vec<Setting>,
) -> Experiment {
    Experiment { id, title, label, kind: Kind::Trained(settings) }
}

const fn computed(
    id: &'static str,
    title: &'static str,
    label: &'static str,
    make: fn(&Bench<'_>) -> anyhow::Result<()>,
) -> Experiment {
    Experiment { id, title, label, kind: Kind::Computed(make) }
}

impl Experiment {
    /// Makes it, or what is missing of it.
    pub fn make(&self, bench: &Bench<'_>) -> anyhow::Result<()> {
        match self.kind {
            Kind::Trained(settings) => trained::make(bench, self.title, &settings()),
            Kind::Computed(make) => make(bench),
        }
    }
}

/// The experiment called `id`.
pub fn find(id: &str) -> Option<&'static Experiment> {
    ALL.iter().find(|experiment| experiment.id == id)
}

#[cfg(test)]
mod tests {
    use phalanx::run::Registry;

    use super::*;
    use crate::lab::Length;

    #[test]
    fn ids_are_distinct_and_every_setting_is_a_run() {
        for (k, experiment) in ALL.iter().enumerate() {
            assert!(ALL[..k].iter().all(|other| other.id != experiment.id));
            let Kind::Trained(settings) = experiment.kind else { continue };
            let settings = settings();
            for (k, setting) in settings.iter().enumerate() {
                let name = |setting: &Setting| (setting.method, setting.name.clone());
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

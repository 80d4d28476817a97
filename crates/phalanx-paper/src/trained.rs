//! Experiments that are training runs: from settings to results, a summary and curves.

use phalanx::run::Outcome;

use super::context::{ExperimentContext, Trained};
use super::curves::{self, Course};
use super::setting::Setting;
use super::sheet::Sheet;
use super::summary;
use super::training_metrics;
use phalanx_pictures::plot::Metrics;

/// Columns of `results.csv`: one row per run.
const RESULTS: &str = "method,setting,preset,set,seed,status,return,objective,violation_total,violation_max,\
    violation_mean,violation_peak,violation_start,return_start,early_return,settled,iterations,wall_s,\
    agent_steps,comm_bytes,published_return,published_violation,counts";

/// Trains the settings, writes `results.csv` and `summary.csv`, and draws `figures/curves`.
pub fn make(context: &ExperimentContext<'_>, title: &str, settings: &[Setting]) -> anyhow::Result<()> {
    let finishes = context.train(settings, &context.reproduction.seeds)?;
    let mut results = Sheet::new(RESULTS);
    let mut courses = Vec::new();
    let single_method = settings.iter().all(|setting| setting.method == settings[0].method);
    for (setting, finishes) in settings.iter().zip(&finishes) {
        let mut runs = Vec::new();
        for (&seed, finish) in context.reproduction.seeds.iter().zip(finishes) {
            let metrics = finish.as_ref().ok().map(|outcome| Metrics::read(&outcome.run)).transpose()?;
            results.push(result(setting, seed, finish, metrics.as_ref()));
            runs.extend(metrics);
        }
        let name = &setting.name;
        let label = if single_method { name.clone() } else { format!("{}: {name}", setting.method) };
        courses.push(Course { setting, label: label.trim_end_matches(": ").into(), runs });
    }
    let summary = summary::of(&results);
    context.sheet("results.csv", &results)?;
    context.sheet("summary.csv", &summary)?;
    context.figures(vec![("curves", curves::figure(title, &courses))])?;
    (context.reproduction.print)(&super::terminal_tables::summary(&summary));
    Ok(())
}

fn result(setting: &Setting, seed: u64, finish: &Trained, metrics: Option<&Metrics>) -> Vec<String> {
    let mut row = vec![
        setting.method.clone(),
        setting.name.clone(),
        setting.preset.clone(),
        setting.set.join(" "),
        seed.to_string(),
        finish.as_ref().map_or_else(|reason| format!("failed: {reason}"), |_| "finished".into()),
    ];
    match finish {
        Ok(outcome) => {
            let Outcome { objective, violation_total, violation_max, violation_mean, wall_s, .. } = *outcome;
            row.push(outcome.return_.map(number).unwrap_or_default());
            row.extend([objective, violation_total, violation_max, violation_mean].map(number));
            let course = [
                training_metrics::peak_violation,
                training_metrics::violation_at_start,
                training_metrics::return_at_start,
                training_metrics::early_return,
                training_metrics::settled,
            ];
            row.extend(course.map(|quantity| number(metrics.map_or(f64::NAN, quantity))));
            row.push(outcome.iterations.to_string());
            row.push(format!("{wall_s:.2}"));
            row.extend([outcome.agent_steps, outcome.comm_bytes].map(|count| count.to_string()));
        }
        Err(_) => row.extend(std::iter::repeat_n(String::new(), 14)),
    }
    row.extend(published(setting));
    row.push(setting.counts().to_string());
    row
}

fn published(setting: &Setting) -> [String; 2] {
    setting.published().map(|published| published.map(|value| value.to_string())).unwrap_or_default()
}

/// As many digits as count.
pub fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { String::new() }
}

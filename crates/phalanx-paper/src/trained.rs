//! Experiments that are training runs: from settings to results, a summary and curves.

use super::catalogue::Experiment;
use super::context::{ExperimentContext, Trained};
use super::curves::{self, Course};
use super::setting::Setting;
use super::sheet::Sheet;
use super::summary;

/// Columns of `results.csv`: one row per run.
const RESULTS: &str = "method,setting,preset,set,seed,status,return,objective,violation_total,violation_max,\
    violation_mean,violation_peak,violation_start,return_start,early_return,settled,iterations,wall_s,\
    agent_steps,comm_bytes,published_return,published_violation,counts,commit";

/// Trains the settings, writes `results.csv` and `summary.csv`, and draws their curves.
pub fn make(context: &ExperimentContext<'_>, experiment: &'static Experiment) -> anyhow::Result<()> {
    let trained = tabulated(context, experiment)?;
    let (length, registry) = (context.reproduction.length, &context.reproduction.registry);
    let mut figures = Vec::new();
    for (name, shown) in curves::by_figure(experiment) {
        let is_single_method = shown.iter().all(|setting| setting.method == shown[0].method);
        let course = |(setting, trained): (&'static Setting, &Vec<Trained>)| {
            let label = if is_single_method { setting.name.clone() } else { setting.title() };
            let runs = trained.iter().flatten().cloned().collect();
            Ok(Course { setting, config: setting.config(1, length, registry)?, label, runs })
        };
        let all = experiment.settings.iter().zip(&trained);
        let courses = all.filter(|(setting, _)| shown.contains(setting)).map(course);
        let courses = courses.collect::<phalanx::Result<Vec<_>>>()?;
        figures.push((name, curves::figure(&experiment.title, &courses, experiment.published_iterations)?));
    }
    context.figures(figures)
}

/// Trains the settings, and writes `results.csv` and `summary.csv`: all runs by setting, then by seed.
pub fn tabulated(
    context: &ExperimentContext<'_>,
    experiment: &'static Experiment,
) -> anyhow::Result<Vec<Vec<Trained>>> {
    let trained = context.train(&experiment.settings, &context.reproduction.seeds)?;
    let mut results = Sheet::new(RESULTS);
    for (setting, trained) in experiment.settings.iter().zip(&trained) {
        for (seed, run) in setting.seeds(&context.reproduction.seeds).into_iter().zip(trained) {
            results.push(result(setting, seed, run));
        }
    }
    let summary = summary::of(&results);
    context.sheet("results.csv", &results)?;
    context.sheet("summary.csv", &summary)?;
    (context.reproduction.print)(&super::terminal_tables::summary(&summary));
    Ok(trained)
}

fn result(setting: &Setting, seed: u64, trained: &Trained) -> Vec<String> {
    let mut row = vec![
        setting.method.clone(),
        setting.name.clone(),
        setting.preset.clone(),
        setting.set.join(" "),
        seed.to_string(),
        trained.as_ref().map_or_else(|reason| format!("failed: {reason}"), |_| "finished".into()),
    ];
    match trained {
        Ok(run) => {
            let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
            row.push(optional(run.return_));
            row.extend(
                [run.objective, run.violation_total, run.violation_max, run.violation_mean].map(number),
            );
            row.extend([run.violation_peak, run.violation_start, run.return_start].map(optional));
            row.extend([run.early_return, run.settled].map(optional));
            row.push(run.iterations.to_string());
            row.push(format!("{:.2}", run.wall_s));
            row.extend([run.agent_steps, run.comm_bytes].map(|count| count.to_string()));
        }
        Err(_) => row.extend(std::iter::repeat_n(String::new(), 14)),
    }
    row.extend(published(setting));
    row.push(setting.counts().to_string());
    row.push(trained.as_ref().map_or(String::new(), |run| run.commit.clone()));
    row
}

fn published(setting: &Setting) -> [String; 2] {
    setting.published().map(|published| published.map(|value| value.to_string())).unwrap_or_default()
}

/// As many digits as count.
pub fn number(value: f64) -> String {
    if value.is_finite() { format!("{value:.6}") } else { String::new() }
}

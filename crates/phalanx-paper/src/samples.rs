//! `samples`: what samples are worth. The error of sampled occupancies and gradients against the exact ones,
//! and how far trained policies are from stationary, by the batch B and the transitions K of Q-evaluation.
//! Paper: thm:sample_complexity.

use std::sync::LazyLock;

use phalanx::Ragged;
use phalanx::exact::System;
use phalanx::run::{Config, Session};
use serde::{Deserialize, Serialize};

use super::claims::Estimate;
use super::context::{ByLength, ExperimentContext};
use super::drawing::{Panel, Style, log, side_by_side};
use super::on_one_thread;
use super::setting::key_and_value;
use super::sheet::{Sheet, number};
use phalanx_pictures::plot::canvas::{self, Arrangement, Colour, Figure, Layer, Mark, Shape};
use phalanx_pictures::plot::{self, Point, Span};
use phalanx_pictures::statistics::{deviation, mean, slope};

/// Columns of `results.csv`: one row per number of samples. `what` is `estimate` (errors at policies that do
/// not change), `batch` or `transitions` (trained).
const COLUMNS: &str = "what,B,K,seeds,occupancy_error,gradient_error,E,E_sd,violation,violation_sd,\
    objective,E_exact,objective_gap";

/// What is trained, and how much of it.
#[derive(Deserialize)]
struct Description {
    /// Settings on top of the preset, each `key=value`: of everything, of estimates, of trained runs, of
    /// those with exact gradients.
    line: Vec<String>,
    estimate: Vec<String>,
    trained: Vec<String>,
    exact: Vec<String>,
    plans: ByLength<Plan>,
}

static DESCRIPTION: LazyLock<Description> =
    LazyLock::new(|| toml::from_str(include_str!("samples.toml")).expect("a test reads this file"));

/// What is sampled.
#[derive(Deserialize)]
struct Plan {
    /// B of estimates, and policies at which these are made.
    batches: Vec<usize>,
    policies: u64,
    /// B and K of trained runs, and their iterations.
    trained: Vec<usize>,
    transitions: Vec<usize>,
    iterations: usize,
    /// Their seeds at least: they take a second each.
    seeds: u64,
}

/// Batch and transitions of trained runs where the other one is varied.
const BATCH: usize = 20;
const TRANSITIONS: usize = 1000;

/// Writes `results.csv`, `ends.csv` with a row per seed, `slopes.csv`, `figures/estimates`,
/// `figures/trained` and `figures/objective`.
pub fn make(context: &ExperimentContext<'_>) -> anyhow::Result<()> {
    let plan = DESCRIPTION.plans.of(context.reproduction.length);
    let mut results = Sheet::new(COLUMNS);
    for &batch in &plan.batches {
        let errors =
            context.part(&format!("estimate-{batch}"), || estimates(context, batch, plan.policies))?;
        let mut row = vec!["estimate".into(), batch.to_string(), String::new(), plan.policies.to_string()];
        row.extend([errors.occupancy, errors.gradient].map(number));
        row.resize(results.columns.len(), String::new());
        results.push(row);
    }
    let seeds = plan.seeds.max(context.reproduction.seeds.len() as u64);
    let iterations = plan.iterations;
    let exact = context.part("exact", || end(context, &DESCRIPTION.exact, iterations))?;
    let mut every = Sheet::new("what,B,K,seed,E,objective_gap");
    let by_batch = plan.trained.iter().map(|&batch| ("batch", batch, TRANSITIONS));
    let by_transitions = plan.transitions.iter().map(|&transitions| ("transitions", BATCH, transitions));
    for (what, batch, transitions) in by_batch.chain(by_transitions) {
        let mut ends = Vec::new();
        for seed in 1..=seeds {
            let name = format!("trained-{batch}-{transitions}-seed{seed}");
            let settings =
                [format!("batch={batch}"), format!("critic.steps={transitions}"), format!("seed={seed}")];
            let end = context.part(&name, || end(context, &settings, iterations))?;
            let named = [what.into(), batch.to_string(), transitions.to_string(), seed.to_string()];
            let numbers = [end.e, exact.objective - end.objective].map(number);
            every.push([&named[..], &numbers].concat());
            ends.push(end);
        }
        let of = |value: fn(&End) -> f64| ends.iter().map(value).collect::<Vec<f64>>();
        let (e, violation, objective) = (of(|end| end.e), of(|end| end.violation), of(|end| end.objective));
        let named = [what.into(), batch.to_string(), transitions.to_string(), ends.len().to_string()];
        let no_errors = [String::new(), String::new()];
        let numbers = [
            mean(&e),
            deviation(&e),
            mean(&violation),
            deviation(&violation),
            mean(&objective),
            exact.e,
            exact.objective - mean(&objective),
        ];
        results.push([&named[..], &no_errors, &numbers.map(number)].concat());
    }
    context.sheet("results.csv", &results)?;
    context.sheet("ends.csv", &every)?;
    let errors = ["occupancy_error", "gradient_error"];
    let slopes = errors.map(|error| slope(&results.points("B", error, |row| row[0] == "estimate")));
    let mut sheet = Sheet::new("quantity,slope,promised");
    for (quantity, slope) in errors.into_iter().zip(slopes) {
        sheet.push(vec![quantity.into(), number(slope), "-0.5".into()]);
    }
    context.sheet("slopes.csv", &sheet)?;
    context.figures(vec![
        ("estimates", estimate_figure(&results, slopes, plan.policies)),
        ("trained", trained_figure([&results, &every], &E, iterations, seeds)),
        ("objective", trained_figure([&results, &every], &GAP, iterations, seeds)),
    ])
}

/// The line with settings on top.
fn line(settings: &[String]) -> phalanx::Result<Config> {
    Config::preset("synthetic")?
        .with_all(DESCRIPTION.line.iter().chain(settings).map(|set| key_and_value(set)))
}

/// Mean relative errors.
#[derive(Debug, Serialize, Deserialize)]
struct Errors {
    occupancy: f64,
    gradient: f64,
}

/// The first iteration of runs that begin at random policies, against the truth.
fn estimates(context: &ExperimentContext<'_>, batch: usize, policies: u64) -> anyhow::Result<Errors> {
    let config = line(&DESCRIPTION.estimate)?.with("batch", &batch.to_string())?;
    on_one_thread(|| {
        let mut errors = [Vec::new(), Vec::new()];
        for seed in 1..=policies {
            context.reproduction.check()?;
            let config = config.with("seed", &seed.to_string())?;
            let mut session = Session::new(&config)?;
            let [occupancy, gradient] = truth(&session)?;
            session.advance()?;
            let last = session.algorithm().last();
            let last = last.ok_or_else(|| anyhow::anyhow!("a sampled run without samples"))?;
            errors[0].push(relative_error(&last.visits.occupancy, &occupancy));
            errors[1].push(relative_error(last.gradient, &gradient));
        }
        Ok(Errors { occupancy: mean(&errors[0]), gradient: mean(&errors[1]) })
    })?
}

/// Occupancies and the gradient at the session's policy and multipliers, exactly.
fn truth(session: &Session) -> anyhow::Result<[Ragged<f64>; 2]> {
    let policy = session.policy().tabular().ok_or_else(|| anyhow::anyhow!("a policy without a table"))?;
    let system = System::new(session.world(), session.problem(), policy)?;
    let chain = system.under(policy)?;
    let signals = chain.signals(session.problem());
    let values = chain.values(&signals.rewards)?;
    let whole = chain.action_values(&values, session.mu());
    // The normalised scaling has no 1/n.
    Ok([chain.occupancy(), chain.gradient(&whole, policy.parameterisation(), 1.0)])
}

/// ‖found − exact‖ / ‖exact‖ over all agents.
fn relative_error(found: &Ragged<f64>, exact: &Ragged<f64>) -> f64 {
    let difference: f64 = found.data().iter().zip(exact.data()).map(|(f, e)| (f - e).powi(2)).sum();
    (difference / exact.data().iter().map(|e| e * e).sum::<f64>()).sqrt()
}

/// A trained policy, exactly.
#[derive(Debug, Serialize, Deserialize)]
struct End {
    e: f64,
    violation: f64,
    objective: f64,
}

/// The policy that a run ends with.
fn end(context: &ExperimentContext<'_>, settings: &[String], iterations: usize) -> anyhow::Result<End> {
    let config = line(&[&DESCRIPTION.trained, settings].concat())?;
    let config = config.with("iterations", &iterations.to_string())?;
    on_one_thread(|| {
        let mut session = Session::new(&config)?;
        while session.advance()?.is_some() {
            context.reproduction.check()?;
        }
        let truth =
            session.evaluator()?.exact()?.ok_or_else(|| anyhow::anyhow!("a line without exact values"))?;
        Ok(End { e: truth.e, violation: truth.violation_max, objective: truth.objective })
    })?
}

fn estimate_figure(results: &Sheet, slopes: [f64; 2], policies: u64) -> Figure {
    let curve = |label: &str, column: &str, style| {
        results.curve(label, ("B", column), style, |row| row[0] == "estimate")
    };
    let measured = |label: &str, column: &str, slope: f64| {
        curve(&format!("{label} (slope {slope:.2})").replace('-', "−"), column, Style::Marked)
    };
    // From the first error on, as 1/√B.
    let promised = |column: &str| {
        let mut line = curve("1/√B", column, Style::Dashed);
        if let (Some(&(from, error)), Some(&(to, _))) = (line.points.first(), line.points.last()) {
            line.points = vec![(from, error), (to, error * (from / to).sqrt())];
        }
        line
    };
    let curves = vec![
        measured("occupancies", "occupancy_error", slopes[0]),
        measured("gradient", "gradient_error", slopes[1]),
        promised("occupancy_error"),
        promised("gradient_error"),
    ];
    side_by_side(
        "Errors of estimates against B",
        format!(
            "mean over {policies} random policies\nHeld fixed: line of n = 4 agents; entropy ≥ c = 0.5; κ = 0; \
             multipliers of 1; γ = 0.8; H = 60. Varied: B."
        ),
        &[Panel { x: log("episodes B"), y: log("relative error"), curves }],
    )
}

/// What is drawn of trained policies.
struct Drawn {
    title: &'static str,
    /// On the y axis.
    label: &'static str,
    /// In `ends.csv`, a row per seed.
    column: &'static str,
    /// In `results.csv`: what no number of samples improves on, with its entry in the legend.
    best: Option<(&'static str, &'static str)>,
}

const E: Drawn = Drawn {
    title: "How far trained policies are from stationary, against samples",
    label: "E of the last policy",
    column: "E",
    best: Some(("E_exact", "E with exact gradients")),
};
const GAP: Drawn = Drawn {
    title: "Objective of trained policies against samples",
    label: "objective short of that with exact gradients",
    column: "objective_gap",
    best: None,
};

/// Every seed, and means with intervals, by the batch and by the transitions.
fn trained_figure([results, ends]: [&Sheet; 2], drawn: &Drawn, iterations: usize, seeds: u64) -> Figure {
    let panel = |what: &str, x: &str, label: String| {
        let every = ends.points(x, drawn.column, |row| row[0] == what);
        let mut layers = vec![Layer {
            shape: Shape::Marks { points: every.clone(), mark: Mark::Circle },
            colour: Colour::of_series(0).tint(0.35),
            label: "a seed".into(),
        }];
        let spans: Vec<(f64, Estimate)> = by_samples(&every);
        // One seed has no interval.
        let estimated = spans.iter().filter(|(_, estimate)| estimate.seeds > 1);
        let bars = estimated.map(|&(x, Estimate { low, high, .. })| Span { x, low, high });
        let means: Vec<Point> = spans.iter().map(|&(x, Estimate { mean, .. })| (x, mean)).collect();
        let colour = Colour::of_series(0);
        layers.push(Layer { shape: Shape::Bars(bars.collect()), colour, label: String::new() });
        layers.push(plot::line(means.clone(), plot::THICK, colour, String::new()));
        let marks = Shape::Marks { points: means, mark: Mark::Square };
        layers.push(Layer { shape: marks, colour, label: "mean with 95 % interval".into() });
        if let Some((column, label)) = drawn.best {
            let points = results.points(x, column, |row| row[0] == what);
            layers.push(Layer {
                shape: Shape::Dashes(points),
                colour: Colour::of_series(2),
                label: label.into(),
            });
        }
        canvas::Panel::new(log(&label), log(drawn.label), layers)
    };
    let subtitle = format!(
        "exact values of the last policy, {seeds} seeds; an interval that reaches the lower edge has 0 in it\n\
         Held fixed: line of n = 4 agents; entropy ≥ c = 0.5; κ = 0; η_μ = 100; γ = 0.8; H = 60; T = \
         {iterations}. Varied: B on the left, K on the right."
    );
    Figure {
        title: drawn.title.into(),
        subtitle,
        panels: vec![
            panel("batch", "B", format!("episodes B (K = {TRANSITIONS})")),
            panel("transitions", "K", format!("transitions K (B = {BATCH})")),
        ],
        arrangement: Arrangement::SideBySide,
    }
}

/// Points with the same x: the mean over seeds with its interval.
fn by_samples(points: &[Point]) -> Vec<(f64, Estimate)> {
    let groups = points.chunk_by(|one, other| one.0 == other.0);
    let estimate = |group: &[Point]| {
        let values: Vec<f64> = group.iter().map(|point| point.1).collect();
        (group[0].0, Estimate::of_mean(&values))
    };
    groups.map(estimate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seeds for each of three numbers of samples.
    fn ends() -> Sheet {
        let mut sheet = Sheet::new("what,B,K,seed,E,objective_gap");
        for (what, [b, k]) in [("batch", [1, 1000]), ("batch", [20, 1000]), ("transitions", [20, 500])] {
            for seed in 1..=10 {
                let e = if seed == 1 { 0.04 } else { 1e-4 };
                let cells = [what.into(), b.to_string(), k.to_string(), seed.to_string()];
                sheet.push([&cells[..], &[e, 0.01 + 0.001 * f64::from(seed)].map(number)].concat());
            }
        }
        sheet
    }

    #[test]
    fn one_quantity_to_a_figure_and_an_interval_to_a_mean() {
        let results = Sheet::new(COLUMNS);
        for (drawn, column) in [(&E, "E"), (&GAP, "objective_gap")] {
            let figure = trained_figure([&results, &ends()], drawn, 1500, 10);
            assert!(figure.subtitle.contains("T = 1500") && figure.panels[0].y.label == drawn.label);
            let of_panel = |panel: &canvas::Panel| {
                let bars = panel.layers.iter().find_map(|layer| match &layer.shape {
                    Shape::Bars(spans) => Some(spans.clone()),
                    _ => None,
                });
                bars.unwrap()
            };
            let [batch, transitions] = [0, 1].map(|k| of_panel(&figure.panels[k]));
            assert_eq!((batch.len(), transitions.len()), (2, 1), "{column}");
            assert!(batch.iter().all(|span| (span.low < 0.0) == (column == "E")), "{batch:?}");
            let svg = &canvas::draw(&[figure]).unwrap()[0].svg;
            assert!(svg.contains(">mean with 95 % interval<") && !svg.contains("NaN") && !svg.contains('…'));

            let mut alone = ends();
            alone.rows.retain(|row| row[3] == "1");
            let figure = trained_figure([&results, &alone], drawn, 1500, 1);
            assert!(figure.panels.iter().all(|panel| of_panel(panel).is_empty()));
            assert!(!canvas::draw(&[figure]).unwrap()[0].svg.contains("NaN"));
        }
    }
}

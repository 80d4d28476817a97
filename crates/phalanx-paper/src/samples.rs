//! `samples`: what samples are worth. The error of sampled occupancies and gradients against the exact ones, and how far
//! trained policies are from stationary, by the batch B and the transitions K of Q-evaluation. Paper: thm:sample_complexity.

use phalanx::Ragged;
use phalanx::exact::System;
use phalanx::run::{Config, Session};
use serde::{Deserialize, Serialize};

use super::context::{ExperimentContext, Length};
use super::on_one_thread;
use super::sheet::{Sheet, number};
use phalanx_pictures::plot::Values;
use phalanx_pictures::plot::canvas::Axis;
use phalanx_pictures::plot::figure::{Curve, Figure, Panel, Style, laid_out};
use phalanx_pictures::statistics::{deviation, mean, slope};

/// Columns of `results.csv`: one row per number of samples. `what` is `estimate` (errors at policies that do not change),
/// `batch` or `transitions` (trained).
const COLUMNS: &str = "what,B,K,seeds,occupancy_error,gradient_error,E,E_sd,violation,violation_sd,\
    objective,E_exact,objective_gap";

/// The line of four agents with entropies of at least 0.5. Episodes are long enough to forget that they end.
const LINE: [(&str, &str); 6] = [
    ("world.n", "4"),
    ("gamma", "0.8"),
    ("horizon", "60"),
    ("kappa", "0"),
    ("kappa_q", "3"),
    ("kappa_g", "3"),
];

/// What is sampled, by length.
struct Plan {
    /// B of estimates, and policies at which these are made.
    batches: &'static [usize],
    policies: u64,
    /// B and K of trained runs, and their iterations.
    trained: &'static [usize],
    transitions: &'static [usize],
    iterations: usize,
    /// Their seeds at least: they take a second each.
    seeds: u64,
}

impl Plan {
    fn of(length: Length) -> Self {
        match length {
            Length::Whole => Plan {
                batches: &[1, 2, 5, 10, 20, 50, 100, 200, 500],
                policies: 100,
                trained: &[1, 2, 5, 10, 20, 50],
                transitions: &[20, 50, 100, 200, 500, 1000, 2000],
                iterations: 1500,
                seeds: 10,
            },
            Length::Quick => Plan {
                batches: &[1, 2, 5, 10, 20, 50, 100],
                policies: 40,
                trained: &[1, 5, 20],
                transitions: &[50, 500],
                iterations: 200,
                seeds: 2,
            },
            Length::Cut(_) => Plan {
                batches: &[1, 5, 20, 100],
                policies: 40,
                trained: &[1, 5],
                transitions: &[20, 100],
                iterations: 30,
                seeds: 1,
            },
        }
    }
}

/// Batch and transitions of trained runs where the other one is varied.
const BATCH: usize = 20;
const TRANSITIONS: usize = 1000;

/// Writes `results.csv`, `slopes.csv`, `figures/estimates` and `figures/trained`.
pub fn make(context: &ExperimentContext<'_>) -> anyhow::Result<()> {
    let plan = Plan::of(context.reproduction.length);
    let mut results = Sheet::with_header(COLUMNS);
    for &batch in plan.batches {
        let errors =
            context.part(&format!("estimate-{batch}"), || estimates(context, batch, plan.policies))?;
        let mut row = vec!["estimate".into(), batch.to_string(), String::new(), plan.policies.to_string()];
        row.extend([errors.occupancy, errors.gradient].map(number));
        row.resize(results.columns.len(), String::new());
        results.push(row);
    }
    let seeds = plan.seeds.max(context.reproduction.seeds.len() as u64);
    let exact = context.part("exact", || exact(context, plan.iterations))?;
    let by_batch = plan.trained.iter().map(|&batch| ("batch", batch, TRANSITIONS));
    let by_transitions = plan.transitions.iter().map(|&transitions| ("transitions", BATCH, transitions));
    for (what, batch, transitions) in by_batch.chain(by_transitions) {
        let mut ends = Vec::new();
        for seed in 1..=seeds {
            let name = format!("trained-{batch}-{transitions}-seed{seed}");
            ends.push(context.part(&name, || trained(context, batch, transitions, plan.iterations, seed))?);
        }
        let of = |value: fn(&End) -> f64| ends.iter().map(value).collect::<Vec<f64>>();
        let (e, violation, objective) = (of(|end| end.e), of(|end| end.violation), of(|end| end.objective));
        let mut row = vec![what.into(), batch.to_string(), transitions.to_string(), ends.len().to_string()];
        row.extend([String::new(), String::new()]);
        let numbers = [
            mean(&e),
            deviation(&e),
            mean(&violation),
            deviation(&violation),
            mean(&objective),
            exact.e,
            exact.objective - mean(&objective),
        ];
        row.extend(numbers.map(number));
        results.push(row);
    }
    context.sheet("results.csv", &results)?;
    let slopes = ["occupancy_error", "gradient_error"]
        .map(|column| slope(&results.points("B", column, |row| row[0] == "estimate")));
    let mut sheet = Sheet::new(&["quantity", "slope", "promised"]);
    for (quantity, slope) in ["occupancy_error", "gradient_error"].into_iter().zip(slopes) {
        sheet.push(vec![quantity.into(), number(slope), "-0.5".into()]);
    }
    context.sheet("slopes.csv", &sheet)?;
    context.figures(vec![
        ("estimates", laid_out(&estimate_figure(&results, slopes, plan.policies))),
        ("trained", laid_out(&trained_figure(&results, &plan, seeds))),
    ])
}

fn line(settings: &[(&str, &str)]) -> phalanx::Result<Config> {
    Config::preset("synthetic")?.with_all(LINE.iter().chain(settings).copied())
}

/// Mean relative errors.
#[derive(Debug, Serialize, Deserialize)]
struct Errors {
    occupancy: f64,
    gradient: f64,
}

/// The first iteration of runs that begin at random policies with multipliers of 1, against the truth.
fn estimates(context: &ExperimentContext<'_>, batch: usize, policies: u64) -> anyhow::Result<Errors> {
    let batch = batch.to_string();
    let config = line(&[
        ("iterations", "1"),
        ("batch", &batch),
        ("policy.init_std", "1"),
        ("critic.kind", "montecarlo"),
        ("dual.kind", "descent"),
        ("dual.eta_mu", "0"),
        ("dual.mu_0", "1"),
    ])?;
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
    let whole = chain.action_values(&signals.rewards, &values, session.mu());
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

/// Algorithm 1 as published (proximal multipliers, TD), with B and K.
fn trained(
    context: &ExperimentContext<'_>,
    batch: usize,
    transitions: usize,
    iterations: usize,
    seed: u64,
) -> anyhow::Result<End> {
    let [batch, transitions, seed] = [batch, transitions, seed as usize].map(|number| number.to_string());
    let settings = [("batch", &*batch), ("critic.steps", &*transitions), ("seed", &*seed)];
    end(context, &settings, iterations)
}

/// The same without sampling error: what no number of samples improves on.
fn exact(context: &ExperimentContext<'_>, iterations: usize) -> anyhow::Result<End> {
    end(context, &[("algorithm", "exact"), ("critic.truncation", "none")], iterations)
}

fn end(context: &ExperimentContext<'_>, settings: &[(&str, &str)], iterations: usize) -> anyhow::Result<End> {
    let iterations = iterations.to_string();
    let common = [
        ("iterations", &*iterations),
        ("kappa_q", "1"),
        ("kappa_g", "1"),
        ("dual.kind", "proximal"),
        ("dual.eta_mu", "100"),
        ("actor.optimizer", "sgd"),
        ("actor.eta_theta", "0.3"),
    ];
    let config = line(&[&common[..], settings].concat())?;
    on_one_thread(|| {
        let mut session = Session::new(&config)?;
        while session.advance()?.is_some() {
            context.reproduction.check()?;
        }
        let truth =
            session.evaluator()?.exact().ok_or_else(|| anyhow::anyhow!("a line without exact values"))?;
        Ok(End { e: truth.e, violation: truth.violation_max, objective: truth.objective })
    })?
}

fn estimate_figure(results: &Sheet, slopes: [f64; 2], policies: u64) -> Figure {
    let points = |column: &str| results.points("B", column, |row| row[0] == "estimate");
    let curve = |(label, column, slope): (&str, &str, f64)| {
        let label = format!("{label} (slope {slope:.2})").replace('-', "−");
        Curve { label, points: points(column), style: Style::Marked }
    };
    let (occupancy, gradient) =
        (("occupancies", "occupancy_error", slopes[0]), ("gradient", "gradient_error", slopes[1]));
    let mut curves: Vec<Curve> = [occupancy, gradient].into_iter().map(curve).collect();
    // From the first error on, as 1/√B.
    for column in ["occupancy_error", "gradient_error"] {
        let all = points(column);
        if let (Some(&(from, error)), Some(&(to, _))) = (all.first(), all.last()) {
            let points = vec![(from, error), (to, error * (from / to).sqrt())];
            curves.push(Curve { label: "1/√B".into(), points, style: Style::Dashed });
        }
    }
    Figure {
        title: "Errors of estimates against B".into(),
        subtitle: format!("line of 4 agents, γ = 0.8, H = 60; mean over {policies} random policies"),
        panels: vec![Panel { x: log("episodes B"), y: log("relative error"), curves }],
    }
}

fn trained_figure(results: &Sheet, plan: &Plan, seeds: u64) -> Figure {
    let panel = |what: &str, x: &str, label: &str| {
        let points = |column: &str| results.points(x, column, |row| row[0] == what);
        Panel {
            x: log(label),
            y: log("at the end of training"),
            curves: vec![
                Curve { label: "E".into(), points: points("E"), style: Style::Marked },
                Curve {
                    label: "objective short of that with exact gradients".into(),
                    points: points("objective_gap"),
                    style: Style::Marked,
                },
                Curve {
                    label: "E with exact gradients".into(),
                    points: points("E_exact"),
                    style: Style::Dashed,
                },
            ],
        }
    };
    let of = format!("episodes B (K = {TRANSITIONS})");
    let other = format!("transitions K (B = {BATCH})");
    Figure {
        title: "Trained policies against samples".into(),
        subtitle: format!(
            "line of 4 agents, γ = 0.8, {} iterations; exact values of the last policy, mean over {seeds} seeds",
            plan.iterations
        ),
        panels: vec![panel("batch", "B", &of), panel("transitions", "K", &other)],
    }
}

fn log(label: &str) -> Axis {
    Axis::new(label, Values::Log)
}

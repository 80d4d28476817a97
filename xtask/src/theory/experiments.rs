//! One function for each figure.

use anyhow::Result;
use phalanx_cli::figure::{Axis, Curve, Figure, Panel, Spacing, Style};
use serde_json::{Value, json};

use crate::lab::{Lab, ROUNDING, Table};
use crate::models;

/// Error of the truncated gradient against κ_q, with its two bounds.
pub fn truncation(lab: &mut Lab) -> Result<()> {
    const AGENTS: usize = 7;
    const GAMMA: f64 = 0.99;
    let mut table = Table::new(&["mixing", "kappa_q", "fixed", "averaged", "td", "lemma", "certificate"]);
    for (mixing, file) in [(0.3, "line7-mixed.json"), (0.0, "line7.json")] {
        let mut model = models::line(AGENTS, GAMMA, mixing);
        lab.write(file, &format!("{model}\n"))?;
        // With κ_q = 6 nothing is cut off.
        for kappa_q in 0..AGENTS - 1 {
            model["input"]["kappa_q"] = json!(kappa_q);
            let report = lab.exact(&model)?;
            let best = lemma_bound(&report, 1.0, GAMMA);
            let error = |kind: &str| gradient_error(&report, kind);
            let certificate = number(&report["closed_loop"]["grad_certified"]);
            table.push(&[
                mixing,
                kappa_q as f64,
                error("fixed"),
                error("avg"),
                error("td_occupancy"),
                best,
                certificate,
            ]);
        }
    }
    // The same with four agents, for the optimum over all policies and the theorem's step size.
    let mut small = models::line(4, 0.8, 0.0);
    small["input"]["algorithm"] = json!({ "T": 1, "eta_mu": 100.0, "eta_theta": 0.1 });
    lab.write("line4.json", &format!("{small}\n"))?;

    let panel = |mixing: f64, what: &str| {
        let curve = |label, column, style| Curve {
            label: String::from(label),
            points: table.only("mixing", mixing).points("kappa_q", column),
            style,
        };
        Panel {
            x: axis("κ_q", Spacing::Whole),
            y: axis(what, Spacing::Logarithmic),
            curves: vec![
                curve("error of fixed", "fixed", Style::Marked),
                curve("error of averaged", "averaged", Style::Marked),
                curve("bound of the lemma", "lemma", Style::Dashed),
                curve("certificate", "certificate", Style::Dashed),
            ],
        }
    };
    let figure = Figure {
        title: "Error of the truncated gradient".into(),
        subtitle: "line of 7 agents, γ = 0.99, policies of the own state; largest error over agents".into(),
        panels: vec![
            panel(0.3, "mixing 0.3: the assumption holds"),
            panel(0.0, "the paper's line: it fails"),
        ],
    };
    lab.figure("truncation", &table, figure)
}

/// The lemma's bound at its best ω, for multipliers of `mu`; NaN where the assumption fails.
fn lemma_bound(report: &Value, mu: f64, gamma: f64) -> f64 {
    let decay = &report["decay"];
    (1.0 + mu) * number(&decay["M_pi"]) * number(&decay["best_c0phi"]) / (1.0 - gamma)
}

/// The largest error over agents of a truncated gradient; NaN if the report does not have it.
fn gradient_error(report: &Value, kind: &str) -> f64 {
    let rows = |key: &str| -> Option<Vec<Vec<f64>>> { serde_json::from_value(report[key].clone()).ok() };
    let (Some(whole), Some(cut)) = (rows("grad_true"), rows(&format!("grad_trunc_{kind}"))) else {
        return f64::NAN;
    };
    let error =
        |(a, b): (&Vec<f64>, &Vec<f64>)| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    whole.iter().zip(&cut).map(error).fold(0.0, f64::max)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Radii of the family.
const RADII: std::ops::RangeInclusive<usize> = 1..=6;

/// A family of models that satisfy the lemma's conditions but not its bound.
pub fn counterexample(lab: &mut Lab) -> Result<()> {
    let mut table =
        Table::new(&["kappa", "error", "lemma", "certificate", "dq", "dq_lemma", "dq_certificate"]);
    for kappa in RADII {
        let model = models::counterexample(kappa);
        lab.write(&format!("lemma-kappa{kappa}.json"), &format!("{model}\n"))?;
        let report = lab.exact(&model)?;
        let certificate = &report["closed_loop"];
        table.push(&[
            kappa as f64,
            gradient_error(&report, "fixed"),
            lemma_bound(&report, 0.0, 0.9),
            number(&certificate["grad_certified"]),
            number(&certificate["dQf_actual"][0]),
            number(&report["decay"]["best_c0phi"]),
            number(&certificate["dQf_certified"][0]),
        ]);
    }
    let panel = |what: &str, columns: [&str; 3]| {
        let styles = [
            ("measured", Style::Marked),
            ("bound of the lemma", Style::Dashed),
            ("certificate", Style::Dashed),
        ];
        let curve = |(column, (label, style)): (&str, (&str, Style))| Curve {
            label: label.into(),
            points: table.points("kappa", column),
            style,
        };
        Panel {
            x: axis("κ = κ_q", Spacing::Whole),
            y: axis(what, Spacing::Logarithmic),
            curves: columns.into_iter().zip(styles).map(curve).collect(),
        }
    };
    let figure = Figure {
        title: "A policy that carries influence over κ hops at once".into(),
        subtitle: "line of κ + 2 agents, γ = 0.9; agent 0 copies the state of agent κ".into(),
        panels: vec![
            panel("error of the truncated gradient", ["error", "lemma", "certificate"]),
            panel("error of agent 0's truncated Q", ["dq", "dq_lemma", "dq_certificate"]),
        ],
    };
    lab.figure("counterexample", &table, figure)
}

/// What is left of a violation in the limit, against η_μ.
pub fn limit(lab: &mut Lab) -> Result<()> {
    const KINDS: [&str; 3] = ["proximal", "descent", "pi"];
    let mut table = Table::new(&["eta_mu", "predicted", "proximal", "descent", "pi"]);
    for eta_mu in [3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0] {
        let mut row = vec![eta_mu, predicted_violation(eta_mu)];
        for kind in KINDS {
            let run = lab.train(
                "limit",
                &[
                    format!("dual.kind={kind}"),
                    format!("dual.eta_mu={eta_mu:?}"),
                    format!("dual.eta_integral={:?}", 0.1 * eta_mu),
                    format!("actor.eta_theta={:?}", 30.0 / eta_mu),
                    "iterations=20000".into(),
                ],
            )?;
            let violations = run.column("violation_max")?;
            row.push(violations.iter().rev().take(100).copied().fold(0.0, f64::max));
        }
        table.push(&row);
    }
    let curve = |label: &str, column: &str, style| {
        let points = table.points("eta_mu", column).into_iter();
        Curve { label: label.into(), points: points.map(|(x, y)| (x, y.max(ROUNDING))).collect(), style }
    };
    let mut curves = vec![curve("predicted for proximal: μ/η_μ", "predicted", Style::Dashed)];
    curves.extend(KINDS.iter().map(|kind| curve(kind, kind, Style::Marked)));
    let figure = Figure {
        title: "Violation in the limit".into(),
        subtitle: "worst agent over the last 100 of 20 000 iterations, line of 4 agents, γ = 0.9; less than 10⁻¹³ is drawn there".into(),
        panels: vec![Panel {
            x: axis("η_μ", Spacing::Logarithmic),
            y: axis("violation", Spacing::Logarithmic),
            curves,
        }],
    };
    lab.figure("limit", &table, figure)
}

/// The violation of agent 1 at the maximum of F − (η/2) Σ max(0, −g)² on the line of `limit.toml`, in closed form but for
/// a root. Agent 1's share d of time in state 1 earns 0.1 itself and γ through agent 0, which copies it.
fn predicted_violation(eta_mu: f64) -> f64 {
    const GAMMA: f64 = 0.9;
    const LEAST: f64 = 0.5;
    let entropy = |d: f64| -d * d.ln() - (1.0 - d) * (1.0 - d).ln();
    let violation = |d: f64| f64::max(0.0, LEAST - entropy(d));
    // The derivative of the penalty is −μ·dH/dd with μ = η·violation, and −dH/dd = logit d.
    let price = |d: f64| eta_mu * violation(d) * (d / (1.0 - d)).ln();
    let copied = |d: f64| 0.5 * (1.0 - GAMMA) + GAMMA * d;
    let gain = |d: f64| GAMMA * (1.0 - price(copied(d))) + 0.1 - price(d);
    let (mut low, mut high) = (0.5, 1.0 - 1e-12);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if gain(middle) > 0.0 { low = middle } else { high = middle }
    }
    violation(low)
}

/// E after T iterations with η_μ ∝ T^{1/3}, and the least on the way.
pub fn rate(lab: &mut Lab) -> Result<()> {
    let mut table = Table::new(&["eta_mu", "theorem", "T", "E_final", "E_min", "violation"]);
    let curves = [(1.0, "local"), (10.0, "local"), (100.0, "local"), (10.0, "theorem")];
    for (eta_mu, rule) in curves {
        for iterations in [100_u32, 300, 1000, 3000, 10_000, 30_000, 100_000] {
            let run = lab.train(
                "rate",
                &[
                    format!("dual.eta_mu={eta_mu:?}"),
                    format!("actor.rule={rule}"),
                    format!("iterations={iterations}"),
                ],
            )?;
            let least = run.column("E")?.iter().copied().fold(f64::INFINITY, f64::min);
            let violation = run.last("violation_max")?;
            let by_theorem = f64::from(rule == "theorem");
            table.push(&[eta_mu, by_theorem, f64::from(iterations), run.last("E")?, least, violation]);
        }
    }
    let panel = |what: &str, column: &str| {
        let curve = |(eta_mu, rule): (f64, &str)| {
            let rows = table.only("eta_mu", eta_mu).only("theorem", f64::from(rule == "theorem"));
            let label = match rule {
                "local" => format!("η_μ = {eta_mu} T^⅓"),
                _ => format!("η_μ = {eta_mu} T^⅓, the theorem's η_θ"),
            };
            Curve { label, points: rows.points("T", column), style: Style::Marked }
        };
        let mut drawn: Vec<Curve> = curves.into_iter().map(curve).collect();
        let order = |t: f64| (t, 3e-4 * (t / 100.0).powf(-2.0 / 3.0));
        drawn.push(Curve {
            label: "slope −⅔".into(),
            points: vec![order(1e2), order(1e5)],
            style: Style::Dashed,
        });
        Panel {
            x: axis("iterations T", Spacing::Logarithmic),
            y: axis(what, Spacing::Logarithmic),
            curves: drawn,
        }
    };
    let figure = Figure {
        title: "Stationarity against the number of iterations".into(),
        subtitle: "line of 4 agents, γ = 0.8, the paper's scaling; each mark is a run of T iterations".into(),
        panels: vec![panel("E of the last iterate", "E_final"), panel("least E of all iterates", "E_min")],
    };
    lab.figure("rate", &table, figure)
}

/// Where agents go with truncated gradients, once they have been at the optimum.
pub fn drift(lab: &mut Lab) -> Result<()> {
    const SETTINGS: [(&str, u32); 3] = [("averaged", 1), ("fixed", 1), ("averaged", 2)];
    const LENGTHS: [u32; 8] = [500, 1000, 2000, 4000, 6000, 8000, 12_000, 16_000];
    // The climb to the optimum would hide what comes after it.
    const FIRST_DRAWN: usize = 200;
    let is_averaged = |truncation: &str| f64::from(truncation == "averaged");
    let mut table = Table::new(&["averaged", "kappa_q", "T", "objective", "E", "d_2", "d_3"]);
    let mut histories = Vec::new();
    for (truncation, kappa_q) in SETTINGS {
        let mut history = Vec::new();
        // Step sizes are constant, so that a short run is the beginning of a long one.
        for iterations in LENGTHS {
            let run = lab.train(
                "drift",
                &[
                    format!("critic.truncation={truncation}"),
                    format!("kappa_q={kappa_q}"),
                    format!("iterations={iterations}"),
                ],
            )?;
            let shares = lab.shares_of_state_one(&run)?;
            table.push(&[
                is_averaged(truncation),
                f64::from(kappa_q),
                f64::from(iterations),
                run.last("objective")?,
                run.last("E")?,
                shares[2],
                shares[3],
            ]);
            let objective = run.column("objective")?.iter().enumerate().skip(FIRST_DRAWN);
            history = objective.step_by(20).map(|(t, &f)| (t as f64, f)).collect();
        }
        histories.push(history);
    }
    let label = |(truncation, kappa_q): (&str, u32)| format!("{truncation}, κ_q = {kappa_q}");
    let objective = |(setting, points): (_, &Vec<(f64, f64)>)| Curve {
        label: label(setting),
        points: points.clone(),
        style: Style::Plain,
    };
    let share = |setting: (&str, u32)| {
        let rows = table.only("averaged", is_averaged(setting.0)).only("kappa_q", f64::from(setting.1));
        Curve { label: label(setting), points: rows.points("T", "d_2"), style: Style::Marked }
    };
    let figure = Figure {
        title: "The drift away from the optimum".into(),
        subtitle: "line of 5 agents, γ = 0.99, κ = 1, exact gradients but for truncation".into(),
        panels: vec![
            Panel {
                x: axis("iteration", Spacing::Whole),
                y: axis("objective; the optimum is 0.22348", Spacing::Even),
                curves: SETTINGS.into_iter().zip(&histories).map(objective).collect(),
            },
            Panel {
                x: axis("iteration", Spacing::Whole),
                y: axis("agent 2's share of time in state 1", Spacing::Even),
                curves: SETTINGS.into_iter().map(share).collect(),
            },
        ],
    };
    lab.figure("drift", &table, figure)
}

/// E and violation at the end, against the upper end of multipliers.
pub fn multipliers(lab: &mut Lab) -> Result<()> {
    let mut table = Table::new(&["mu_max", "E", "violation_max"]);
    for mu_max in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0, 1.2, 1.5] {
        let run = lab.train(
            "limit",
            &[
                "dual.kind=pi".into(),
                "dual.eta_mu=30.0".into(),
                "dual.eta_integral=3.0".into(),
                "actor.eta_theta=1.0".into(),
                format!("dual.mu_max={mu_max:?}"),
            ],
        )?;
        table.push(&[mu_max, run.last("E")?, run.last("violation_max")?]);
    }
    let panel = |what: &str, column: &str, spacing| Panel {
        x: axis("largest multiplier allowed, dual.mu_max", Spacing::Even),
        y: axis(what, spacing),
        curves: vec![Curve {
            label: String::new(),
            points: table.points("mu_max", column).into_iter().map(|(x, y)| (x, y.max(ROUNDING))).collect(),
            style: Style::Marked,
        }],
    };
    let figure = Figure {
        title: "E cannot see what the multipliers cannot pay for".into(),
        subtitle: "line of 4 agents, γ = 0.9, dual.kind = pi, 5000 iterations; the multiplier needed is 0.72"
            .into(),
        panels: vec![
            panel("largest violation at the end", "violation_max", Spacing::Even),
            panel("E at the end; less than 10⁻¹³ is drawn there", "E", Spacing::Logarithmic),
        ],
    };
    lab.figure("multipliers", &table, figure)
}

fn axis(label: &str, spacing: Spacing) -> Axis {
    Axis { label: label.into(), spacing }
}

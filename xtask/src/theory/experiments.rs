//! One function for each figure that `phalanx paper` does not make.

use anyhow::Result;
use phalanx_pictures::plot::figure::{Axis, Curve, Figure, Panel, Spacing, Style};

use crate::lab::{Lab, ROUNDING, Table};

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

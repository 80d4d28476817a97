//! `rate`: ℰ against the number of iterations with exact gradients, beside the theorem's T^(−2/3), and the
//! bound that its proof comes to. Paper: thm:convergence.

use std::path::Path;

use phalanx::exact::{Constants, Dynamics};
use phalanx::run::{Config, Session};
use serde::{Deserialize, Serialize};

use super::context::{ExperimentContext, Length};
use super::drawing::{Curve, Panel, Style, log, side_by_side};
use super::on_one_thread;
use super::sheet::{Sheet, number};
use phalanx_pictures::plot::canvas::Figure;
use phalanx_pictures::statistics::slope;

/// The line of four agents; η_μ and T are set here.
const CONFIG: &str = include_str!("rate.toml");

/// What the theorem promises.
const THEOREM: f64 = -2.0 / 3.0;

/// c in η_μ = c·T^⅓, and where η_θ comes from.
const CURVES: [(f64, &str); 4] = [(1.0, "local"), (10.0, "local"), (100.0, "local"), (10.0, "theorem")];

/// A run of T iterations.
#[derive(Debug, Serialize, Deserialize)]
struct Run {
    first: f64,
    last: f64,
    least: f64,
    violation: f64,
    /// What the proof promises of some iterate, with the theorem's step sizes.
    bound: f64,
}

/// Writes `results.csv`, `slopes.csv` and `figures/rate`.
pub fn make(context: &ExperimentContext<'_>) -> anyhow::Result<()> {
    let (lengths, from): (&[usize], f64) = match context.reproduction.length {
        Length::Whole => (&[100, 300, 1000, 3000, 10_000, 30_000, 100_000], 1000.0),
        Length::Quick => (&[100, 300, 1000, 3000], 300.0),
        Length::Cut(_) => (&[10, 30, 100], 10.0),
    };
    let mut results = Sheet::new("eta_mu,theorem,T,E_final,E_min,violation,E_start,bound");
    for (eta_mu, rule) in CURVES {
        for &iterations in lengths {
            let name = format!("{rule}-{eta_mu}-{iterations}");
            let Run { first, last, least, violation, bound } =
                context.part(&name, || run(context, eta_mu, rule, iterations))?;
            let by_theorem = f64::from(rule == "theorem");
            let steps = [eta_mu, by_theorem, iterations as f64];
            let found = [last, least, violation, first, if rule == "theorem" { bound } else { f64::NAN }];
            results.push(steps.into_iter().chain(found).map(number).collect());
        }
    }
    context.sheet("results.csv", &results)?;

    let mut slopes = Sheet::new("eta_mu,theorem,E_final,E_min,promised");
    let mut labels = Vec::new();
    for curve in CURVES {
        let is_long = |row: &[String]| is_of(&results, row, curve) && results.number(row, "T") >= from;
        let fitted = ["E_final", "E_min"].map(|column| slope(&results.points("T", column, is_long)));
        let (eta_mu, rule) = curve;
        let by_theorem = f64::from(rule == "theorem");
        slopes.push([eta_mu, by_theorem, fitted[0], fitted[1], THEOREM].map(number).into());
        let times = if eta_mu == 1.0 { String::new() } else { format!("{eta_mu} ") };
        let steps = if rule == "theorem" { ", the theorem's η_θ" } else { "" };
        let fitted = fitted.map(two_digits);
        labels.push(format!("η_μ = {times}T^⅓{steps} (slopes {}, {})", fitted[0], fitted[1]));
    }
    context.sheet("slopes.csv", &slopes)?;
    context.figures(vec![("rate", figure(&results, &labels, from))])
}

/// A slope in words; there is no −0.
fn two_digits(slope: f64) -> String {
    format!("{:.2}", (100.0 * slope).round() / 100.0 + 0.0).replace('-', "−")
}

fn run(context: &ExperimentContext<'_>, eta_mu: f64, rule: &str, iterations: usize) -> anyhow::Result<Run> {
    let config = Config::from_toml(CONFIG, Path::new(""))?.with_all([
        ("dual.eta_mu", &*format!("{eta_mu:?}")),
        ("actor.rule", rule),
        ("iterations", &*iterations.to_string()),
    ])?;
    on_one_thread(|| {
        let mut session = Session::new(&config)?;
        let bound = bound_of_proof(&session, eta_mu * (iterations as f64).cbrt(), iterations)?;
        let (first, last, violation) = (f64::NAN, f64::NAN, f64::NAN);
        let mut run = Run { first, last, least: f64::INFINITY, violation, bound };
        while let Some(summary) = session.advance()? {
            if summary.iteration % 256 == 0 {
                context.reproduction.check()?;
            }
            let e = summary.stationarity.map_or(f64::NAN, |stationarity| stationarity.e);
            let first = if run.first.is_nan() { e } else { run.first };
            run = Run { first, last: e, least: run.least.min(e), violation: summary.violation_max, bound };
        }
        Ok(run)
    })?
}

/// What ℰ of the best of T iterates is at most with the theorem's step sizes and no truncation, by the last
/// lines of the proof: 2 [(L_θθ + M_θ)²/(L_θμ² η_μ) + 8 (L_θθ + M_θ) + 16 L_θμ² η_μ] · [2 M_L/T +
/// n μ̄²/(2 η_μ T)] + n μ̄²/η_μ². Paper: app:sec_proof_thm. NaN where it has none.
fn bound_of_proof(session: &Session, eta_mu: f64, iterations: usize) -> phalanx::Result<f64> {
    let (problem, mu_bar) = (session.problem(), *session.config().dual.mu_max);
    let (n, t) = (problem.agents.len() as f64, iterations as f64);
    let mass = 1.0 / (1.0 - problem.gamma);
    let size = |(low, high): (f64, f64)| low.abs().max(high.abs());
    // M_L, the bound on |L|: by what every utility can be at all.
    let mut most = 0.0;
    for agent in &problem.agents {
        let Some(objective) = agent.objective.range(agent.space, mass) else { return Ok(f64::NAN) };
        most += size(objective) / n;
        for constraint in &agent.constraints {
            let Some((low, high)) = constraint.utility.range(agent.space, mass) else { return Ok(f64::NAN) };
            most += mu_bar * size((constraint.bound.slack(low), constraint.bound.slack(high))) / n;
        }
    }
    let dynamics = Dynamics::new(session.world())?;
    let Some(constants) = Constants::new(problem, &dynamics, mu_bar) else { return Ok(f64::NAN) };
    let Constants { l_tt, l_tm, m_theta, .. } = constants;
    let (smooth, across, weight) = (l_tt + m_theta, l_tm * l_tm * eta_mu, n * mu_bar * mu_bar);
    let primal = 2.0 * (smooth * smooth / across + 8.0 * smooth + 16.0 * across);
    Ok(primal * (2.0 * most / t + weight / (2.0 * eta_mu * t)) + weight / (eta_mu * eta_mu))
}

/// Whether a row is of runs with these steps.
fn is_of(results: &Sheet, row: &[String], (eta_mu, rule): (f64, &str)) -> bool {
    results.number(row, "eta_mu") == eta_mu && results.number(row, "theorem") == f64::from(rule == "theorem")
}

fn figure(results: &Sheet, labels: &[String], from: f64) -> Figure {
    let lengths = || results.points("T", "T", |_| true).into_iter().map(|(t, _)| t);
    let (shortest, longest) = (lengths().fold(f64::MAX, f64::min), lengths().fold(0.0, f64::max));
    let panel = |what: &str, column: &str| {
        let curve = |(steps, label): ((f64, &str), &String)| {
            results.curve(label, ("T", column), Style::Marked, |row| is_of(results, row, steps))
        };
        let mut curves: Vec<Curve> = CURVES.into_iter().zip(labels).map(curve).collect();
        // Among what is drawn; its height means nothing.
        let order = |t: f64| (t, 3e-4 * (t / 100.0).powf(THEOREM));
        let points = vec![order(shortest), order(longest)];
        curves.push(Curve { label: "slope −⅔ of the theorem".into(), points, style: Style::Dashed });
        Panel { x: log("iterations T"), y: log(what), curves }
    };
    let of_line = "line of 4 agents, γ = 0.8, the paper's scaling";
    side_by_side(
        "Stationarity against iterations",
        format!("{of_line}; a mark is a run of T iterations; slopes for T ≥ {from}"),
        &[panel("E of the last iterate", "E_final"), panel("least E of all iterates", "E_min")],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With T: the bound falls as T^(−2/3) in the end, and is above all that ℰ can be at the start.
    #[test]
    fn the_bound_of_the_proof_has_its_order() {
        let bound = |iterations: f64| {
            let config = Config::from_toml(CONFIG, Path::new("")).unwrap();
            let session = Session::new(&config).unwrap();
            bound_of_proof(&session, 10.0 * iterations.cbrt(), iterations as usize).unwrap()
        };
        let slope = slope(&[(1e15, bound(1e15)), (1e18, bound(1e18))]);
        assert!((slope - THEOREM).abs() < 0.01, "{slope}");
        assert!(bound(1e5) > 1.0, "{}", bound(1e5));
    }
}

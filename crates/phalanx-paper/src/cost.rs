//! `cost`: time and traffic of an iteration against the radius κ, up to the diameter of the graph, where
//! nothing is truncated. Paper: sec:numerical_exp, first question.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use phalanx::run::{Config, Session};
use serde::{Deserialize, Serialize};

use super::catalogue::listed;
use super::context::{ByLength, ExperimentContext};
use super::drawing::{Curve, Panel, Style, log, side_by_side};
use super::on_one_thread;
use super::setting::key_and_value;
use super::sheet::{Sheet, optional};
use phalanx_pictures::plot::canvas::Figure;
use phalanx_pictures::plot::quantile;

/// Columns of `results.csv`: one row per radius. `seconds` is the median, `seconds_relative` compares
/// `seconds_least`.
const COLUMNS: &str = "world,kappa,diameter,agents,iterations,seconds,seconds_least,seconds_relative,bytes,\
    bytes_relative,state_bytes,status";

/// What is measured: a preset with settings on top, and the radii, the last of which is the diameter.
#[derive(Deserialize)]
struct World {
    name: String,
    preset: String,
    /// Each `key=value`.
    #[serde(default)]
    set: Vec<String>,
    radii: Vec<usize>,
    /// Shorter lengths leave out what takes long.
    measured: ByLength<bool>,
}

static WORLDS: LazyLock<Vec<World>> = LazyLock::new(|| listed(include_str!("cost.toml"), "world"));

/// A radius; nothing is measured where a configuration is refused.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Cost {
    agents: usize,
    iterations: usize,
    /// Median and least of an iteration. The least is drawn: other programs at work change it less.
    seconds: Option<f64>,
    least: Option<f64>,
    /// Sent by an agent in an iteration.
    bytes: Option<f64>,
    /// Of a checkpoint: what has to be kept of the policy, the critic and the optimisers.
    state_bytes: usize,
    status: String,
}

/// Writes `results.csv`, `figures/time` and `figures/traffic`.
pub fn make(context: &ExperimentContext<'_>) -> anyhow::Result<()> {
    let mut results = Sheet::new(COLUMNS);
    for (number_of_world, world) in WORLDS.iter().enumerate() {
        if !world.measured.of(context.reproduction.length) {
            continue;
        }
        let diameter = world.radii.last().copied().unwrap_or(0);
        let mut costs = Vec::new();
        for &kappa in &world.radii {
            let part = format!("{number_of_world}-kappa{kappa}");
            costs.push(context.part(&part, || measure(context, world, kappa))?);
        }
        let whole = costs.last().cloned();
        let relative = |value: Option<f64>, of: fn(&Cost) -> Option<f64>| {
            optional(value.zip(whole.as_ref().and_then(of)).map(|(value, whole)| value / whole))
        };
        for (&kappa, cost) in world.radii.iter().zip(&costs) {
            results.push(vec![
                world.name.clone(),
                kappa.to_string(),
                diameter.to_string(),
                cost.agents.to_string(),
                cost.iterations.to_string(),
                optional(cost.seconds),
                optional(cost.least),
                relative(cost.least, |cost| cost.least),
                optional(cost.bytes),
                relative(cost.bytes, |cost| cost.bytes),
                cost.state_bytes.to_string(),
                cost.status.clone(),
            ]);
        }
    }
    context.sheet("results.csv", &results)?;
    let time = figure(
        &results,
        "Time per iteration",
        "seconds of the fastest iteration",
        ["seconds_least", "seconds_relative"],
    );
    let traffic =
        figure(&results, "Traffic per agent", "bytes per agent and iteration", ["bytes", "bytes_relative"]);
    context.figures(vec![("time", time), ("traffic", traffic)])
}

/// Iterations after the first one, which makes room for everything.
fn measure(context: &ExperimentContext<'_>, world: &World, kappa: usize) -> anyhow::Result<Cost> {
    // Iterations at most, and milliseconds.
    let limits = ByLength { whole: (200, 4000), quick: (20, 200), cut: (1, 0) };
    let &(most, budget) = limits.of(context.reproduction.length);
    let budget = Duration::from_millis(budget);
    let kappa = kappa.to_string();
    let radii = ["kappa", "kappa_q", "kappa_g"].map(|key| (key, &*kappa));
    let sets = world.set.iter().map(|set| key_and_value(set));
    let config = Config::preset(&world.preset)?.with_all(sets.chain(radii))?;
    let nothing = |agents, status| Cost { agents, status, ..Cost::default() };
    on_one_thread(|| {
        let mut session = match Session::new(&config) {
            Ok(session) => session,
            Err(error) => return Ok(nothing(0, format!("refused: {error}"))),
        };
        let agents = session.world().graph().agents();
        let mut seconds = Vec::new();
        let begin = Instant::now();
        // The first iteration is not counted, unless it alone has used the time up.
        for iteration in 0..=most {
            context.reproduction.check()?;
            let from = Instant::now();
            if let Err(error) = session.advance() {
                return Ok(nothing(agents, format!("failed: {error}")));
            }
            if iteration == 1 {
                seconds.clear();
            }
            seconds.push(from.elapsed().as_secs_f64());
            if begin.elapsed() >= budget && iteration >= 3 || begin.elapsed() >= 4 * budget {
                break;
            }
        }
        seconds.sort_by(f64::total_cmp);
        // Episodes that end early make iterations differ.
        let bytes = session.algorithm().traffic().bytes() as f64 / session.algorithm().iteration() as f64;
        Ok(Cost {
            agents,
            iterations: seconds.len(),
            seconds: Some(quantile(&seconds, 0.5)),
            least: seconds.first().copied(),
            bytes: Some(bytes / agents as f64),
            state_bytes: session.state_bytes(),
            status: "measured".into(),
        })
    })?
}

fn figure(results: &Sheet, title: &str, unit: &str, columns: [&str; 2]) -> Figure {
    let curves = |column: &str| -> Vec<Curve> {
        let curve = |world: &World| {
            let mut curve =
                results.curve(&world.name, ("kappa", column), Style::Marked, |row| row[0] == world.name);
            // From 1 on, so that κ = 0 has a place on a logarithmic axis; κ = 0 sends nothing.
            curve.points.retain(|&(_, y)| y > 0.0);
            curve.points.iter_mut().for_each(|(kappa, _)| *kappa += 1.0);
            curve
        };
        WORLDS.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect()
    };
    // On one graph the relative traffic is the same whatever is learnt: one curve is enough.
    let mut relative: Vec<Curve> = Vec::new();
    for curve in curves(columns[1]) {
        if relative.iter().all(|other| other.points != curve.points) {
            relative.push(curve);
        }
    }
    let most = relative.iter().flat_map(|curve| &curve.points).fold(1.0f64, |most, point| most.max(point.0));
    let whole = vec![(1.0, 1.0), (most, 1.0)];
    relative.push(Curve { label: "κ = diameter".into(), points: whole, style: Style::Dashed });
    let panel = |what: &str, curves| Panel { x: log("κ + 1"), y: log(what), curves };
    side_by_side(
        format!("{title} against κ"),
        notes(results),
        &[panel(unit, curves(columns[0])), panel("relative to κ = diameter", relative)],
    )
}

/// What the figure cannot show, and why.
fn notes(results: &Sheet) -> String {
    let mut notes = vec![
        "κ = κ_q = κ_g, one thread; curves end at the diameter of the graph; κ = 0 sends nothing".to_string(),
    ];
    for world in WORLDS.iter() {
        let refused = results.rows.iter().filter(|row| {
            results.text(row, "world") == world.name && results.text(row, "status").starts_with("refused")
        });
        let radii: Vec<&str> = refused.map(|row| results.text(row, "kappa")).collect();
        if !radii.is_empty() {
            notes.push(format!("{}: κ = {} needs too large a table", world.name, radii.join(", ")));
        }
    }
    notes.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_drawn_is_said_and_nothing_is_hidden() {
        let mut results = Sheet::new(COLUMNS);
        for (world, kappa, bytes, status) in [
            ("line 10, networks", 1, "0.5", "measured"),
            ("line 10, networks", 9, "1", "measured"),
            ("line 10, tables", 1, "0.5", "measured"),
            ("line 10, tables", 9, "1", "measured"),
            ("line 100, tables", 99, "", "refused: too large"),
        ] {
            let mut row = vec![world.to_string(), kappa.to_string()];
            row.extend(["9", "10", "3", "1", "1", bytes, bytes, bytes, "1", status].map(String::from));
            results.push(row);
        }
        let figure = figure(&results, "Traffic", "bytes", ["bytes", "bytes_relative"]);
        assert!(
            figure.subtitle.ends_with("line 100, tables: κ = 99 needs too large a table"),
            "{}",
            figure.subtitle
        );
        let named =
            |panel: usize| figure.panels[panel].layers.iter().filter(|layer| !layer.label.is_empty()).count();
        assert_eq!((named(0), named(1)), (2, 2), "one of two equal curves, and the line of the diameter");
    }
}

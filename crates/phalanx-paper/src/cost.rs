//! `cost`: time and traffic of an iteration against the radius κ, up to the diameter of the network, where nothing is
//! truncated. Paper: sec:numerical_exp, first question.

use std::time::{Duration, Instant};

use phalanx::run::{Config, Session};
use serde::{Deserialize, Serialize};

use super::context::{ExperimentContext, Length};
use super::on_one_thread;
use super::sheet::{Sheet, number};
use phalanx_pictures::plot::Values;
use phalanx_pictures::plot::canvas::Axis;
use phalanx_pictures::plot::figure::{Curve, Figure, Panel, Style, laid_out};
use phalanx_pictures::plot::quantile;

/// Columns of `results.csv`: one row per radius. `seconds` is the median, `seconds_relative` compares `seconds_least`.
const COLUMNS: &str = "world,kappa,diameter,agents,iterations,seconds,seconds_least,seconds_relative,bytes,\
    bytes_relative,state_bytes,status";

/// What is measured: a preset with settings on top, and the radii, the last of which is the diameter.
struct World {
    name: &'static str,
    preset: &'static str,
    sets: &'static [(&'static str, &'static str)],
    radii: &'static [usize],
}

const WORLDS: &[World] = &[
    World { name: "line 10, networks", preset: "paper/synthetic", sets: &[], radii: &[0, 1, 2, 3, 5, 9] },
    World { name: "line 10, tables", preset: "synthetic", sets: &[], radii: &[0, 1, 2, 3, 5, 9] },
    World {
        name: "line 100, networks",
        preset: "paper/synthetic",
        sets: &[("world.n", "100")],
        radii: &[0, 1, 2, 5, 10, 20, 50, 99],
    },
    World {
        name: "line 100, tables",
        preset: "synthetic",
        sets: &[("world.n", "100")],
        radii: &[0, 1, 2, 3, 4, 99],
    },
    World { name: "wireless 5 × 5, networks", preset: "paper/wireless", sets: &[], radii: &[0, 1, 2, 3, 4] },
    World { name: "wireless 5 × 5, linear", preset: "wireless", sets: &[], radii: &[0, 1, 2, 3, 4] },
    World { name: "pistonball 10", preset: "paper/pistonball", sets: &[], radii: &[0, 1, 2, 3, 5, 9] },
    World { name: "pistonball 20", preset: "paper/pistonball20", sets: &[], radii: &[0, 1, 3, 5, 10, 19] },
];

/// A radius; nothing is measured where a configuration is refused.
#[derive(Debug, Clone, Serialize, Deserialize)]
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
    let mut results = Sheet::with_header(COLUMNS);
    for (number_of_world, world) in WORLDS.iter().enumerate() {
        if !is_measured(context.reproduction.length, world) {
            continue;
        }
        let diameter = world.radii.last().copied().unwrap_or(0);
        let mut costs = Vec::new();
        for &kappa in world.radii {
            let part = format!("{number_of_world}-kappa{kappa}");
            costs.push(context.part(&part, || measure(context, world, kappa))?);
        }
        let whole = costs.last().cloned();
        let relative = |value: Option<f64>, of: fn(&Cost) -> Option<f64>| {
            value.zip(whole.as_ref().and_then(of)).map_or(f64::NAN, |(value, whole)| value / whole)
        };
        for (&kappa, cost) in world.radii.iter().zip(&costs) {
            results.push(vec![
                world.name.into(),
                kappa.to_string(),
                diameter.to_string(),
                cost.agents.to_string(),
                cost.iterations.to_string(),
                number(cost.seconds.unwrap_or(f64::NAN)),
                number(cost.least.unwrap_or(f64::NAN)),
                number(relative(cost.least, |cost| cost.least)),
                number(cost.bytes.unwrap_or(f64::NAN)),
                number(relative(cost.bytes, |cost| cost.bytes)),
                cost.state_bytes.to_string(),
                cost.status.clone(),
            ]);
        }
    }
    context.sheet("results.csv", &results)?;
    context.figures(vec![
        ("time", laid_out(&figure(&results, "Time per iteration", ["seconds_least", "seconds_relative"]))),
        ("traffic", laid_out(&figure(&results, "Traffic per agent", ["bytes", "bytes_relative"]))),
    ])
}

/// Shorter lengths leave out what takes long.
fn is_measured(length: Length, world: &World) -> bool {
    match length {
        Length::Whole => true,
        Length::Quick => !matches!(world.name, "line 100, networks" | "pistonball 20"),
        Length::Cut(_) => matches!(world.name, "line 10, tables" | "wireless 5 × 5, linear"),
    }
}

/// Iterations after the first one, which makes room for everything.
fn measure(context: &ExperimentContext<'_>, world: &World, kappa: usize) -> anyhow::Result<Cost> {
    let (most, budget) = match context.reproduction.length {
        Length::Whole => (200, Duration::from_secs(4)),
        Length::Quick => (20, Duration::from_millis(200)),
        Length::Cut(_) => (1, Duration::ZERO),
    };
    let kappa = kappa.to_string();
    let radii = ["kappa", "kappa_q", "kappa_g"].map(|key| (key, &*kappa));
    let config = Config::preset(world.preset)?.with_all(world.sets.iter().copied().chain(radii))?;
    let nothing = |agents, status| Cost {
        agents,
        iterations: 0,
        seconds: None,
        least: None,
        bytes: None,
        state_bytes: 0,
        status,
    };
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

fn figure(results: &Sheet, title: &str, columns: [&str; 2]) -> Figure {
    let panel = |column: &str, what: &str, dashed: bool| {
        let curve = |world: &World| {
            let points = results.points("kappa", column, |row| row[0] == world.name);
            // From 1 on, so that κ = 0 has a place on a logarithmic axis; κ = 0 sends nothing.
            let drawn = points.into_iter().filter(|&(_, y)| y > 0.0).map(|(kappa, y)| (kappa + 1.0, y));
            Curve { label: world.name.into(), points: drawn.collect(), style: Style::Marked }
        };
        let mut curves: Vec<Curve> =
            WORLDS.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect();
        if dashed {
            let most =
                curves.iter().flat_map(|curve| &curve.points).fold(1.0f64, |most, point| most.max(point.0));
            let points = vec![(1.0, 1.0), (most, 1.0)];
            curves.push(Curve { label: "κ = diameter".into(), points, style: Style::Dashed });
        }
        let axis = |label: &str| Axis::new(label, Values::Log);
        Panel { x: axis("κ + 1"), y: axis(what), curves }
    };
    let unit = if columns[0] == "seconds_least" {
        "seconds of the fastest iteration"
    } else {
        "bytes per agent and iteration"
    };
    Figure {
        title: format!("{title} against κ"),
        subtitle: "κ = κ_q = κ_g, on one thread; the last mark of a curve is the diameter of its network"
            .into(),
        panels: vec![panel(columns[0], unit, false), panel(columns[1], "relative to κ = diameter", true)],
    }
}

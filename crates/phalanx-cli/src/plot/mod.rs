//! `phalanx plot`: pictures of runs, drawn from their folders.

mod canvas;
mod read;
mod scale;
mod series;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use canvas::{Arrangement, Axis, Colour, Figure, Layer, Mark, Panel, Shape};
use phalanx::Error;
use read::{Margin, Metrics};
use scale::Values;
use series::{Point, Span};

/// Up to this many agents are drawn one by one.
const MOST_AGENTS: usize = 200;
/// In larger networks, this many constraints with the least slack are named.
const NAMED: usize = 20;
/// From this many runs on a band leaves out the outermost tenths.
const RUNS_FOR_QUANTILES: usize = 5;
/// Series of at least this many iterations are also drawn as a moving mean.
const ROWS_FOR_MEAN: usize = 60;

/// Draws one run into `<run>/plots`: `return`, `violation`, `duals` and `margins`, each as SVG and PNG, and gives the
/// files.
///
/// `margins` is drawn from `agents.csv`, which a run writes at its end: it is left out for a run that has not come to
/// its end or has no constraints.
pub fn plot_run(run: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let metrics = Metrics::read(run)?;
    let margins = read::margins(run)?.unwrap_or_default();
    let name = name_of(run);
    let mut figures = vec![
        ("return", return_figure(&name, &metrics)),
        ("violation", violation_figure(&name, &metrics)),
        ("duals", duals_figure(&name, &metrics)),
    ];
    if !margins.is_empty() {
        figures.push(("margins", margins_figure(&name, &margins)));
    }
    write(&run.join("plots"), figures)
}

/// Draws several runs together into `out`: `return` and `violation`, each as SVG and PNG, and gives the files.
///
/// A curve is the mean over runs, its band reaches from the lowest to the highest run, or from 5 runs on over the
/// middle 80 % of them. Runs whose folders differ in the seed only (`name-seed1`, `name-seed2`) make up one curve;
/// without such folders all runs make up one. All runs are cut to the length of the shortest.
pub fn plot_runs(runs: &[PathBuf], out: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if runs.is_empty() {
        return Err(Error::config("RUN", "none given; name the folders of one or more runs").into());
    }
    let mut read = Vec::new();
    for run in runs {
        read.push((name_of(run), Metrics::read(run)?));
    }
    let rows = read.iter().map(|(_, metrics)| metrics.iteration.len()).min().unwrap_or(0);
    let groups = groups(&read);
    let with_return = read.iter().all(|(_, metrics)| metrics.has_return());
    let title = |what: &str| format!("{what}: {}", listed(groups.iter().map(|group| group.name.as_str())));
    let subtitle = format!("training batches, first {rows} iterations of {} runs", runs.len());
    let panel = |label: &str, values: Values, column: fn(&Metrics) -> &[f64]| Panel {
        x: Axis::new("iteration", Values::Whole),
        y: Axis::new(label, values),
        names: Vec::new(),
        layers: groups.iter().enumerate().flat_map(|(k, group)| group.layers(k, rows, column)).collect(),
    };
    let first = if with_return {
        panel("return per agent and episode", Values::Real, |metrics| &metrics.return_)
    } else {
        panel("objective F(θ)", Values::Real, |metrics| &metrics.objective)
    };
    let violations = vec![
        panel("total over constraints", Values::FromZero, |metrics| &metrics.violation_total),
        panel("worst constraint", Values::FromZero, |metrics| &metrics.violation_max),
    ];
    let figure = |what: &str, panels| Figure {
        title: title(what),
        subtitle: subtitle.clone(),
        panels,
        arrangement: Arrangement::Stacked,
    };
    write(
        out,
        vec![
            ("return", figure(if with_return { "Return" } else { "Objective" }, vec![first])),
            ("violation", figure("Violation", violations)),
        ],
    )
}

/// Draws the figures and writes them as `<out>/<name>.svg` and `<out>/<name>.png`.
fn write(out: &Path, figures: Vec<(&str, Figure)>) -> anyhow::Result<Vec<PathBuf>> {
    std::fs::create_dir_all(out).map_err(|error| Error::write(out, error))?;
    let mut files = Vec::new();
    for (name, figure) in figures {
        let drawing = canvas::draw(&figure).map_err(|reason| anyhow::anyhow!("cannot draw {name}: {reason}"))?;
        for (extension, bytes) in [("svg", drawing.svg.as_bytes()), ("png", &drawing.png)] {
            let path = out.join(format!("{name}.{extension}"));
            std::fs::write(&path, bytes).map_err(|error| Error::write(&path, error))?;
            files.push(path);
        }
    }
    Ok(files)
}

/// The name of a run's folder, also if it is given as `.`.
fn name_of(run: &Path) -> String {
    let named = if run.file_name().is_some() { run.to_path_buf() } else { run.canonicalize().unwrap_or_default() };
    named.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned())
}

// ---- one run --------------------------------------------------------------------------------------------------------

fn return_figure(run: &str, metrics: &Metrics) -> Figure {
    let (what, label, values) = if metrics.has_return() {
        ("Return", "return per agent and episode", &metrics.return_)
    } else {
        ("Objective", "objective F(θ)", &metrics.objective)
    };
    let panel = iteration_panel(label, Values::Real, vec![history("", Colour::of_series(0), metrics, values)]);
    training_figure(format!("{what}: {run}"), "training batches", vec![panel])
}

fn violation_figure(run: &str, metrics: &Metrics) -> Figure {
    let panel = |label: &str, values: &[f64]| {
        iteration_panel(label, Values::FromZero, vec![history("", Colour::ALARM, metrics, values)])
    };
    let panels = vec![
        panel("total over constraints", &metrics.violation_total),
        panel("worst constraint", &metrics.violation_max),
    ];
    let subtitle = "training batches, whose noise counts as violation; `margins` shows the closing evaluation";
    training_figure(format!("Violation: {run}"), subtitle, panels)
}

fn duals_figure(run: &str, metrics: &Metrics) -> Figure {
    let layers = vec![
        history("largest", Colour::of_series(2), metrics, &metrics.mu_max),
        history("mean", Colour::of_series(0), metrics, &metrics.mu_mean),
    ];
    let panel = iteration_panel("multiplier μ", Values::FromZero, layers);
    training_figure(format!("Multipliers: {run}"), "over all agents and constraints", vec![panel])
}

fn training_figure(title: String, subtitle: &str, panels: Vec<Panel>) -> Figure {
    Figure { title, subtitle: subtitle.into(), panels, arrangement: Arrangement::Stacked }
}

fn iteration_panel(label: &str, values: Values, layers: Vec<Vec<Layer>>) -> Panel {
    Panel {
        x: Axis::new("iteration", Values::Whole),
        y: Axis::new(label, values),
        names: Vec::new(),
        layers: layers.concat(),
    }
}

/// A column against the iteration: every iteration, and in long runs their moving mean over it.
fn history(name: &str, colour: Colour, metrics: &Metrics, values: &[f64]) -> Vec<Layer> {
    let points = series::points(&metrics.iteration, values);
    let labelled = |what: String| if name.is_empty() { what } else { format!("{name}, {what}") };
    let line = |points, width, colour, label| Layer { shape: Shape::Line { points, width }, colour, label };
    if points.len() < ROWS_FOR_MEAN {
        return vec![line(series::thin(points), 2.0, colour, name.to_string())];
    }
    let window = (points.len() / 40) | 1;
    let mean = series::thin(series::moving_mean(&points, window));
    vec![
        line(series::thin(points), 1.0, colour.tint(0.4), labelled("each iteration".into())),
        line(mean, 2.2, colour, labelled(format!("mean of {window} iterations"))),
    ]
}

// ---- the margins of agents ------------------------------------------------------------------------------------------

fn margins_figure(run: &str, margins: &[Margin]) -> Figure {
    let agents = margins.iter().map(|margin| margin.agent).collect::<HashSet<_>>().len();
    let violated = margins.iter().filter(|margin| margin.slack < 0.0).count();
    let title = format!("Margins: {run}");
    let subtitle = format!(
        "closing evaluation: {violated} of {} constraints of {agents} agents violated",
        margins.len()
    );
    if agents <= MOST_AGENTS {
        let panels = vec![agents_panel(margins)];
        return Figure { title, subtitle, panels, arrangement: Arrangement::Stacked };
    }
    let panels = vec![quantile_panel(margins), worst_panel(margins)];
    Figure { title, subtitle, panels, arrangement: Arrangement::SideBySide }
}

/// The names of the constraints in the order of the file.
fn constraint_names(margins: &[Margin]) -> Vec<&str> {
    let mut names = Vec::new();
    let mut known = HashSet::new();
    for margin in margins {
        if known.insert(margin.constraint.as_str()) {
            names.push(margin.constraint.as_str());
        }
    }
    names
}

fn background() -> Vec<Layer> {
    let unlabelled = |shape, colour| Layer { shape, colour, label: String::new() };
    vec![unlabelled(Shape::BelowZero, Colour::ALARM), unlabelled(Shape::ZeroLine, Colour::QUIET)]
}

const SLACK: &str = "slack (distance from the threshold)";

/// Every agent's slack; a constraint has its own mark and colour, but what is violated has the colour of alarm.
fn agents_panel(margins: &[Margin]) -> Panel {
    let names = constraint_names(margins);
    let mut layers = background();
    for (k, name) in names.iter().enumerate() {
        // Constraints of one agent stand next to one another.
        let aside = (k as f64 - 0.5 * (names.len() - 1) as f64) * (0.6 / names.len() as f64).min(0.2);
        let of_constraint = margins.iter().filter(|margin| margin.constraint == *name);
        let drawable = of_constraint.filter(|margin| series::is_drawable(margin.slack));
        let (bad, good): (Vec<&Margin>, Vec<&Margin>) = drawable.partition(|margin| margin.slack < 0.0);
        let sides = [(good, "safe", Colour::of_series(k)), (bad, "violated", Colour::ALARM)];
        for (side, what, colour) in sides {
            let points: Vec<Point> = side.iter().map(|margin| (margin.agent as f64 + aside, margin.slack)).collect();
            let label = format!("{name}: {} {what}", points.len());
            let mark = Mark::of_series(k);
            layers.push(Layer { shape: Shape::Marks { points, mark }, colour, label });
        }
    }
    Panel {
        x: Axis::new("agent", Values::Whole),
        y: Axis::new(SLACK, Values::Real),
        names: Vec::new(),
        layers,
    }
}

/// The slack that a share of the agents stays below, a curve a constraint.
fn quantile_panel(margins: &[Margin]) -> Panel {
    let mut layers = background();
    for (k, name) in constraint_names(margins).into_iter().enumerate() {
        let of_constraint = margins.iter().filter(|margin| margin.constraint == name);
        let mut slacks: Vec<f64> =
            of_constraint.map(|margin| margin.slack).filter(|&slack| series::is_drawable(slack)).collect();
        slacks.sort_by(f64::total_cmp);
        let last = slacks.len().max(2) - 1;
        let at = |(rank, slack)| (100.0 * rank as f64 / last as f64, slack);
        let points = series::thin(slacks.into_iter().enumerate().map(at).collect());
        let shape = Shape::Line { points, width: 2.2 };
        layers.push(Layer { shape, colour: Colour::of_series(k), label: name.to_string() });
    }
    Panel {
        x: Axis::new("agents, from the least slack on (%)", Values::Whole),
        y: Axis::new(SLACK, Values::Real),
        names: Vec::new(),
        layers,
    }
}

/// The constraints with the least slack, by name.
fn worst_panel(margins: &[Margin]) -> Panel {
    let constraints = constraint_names(margins);
    let mut order: Vec<&Margin> = margins.iter().filter(|margin| series::is_drawable(margin.slack)).collect();
    order.sort_by(|a, b| a.slack.total_cmp(&b.slack).then(a.agent.cmp(&b.agent)));
    order.truncate(NAMED);
    let mut names = Vec::new();
    let mut layers = background();
    for (row, margin) in order.iter().enumerate() {
        names.push(if constraints.len() > 1 {
            format!("agent {}, {}", margin.agent, margin.constraint)
        } else {
            format!("agent {}", margin.agent)
        });
        let k = constraints.iter().position(|name| *name == margin.constraint).unwrap_or(0);
        let (y, mark) = (row as f64 + 1.0, Mark::of_series(k));
        let colour = if margin.slack < 0.0 { Colour::ALARM } else { Colour::of_series(k) };
        let stem = Shape::Line { points: vec![(0.0, y), (margin.slack, y)], width: 1.2 };
        layers.push(Layer { shape: stem, colour: colour.tint(0.5), label: String::new() });
        let head = Shape::Marks { points: vec![(margin.slack, y)], mark };
        layers.push(Layer { shape: head, colour, label: String::new() });
    }
    Panel {
        x: Axis::new(format!("slack of the {} worst", order.len()), Values::Real),
        y: Axis::new("", Values::Whole),
        names,
        layers,
    }
}

// ---- several runs ---------------------------------------------------------------------------------------------------

/// Runs that make up one curve.
struct Group<'a> {
    name: String,
    runs: Vec<&'a Metrics>,
}

/// Runs that differ in the seed only go together; if none do, all of them.
fn groups(runs: &[(String, Metrics)]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for (folder, metrics) in runs {
        let name = without_seed(folder);
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.runs.push(metrics),
            None => groups.push(Group { name: name.to_string(), runs: vec![metrics] }),
        }
    }
    if groups.len() == runs.len() {
        let name = listed(runs.iter().map(|(folder, _)| folder.as_str()));
        return vec![Group { name, runs: runs.iter().map(|(_, metrics)| metrics).collect() }];
    }
    groups
}

/// `name` of `name-seed7` and `name-seed7-2`, as `phalanx train` names its folders.
fn without_seed(folder: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match folder.rsplit_once("-seed") {
        Some((name, rest)) if rest.split('-').all(is_number) && !name.is_empty() => name,
        _ => folder,
    }
}

/// A few names, with commas.
fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    const SHOWN: usize = 3;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.take(SHOWN).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

impl Group<'_> {
    /// Band and mean of a column over the first `rows` iterations, in the k-th colour.
    fn layers(&self, k: usize, rows: usize, column: fn(&Metrics) -> &[f64]) -> Vec<Layer> {
        let quantiles = self.runs.len() >= RUNS_FOR_QUANTILES;
        let (mut band, mut mean) = (Vec::new(), Vec::new());
        for row in 0..rows {
            let x = self.runs[0].iteration[row];
            let at_row = self.runs.iter().map(|metrics| column(metrics)[row]);
            let mut values: Vec<f64> = at_row.filter(|&value| series::is_drawable(value)).collect();
            if values.is_empty() || !series::is_drawable(x) {
                continue;
            }
            values.sort_by(f64::total_cmp);
            let outermost = if quantiles { 0.1 } else { 0.0 };
            let (low, high) =
                (series::quantile(&values, outermost), series::quantile(&values, 1.0 - outermost));
            band.push(Span { x, low, high });
            mean.push((x, values.iter().sum::<f64>() / values.len() as f64));
        }
        let colour = Colour::of_series(k);
        let mut layers = Vec::new();
        if self.runs.len() > 1 {
            let reach = if quantiles { "10–90 % of runs" } else { "lowest to highest run" };
            let label = format!("{}: {reach}", self.name);
            layers.push(Layer { shape: Shape::Band(series::thin_spans(band)), colour, label });
        }
        let label = match self.runs.len() {
            1 => self.name.clone(),
            count => format!("{}: mean of {count} runs", self.name),
        };
        layers.push(Layer { shape: Shape::Line { points: series::thin(mean), width: 2.0 }, colour, label });
        layers
    }
}

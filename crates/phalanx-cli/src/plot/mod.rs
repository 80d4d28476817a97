//! `phalanx plot`: pictures of runs, drawn from their folders.

mod canvas;
mod read;
mod scale;
mod series;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use canvas::{Arrangement, Axis, Colour, Figure, Layer, Mark, Panel, Shape};
use phalanx::Error;
use read::{Margin, Metrics};
use scale::Values;
use series::{Point, Span};

/// Up to this many agents are drawn one by one.
const MOST_AGENTS: usize = 200;
/// Provided that they have no more constraints than this: more could not be told apart, and would make a large file.
const MOST_MARKS: usize = 2000;
/// Curves of constraints in one panel.
const MOST_CURVES: usize = 30;
/// Up to this many marks stand on stems.
const MOST_STEMS: usize = 60;
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
    let (metrics, margins) = rayon::join(|| Metrics::read(run), || read::margins(run));
    let (metrics, margins) = (metrics?, margins?.unwrap_or_default());
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
    let averaged = match 2 * mean_reach(rows) + 1 {
        window if rows >= ROWS_FOR_MEAN => format!("; thick lines: average of {window} iterations"),
        _ => String::new(),
    };
    let subtitle = format!("from training batches; first {rows} iterations of {} runs{averaged}", runs.len());
    let panel = |label: &str, values: Values, column: fn(&Metrics) -> &[f64]| {
        let label_of =
            |group: &Group| if groups.len() > 1 { format!("{}: ", group.name) } else { String::new() };
        let layers =
            groups.iter().enumerate().map(|(k, group)| group.layers(k, &label_of(group), rows, column));
        iteration_panel(label, values, layers.flatten().collect())
    };
    let first = if with_return {
        panel(RETURN, Values::Real, |metrics| &metrics.return_)
    } else {
        panel(OBJECTIVE, Values::Real, |metrics| &metrics.objective)
    };
    let violations = vec![
        panel(TOTAL_VIOLATION, Values::FromZero, |metrics| &metrics.violation_total),
        panel(WORST_VIOLATION, Values::FromZero, |metrics| &metrics.violation_max),
    ];
    let figure = |what: &str, panels| stacked(title(what), &subtitle, panels);
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
    let (names, figures): (Vec<&str>, Vec<Figure>) = figures.into_iter().unzip();
    let drawings = canvas::draw(&figures).map_err(|reason| anyhow::anyhow!("cannot draw: {reason}"))?;
    let mut files = Vec::new();
    for (name, drawing) in names.into_iter().zip(drawings) {
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
    let named =
        if run.file_name().is_some() { run.to_path_buf() } else { run.canonicalize().unwrap_or_default() };
    named.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned())
}

// ---- one run --------------------------------------------------------------------------------------------------------

const RETURN: &str = "return per agent and episode";
const OBJECTIVE: &str = "objective F(θ)";
const TOTAL_VIOLATION: &str = "total violation (sum over agents and constraints)";
const WORST_VIOLATION: &str = "worst violation (largest over agents and constraints)";

fn return_figure(run: &str, metrics: &Metrics) -> Figure {
    let (what, label, values) = if metrics.has_return() {
        ("Return", RETURN, &metrics.return_)
    } else {
        ("Objective", OBJECTIVE, &metrics.objective)
    };
    let panel = iteration_panel(label, Values::Real, history("", Colour::of_series(0), metrics, values));
    stacked(format!("{what}: {run}"), "from the training batch of each iteration", vec![panel])
}

fn violation_figure(run: &str, metrics: &Metrics) -> Figure {
    let panel = |label: &str, values: &[f64]| {
        iteration_panel(label, Values::FromZero, history("", Colour::ALARM, metrics, values))
    };
    let panels = vec![
        panel(TOTAL_VIOLATION, &metrics.violation_total),
        panel(WORST_VIOLATION, &metrics.violation_max),
    ];
    let subtitle = "from training batches, whose noise counts as violation; for the final policy see margins";
    stacked(format!("Violation: {run}"), subtitle, panels)
}

fn duals_figure(run: &str, metrics: &Metrics) -> Figure {
    let mut layers = history("largest", Colour::of_series(2), metrics, &metrics.mu_max);
    layers.extend(history("mean", Colour::of_series(0), metrics, &metrics.mu_mean));
    let panel = iteration_panel("multiplier μ", Values::FromZero, layers);
    stacked(format!("Multipliers: {run}"), "over all agents and constraints", vec![panel])
}

fn stacked(title: String, subtitle: &str, panels: Vec<Panel>) -> Figure {
    Figure { title, subtitle: subtitle.into(), panels, arrangement: Arrangement::Stacked }
}

fn iteration_panel(label: &str, values: Values, layers: Vec<Layer>) -> Panel {
    Panel { x: Axis::new("iteration", Values::Whole), y: Axis::new(label, values), names: Vec::new(), layers }
}

/// A column against the iteration: each of them, and in long runs their moving mean before that.
fn history(name: &str, colour: Colour, metrics: &Metrics, values: &[f64]) -> Vec<Layer> {
    let points = series::points(&metrics.iteration, values);
    let label = |what: &str| if name.is_empty() { what.to_string() } else { format!("{name}, {what}") };
    if points.len() < ROWS_FOR_MEAN {
        let marks = Shape::Marks { points: points.clone(), mark: Mark::Circle };
        let marks = Layer { shape: marks, colour, label: String::new() };
        return vec![line(points, THICK, colour, name.into()), marks];
    }
    let reach = mean_reach(points.len());
    let mean = series::moving_mean(&points, reach);
    vec![
        line(mean, THICK, colour, label(&format!("average of {} iterations", 2 * reach + 1))),
        line(points, THIN, colour.tint(0.4), label("each iteration")),
    ]
}

const THICK: f64 = 2.2;
const THIN: f64 = 1.0;

fn line(points: Vec<Point>, width: f64, colour: Colour, label: String) -> Layer {
    Layer { shape: Shape::Line { points: series::thin(points), width }, colour, label }
}

/// Iterations on either side that a moving mean takes in.
fn mean_reach(rows: usize) -> usize {
    ((rows as f64).sqrt() / 4.0).ceil() as usize
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
    let constraints = by_constraint(margins);
    if agents <= MOST_AGENTS && margins.len() <= MOST_MARKS {
        return stacked(title, &subtitle, vec![agents_panel(&constraints)]);
    }
    let panels = vec![quantile_panel(&constraints), worst_panel(&constraints)];
    Figure { title, subtitle, panels, arrangement: Arrangement::SideBySide }
}

/// The margins that can be drawn, by the name of the constraint, in the order of the file.
fn by_constraint(margins: &[Margin]) -> Vec<(&str, Vec<&Margin>)> {
    let mut place = HashMap::new();
    let mut constraints: Vec<(&str, Vec<&Margin>)> = Vec::new();
    for margin in margins.iter().filter(|margin| series::is_drawable(margin.slack)) {
        let name = margin.constraint.as_str();
        let k = *place.entry(name).or_insert_with(|| {
            constraints.push((name, Vec::new()));
            constraints.len() - 1
        });
        constraints[k].1.push(margin);
    }
    constraints
}

const SLACK: &str = "slack: distance from the threshold, negative if violated";

/// The zero line, and what is unsafe below it.
fn background() -> Vec<Layer> {
    let unlabelled = |shape, colour| Layer { shape, colour, label: String::new() };
    vec![unlabelled(Shape::BelowZero, Colour::ALARM), unlabelled(Shape::ZeroLine, Colour::QUIET)]
}

/// A thin line from the zero line to a mark.
fn stem(from: Point, to: Point, colour: Colour) -> Layer {
    line(vec![from, to], 1.5, colour.tint(0.5), String::new())
}

/// Every agent's slack; a constraint has its own mark and colour, but what is violated is in the colour of alarm.
fn agents_panel(constraints: &[(&str, Vec<&Margin>)]) -> Panel {
    let mut layers = background();
    let count = constraints.len() as f64;
    let with_stems = constraints.iter().map(|(_, margins)| margins.len()).sum::<usize>() <= MOST_STEMS;
    for (k, (name, margins)) in constraints.iter().enumerate() {
        // Constraints of one agent stand next to one another.
        let aside = (k as f64 - 0.5 * (count - 1.0)) * (0.6 / count).min(0.2);
        let mark = Mark::of_series(k);
        for (what, colour) in [("safe", Colour::of_series(k)), ("violated", Colour::ALARM)] {
            let side = margins.iter().filter(|margin| (margin.slack < 0.0) == (what == "violated"));
            let points: Vec<Point> = side.map(|margin| (margin.agent as f64 + aside, margin.slack)).collect();
            if with_stems {
                layers.extend(points.iter().map(|&(x, y)| stem((x, 0.0), (x, y), colour)));
            }
            let label = format!("{name}: {} {what}", points.len());
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
fn quantile_panel(constraints: &[(&str, Vec<&Margin>)]) -> Panel {
    let mut layers = background();
    for (k, (name, margins)) in constraints.iter().take(MOST_CURVES).enumerate() {
        let mut slacks: Vec<f64> = margins.iter().map(|margin| margin.slack).collect();
        slacks.sort_by(f64::total_cmp);
        let last = slacks.len().max(2) - 1;
        let points =
            slacks.into_iter().enumerate().map(|(rank, slack)| (100.0 * rank as f64 / last as f64, slack));
        layers.push(line(points.collect(), THICK, Colour::of_series(k), (*name).into()));
    }
    Panel {
        x: Axis::new("agents, from the least slack on (%)", Values::Whole),
        y: Axis::new(SLACK, Values::Real),
        names: Vec::new(),
        layers,
    }
}

/// The agents with the least slack, by name.
fn worst_panel(constraints: &[(&str, Vec<&Margin>)]) -> Panel {
    let numbered =
        constraints.iter().enumerate().flat_map(|(k, (_, margins))| margins.iter().map(move |m| (k, m)));
    let mut worst: Vec<(usize, &&Margin)> = numbered.collect();
    worst.sort_by(|(_, a), (_, b)| a.slack.total_cmp(&b.slack).then(a.agent.cmp(&b.agent)));
    worst.truncate(NAMED);
    let mut names = Vec::new();
    let mut layers = background();
    for (row, &(k, margin)) in worst.iter().enumerate() {
        let constraint =
            if constraints.len() > 1 { format!(", {}", margin.constraint) } else { String::new() };
        names.push(format!("agent {}{constraint}", margin.agent));
        let y = row as f64 + 1.0;
        let colour = if margin.slack < 0.0 { Colour::ALARM } else { Colour::of_series(k) };
        layers.push(stem((0.0, y), (margin.slack, y), colour));
        let head = Shape::Marks { points: vec![(margin.slack, y)], mark: Mark::of_series(k) };
        layers.push(Layer { shape: head, colour, label: String::new() });
    }
    Panel {
        x: Axis::new("slack", Values::Real),
        y: Axis::new(format!("the {} with the least slack", worst.len()), Values::Whole),
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
    /// Mean and band of a column over the first `rows` iterations, in the k-th colour.
    fn layers(&self, k: usize, label: &str, rows: usize, column: fn(&Metrics) -> &[f64]) -> Vec<Layer> {
        let count = self.runs.len();
        let (outermost, reach) = if count < RUNS_FOR_QUANTILES {
            (0.0, "lowest to highest run")
        } else {
            (0.1, "10–90 % of runs")
        };
        let (mut band, mut mean) = (Vec::new(), Vec::new());
        for row in 0..rows {
            let x = self.runs[0].iteration[row];
            let at_row = self.runs.iter().map(|metrics| column(metrics)[row]);
            let mut values: Vec<f64> = at_row.filter(|&value| series::is_drawable(value)).collect();
            if values.is_empty() || !series::is_drawable(x) {
                continue;
            }
            values.sort_by(f64::total_cmp);
            let (low, high) =
                (series::quantile(&values, outermost), series::quantile(&values, 1.0 - outermost));
            band.push(Span { x, low, high });
            mean.push((x, values.iter().sum::<f64>() / values.len() as f64));
        }
        let colour = Colour::of_series(k);
        let runs = if count == 1 { "1 run".into() } else { format!("mean of {count} runs") };
        let mut layers = Vec::new();
        if mean.len() >= ROWS_FOR_MEAN {
            layers.push(line(mean.clone(), THIN, colour.tint(0.6), String::new()));
            mean = series::moving_mean(&mean, mean_reach(mean.len()));
        }
        layers.push(line(mean, THICK, colour, format!("{label}{runs}")));
        if count > 1 {
            let shape = Shape::Band(series::thin_spans(band));
            layers.push(Layer { shape, colour, label: format!("{label}{reach}") });
        }
        layers
    }
}

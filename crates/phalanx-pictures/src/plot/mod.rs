//! `phalanx plot`: pictures of runs, drawn from their folders.

pub mod canvas;
mod colour;
#[doc(hidden)]
pub mod in_memory;
mod loss;
mod margins;
mod read;
mod runs;
mod scale;
mod series;
pub(crate) mod text;

use std::path::{Path, PathBuf};

use canvas::{Arrangement, Axis, Colour, Figure, Layer, Mark, Panel, Shape};
pub use loss::{AtLoss, plot_loss};
use phalanx::Error;
use phalanx::base::durable;
pub use read::Metrics;
pub use runs::{is_earlier, plot_runs};
pub use scale::Values;
pub use series::{Point, Span, moving_mean, points, quantile, thin_spans};

/// Series of at least this many iterations are also drawn as a moving mean.
const ROWS_FOR_MEAN: usize = 60;

/// Draws one run into `<run>/plots`: `return`, `violation`, `duals`, `stationarity` and `margins`, each as
/// SVG and PNG, and gives the files.
///
/// `stationarity` is for runs of the exact algorithm. `margins` is drawn from `agents.csv`, which a run
/// writes at its end: it is left out for a run that has not come to its end or has no constraints. Where that
/// file holds the worst agents only, `agents-summary.csv` tells of the others.
pub fn plot_run(run: &Path) -> anyhow::Result<Vec<PathBuf>> {
    write(&run.join("plots"), figures_of(run)?)
}

/// The same drawings, by name, without files.
pub fn draw_run(run: &Path) -> anyhow::Result<Vec<(&'static str, canvas::Drawing)>> {
    let (names, figures): (Vec<&str>, Vec<Figure>) = figures_of(run)?.into_iter().unzip();
    Ok(names.into_iter().zip(draw(&figures)?).collect())
}

fn figures_of(run: &Path) -> anyhow::Result<Vec<(&'static str, Figure)>> {
    let (metrics, margins) = rayon::join(|| Metrics::read(run), || read::margins(run));
    let (metrics, margins) = (metrics?, margins?.unwrap_or_default());
    let spreads = read::spreads(run)?;
    let stationarity = read::stationarity(run)?;
    Ok(figures(&name_of(run), &metrics, stationarity, &margins, &spreads))
}

fn draw(figures: &[Figure]) -> anyhow::Result<Vec<canvas::Drawing>> {
    canvas::draw(figures).map_err(|reason| anyhow::anyhow!("cannot draw: {reason}"))
}

/// The figures of a run, by name.
fn figures(
    name: &str,
    metrics: &Metrics,
    stationarity: Option<[Vec<f64>; 4]>,
    margins: &[read::Margin],
    spreads: &[read::Spread],
) -> Vec<(&'static str, Figure)> {
    let is_exact = stationarity.is_some();
    let mut figures = vec![
        ("return", return_figure(name, metrics, is_exact)),
        ("violation", violation_figure(name, metrics, is_exact)),
        ("duals", duals_figure(name, metrics)),
    ];
    figures.extend(stationarity.map(|columns| ("stationarity", stationarity_figure(name, columns))));
    if !margins.is_empty() {
        figures.push(("margins", margins::figure(name, margins, spreads)));
    }
    figures
}

/// Draws the figures and writes them as `<out>/<name>.svg` and `<out>/<name>.png`.
pub fn write(out: &Path, figures: Vec<(&str, Figure)>) -> anyhow::Result<Vec<PathBuf>> {
    durable::create_dirs(out).map_err(|error| Error::write(out, error))?;
    let (names, figures): (Vec<&str>, Vec<Figure>) = figures.into_iter().unzip();
    let drawings = draw(&figures)?;
    let mut files = Vec::new();
    for (name, drawing) in names.into_iter().zip(drawings) {
        for (extension, bytes) in [("svg", drawing.svg.as_bytes()), ("png", &drawing.png)] {
            let path = out.join(format!("{name}.{extension}"));
            durable::replace_bytes(&path, bytes)?;
            files.push(path);
        }
    }
    Ok(files)
}

/// The name of a run's folder, also if it is given as `.`.
pub fn name_of(run: &Path) -> String {
    let named =
        if run.file_name().is_some() { run.to_path_buf() } else { run.canonicalize().unwrap_or_default() };
    named.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned())
}

/// Label of an axis.
pub const RETURN: &str = "return per agent and episode";
/// Label of an axis.
pub const TOTAL_VIOLATION: &str = "total violation (sum over agents and constraints)";

/// One of the columns of metrics.
type Column = fn(&Metrics) -> &[f64];

/// What is maximised: its name, the label of its axis, and its column.
fn maximised(with_return: bool) -> (&'static str, &'static str, Column) {
    if with_return {
        ("Return", RETURN, |metrics| &metrics.return_)
    } else {
        ("Objective", "objective F(θ)", |metrics| &metrics.objective)
    }
}

/// Labels of axes and columns.
const VIOLATIONS: [(&str, Column); 2] = [
    (TOTAL_VIOLATION, |metrics| &metrics.violation_total),
    ("worst violation (largest over agents and constraints)", |metrics| &metrics.violation_max),
];

/// Where the numbers of an exact run come from.
const EXACT: &str = "exact, at each iteration";

fn return_figure(run: &str, metrics: &Metrics, is_exact: bool) -> Figure {
    let (what, label, column) = maximised(metrics.has_return());
    let layers = history("", Colour::of_series(0), metrics, column(metrics));
    let panel = iteration_panel(label, Values::Real, layers);
    let subtitle = if is_exact { EXACT } else { "from the training batch of each iteration" };
    stacked(format!("{what}: {run}"), subtitle, vec![panel])
}

fn violation_figure(run: &str, metrics: &Metrics, is_exact: bool) -> Figure {
    let panel = |(label, column): (&str, Column)| {
        iteration_panel(label, Values::FromZero, history("", Colour::ALARM, metrics, column(metrics)))
    };
    let sampled = "from training batches, whose noise counts as violation; for the final policy see margins";
    stacked(format!("Violation: {run}"), if is_exact { EXACT } else { sampled }, VIOLATIONS.map(panel).into())
}

fn duals_figure(run: &str, metrics: &Metrics) -> Figure {
    let mut layers = history("largest", Colour::of_series(2), metrics, &metrics.mu_largest);
    layers.extend(history("mean", Colour::of_series(0), metrics, &metrics.mu_mean));
    let panel = iteration_panel("multiplier μ", Values::FromZero, layers);
    stacked(format!("Multipliers: {run}"), "over all agents and constraints", vec![panel])
}

fn stationarity_figure(run: &str, [iteration, x, y, e]: [Vec<f64>; 4]) -> Figure {
    let curve = |k: usize, label: &str, width: f64, values: &[f64]| {
        line(series::points(&iteration, values), width, Colour::of_series(k), label.into())
    };
    let layers = vec![
        curve(0, "E = X² + Y²", THICK, &e),
        curve(1, "X (parameters)", THIN, &x),
        curve(2, "Y (multipliers)", THIN, &y),
    ];
    let subtitle = "how far parameters and multipliers are from a first-order stationary point";
    let panel = iteration_panel("distance", Values::Log, layers);
    stacked(format!("Stationarity: {run}"), subtitle, vec![panel])
}

/// Panels below one another.
pub fn stacked(title: String, subtitle: &str, panels: Vec<Panel>) -> Figure {
    Figure { title, subtitle: subtitle.into(), panels, arrangement: Arrangement::Stacked }
}

/// Something against the iteration.
pub fn iteration_panel(label: &str, values: Values, layers: Vec<Layer>) -> Panel {
    Panel::new(Axis::new("iteration", Values::Whole), Axis::new(label, values), layers)
}

/// A column against the iteration: each of them, and in long runs their moving mean over it.
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

/// Width of a line that matters, in pixels.
pub const THICK: f64 = 2.2;
const THIN: f64 = 1.0;

/// A curve, thinned to what can be seen.
pub fn line(points: Vec<Point>, width: f64, colour: Colour, label: String) -> Layer {
    Layer { shape: Shape::Line { points: series::thin(points), width }, colour, label }
}

/// Iterations on either side that a moving mean takes in.
pub fn mean_reach(rows: usize) -> usize {
    ((rows as f64).sqrt() / 4.0).ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &str = "iteration,return,objective,violation_total,violation_max,violation_mean,mu_mean,\
                           mu_largest,gradient_norm,agent_steps,comm_bytes\n";
    const AGENTS: &str = "agent,constraint,value,bound,threshold,dual,violation\n";

    /// A run folder `name` in `root` with these rows.
    fn run(root: &Path, name: &str, metrics: &str, agents: &str) -> PathBuf {
        let folder = root.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("metrics.csv"), format!("{METRICS}{metrics}")).unwrap();
        std::fs::write(folder.join("agents.csv"), format!("{AGENTS}{agents}")).unwrap();
        folder
    }

    /// Rows that all hold `value`, but for the iteration.
    fn rows(count: usize, value: &str) -> String {
        let cells = format!("{value},").repeat(8);
        (0..count).map(|k| format!("{k},{cells}1,1\n")).collect()
    }

    fn agents(count: usize, value: impl Fn(usize) -> f64) -> String {
        (0..count).map(|i| format!("{i},entropy,{},at_least,0.5,0,0\n", value(i))).collect()
    }

    /// The names of the files without their folder; checks that each is of its format.
    fn checked(files: &[PathBuf]) -> Vec<String> {
        for file in files {
            let bytes = std::fs::read(file).unwrap();
            if file.extension().unwrap() == "png" {
                assert!(
                    bytes.starts_with(b"\x89PNG\r\n\x1a\n") && bytes.ends_with(b"IEND\xaeB`\x82"),
                    "{file:?}"
                );
            } else {
                let text = String::from_utf8(bytes).unwrap();
                assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"), "{file:?}");
                assert!(!text.contains("NaN") && !text.contains("inf\""), "{file:?}");
                assert!(text.len() < 1_000_000, "{file:?} has {} bytes", text.len());
            }
        }
        files.iter().map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect()
    }

    const ALL: [&str; 8] = [
        "return.svg",
        "return.png",
        "violation.svg",
        "violation.png",
        "duals.svg",
        "duals.png",
        "margins.svg",
        "margins.png",
    ];

    fn text_of(folder: &Path, name: &str) -> String {
        std::fs::read_to_string(folder.join("plots").join(name)).unwrap()
    }

    #[test]
    fn an_exact_run_also_shows_how_far_it_is_from_stationary() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("exact");
        std::fs::create_dir_all(&folder).unwrap();
        let rows: String =
            (0..80).map(|k| format!("{k},,1,0,0,0,0,0,1,0,0,0.5,0.0,{:?}\n", 0.9_f64.powi(k))).collect();
        let header = METRICS.trim_end();
        std::fs::write(folder.join("metrics.csv"), format!("{header},X,Y,E\n{rows}")).unwrap();
        let names = checked(&plot_run(&folder).unwrap());
        assert!(names.contains(&"stationarity.svg".into()) && names.contains(&"stationarity.png".into()));
        assert!(text_of(&folder, "stationarity.svg").contains("E = X² + Y²"));
        assert!(text_of(&folder, "return.svg").contains("exact, at each iteration"));
    }

    #[test]
    fn a_run_gives_four_plots_in_two_formats() {
        let root = tempfile::tempdir().unwrap();
        let metrics: String = (0..100).map(|k| format!("{k},{k}.5,0.1,0.{k},0.01,0,1,2,1,1,1\n")).collect();
        let folder = run(root.path(), "one", &metrics, &agents(10, |i| 0.4 + 0.03 * i as f64));
        assert_eq!(checked(&plot_run(&folder).unwrap()), ALL);
        assert!(text_of(&folder, "return.svg").contains("return per agent and episode"));
        assert!(text_of(&folder, "margins.svg").contains("entropy: 6 kept"));
        assert!(text_of(&folder, "margins.svg").contains("entropy: 4 violated"));
    }

    #[test]
    fn without_a_return_the_objective_is_drawn() {
        let root = tempfile::tempdir().unwrap();
        let folder = run(root.path(), "one", "0,,0.5,0,0,0,0,0,0,1,1\n1,,0.6,0,0,0,0,0,0,1,1\n", "");
        assert_eq!(checked(&plot_run(&folder).unwrap()), ALL[..6]);
        assert!(text_of(&folder, "return.svg").contains("objective F(θ)"));
    }

    #[test]
    fn degenerate_values_are_drawn() {
        let root = tempfile::tempdir().unwrap();
        let hard =
            ["0", "-0.0", "1", "-7.25", "NaN", "inf", "-inf", "1e308", "-1e308", "5e-324", "1e-17", "1e16"];
        for value in hard {
            for count in [1, 2, 100] {
                let slack = value.parse().unwrap();
                let folder = run(root.path(), "one", &rows(count, value), &agents(count, |_| slack));
                assert_eq!(checked(&plot_run(&folder).unwrap()), ALL, "{value} {count}");
                plot_runs(&[folder.clone(), folder], &root.path().join("out")).unwrap();
            }
        }
        let folder = run(root.path(), "mixed", &hard.map(|value| rows(1, value)).concat(), "");
        checked(&plot_run(&folder).unwrap());
    }

    #[test]
    fn large_networks_get_quantiles_and_the_worst_named() {
        let root = tempfile::tempdir().unwrap();
        let of_size = |count: usize| {
            let folder = run(root.path(), "one", &rows(1, "1"), &agents(count, |i| 1.0 - i as f64 * 1e-3));
            checked(&plot_run(&folder).unwrap());
            text_of(&folder, "margins.svg")
        };
        assert!(!of_size(200).contains("the least slack"));
        let text = of_size(1000);
        assert!(text.contains("the 20 with the least slack"));
        assert!(
            text.contains(">agent 999<") && text.contains(">agent 980<") && !text.contains(">agent 979<")
        );
    }

    #[test]
    fn long_runs_and_many_constraints_make_small_files() {
        let root = tempfile::tempdir().unwrap();
        let metrics: String = (0..100_000)
            .map(|k| format!("{k},{0},{0},{0},{0},0,{0},{0},1,1,1\n", (k * 7919) % 1013))
            .collect();
        let row = |k: usize| format!("{},constraint {},{},at_most,0.5,0,0\n", k % 150, k / 150, k as f64);
        let agents: String = (0..30_000).map(row).collect();
        let folder = run(root.path(), "long", &metrics, &agents);
        checked(&plot_run(&folder).unwrap());
        checked(
            &plot_runs(&[folder.clone(), folder.clone(), folder], &root.path().join("together")).unwrap(),
        );
    }

    #[test]
    fn an_unfinished_run_is_drawn_without_margins() {
        let root = tempfile::tempdir().unwrap();
        let folder = run(root.path(), "one", &rows(3, "1"), "");
        std::fs::remove_file(folder.join("agents.csv")).unwrap();
        assert_eq!(checked(&plot_run(&folder).unwrap()), ALL[..6]);
    }

    #[test]
    fn runs_together_are_cut_to_the_shortest_and_named_by_their_folders() {
        let root = tempfile::tempdir().unwrap();
        let one = |name: &str, count, value| run(root.path(), name, &rows(count, value), "");
        let mut runs =
            vec![one("line-seed1", 30, "1"), one("line-seed2-3", 20, "2"), one("ring-seed1", 25, "4")];
        let out = root.path().join("deep/out");
        assert_eq!(checked(&plot_runs(&runs, &out).unwrap()), ALL[..4]);
        let text = std::fs::read_to_string(out.join("return.svg")).unwrap();
        for part in
            ["first 20 iterations of 3 runs", "line: mean of 2 runs", "line: lowest to highest run", ">ring<"]
        {
            assert!(text.contains(part), "{part}");
        }
        runs.extend((3..7).map(|seed| one(&format!("line-seed{seed}"), 20, "3")));
        plot_runs(&runs, &out).unwrap();
        let text = std::fs::read_to_string(out.join("violation.svg")).unwrap();
        assert!(text.contains("line: 10–90 % of runs") && text.contains("line: mean of 6 runs"));
    }

    #[test]
    fn missing_runs_are_named() {
        let missing = plot_run(Path::new("/nowhere")).unwrap_err();
        assert!(missing.to_string().contains("/nowhere/metrics.csv"), "{missing}");
        assert!(missing.downcast_ref::<Error>().is_some_and(Error::is_bad_input));
        assert!(plot_runs(&[], Path::new("out")).unwrap_err().to_string().contains("none given"));
    }
}

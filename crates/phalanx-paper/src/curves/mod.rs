//! Return and violation while training, as the paper draws them: means over seeds with confidence bands.

mod caption;
mod marks;
mod possible;

use super::archive::{ArchivedRun, Numbers};
use super::catalogue::Experiment;
use super::context::Reproduction;
use super::setting::Setting;
use marks::ClosingMark;
use phalanx::base::beta::student_quantile;
use phalanx::run::Config;
use phalanx::world::World;
use phalanx_pictures::plot::canvas::{Axis, Colour, Figure, Layer, Mark, Panel, Shape};
use phalanx_pictures::plot::{self, Point, RETURN, Span, TOTAL_VIOLATION, Values};
use phalanx_pictures::statistics::{CONFIDENCE, deviation, mean};

/// A setting with its runs.
pub struct Course<'a> {
    /// What was trained.
    pub setting: &'a Setting,
    /// With what, whatever the seed.
    pub config: Config,
    /// Its entry in the legend.
    pub label: String,
    /// One per seed.
    pub runs: Vec<ArchivedRun>,
}

/// More are not told apart in one figure.
const MOST_SERIES: usize = 8;

/// An experiment's settings by the figure that shows them. Where they are too many for one, those for which
/// nothing is published have another, beside the first of all.
pub fn by_figure(experiment: &Experiment) -> Vec<(&'static str, Vec<&Setting>)> {
    let mut figures = Vec::new();
    for (name, settings) in experiment.figures() {
        if settings.len() <= MOST_SERIES {
            figures.push((name, settings));
            continue;
        }
        let (published, mut others): (Vec<&Setting>, Vec<&Setting>) =
            settings.iter().partition(|setting| setting.published().is_some());
        if !others.contains(&settings[0]) {
            others.insert(0, settings[0]);
        }
        figures.extend([(name, published), ("curves-unpublished", others)]);
    }
    figures
}

/// Return above, total violation below; then the last third of each where its curves coincide.
/// `published_iterations`: when the paper's runs ended.
pub fn figure(
    title: &str,
    courses: &[Course<'_>],
    published_iterations: Option<usize>,
) -> phalanx::Result<Figure> {
    let worlds = courses.iter().map(|course| phalanx::run::world(&course.config));
    let worlds = worlds.collect::<phalanx::Result<Vec<_>>>()?;
    let agents: Vec<usize> = worlds.iter().map(|world| world.graph().agents()).collect();
    let x = XAxis::of(courses, &agents);
    let published_at = published_iterations.filter(|_| x == XAxis::Iterations).map(|t| t as f64);
    let (mut whole, mut closer) = (Vec::new(), Vec::new());
    for quantity in &QUANTITIES {
        let series = courses.iter().zip(&worlds).enumerate();
        let series: Vec<Series> =
            series.map(|(k, (course, world))| Series::of(k, course, quantity, x, &**world)).collect();
        whole.push(whole_panel(&series, quantity, x.axis(), published_at));
        closer.extend(last_third(&series, quantity).filter(|_| coincide(&series)));
    }
    marks::align(&mut whole);
    marks::align(&mut closer);
    let is_published = courses.iter().any(|course| course.setting.published().is_some());
    if let Some(first) = whole.first_mut() {
        first.layers.extend(key(is_published, published_at.is_some()));
    }
    let subtitle = [drawn(courses), caption::caption(courses, &agents)].join("\n");
    Ok(plot::stacked(title.into(), &subtitle, [whole, closer].concat()))
}

/// What these settings have in common, and what is varied.
pub fn caption_of(settings: &[&Setting], reproduction: &Reproduction) -> phalanx::Result<String> {
    let (mut courses, mut agents) = (Vec::new(), Vec::new());
    for setting in settings {
        let config = setting.config(1, reproduction.length, &reproduction.registry)?;
        agents.push(phalanx::run::world(&config)?.graph().agents());
        courses.push(Course { setting, config, label: String::new(), runs: Vec::new() });
    }
    Ok(caption::caption(&courses, &agents))
}

/// What curves and bands are.
fn drawn(courses: &[Course<'_>]) -> String {
    let seeds: Vec<usize> = courses.iter().map(|course| course.runs.len()).collect();
    let (least, most) = (seeds.iter().min().unwrap_or(&0), seeds.iter().max().unwrap_or(&0));
    let count = if least == most { most.to_string() } else { format!("{least} to {most}") };
    let mut words = format!("training batches, mean over {count} seed{}", if *most == 1 { "" } else { "s" });
    if *most > 1 {
        words += &format!(" with {:.0} % bands, cut at what is possible", 100.0 * CONFIDENCE);
    }
    words + "; marks at one place stand side by side"
}

/// Entries of the legend for marks, which have no colour of their own.
fn key(is_published: bool, is_at_its_end: bool) -> Vec<Layer> {
    let entry = |mark, label: &str| Layer {
        shape: Shape::Marks { points: Vec::new(), mark },
        colour: Colour::QUIET,
        label: label.into(),
    };
    let published = if is_at_its_end { "published, at its T" } else { "published (its T is not known)" };
    let mut entries = vec![entry(Mark::Circle, "closing evaluation")];
    entries.extend(is_published.then(|| entry(Mark::Diamond, published)));
    entries
}

/// What training is measured in: the agent-steps of its budget where budgets differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum XAxis {
    Iterations,
    AgentSteps,
}

impl XAxis {
    /// By what was asked for: that episodes end early is no other budget.
    fn of(courses: &[Course<'_>], agents: &[usize]) -> XAxis {
        let budget = |(Course { config, .. }, &agents): (&Course<'_>, &usize)| {
            config.iterations as f64 * XAxis::AgentSteps.per_iteration(config, agents)
        };
        let budgets: Vec<f64> = courses.iter().zip(agents).map(budget).collect();
        let iterations = |course: &Course<'_>| course.config.iterations == courses[0].config.iterations;
        let is_one = budgets.iter().all(|it| *it == budgets[0]) && courses.iter().all(iterations);
        if is_one { XAxis::Iterations } else { XAxis::AgentSteps }
    }

    fn axis(self) -> Axis {
        let label = match self {
            XAxis::Iterations => "iteration",
            XAxis::AgentSteps => "agent-steps, if every episode lasts H",
        };
        Axis::new(label, Values::Real)
    }

    fn per_iteration(self, config: &Config, agents: usize) -> f64 {
        match self {
            XAxis::Iterations => 1.0,
            XAxis::AgentSteps => (config.batch * config.horizon * agents) as f64,
        }
    }
}

/// What is drawn of runs.
struct Quantity {
    label: &'static str,
    values: Values,
    curve: fn(&ArchivedRun) -> &Numbers,
    /// In the closing evaluation.
    closing: fn(&ArchivedRun) -> Option<f64>,
    /// Its place in what the paper reports.
    published: usize,
    /// Least and largest value that it can have.
    possible: fn(&dyn World, &Config) -> [f64; 2],
}

const QUANTITIES: [Quantity; 2] = [
    Quantity {
        label: RETURN,
        values: Values::Real,
        curve: |run| &run.returns,
        closing: |run| run.return_,
        published: 0,
        possible: possible::returns,
    },
    Quantity {
        label: TOTAL_VIOLATION,
        values: Values::FromZero,
        curve: |run| &run.violations,
        closing: |run| Some(run.violation_total),
        published: 1,
        possible: |_, _| [0.0, f64::INFINITY],
    },
];

/// What is drawn of a course, along the share of its own training that is done.
struct Series {
    number: usize,
    label: String,
    middle: Vec<Point>,
    band: Vec<Span>,
    /// Where training ends on the x axis.
    end: f64,
    closing: Option<f64>,
    published: Option<f64>,
}

impl Series {
    fn of(number: usize, course: &Course<'_>, quantity: &Quantity, x: XAxis, world: &dyn World) -> Series {
        let runs: Vec<Vec<Point>> = course.runs.iter().map(|run| (quantity.curve)(run).points(1.0)).collect();
        let [least, most] = (quantity.possible)(world, &course.config);
        let factor = half_width(runs.len());
        let (mut middle, mut band) = (Vec::new(), Vec::new());
        for row in 0..runs.iter().map(Vec::len).min().unwrap_or(0) {
            let at: Vec<f64> = runs.iter().map(|run| run[row].1).collect();
            let (x, mean, reach) = (runs[0][row].0, mean(&at), factor * deviation(&at));
            if mean.is_finite() {
                middle.push((x, mean));
                band.push(Span { x, low: (mean - reach).max(least), high: (mean + reach).min(most) });
            }
        }
        let closing: Vec<f64> = course.runs.iter().filter_map(quantity.closing).collect();
        let iterations: Vec<f64> = course.runs.iter().map(|run| run.iterations as f64).collect();
        let iterations = if iterations.is_empty() { 0.0 } else { mean(&iterations) };
        Series {
            number,
            label: course.label.clone(),
            middle,
            band: if runs.len() > 1 { band } else { Vec::new() },
            end: iterations * x.per_iteration(&course.config, world.graph().agents()),
            closing: (!closing.is_empty()).then(|| mean(&closing)),
            published: course.setting.published().map(|published| published[quantity.published]),
        }
    }

    /// The closing evaluation.
    fn circle(&self, x: f64) -> Option<ClosingMark> {
        Some(ClosingMark { number: self.number, point: (x, self.closing?), mark: Mark::Circle })
    }

    /// What the paper reports.
    fn diamond(&self, x: f64) -> Option<ClosingMark> {
        Some(ClosingMark { number: self.number, point: (x, self.published?), mark: Mark::Diamond })
    }

    /// Curve and band from the share `from` of training on, by where a share is on the x axis.
    fn layers(&self, from: f64, place: impl Fn(f64) -> f64, limits: [f64; 2]) -> Vec<Layer> {
        let (colour, is_dashed) = style(self.number);
        let middle = self.middle.iter().filter(|point| point.0 >= from);
        let middle: Vec<Point> = middle.map(|&(x, y)| (place(x), y)).collect();
        let [least, most] = limits;
        let cut = |value: f64| value.clamp(least, most);
        let band = self.band.iter().filter(|span| span.x >= from);
        let band: Vec<Span> =
            band.map(|span| Span { x: place(span.x), low: cut(span.low), high: cut(span.high) }).collect();
        let curve = if is_dashed {
            Shape::Dashes(middle)
        } else {
            Shape::Line { points: middle, width: plot::THICK }
        };
        let mut layers = vec![Layer { shape: curve, colour, label: self.label.clone() }];
        if !band.is_empty() {
            layers.push(Layer { shape: Shape::Band(band), colour, label: String::new() });
        }
        layers
    }

    fn last(&self) -> f64 {
        self.middle.last().map_or(f64::NAN, |point| point.1)
    }
}

/// The whole of training; published values at `published_at`, or behind all curves.
fn whole_panel(series: &[Series], quantity: &Quantity, x: Axis, published_at: Option<f64>) -> Panel {
    let last = series.iter().map(|it| it.end).fold(0.0, f64::max);
    let curves = series.iter().flat_map(|it| it.layers(0.0, |share| share * it.end, UNLIMITED));
    let mut layers: Vec<Layer> = curves.collect();
    let mut marks: Vec<ClosingMark> = series.iter().filter_map(|it| it.circle(it.end)).collect();
    marks.extend(series.iter().filter_map(|it| it.diamond(published_at.unwrap_or(1.05 * last))));
    layers.extend(marks::side_by_side(marks, &layers));
    Panel::new(x, Axis::new(quantity.label, quantity.values), layers)
}

const UNLIMITED: [f64; 2] = [f64::NEG_INFINITY, f64::INFINITY];

/// Where the last third begins.
const LAST_THIRD: f64 = 2.0 / 3.0;
/// Published values that make its panel so many times higher are left out of it.
const SQUASHED: f64 = 2.0;
/// It shows at most this share of the height of the whole.
const CLOSER: f64 = 0.7;

/// The last third of each course's own training. Curves, and what they end with, set the range: earlier bands
/// are cut, and published values far from it are left to the panel of the whole. None if it would be no
/// closer look than that.
fn last_third(series: &[Series], quantity: &Quantity) -> Option<Panel> {
    let late = |span: &&Span| span.x >= LAST_THIRD;
    let bands = || series.iter().flat_map(|it| &it.band).filter(late).flat_map(|span| [span.low, span.high]);
    let ends = series.iter().filter_map(|it| it.band.last()).flat_map(|span| [span.low, span.high]);
    let middles = series.iter().flat_map(|it| &it.middle).filter(|point| point.0 >= LAST_THIRD);
    let values = ends.chain(middles.map(|point| point.1)).chain(series.iter().filter_map(|it| it.closing));
    let mut limits = marks::range(values);
    let own = limits[1] - limits[0];
    // Takes in more values, unless they squash what is there.
    let mut take_in = |more: &mut dyn Iterator<Item = f64>| {
        let [low, high] = marks::range(more.chain(limits));
        let is_squashed = high - low > SQUASHED * own;
        if !is_squashed {
            limits = [low, high];
        }
        is_squashed
    };
    let is_cut = take_in(&mut bands());
    let is_outside = take_in(&mut series.iter().filter_map(|it| it.published));

    let whole = series.iter().flat_map(|it| &it.middle).map(|point| point.1);
    let [low, high] = marks::range(whole);
    if limits[1] - limits[0] > CLOSER * (high - low) {
        return None;
    }

    let percent = |share: f64| 100.0 * share;
    let curves = series.iter().flat_map(|it| it.layers(LAST_THIRD, percent, limits));
    let mut layers: Vec<Layer> = curves.collect();
    let mut marks: Vec<ClosingMark> = series.iter().filter_map(|it| it.circle(100.0)).collect();
    if !is_outside {
        marks.extend(series.iter().filter_map(|it| it.diamond(100.0)));
    }
    layers.extend(marks::side_by_side(marks, &layers));

    let mut label = format!("{}: last third", quantity.label);
    if is_cut {
        label += "; bands are cut";
    }
    if is_outside {
        label += "; published values are outside";
    }
    let x = Axis::new("share of training (%)", Values::Real);
    Some(Panel::new(x, Axis::new(label, quantity.values), layers))
}

/// Colour of the k-th series, and whether it is dashed.
fn style(k: usize) -> (Colour, bool) {
    const COLOURS: usize = 6;
    (Colour::of_series(k), k >= COLOURS)
}

/// Whether two curves or more end so near to each other that the whole panel does not tell them apart.
fn coincide(series: &[Series]) -> bool {
    const NEAR: f64 = 0.05;
    let [low, high] = marks::range(series.iter().flat_map(|it| &it.middle).map(|point| point.1));
    let mut ends: Vec<f64> = series.iter().map(Series::last).filter(|end| end.is_finite()).collect();
    ends.sort_by(f64::total_cmp);
    ends.windows(2).any(|pair| pair[1] - pair[0] < NEAR * (high - low))
}

/// By Student's t: how many standard deviations over seeds an interval of the mean reaches.
fn half_width(seeds: usize) -> f64 {
    if seeds < 2 {
        return 0.0;
    }
    student_quantile((seeds - 1) as f64, (1.0 - CONFIDENCE) / 2.0) / (seeds as f64).sqrt()
}

#[cfg(test)]
mod tests;

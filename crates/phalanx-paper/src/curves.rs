//! Return and violation while training, as the paper draws them: means over seeds with confidence bands.

use super::archive::{ArchivedRun, Numbers};
use super::setting::Setting;
use phalanx::base::beta::student_quantile;
use phalanx_pictures::plot::canvas::{Axis, Colour, Figure, Layer, Mark, Panel, Shape};
use phalanx_pictures::plot::{self, Point, RETURN, Span, TOTAL_VIOLATION, Values};
use phalanx_pictures::statistics::{CONFIDENCE, deviation, mean};

/// A setting with its runs.
pub struct Course<'a> {
    /// What was trained.
    pub setting: &'a Setting,
    /// Its entry in the legend.
    pub label: String,
    /// One per seed.
    pub runs: Vec<ArchivedRun>,
}

/// Return above, total violation below; then the last third of the return where its curves coincide.
/// `published_iterations`: when the paper's runs ended.
pub fn figure(title: &str, courses: &[Course<'_>], published_iterations: Option<usize>) -> Figure {
    let seeds = courses.iter().map(|course| course.runs.len()).max().unwrap_or(0);
    let mut subtitle =
        format!("training batches, mean over {seeds} seed{}", if seeds == 1 { "" } else { "s" });
    if seeds > 1 {
        subtitle += &format!(" with {:.0} % band", 100.0 * CONFIDENCE);
    }
    subtitle += "; circles: closing evaluation";
    if courses.iter().any(|course| course.setting.published().is_some()) {
        subtitle += "; diamonds: the paper's, at its T";
    }
    let x = XAxis::of(courses);
    let series: Vec<[Series; 2]> = courses
        .iter()
        .map(|course| {
            QUANTITIES.each_ref().map(|quantity| Series::of(course, quantity, x, published_iterations))
        })
        .collect();
    let panel = |label: &str, values: Values, which: usize, from: f64| {
        let layers = series.iter().enumerate().flat_map(|(k, series)| series[which].layers(k, from));
        Panel::new(x.axis(), Axis::new(label, values), layers.collect())
    };
    let mut panels =
        vec![panel(RETURN, Values::Real, 0, 0.0), panel(TOTAL_VIOLATION, Values::FromZero, 1, 0.0)];
    let returns: Vec<&Series> = series.iter().map(|[returns, _]| returns).collect();
    if coincide(&returns) {
        let end = returns.iter().map(|series| series.end).fold(0.0, f64::max);
        panels.push(panel(&format!("{RETURN}, last third"), Values::Real, 0, 2.0 / 3.0 * end));
    }
    plot::stacked(title.into(), &subtitle, panels)
}

/// What training is measured in: agent-steps where budgets differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum XAxis {
    Iterations,
    AgentSteps,
}

impl XAxis {
    fn of(courses: &[Course<'_>]) -> XAxis {
        let budgets = |count: fn(&ArchivedRun) -> f64| {
            let counts = courses.iter().flat_map(|course| &course.runs).map(count);
            counts.fold((f64::INFINITY, 0.0f64), |(low, high), it| (low.min(it), high.max(it)))
        };
        let differ = |(low, high): (f64, f64)| high > 1.01 * low;
        let iterations = budgets(|run| run.iterations as f64);
        // Episodes that end early differ in length from run to run; that alone is no other budget.
        let batch = budgets(|run| run.agent_steps as f64 / run.iterations.max(1) as f64);
        if differ(iterations) || batch.1 > 2.0 * batch.0 { XAxis::AgentSteps } else { XAxis::Iterations }
    }

    fn axis(self) -> Axis {
        let label = if self == XAxis::Iterations { "iteration" } else { "agent-steps of training" };
        Axis::new(label, Values::Real)
    }

    fn end(self, run: &ArchivedRun) -> f64 {
        if self == XAxis::Iterations { run.iterations as f64 } else { run.agent_steps as f64 }
    }
}

/// What is drawn of runs.
struct Quantity {
    curve: fn(&ArchivedRun) -> &Numbers,
    /// In the closing evaluation.
    closing: fn(&ArchivedRun) -> Option<f64>,
    /// Its place in what the paper reports.
    published: usize,
    /// No band goes below it.
    floor: fn(&[Vec<Point>]) -> f64,
}

const QUANTITIES: [Quantity; 2] = [
    Quantity {
        curve: |run| &run.returns,
        closing: |run| run.return_,
        published: 0,
        // Returns that are never negative have no band below zero.
        floor: |runs| if runs.iter().flatten().all(|point| point.1 >= 0.0) { 0.0 } else { f64::NEG_INFINITY },
    },
    Quantity {
        curve: |run| &run.violations,
        closing: |run| Some(run.violation_total),
        published: 1,
        floor: |_| 0.0,
    },
];

/// What is drawn of a course.
struct Series {
    label: String,
    middle: Vec<Point>,
    band: Vec<Span>,
    end: f64,
    closing: Option<f64>,
    published: Option<Point>,
}

impl Series {
    fn of(course: &Course<'_>, quantity: &Quantity, x: XAxis, published_iterations: Option<usize>) -> Series {
        let ends: Vec<f64> = course.runs.iter().map(|run| x.end(run)).collect();
        let end = if ends.is_empty() { 0.0 } else { mean(&ends) };
        let runs: Vec<Vec<Point>> = course.runs.iter().map(|run| (quantity.curve)(run).points(end)).collect();
        let floor = (quantity.floor)(&runs);
        let factor = half_width(runs.len());
        let (mut middle, mut band) = (Vec::new(), Vec::new());
        for row in 0..runs.iter().map(Vec::len).min().unwrap_or(0) {
            let at: Vec<f64> = runs.iter().map(|run| run[row].1).collect();
            let (x, mean, reach) = (runs[0][row].0, mean(&at), factor * deviation(&at));
            if mean.is_finite() {
                middle.push((x, mean));
                band.push(Span { x, low: (mean - reach).max(floor), high: mean + reach });
            }
        }
        let closing: Vec<f64> = course.runs.iter().filter_map(quantity.closing).collect();
        let iterations = course.runs.first().map_or(1, |run| run.iterations.max(1));
        let at = published_iterations.map_or(end, |published| end * published as f64 / iterations as f64);
        Series {
            label: course.label.clone(),
            middle,
            band: if runs.len() > 1 { band } else { Vec::new() },
            end,
            closing: (!closing.is_empty()).then(|| mean(&closing)),
            published: course.setting.published().map(|published| (at, published[quantity.published])),
        }
    }

    /// The k-th series of a panel that begins at `from`.
    fn layers(&self, k: usize, from: f64) -> Vec<Layer> {
        let (colour, is_dashed) = style(k);
        let layer = |shape| Layer { shape, colour, label: String::new() };
        let band: Vec<Span> = self.band.iter().filter(|span| span.x >= from).cloned().collect();
        let middle: Vec<Point> = self.middle.iter().filter(|point| point.0 >= from).copied().collect();
        let curve = if is_dashed {
            Shape::Dashes(middle)
        } else {
            Shape::Line { points: middle, width: plot::THICK }
        };
        let mut layers = vec![Layer { shape: curve, colour, label: self.label.clone() }];
        if !band.is_empty() {
            layers.push(layer(Shape::Band(band)));
        }
        let marks =
            [(self.closing.map(|value| (self.end, value)), Mark::Circle), (self.published, Mark::Diamond)];
        for (point, mark) in marks {
            if let Some(point) = point.filter(|point| point.0 >= from) {
                layers.push(layer(Shape::Marks { points: vec![point], mark }));
            }
        }
        layers
    }

    fn last(&self) -> f64 {
        self.middle.last().map_or(f64::NAN, |point| point.1)
    }
}

/// Colour of the k-th series, and whether it is dashed.
fn style(k: usize) -> (Colour, bool) {
    const COLOURS: usize = 6;
    (Colour::of_series(k), k >= COLOURS)
}

/// Whether two curves or more end so near to each other that the whole panel does not tell them apart.
fn coincide(series: &[&Series]) -> bool {
    const NEAR: f64 = 0.05;
    let values = || series.iter().flat_map(|it| &it.middle).map(|point| point.1);
    let range = values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min);
    let mut ends: Vec<f64> = series.iter().map(|it| it.last()).filter(|end| end.is_finite()).collect();
    ends.sort_by(f64::total_cmp);
    ends.windows(2).any(|pair| pair[1] - pair[0] < NEAR * range)
}

/// By Student's t: how many standard deviations over seeds an interval of the mean reaches.
fn half_width(seeds: usize) -> f64 {
    if seeds < 2 {
        return 0.0;
    }
    student_quantile((seeds - 1) as f64, (1.0 - CONFIDENCE) / 2.0) / (seeds as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::ALL;
    use crate::distinct;

    #[test]
    fn bands_are_students() {
        assert_eq!(half_width(1), 0.0);
        assert!((half_width(3) - 4.302_652_73 / 3f64.sqrt()).abs() < 1e-6);
        assert!((half_width(5) - 2.776_445_11 / 5f64.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn no_two_series_of_a_figure_look_alike() {
        const MOST_SERIES: usize = 8;
        let styles = distinct((0..MOST_SERIES).map(style));
        assert_eq!(styles.len(), MOST_SERIES);
        for experiment in ALL.iter() {
            for settings in experiment.figures().values() {
                assert!(settings.len() <= MOST_SERIES, "{}: {} series", experiment.id, settings.len());
            }
        }
    }

    fn series(values: &[f64]) -> Series {
        let middle = values.iter().enumerate().map(|(x, &y)| (x as f64, y)).collect();
        Series { label: String::new(), middle, band: Vec::new(), end: 1.0, closing: None, published: None }
    }

    #[test]
    fn ends_that_are_near_are_looked_at_closely() {
        let (one, near, far) = (series(&[0.0, 10.0]), series(&[1.0, 9.8]), series(&[0.0, 5.0]));
        assert!(coincide(&[&one, &near, &far]));
        assert!(!coincide(&[&one, &far]));
        assert!(!coincide(&[&one]));
    }
}

//! Methods compared at equal violation: each is trained under several bounds, and its return is read off at
//! the violation that ours has.

use super::archive::ArchivedRun;
use super::catalogue::Experiment;
use super::claims::Estimate;
use super::context::ExperimentContext;
use super::distinct;
use super::sheet::{Sheet, number};
use super::trained;
use phalanx_pictures::plot::canvas::{Axis, Colour, Figure, Layer, Mark, Panel, Shape, mark_of_series};
use phalanx_pictures::plot::{self, RETURN, Values};
use phalanx_pictures::statistics::{Uncertainty, mean};

/// Columns of `equal.csv`: a row per bound and pair of methods. `difference`: the return of `method`, trained
/// under that bound, less what `other` has at the same `violation` of it, with Welch's interval.
const COLUMNS: &str =
    "bound,method,other,seeds,violation,return,return_other,difference,low,high,error,freedom";

/// A method's runs, by bound.
struct Method<'a> {
    name: &'a str,
    runs: Vec<Vec<ArchivedRun>>,
}

/// Trains, writes `results.csv`, `summary.csv` and `equal.csv`, and draws `figures/frontier`.
pub fn make(context: &ExperimentContext<'_>, experiment: &'static Experiment) -> anyhow::Result<()> {
    let trained = trained::tabulated(context, experiment)?;
    let names = distinct(experiment.settings.iter().map(|setting| setting.method.as_str()));
    let runs_of = |name: &str| {
        let all = experiment.settings.iter().zip(&trained);
        let own = all.filter(|(setting, _)| setting.method == name);
        own.map(|(_, runs)| runs.iter().flatten().cloned().collect()).collect()
    };
    let methods: Vec<Method<'_>> =
        names.into_iter().map(|name| Method { name, runs: runs_of(name) }).collect();
    context.sheet("equal.csv", &equal(&methods, &experiment.bounds))?;
    context.figures(vec![("frontier", figure(&experiment.title, &methods))])
}

fn equal(methods: &[Method<'_>], bounds: &[f64]) -> Sheet {
    let mut sheet = Sheet::new(COLUMNS);
    for method in methods {
        for (&bound, own) in bounds.iter().zip(&method.runs) {
            let violation = mean(&own.iter().map(|run| violation(run, bound)).collect::<Vec<_>>());
            let returns: Vec<f64> = own.iter().filter_map(|run| run.return_).collect();
            for other in methods.iter().filter(|other| other.name != method.name) {
                let theirs = other.returns_at(violation, bound);
                let mut row = vec![bound.to_string(), method.name.to_string(), other.name.to_string()];
                row.push(returns.len().min(theirs.len()).to_string());
                let estimate = Estimate::of([&returns, &theirs], |[own, theirs]| own - theirs);
                let Uncertainty { error, freedom } = estimate.uncertainty();
                row.extend([violation, mean(&returns), mean(&theirs)].map(number));
                row.extend([estimate.mean, estimate.low, estimate.high, error, freedom].map(number));
                sheet.push(row);
            }
        }
    }
    sheet
}

/// What a run would violate a bound by, summed over agents, whatever bound it was trained under.
fn violation(run: &ArchivedRun, bound: f64) -> f64 {
    run.values.0.iter().map(|value| (value - bound).max(0.0)).sum()
}

impl Method<'_> {
    /// Every seed's return at a violation of `bound`: linear between its runs under the different bounds.
    /// Where it never violates so little, that of its least violation, which is to its favour; where it never
    /// violates so much, its largest return.
    fn returns_at(&self, wanted: f64, bound: f64) -> Vec<f64> {
        let seeds = distinct(self.runs.iter().flatten().map(|run| run.seed));
        let at_seed = |seed: u64| {
            let runs = self.runs.iter().flatten().filter(|run| run.seed == seed);
            let points = runs.filter_map(|run| Some((violation(run, bound), run.return_?)));
            let mut points: Vec<(f64, f64)> = points.collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0).then(other.1.total_cmp(&one.1)));
            read_off(&upper(&points), wanted)
        };
        seeds.into_iter().filter_map(at_seed).collect()
    }
}

/// The points that no other one beats with as little violation or less; by violation.
fn upper(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut best: Vec<(f64, f64)> = Vec::new();
    for &point in points {
        if best.last().is_none_or(|last| point.1 > last.1) {
            best.push(point);
        }
    }
    best
}

fn read_off(points: &[(f64, f64)], wanted: f64) -> Option<f64> {
    let after = points.partition_point(|point| point.0 <= wanted);
    match (after.checked_sub(1).map(|k| points[k]), points.get(after)) {
        (Some((x, y)), Some(&(next_x, next_y))) => Some(y + (next_y - y) * (wanted - x) / (next_x - x)),
        (Some((_, y)), None) => Some(y),
        (None, next) => next.map(|next| next.1),
    }
}

/// Return against the violation of the own bound, a curve per method through its bounds.
fn figure(title: &str, methods: &[Method<'_>]) -> Figure {
    let layers = methods.iter().enumerate().flat_map(|(k, method)| {
        let at = |runs: &Vec<ArchivedRun>| {
            let violations: Vec<f64> = runs.iter().map(|run| run.violation_total).collect();
            let returns: Vec<f64> = runs.iter().filter_map(|run| run.return_).collect();
            (mean(&violations), mean(&returns))
        };
        let points: Vec<(f64, f64)> = method.runs.iter().filter(|runs| !runs.is_empty()).map(at).collect();
        let colour = Colour::of_series(k);
        let mark = if k == 0 { Mark::Circle } else { mark_of_series(k) };
        let marks =
            Layer { shape: Shape::Marks { points: points.clone(), mark }, colour, label: String::new() };
        [plot::line(points, plot::THICK, colour, method.name.into()), marks]
    });
    let x = Axis::new("total violation of the own bound (sum over agents)", Values::FromZero);
    let panel = Panel::new(x, Axis::new(RETURN, Values::Real), layers.collect());
    plot::stacked(title.into(), "closing evaluations, mean over seeds; a mark per bound", vec![panel])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_are_read_off_between_what_was_run() {
        let points = upper(&[(0.0, 1.0), (0.5, 0.5), (1.0, 3.0), (2.0, 2.0)]);
        assert_eq!(points, [(0.0, 1.0), (1.0, 3.0)]);
        let at = |wanted| read_off(&points, wanted);
        assert_eq!([at(0.0), at(0.5), at(1.0), at(9.0)], [Some(1.0), Some(2.0), Some(3.0), Some(3.0)]);
        let never_safe = upper(&[(0.5, 2.0), (1.0, 3.0)]);
        assert_eq!(read_off(&never_safe, 0.1), Some(2.0), "to its favour");
        assert_eq!(read_off(&[], 0.1), None);
    }
}

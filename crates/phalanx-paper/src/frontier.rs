//! Methods compared at equal violation: each is trained under several bounds, which gives every seed a curve
//! of return against violation, and the curves are compared where both have points.
//!
//! What is violated is the same for all runs, whatever bound they were trained under: the strictest bound.
//! Both curves are read in the same way, so that neither method gains by it:
//!
//! - a curve is linear between a seed's runs, and is never continued beyond them;
//! - under each bound it is read at the mean violation of all runs of both methods under that bound, moved
//!   into what every seed of both methods reaches;
//! - claims are judged by each seed's mean over all bounds.

use super::archive::ArchivedRun;
use super::catalogue::Experiment;
use super::claims::Estimate;
use super::context::{ExperimentContext, Trained};
use super::distinct;
use super::setting::Setting;
use super::sheet::{Sheet, number};
use super::trained;
use phalanx_pictures::plot::canvas::{Axis, Colour, Figure, Layer, Mark, Panel, Shape, mark_of_series};
use phalanx_pictures::plot::{self, RETURN, Span, Values};
use phalanx_pictures::statistics::mean;

/// Columns of `equal.csv`: a row per bound and pair of methods, and one with the means over all bounds.
/// `returns`: of each seed of `method`, read at `violation` of the strictest bound; `returns_other`: the same
/// of `other`; `difference`: of their means, with Welch's interval. `missing`: runs without a result.
const COLUMNS: &str = "bound,method,other,seeds,violation,return,return_other,difference,low,high,returns,\
    returns_other,missing,status";

/// Cell of `bound` in the row of the means.
pub const ALL_BOUNDS: &str = "all";

/// Cell of `status` where nothing can be read.
pub const NOTHING_IN_COMMON: &str = "the methods have no violation in common";

/// Violation of the strictest bound, and return.
type Reading = (f64, f64);

/// A method's runs by bound, then by seed; none for those that failed.
struct Method<'a> {
    name: &'a str,
    runs: Vec<Vec<Option<Reading>>>,
    missing: Vec<String>,
}

/// Trains, writes `results.csv`, `summary.csv` and `equal.csv`, and draws `figures/frontier`.
pub fn make(context: &ExperimentContext<'_>, experiment: &'static Experiment) -> anyhow::Result<()> {
    let trained = trained::tabulated(context, experiment)?;
    let names = distinct(experiment.settings.iter().map(|setting| setting.method.as_str()));
    let strictest = experiment.bounds.iter().copied().fold(f64::INFINITY, f64::min);
    let seeds = &context.reproduction.seeds;
    let method = |name: &'static str| {
        let own = experiment.settings.iter().zip(&trained).filter(|(setting, _)| setting.method == name);
        Method::of(name, own, seeds, strictest)
    };
    let methods: Vec<Method<'_>> = names.into_iter().map(method).collect();
    context.sheet("equal.csv", &equal(&methods, &experiment.bounds))?;
    context.figures(vec![("frontier", figure(&experiment.title, strictest, &methods))])
}

/// What a run violates a bound by, summed over agents, whatever bound it was trained under; none without
/// the value of every agent.
fn violation(run: &ArchivedRun, bound: f64) -> Option<f64> {
    let values = &run.values.0;
    let is_known = !values.is_empty() && values.iter().all(|value| value.is_finite());
    is_known.then(|| values.iter().map(|value| (value - bound).max(0.0)).sum())
}

fn equal(methods: &[Method<'_>], bounds: &[f64]) -> Sheet {
    let mut sheet = Sheet::new(COLUMNS);
    for method in methods {
        for other in methods.iter().filter(|other| other.name != method.name) {
            pair(&mut sheet, method, other, bounds);
        }
    }
    sheet
}

/// Adds the rows of two methods.
fn pair(sheet: &mut Sheet, method: &Method<'_>, other: &Method<'_>, bounds: &[f64]) {
    let curves = [method, other].map(Method::curves);
    let missing = [&method.missing[..], &other.missing[..]].concat().join("; ");
    let names = |bound: &str| [bound, method.name, other.name].map(String::from).to_vec();
    let Some(levels) = levels([method, other], &curves, bounds.len()) else {
        let empty = vec![String::new(); sheet.columns.len() - 5];
        sheet.push([names(ALL_BOUNDS), empty, vec![missing, NOTHING_IN_COMMON.into()]].concat());
        return;
    };
    let mut row = |bound: &str, violation: f64, returns: [Vec<f64>; 2]| {
        let estimate = Estimate::of(returns.each_ref().map(Vec::as_slice), |[own, other]| own - other);
        let [own, theirs] = returns.each_ref().map(|values| mean(values));
        let numbers = [violation, own, theirs, estimate.mean, estimate.low, estimate.high].map(number);
        let seeds = returns.each_ref().map(|values| {
            let words: Vec<String> = values.iter().map(|value| number(*value)).collect();
            words.join(" ")
        });
        let ends = [missing.clone(), "read".into()];
        sheet.push(
            [names(bound), vec![estimate.seeds.to_string()], numbers.to_vec(), seeds.into(), ends.into()]
                .concat(),
        );
    };
    let read = |curves: &Vec<Vec<Reading>>, level: f64| -> Vec<f64> {
        curves.iter().filter_map(|curve| read_off(curve, level)).collect()
    };
    for (bound, &level) in bounds.iter().zip(&levels) {
        row(&bound.to_string(), level, curves.each_ref().map(|curves| read(curves, level)));
    }
    let overall = |curve: &Vec<Reading>| {
        let read: Vec<f64> = levels.iter().filter_map(|&level| read_off(curve, level)).collect();
        mean(&read)
    };
    row(ALL_BOUNDS, mean(&levels), curves.each_ref().map(|curves| curves.iter().map(overall).collect()));
}

/// The violation at which curves are read, for each bound; none if there is none that all seeds reach. Made
/// of violations alone, and of both methods alike.
fn levels(methods: [&Method<'_>; 2], curves: &[Vec<Vec<Reading>>; 2], bounds: usize) -> Option<Vec<f64>> {
    let ends = || curves.iter().flatten().filter_map(|curve| Some((curve.first()?.0, curve.last()?.0)));
    let low = ends().map(|end| end.0).fold(f64::NEG_INFINITY, f64::max);
    let high = ends().map(|end| end.1).fold(f64::INFINITY, f64::min);
    if curves.iter().any(Vec::is_empty) || low >= high {
        return None;
    }
    let level = |bound: usize| {
        let own = methods.map(|method| mean_violation(method.runs.get(bound)?));
        let both: Vec<f64> = own.into_iter().flatten().collect();
        // Under a bound where one has no run, wherever the other one is.
        if both.is_empty() { low } else { mean(&both).clamp(low, high) }
    };
    Some((0..bounds).map(level).collect())
}

fn mean_violation(runs: &[Option<Reading>]) -> Option<f64> {
    let violations: Vec<f64> = runs.iter().flatten().map(|reading| reading.0).collect();
    (!violations.is_empty()).then(|| mean(&violations))
}

impl<'a> Method<'a> {
    fn of<'r>(
        name: &'a str,
        settings: impl Iterator<Item = (&'r Setting, &'r Vec<Trained>)>,
        seeds: &[u64],
        strictest: f64,
    ) -> Method<'a> {
        let mut method = Method { name, runs: Vec::new(), missing: Vec::new() };
        for (setting, trained) in settings {
            let reading = |run: &ArchivedRun| Some((violation(run, strictest)?, run.return_?));
            let readings: Vec<Option<Reading>> =
                trained.iter().map(|run| run.as_ref().ok().and_then(reading)).collect();
            let all = setting.seeds(seeds).into_iter().zip(&readings);
            let failed = all.filter(|(_, reading)| reading.is_none());
            method.missing.extend(failed.map(|(seed, _)| format!("{}, seed {seed}", setting.title())));
            method.runs.push(readings);
        }
        method.name_points(seeds);
        method
    }

    /// Says which seeds give a single point and no curve, with no run failed: a policy that does nothing
    /// keeps every bound. What is left must not be judged without a word about them.
    fn name_points(&mut self, seeds: &[u64]) {
        for (place, seed) in seeds.iter().enumerate() {
            let runs: Vec<Reading> = self.of_seed(place).collect();
            if runs.len() > 1 && runs.len() == self.runs.len() && merged(runs).len() == 1 {
                self.missing
                    .push(format!("{}, seed {seed}: the same violation under every bound", self.name));
            }
        }
    }

    /// The runs of the seed at a place, under all bounds.
    fn of_seed(&self, place: usize) -> impl Iterator<Item = Reading> {
        self.runs.iter().filter_map(move |runs| *runs.get(place)?)
    }

    /// Every seed's runs under all bounds, by violation; seeds with two points at least.
    fn curves(&self) -> Vec<Vec<Reading>> {
        let seeds = self.runs.iter().map(Vec::len).max().unwrap_or(0);
        let curves = (0..seeds).map(|place| merged(self.of_seed(place).collect()));
        curves.filter(|curve| curve.len() > 1).collect()
    }
}

/// In the order of violations; of runs with the same one, the mean return.
fn merged(mut readings: Vec<Reading>) -> Vec<Reading> {
    readings.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let same = readings.chunk_by(|one, other| one.0 == other.0);
    same.map(|same| (same[0].0, mean(&same.iter().map(|reading| reading.1).collect::<Vec<_>>()))).collect()
}

/// Linear between the points; nothing outside of them.
fn read_off(curve: &[Reading], wanted: f64) -> Option<f64> {
    let after = curve.partition_point(|point| point.0 < wanted);
    let &(next_x, next_y) = curve.get(after)?;
    if next_x == wanted {
        return Some(next_y);
    }
    let &(x, y) = curve.get(after.checked_sub(1)?)?;
    Some(y + (next_y - y) * (wanted - x) / (next_x - x))
}

/// Return against violation, a curve per method through its bounds.
fn figure(title: &str, strictest: f64, methods: &[Method<'_>]) -> Figure {
    let layers = methods.iter().enumerate().flat_map(|(k, method)| {
        let at = |runs: &Vec<Option<Reading>>| {
            let (violations, returns): (Vec<f64>, Vec<f64>) = runs.iter().flatten().copied().unzip();
            (mean(&violations), Estimate::of_mean(&returns))
        };
        let made = method.runs.iter().filter(|runs| runs.iter().any(Option::is_some));
        let estimates: Vec<(f64, Estimate)> = made.map(at).collect();
        let points: Vec<(f64, f64)> = estimates.iter().map(|(x, return_)| (*x, return_.mean)).collect();
        // A single seed has no interval.
        let known = estimates.iter().filter(|(_, return_)| return_.high.is_finite());
        let spans = known.map(|(x, return_)| Span { x: *x, low: return_.low, high: return_.high }).collect();
        let colour = Colour::of_series(k);
        let mark = if k == 0 { Mark::Circle } else { mark_of_series(k) };
        let unnamed = |shape: Shape| Layer { shape, colour, label: String::new() };
        let marks = unnamed(Shape::Marks { points: points.clone(), mark });
        [plot::line(points, plot::THICK, colour, method.name.into()), unnamed(Shape::Bars(spans)), marks]
    });
    let x = Axis::new(
        format!("total violation of the strictest bound, {strictest} (sum over agents)"),
        Values::FromZero,
    );
    let panel = Panel::new(x, Axis::new(RETURN, Values::Real), layers.collect());
    plot::stacked(
        title.into(),
        "closing evaluations, mean over seeds with 95 % intervals of returns; a mark per bound",
        vec![panel],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use phalanx::base::stream::{Place, Purpose, Sequence, Stream};

    #[test]
    fn curves_are_read_between_their_points_and_nowhere_else() {
        let curve = merged(vec![(2.0, 2.0), (0.0, 1.0), (1.0, 3.0), (0.0, 2.0)]);
        assert_eq!(curve, [(0.0, 1.5), (1.0, 3.0), (2.0, 2.0)]);
        let at = |wanted| read_off(&curve, wanted);
        assert_eq!([at(0.0), at(0.5), at(1.0), at(1.5)], [1.5, 2.25, 3.0, 2.5].map(Some));
        assert_eq!([at(-0.1), at(2.1), read_off(&[], 0.0)], [None; 3]);
    }

    const BOUNDS: [f64; 4] = [1.0, 1.25, 1.5, 2.0];

    /// Five seeds of a method on a curve that all methods share: `slack` is what it violates more.
    fn method<'a>(name: &'a str, slack: f64, noise: f64, draws: &mut Sequence) -> Method<'a> {
        let mut run = |bound: f64| {
            let violation = (10.0 * (bound - 1.0) + slack + 0.2 * draws.normal()).max(0.0);
            // It bends as returns do, and seeds differ by 1.
            Some((violation, 50.0 + 8.0 * violation / (violation + 5.0) + noise * draws.normal()))
        };
        let runs = BOUNDS.map(|bound| (0..5).map(|_| run(bound)).collect());
        Method { name, runs: runs.into(), missing: Vec::new() }
    }

    fn overall(sheet: &Sheet) -> [f64; 3] {
        let row = sheet.rows.iter().find(|row| sheet.text(row, "bound") == ALL_BOUNDS).unwrap();
        ["difference", "low", "high"].map(|column| sheet.number(row, column))
    }

    /// Neither of two methods that are the same is found better more often than an interval errs, also where
    /// one of them violates more under the same bounds.
    #[test]
    fn equal_methods_are_found_equal() {
        for slack in [0.0, 1.0] {
            const TIMES: u32 = 2000;
            let (mut above, mut below, mut sum) = (0, 0, 0.0);
            for trajectory in 0..TIMES {
                let place = Place { purpose: Purpose::Evaluation, iteration: 0, trajectory };
                let mut draws = Stream::new(0x6571_7561).sequence(place, 0);
                let methods = [method("one", 0.0, 1.0, &mut draws), method("other", slack, 1.0, &mut draws)];
                let [difference, low, high] = overall(&equal(&methods, &BOUNDS));
                (above, below) = (above + u32::from(low > 0.0), below + u32::from(high < 0.0));
                sum += difference;
            }
            let [above, below] = [above, below].map(|count| f64::from(count) / f64::from(TIMES));
            assert!(above < 0.04 && below < 0.04, "slack {slack}: {above} above, {below} below");
            assert!((sum / f64::from(TIMES)).abs() < 0.1, "slack {slack}: bias {}", sum / f64::from(TIMES));
        }
    }

    #[test]
    fn a_better_method_is_found_and_what_is_missing_is_named() {
        let place = Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: 0 };
        let mut draws = Stream::new(7).sequence(place, 0);
        let mut one = method("one", 0.0, 0.1, &mut draws);
        let other = method("other", 1.0, 0.1, &mut draws);
        for (_, return_) in one.runs.iter_mut().flatten().flatten() {
            *return_ += 1.0;
        }
        one.runs[2][1] = None;
        one.missing.push("one: at most 1.5, seed 2".into());
        let sheet = equal(&[one, other], &BOUNDS);
        assert_eq!(sheet.rows.len(), 2 * (BOUNDS.len() + 1));
        let [difference, low, high] = overall(&sheet);
        assert!((difference - 1.0).abs() < 0.2 && low > 0.5 && high < 1.5, "{difference} {low} {high}");
        assert_eq!(sheet.text(&sheet.rows[0], "missing"), "one: at most 1.5, seed 2");
        assert_eq!(sheet.text(&sheet.rows[0], "returns").split(' ').count(), 5);
    }

    #[test]
    fn seeds_without_a_curve_are_named() {
        let runs = |violations: [f64; 3]| violations.map(|violation| Some((violation, 1.0))).to_vec();
        let mut method = Method {
            name: "one",
            runs: vec![runs([0.0, 0.0, 1.0]), runs([0.5, 0.0, 0.0])],
            missing: Vec::new(),
        };
        method.name_points(&[1, 2, 3]);
        assert_eq!(method.missing, ["one, seed 2: the same violation under every bound"]);
        assert_eq!(method.curves().len(), 2);
    }

    #[test]
    fn methods_that_never_meet_are_not_compared() {
        let runs = |from: f64| [0.0, 1.0].map(|more| vec![Some((from + more, 1.0)); 3]).to_vec();
        let method = |name, from| Method { name, runs: runs(from), missing: Vec::new() };
        let sheet = equal(&[method("one", 0.0), method("other", 5.0)], &[1.0, 2.0]);
        assert_eq!(sheet.rows.len(), 2);
        assert_eq!(sheet.text(&sheet.rows[0], "status"), NOTHING_IN_COMMON);
    }
}

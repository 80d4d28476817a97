//! How a run got where it ended: what claims about training, not about its result, are judged by.

use phalanx_pictures::plot::{self, Metrics};
use phalanx_pictures::statistics::mean;

/// Iterations that are averaged over at the start.
const START: usize = 10;

/// The violation of the first iterations.
pub fn violation_at_start(run: &Metrics) -> f64 {
    mean(first(&run.violation_total, START))
}

/// The return of the first iterations.
pub fn return_at_start(run: &Metrics) -> f64 {
    mean(first(&run.return_, START))
}

/// The return over the first fifth of training: higher where learning is faster.
pub fn early_return(run: &Metrics) -> f64 {
    mean(first(&run.return_, run.return_.len().div_ceil(5)))
}

/// The largest total violation while training, of averages over ten iterations.
pub fn peak_violation(run: &Metrics) -> f64 {
    let windows = run.violation_total.chunks(10).map(mean);
    windows.filter(|value| value.is_finite()).fold(f64::NAN, f64::max)
}

fn first(values: &[f64], count: usize) -> &[f64] {
    &values[..count.min(values.len())]
}

/// The first iteration at which an average of 21 has gone nine tenths of the way that the run goes in all;
/// NaN if its return did not rise.
pub fn settled(run: &Metrics) -> f64 {
    const REACH: usize = 10;
    let smooth = plot::moving_mean(&plot::points(&run.iteration, &run.return_), REACH);
    let values: Vec<f64> = smooth.iter().map(|point| point.1).collect();
    let (Some(&from), tail) = (values.first(), values.len().div_ceil(10)) else { return f64::NAN };
    let to = mean(&values[values.len() - tail..]);
    let goal = from + 0.9 * (to - from);
    let reached = smooth.iter().find(|point| to > from && point.1 >= goal);
    reached.map_or(f64::NAN, |point| point.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rising(rate: f64) -> Metrics {
        let iteration: Vec<f64> = (1..=200).map(f64::from).collect();
        let return_ = iteration.iter().map(|t| (rate * t).min(100.0)).collect();
        let violation_total = iteration.iter().map(|t| t - 1.0).collect();
        Metrics { iteration, return_, violation_total, ..Metrics::default() }
    }

    #[test]
    fn faster_runs_settle_earlier() {
        let (slow, fast) = (rising(1.0), rising(2.0));
        assert!((settled(&slow) - 91.0).abs() <= 2.0, "{}", settled(&slow));
        assert!((settled(&fast) - 46.0).abs() <= 2.0, "{}", settled(&fast));
        assert!(early_return(&fast) > early_return(&slow));
        assert_eq!(early_return(&slow), 20.5);
        assert!(settled(&rising(0.0)).is_nan());
        assert!(settled(&Metrics::default()).is_nan());
    }

    #[test]
    fn the_start_is_ten_iterations() {
        assert_eq!(violation_at_start(&rising(1.0)), 4.5);
        assert_eq!(return_at_start(&rising(2.0)), 11.0);
    }

    #[test]
    fn the_peak_is_that_of_averages() {
        let mut violation_total = vec![0.0; 30];
        violation_total[12] = 1.0;
        let run = Metrics { violation_total, ..Metrics::default() };
        assert!((peak_violation(&run) - 0.1).abs() < 1e-12);
    }
}

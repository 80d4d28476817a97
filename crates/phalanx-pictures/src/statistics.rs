//! Numbers over seeds: mean, interquartile mean, intervals.

use phalanx::base::beta::{student_quantile, student_tail};
use phalanx::base::stream::{Place, Purpose, Stream};

/// Resamples of a bootstrap interval.
const RESAMPLES: usize = 4000;

/// Share of an interval.
pub const CONFIDENCE: f64 = 0.95;

/// The mean; NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The standard deviation over seeds, with n − 1; 0 of a single value.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// The interquartile mean: of what is left when a quarter of the weight is cut off at each end. Values on the
/// edge count in part, so it is defined for any number of values.
pub fn interquartile_mean(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let (low, high) = (n / 4.0, 3.0 * n / 4.0);
    let weight = |k: usize| ((k + 1) as f64).min(high) - (k as f64).max(low);
    let weighted = sorted.iter().enumerate().map(|(k, value)| weight(k).max(0.0) * value);
    weighted.sum::<f64>() / (high - low)
}

/// The exponent of the power law that fits points best: by least squares of logarithms. NaN of fewer than two
/// points that have logarithms.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let logs: Vec<(f64, f64)> = points
        .iter()
        .map(|&(x, y)| (x.ln(), y.ln()))
        .filter(|(x, y)| x.is_finite() && y.is_finite())
        .collect();
    let (x, y): (Vec<f64>, Vec<f64>) = logs.iter().copied().unzip();
    let (x, y) = (mean(&x), mean(&y));
    let sums = logs.iter().map(|&(a, b)| ((a - x) * (b - y), (a - x).powi(2)));
    let (both, own) = sums.fold((0.0, 0.0), |(both, own), (a, b)| (both + a, own + b));
    if logs.len() < 2 { f64::NAN } else { both / own }
}

/// How far what several samples come to may be from the truth: Welch's standard error and degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uncertainty {
    /// Standard error; infinite where a sample has a single value.
    pub error: f64,
    /// Degrees of freedom, by Welch and Satterthwaite.
    pub freedom: f64,
}

impl Uncertainty {
    /// Of what `combine` makes of the means of independent samples: a mean, a difference, or anything smooth,
    /// to first order. Each sample has a spread of its own: Σ v and (Σ v)² / Σ v²/(n − 1) with v = (∂/∂mean)²
    /// s²/n.
    pub fn welch<const N: usize>(samples: [&[f64]; N], combine: impl Fn([f64; N]) -> f64) -> Uncertainty {
        let means = samples.map(mean);
        let slope = |k: usize| {
            let step = 1e-6 * (1.0 + means[k].abs());
            let moved = |by: f64| {
                let mut means = means;
                means[k] += by;
                combine(means)
            };
            (moved(step) - moved(-step)) / (2.0 * step)
        };
        let (mut variance, mut squares, mut values) = (0.0, 0.0, 0.0);
        for (k, sample) in samples.iter().enumerate() {
            if sample.len() < 2 {
                return Uncertainty { error: f64::INFINITY, freedom: 1.0 };
            }
            let (n, own) = (sample.len() as f64, (slope(k) * deviation(sample)).powi(2));
            variance += own / n;
            squares += (own / n).powi(2) / (n - 1.0);
            values += n - 1.0;
        }
        let freedom = if squares > 0.0 { variance * variance / squares } else { values };
        Uncertainty { error: variance.sqrt(), freedom }
    }

    /// How far the interval reaches to each side.
    pub fn half_width(self) -> f64 {
        match self.error {
            error if error == 0.0 || !error.is_finite() => error,
            error => student_quantile(self.freedom, (1.0 - CONFIDENCE) / 2.0) * error,
        }
    }

    /// Probability of an estimate that is `distance` or more above the truth.
    pub fn beyond(self, distance: f64) -> f64 {
        match self.error {
            0.0 => f64::from(u8::from(distance <= 0.0)),
            error => student_tail(self.freedom, distance / error),
        }
    }
}

/// Bootstrap interval (percentiles) of what `combine` makes of a statistic of each sample; values of each
/// sample are drawn apart.
pub fn bootstrap<const N: usize>(
    samples: [&[f64]; N],
    statistic: impl Fn(&[f64]) -> f64,
    combine: impl Fn([f64; N]) -> f64,
) -> (f64, f64) {
    // Always the same draws: a report does not change when it is made once more.
    let place = Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: 0 };
    let mut sequence = Stream::new(0x626f_6f74).sequence(place, 0);
    let mut draw = |count: usize| ((sequence.uniform() * count as f64) as usize).min(count - 1);
    // As many draws with replacement as there are values.
    let mut drawn = |values: &[f64]| {
        let again: Vec<f64> = (0..values.len()).map(|_| values[draw(values.len())]).collect();
        statistic(&again)
    };
    let mut found: Vec<f64> = (0..RESAMPLES).map(|_| combine(samples.map(&mut drawn))).collect();
    found.sort_by(f64::total_cmp);
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let at = |share: f64| crate::plot::quantile(&found, share);
    (at(tail), at(1.0 - tail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interquartile_mean_cuts_a_quarter_at_each_end() {
        assert_eq!(interquartile_mean(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        // Three values: 0.75 of the weight goes at each end, half of which is the outer values' quarter.
        assert!((interquartile_mean(&[0.0, 3.0, 9.0]) - (0.25 * 0.0 + 3.0 + 0.25 * 9.0) / 1.5).abs() < 1e-12);
        assert_eq!(interquartile_mean(&[7.0]), 7.0);
        assert_eq!(interquartile_mean(&[100.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -50.0]), 3.5);
    }

    #[test]
    fn slopes_are_exponents() {
        let points: Vec<(f64, f64)> = (1..9).map(|k| (f64::from(k), 3.0 * f64::from(k).powf(-0.5))).collect();
        assert!((slope(&points) + 0.5).abs() < 1e-12);
        assert!(slope(&[(1.0, 2.0), (3.0, 0.0)]).is_nan());
    }

    /// The examples of R's `t.test` on its data set `sleep`: Welch, and one sample.
    #[test]
    fn welch_is_that_of_the_textbook() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let found = Uncertainty::welch([&first, &second], |[a, b]| a - b);
        let difference = mean(&first) - mean(&second);
        assert!((found.freedom - 17.776).abs() < 1e-3, "{}", found.freedom);
        let ends = [difference - found.half_width(), difference + found.half_width()];
        assert!((ends[0] + 3.365_483_2).abs() < 1e-6 && (ends[1] - 0.205_483_2).abs() < 1e-6, "{ends:?}");
        assert!((2.0 * found.beyond(difference.abs()) - 0.079_394).abs() < 1e-6);
        let paired: Vec<f64> = first.iter().zip(&second).map(|(a, b)| a - b).collect();
        let found = Uncertainty::welch([&paired], |[mean]| mean);
        assert!((found.freedom - 9.0).abs() < 1e-9);
        assert!((mean(&paired) - found.half_width() + 2.459_885_8).abs() < 1e-6);
        // A quotient, to first order: (δa/b)² + (a·δb/b²)².
        let found = Uncertainty::welch([&[3.0, 5.0], &[1.0, 3.0]], |[a, b]| a / b);
        assert!((found.error - (0.25f64 + 1.0).sqrt()).abs() < 1e-6, "{}", found.error);
    }

    #[test]
    fn few_values_and_equal_ones() {
        let alone = Uncertainty::welch([&[1.0, 2.0], &[3.0]], |[a, b]| a - b);
        assert_eq!((alone.half_width(), alone.beyond(1e9)), (f64::INFINITY, 0.5));
        let equal = Uncertainty::welch([&[2.0, 2.0, 2.0]], |[mean]| mean);
        assert_eq!((equal.half_width(), equal.beyond(0.1), equal.beyond(0.0)), (0.0, 0.0, 1.0));
    }

    #[test]
    fn bootstrap_intervals_hold_the_statistic_and_shrink_with_more_values() {
        let few: Vec<f64> = (1..=10).map(f64::from).collect();
        let (low, high) = bootstrap([&few], interquartile_mean, |[found]| found);
        assert!((2.0..5.0).contains(&low) && (6.0..9.0).contains(&high), "{low} {high}");
        let many: Vec<f64> = (0..200).map(|k| few[k % 10]).collect();
        let (low, high) = bootstrap([&many], interquartile_mean, |[found]| found);
        assert!(low > 4.5 && high < 6.5, "{low} {high}");
        assert_eq!(bootstrap([&[2.0]], mean, |[found]| found), (2.0, 2.0));
        assert_eq!(deviation(&[1.0, 2.0, 3.0]), 1.0);
    }
}

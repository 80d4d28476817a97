//! Numbers over seeds: mean, interquartile mean, intervals.

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

/// Bootstrap interval (percentiles) of what `combine` makes of the samples' means over seeds; seeds of each
/// sample are drawn apart.
pub fn interval<const N: usize>(samples: [&[f64]; N], combine: impl Fn([f64; N]) -> f64) -> (f64, f64) {
    // Always the same draws: a report does not change when it is made once more.
    let place = Place { purpose: Purpose::Evaluation, iteration: 0, trajectory: 0 };
    let mut sequence = Stream::new(0x626f_6f74).sequence(place, 0);
    let mut draw = |count: usize| ((sequence.uniform() * count as f64) as usize).min(count - 1);
    // Of as many draws with replacement as there are values.
    let mut mean = |values: &[f64]| {
        (0..values.len()).map(|_| values[draw(values.len())]).sum::<f64>() / values.len() as f64
    };
    let mut found: Vec<f64> = (0..RESAMPLES).map(|_| combine(samples.map(&mut mean))).collect();
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

    #[test]
    fn intervals_hold_the_mean_and_shrink_with_more_seeds() {
        let few = [1.0, 2.0, 3.0];
        let (low, high) = interval([&few], |[mean]| mean);
        assert!((1.0..1.5).contains(&low) && (2.5..=3.0).contains(&high), "{low} {high}");
        let many: Vec<f64> = (0..60).map(|k| few[k % 3]).collect();
        let (low, high) = interval([&many], |[mean]| mean);
        assert!(low > 1.7 && high < 2.3, "{low} {high}");
        let (low, high) = interval([&[5.0, 5.0], &[1.0, 2.0]], |[a, b]| a - b);
        assert!((3.0..=3.1).contains(&low) && (3.9..=4.0).contains(&high), "{low} {high}");
        assert_eq!(interval([&[2.0]], |[mean]| mean), (2.0, 2.0));
        assert_eq!(deviation(&[1.0, 2.0, 3.0]), 1.0);
    }
}

//! Series of numbers made ready for drawing: thinned, averaged, ordered. Values that are not finite are left
//! out.

/// A point of a curve.
pub type Point = (f64, f64);

/// A span of values over an abscissa.
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    pub x: f64,
    pub low: f64,
    pub high: f64,
}

/// Bins that a long series is thinned to: about one per pixel of a drawing.
const BINS: usize = 700;

/// Larger numbers than this are taken as infinite: the span of two of them must stay finite.
const LARGEST: f64 = 1e290;

/// Whether a value can be drawn.
pub fn is_drawable(value: f64) -> bool {
    value.abs() <= LARGEST
}

/// The pairs of `x` and `y` that can be drawn.
pub fn points(x: &[f64], y: &[f64]) -> Vec<Point> {
    x.iter().copied().zip(y.iter().copied()).filter(|&(x, y)| is_drawable(x) && is_drawable(y)).collect()
}

/// At most about 1,400 of the points: the lowest and the highest of every bin, so that peaks stay, and both
/// ends.
pub fn thin(points: Vec<Point>) -> Vec<Point> {
    if points.len() <= 2 * BINS {
        return points;
    }
    let mut kept = Vec::with_capacity(2 * BINS + 2);
    kept.push(points[0]);
    for bin in bins(points.len()).map(|bin| &points[bin]) {
        let by_height = |a: &&Point, b: &&Point| a.1.total_cmp(&b.1);
        let (Some(&lowest), Some(&highest)) = (bin.iter().min_by(by_height), bin.iter().max_by(by_height))
        else {
            continue;
        };
        kept.extend(if lowest.0 <= highest.0 { [lowest, highest] } else { [highest, lowest] });
    }
    kept.push(points[points.len() - 1]);
    kept
}

/// At most 1,400 spans: what every bin reaches over, at its two ends.
pub fn thin_spans(spans: Vec<Span>) -> Vec<Span> {
    if spans.len() <= 2 * BINS {
        return spans;
    }
    let mut kept = Vec::with_capacity(2 * BINS);
    for bin in bins(spans.len()).map(|bin| &spans[bin]) {
        let low = bin.iter().map(|span| span.low).fold(f64::INFINITY, f64::min);
        let high = bin.iter().map(|span| span.high).fold(f64::NEG_INFINITY, f64::max);
        kept.extend([bin[0], bin[bin.len() - 1]].map(|end| Span { x: end.x, low, high }));
    }
    kept
}

/// Cuts `0..count` into [`BINS`] runs of nearly the same length; `count` is at least [`BINS`].
fn bins(count: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..BINS).map(move |k| k * count / BINS..(k + 1) * count / BINS)
}

/// The mean of every point with the `reach` points before and behind it, where there are as many: near the
/// ends it would be that of fewer points, and noisier or shifted.
pub fn moving_mean(points: &[Point], reach: usize) -> Vec<Point> {
    let mut sums = Vec::with_capacity(points.len() + 1);
    sums.push(0.0);
    for &(_, y) in points {
        sums.push(sums[sums.len() - 1] + y);
    }
    let mean = |k: usize| (sums[k + reach + 1] - sums[k - reach]) / (2 * reach + 1) as f64;
    (reach..points.len().saturating_sub(reach)).map(|k| (points[k].0, mean(k))).collect()
}

/// The value below which a share `share` of the ascending `sorted` lies, interpolated between neighbours.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = share * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_ends_and_extremes() {
        let mut all: Vec<Point> = (0..1_000_000).map(|k| (f64::from(k), f64::from(k % 7))).collect();
        all[123_456].1 = 1e6;
        all[654_321].1 = -1e6;
        let thinned = thin(all.clone());
        assert!(thinned.len() <= 2 * BINS + 2);
        for kept in [all[0], all[123_456], all[654_321], all[999_999]] {
            assert!(thinned.contains(&kept));
        }
        assert!(thinned.is_sorted_by_key(|point| point.0));
        assert_eq!(thin(all[..1400].to_vec()), all[..1400]);
    }

    #[test]
    fn thinning_a_band_keeps_what_it_reaches_over() {
        let mut all: Vec<Span> =
            (0..10_000).map(|k| Span { x: f64::from(k), low: -1.0, high: 1.0 }).collect();
        all[5000].high = 9.0;
        all[7000].low = -9.0;
        let thinned = thin_spans(all);
        assert_eq!(thinned.len(), 2 * BINS);
        assert_eq!((thinned[0].x, thinned[thinned.len() - 1].x), (0.0, 9999.0));
        assert!(thinned.iter().any(|span| span.high == 9.0) && thinned.iter().any(|span| span.low == -9.0));
    }

    #[test]
    fn a_moving_mean_has_full_windows_only() {
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, 6.0), (3.0, 1.0)];
        assert_eq!(moving_mean(&points, 1), [(1.0, 3.0), (2.0, 3.0)]);
        assert_eq!(moving_mean(&points, 0), points);
        assert_eq!(moving_mean(&points, 2), []);
    }

    #[test]
    fn quantiles_are_interpolated() {
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), 2.0);
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), 3.0);
        assert_eq!(quantile(&[3.0], 0.1), 3.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn what_is_not_finite_is_left_out() {
        let y = [1.0, f64::NAN, f64::INFINITY, f64::MAX, 2.0];
        assert_eq!(points(&[0.0, 1.0, 2.0, 3.0, 4.0], &y), [(0.0, 1.0), (4.0, 2.0)]);
    }
}

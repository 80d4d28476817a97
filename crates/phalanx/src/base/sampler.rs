//! Sampling from finite laws by comparing one draw with cumulative thresholds.

use crate::base::stream::DRAW_RANGE;

/// Writes the thresholds of `law` (k probabilities) into `out` (k − 1 entries).
///
/// An outcome of probability zero gets an empty interval, exactly: it is never sampled. A probability is
/// honoured to 2⁻³¹.
pub fn write_thresholds(law: &[f64], out: &mut [u32]) {
    let total: f64 = law.iter().sum();
    let last_possible = law.iter().rposition(|&p| p > 0.0).unwrap_or(0);
    let mut cumulative = 0.0;
    for (k, threshold) in out.iter_mut().enumerate() {
        cumulative += law[k];
        *threshold = if k >= last_possible {
            DRAW_RANGE
        } else {
            (cumulative / total * f64::from(DRAW_RANGE)).round() as u32
        };
    }
}

/// The outcome of a draw in `0..2³¹`: how many thresholds it has passed.
#[inline(always)]
pub fn outcome(thresholds: &[u32], draw: u32) -> u8 {
    if let [threshold] = thresholds {
        return u8::from(draw >= *threshold);
    }
    let mut passed = 0;
    for &threshold in thresholds {
        passed += u8::from(draw >= threshold);
    }
    passed
}

/// Uniform on `0..count`.
#[inline]
pub fn uniform(count: usize, draw: u32) -> u8 {
    ((u64::from(draw) * count as u64) >> 31) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval_lengths(law: &[f64]) -> Vec<u32> {
        let mut thresholds = vec![0; law.len() - 1];
        write_thresholds(law, &mut thresholds);
        let mut edges = vec![0];
        edges.extend(&thresholds);
        edges.push(DRAW_RANGE);
        edges.windows(2).map(|w| w[1] - w[0]).collect()
    }

    #[test]
    fn never_and_always_are_exact() {
        assert_eq!(interval_lengths(&[1.0, 0.0]), [DRAW_RANGE, 0]);
        assert_eq!(interval_lengths(&[0.0, 1.0]), [0, DRAW_RANGE]);
        // A sum a little below one must not leak into an impossible last outcome.
        assert_eq!(interval_lengths(&[0.5, 0.5 - 1e-9, 0.0])[2], 0);
        assert_eq!(interval_lengths(&[0.0, 0.25, 0.0, 0.75]), [0, DRAW_RANGE / 4, 0, DRAW_RANGE / 4 * 3]);
    }

    #[test]
    fn outcome_counts_passed_thresholds() {
        let mut thresholds = [0; 2];
        write_thresholds(&[0.25, 0.25, 0.5], &mut thresholds);
        let at = |fraction: f64| outcome(&thresholds, (fraction * f64::from(DRAW_RANGE)) as u32);
        assert_eq!((at(0.0), at(0.2499), at(0.25), at(0.4999), at(0.5), at(0.99999)), (0, 0, 1, 1, 2, 2));
        assert_eq!((uniform(3, 0), uniform(3, DRAW_RANGE - 1)), (0, 2));
    }
}

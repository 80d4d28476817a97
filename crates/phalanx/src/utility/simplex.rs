//! Euclidean projection onto the nonnegative tables of a given mass.

/// Replaces `values` by the nearest point of {x ≥ 0, Σ x = mass} in Euclidean distance, which is
/// max(values − τ, 0) for the one τ that gives the right mass. `mass` must be at least 0.
/// Entries of −∞ become 0 if any entry is finite; NaN stays NaN. Does nothing to an empty slice.
///
/// Exact up to rounding, without sorting or allocation: τ only grows as entries that it sends to 0 are left
/// out of its mean, so the passes end when the set of entries does not shrink any more. A few passes are
/// typical. Literature: Michelot, "A finite algorithm for finding the projection of a point onto the
/// canonical simplex of Rⁿ", J. Optim. Theory Appl. 50, 1986.
pub fn project_onto_simplex(values: &mut [f64], mass: f64) {
    let Some(largest) = values.iter().copied().reduce(f64::max) else { return };
    // With the largest entry at 0, τ is no larger in size than the mass: nothing cancels.
    values.iter_mut().for_each(|value| *value -= largest);
    // The largest entry is at most `mass` after projection, hence τ ≥ −mass.
    let mut tau = -mass;
    let mut kept = usize::MAX;
    loop {
        let (count, sum) = values
            .iter()
            .filter(|value| **value >= tau)
            .fold((0, 0.0), |(n, sum), value| (n + 1, sum + value));
        if count >= kept || count == 0 {
            break;
        }
        kept = count;
        tau = (sum - mass) / count as f64;
    }
    // Not `f64::max`, which would turn a NaN into 0 and hide that training diverged.
    values.iter_mut().for_each(|value| *value = if *value <= tau { 0.0 } else { *value - tau });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn projected(values: &[f64], mass: f64) -> Vec<f64> {
        let mut result = values.to_vec();
        project_onto_simplex(&mut result, mass);
        result
    }

    #[test]
    fn literals() {
        assert_eq!(projected(&[3.0, 1.0, -5.0], 4.0), [3.0, 1.0, 0.0]);
        assert_eq!(projected(&[2.0, 2.0], 1.0), [0.5, 0.5]);
        assert_eq!(projected(&[0.0, 0.0, 0.0, 0.0], 2.0), [0.5; 4]);
        assert_eq!(projected(&[5.0, 0.0], 1.0), [1.0, 0.0]);
        assert_eq!(projected(&[1.0, 1.0, -1.0], 0.0), [0.0; 3]);
        assert_eq!(projected(&[-7.0], 2.0), [2.0]);
        assert_eq!(projected(&[1.0, f64::NEG_INFINITY], 2.0), [2.0, 0.0]);
        assert!(projected(&[], 1.0).is_empty());
        assert!(projected(&[1.0, f64::NAN], 1.0)[1].is_nan());
        assert!(projected(&[f64::NAN], 1.0)[0].is_nan());
        // The mass survives an offset a billion times as large.
        let far = projected(&[1e9, 1e9 + 0.25, 1e9 - 3.0], 1.0);
        assert_eq!(far, [0.375, 0.625, 0.0]);
    }

    proptest! {
        #[test]
        fn result_is_the_nearest_feasible_point(
            values in prop::collection::vec(-20.0..20.0f64, 1..40),
            mass in prop_oneof![Just(0.0), 1e-6..1e-3f64, 0.1..200.0f64],
        ) {
            let point = projected(&values, mass);
            prop_assert!(point.iter().all(|x| *x >= 0.0));
            prop_assert!((point.iter().sum::<f64>() - mass).abs() <= 1e-13 * (1.0 + mass));
            // Optimality: one τ with x = max(v − τ, 0).
            let tau = if mass > 0.0 {
                let support = (0..values.len()).max_by(|i, j| point[*i].total_cmp(&point[*j])).unwrap();
                values[support] - point[support]
            } else {
                values.iter().copied().fold(f64::MIN, f64::max)
            };
            for (x, v) in point.iter().zip(&values) {
                prop_assert!((x - (v - tau).max(0.0)).abs() <= 1e-12);
            }
            let again = projected(&point, mass);
            for (x, y) in point.iter().zip(&again) {
                prop_assert!((x - y).abs() <= 1e-12 * (1.0 + mass));
            }
        }
    }
}

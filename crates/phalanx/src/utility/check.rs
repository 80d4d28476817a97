//! A test for hand-written gradients.

use super::{LocalSpace, Utility};

/// A gradient that differs from the slope of its function.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("gradient in cell {cell} is {analytic}, but finite differences of the value give {numeric}")]
pub struct GradientMismatch {
    /// Flat index of the (state, action) concerned.
    pub cell: usize,
    /// What the utility's `gradient` wrote.
    pub analytic: f64,
    /// Central difference of the utility's `value`.
    pub numeric: f64,
}

/// Compares a utility's gradient (its shadow reward, Paper: def:shadow) with central differences of its value
/// at `occupancy`, cell by cell: |analytic − numeric| ≤ tolerance · (1 + |numeric|). The first cell that
/// fails is returned.
///
/// Choose a table with entries well above 0, away from kinks of the utility. A tolerance of 1e-5 suits smooth
/// utilities whose values are not far above 10⁴.
///
/// # Panics
///
/// When `occupancy` does not have `space.cells()` entries.
pub fn check_gradient(
    utility: &dyn Utility,
    space: LocalSpace,
    occupancy: &[f64],
    tolerance: f64,
) -> Result<(), GradientMismatch> {
    assert_eq!(occupancy.len(), space.cells(), "the occupancy table must have one entry per (state, action)");
    // NaN, so that an entry the gradient forgets or adds to is caught.
    let mut gradient = vec![f64::NAN; occupancy.len()];
    utility.gradient(occupancy, space, &mut gradient);
    let mut shifted = occupancy.to_vec();
    for (cell, &analytic) in gradient.iter().enumerate() {
        let center = occupancy[cell];
        let wide = 1e-5 * center.abs().max(1.0);
        // Stays among nonnegative tables, where alone a utility needs to make sense.
        let step = if center > 0.0 { wide.min(0.5 * center) } else { wide };
        shifted[cell] = center + step;
        let above = utility.value(&shifted, space);
        shifted[cell] = center - step;
        let below = utility.value(&shifted, space);
        shifted[cell] = center;
        let numeric = (above - below) / (2.0 * step);
        let agrees = (analytic - numeric).abs() <= tolerance * (1.0 + numeric.abs());
        // A NaN on either side does not agree.
        if !agrees {
            return Err(GradientMismatch { cell, analytic, numeric });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Σ λ² with a gradient that is right only in cells below `right`.
    #[derive(Debug)]
    struct Careless {
        right: usize,
        elsewhere: f64,
    }

    impl Utility for Careless {
        fn value(&self, occupancy: &[f64], _: LocalSpace) -> f64 {
            occupancy.iter().map(|x| x * x).sum()
        }

        fn gradient(&self, occupancy: &[f64], _: LocalSpace, out: &mut [f64]) {
            for cell in 0..out.len() {
                out[cell] =
                    if cell < self.right { 2.0 * occupancy[cell] } else { out[cell] + self.elsewhere };
            }
        }
    }

    #[test]
    fn wrong_and_forgotten_cells_are_found() {
        let space = LocalSpace { states: 1, actions: 3, gamma: 0.9 };
        let occupancy = [1.0, 2.0, 7.0];
        assert_eq!(check_gradient(&Careless { right: 3, elsewhere: 0.0 }, space, &occupancy, 1e-6), Ok(()));
        let mismatch =
            check_gradient(&Careless { right: 1, elsewhere: 1.0 }, space, &occupancy, 1e-6).unwrap_err();
        assert_eq!(mismatch.cell, 1);
        assert!(mismatch.analytic.is_nan());
        assert!((mismatch.numeric - 4.0).abs() < 1e-6);
    }
}

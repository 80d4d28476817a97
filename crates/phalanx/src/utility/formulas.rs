//! Numbers and tables: what formulas of utilities share.

use crate::base::elementary::powi;

/// Logarithms are taken of max(x, `LOG_FLOOR`): the gradient of an entropy is unbounded where an occupancy
/// vanishes (errata 8), and states that a batch of trajectories never visited do have occupancy 0.
pub const LOG_FLOOR: f64 = 1e-12;

/// How a distance D enters a utility.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// −D: in the units of the occupancy, but with a kink at the boundary of the set (errata 8).
    One,
    /// −D²/2: smooth.
    Two,
}

pub(super) fn dot(x: &[f64], y: &[f64]) -> f64 {
    debug_assert_eq!(x.len(), y.len());
    x.iter().zip(y).map(|(a, b)| a * b).sum()
}

pub(super) fn squared_distance(x: &[f64], y: &[f64]) -> f64 {
    debug_assert_eq!(x.len(), y.len());
    x.iter().zip(y).map(|(a, b)| powi(a - b, 2)).sum()
}

pub(super) fn write_difference(x: &[f64], y: &[f64], out: &mut [f64]) {
    for ((difference, a), b) in out.iter_mut().zip(x).zip(y) {
        *difference = a - b;
    }
}

pub(super) fn floored(x: f64) -> f64 {
    // Not `f64::max`, which would turn a NaN into the floor and hide that training diverged.
    if x < LOG_FLOOR { LOG_FLOOR } else { x }
}

/// From λ − Πλ, with Π the projection onto a convex set, to the gradient of minus the distance to that set.
pub(super) fn residual_to_slope(residual: &mut [f64], power: Power) {
    let factor = match power {
        Power::One => {
            let distance = dot(residual, residual).sqrt();
            if distance == 0.0 { 0.0 } else { -1.0 / distance }
        }
        Power::Two => -1.0,
    };
    residual.iter_mut().for_each(|entry| *entry *= factor);
}

//! The multiplier of one constraint.

/// λ ← max(0, λ + rate·((Ĵ_c − b)·(1 − γ) + mean[ρ·Â_c])). Plain ascent without a cap.
///
/// `excess` is Ĵ_c − b in the units of the constraint, `surrogate` the mean of ρ·Â_c over a minibatch: what the step at hand
/// adds to the cost. NaN stays NaN.
pub fn ascend(lambda: f64, rate: f64, excess: f64, gamma: f64, surrogate: f64) -> f64 {
    (lambda + rate * (excess * (1.0 - gamma) + surrogate)).clamp(0.0, f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::ascend;

    #[test]
    fn steps_by_hand() {
        assert_eq!(ascend(0.75, 0.5, 3.0, 0.75, 0.25), 0.75 + 0.5 * (0.75 + 0.25));
        assert_eq!(ascend(0.75, 0.5, -3.0, 0.75, 0.25), 0.5);
        assert_eq!(ascend(0.25, 1.0, -8.0, 0.5, 0.0), 0.0);
        assert!(ascend(f64::NAN, 1.0, 1.0, 0.5, 0.0).is_nan());
    }
}

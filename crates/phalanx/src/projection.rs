//! Projection onto an interval.

/// The nearest number in [low, high]. NaN stays NaN, so that it is noticed (`f64::max` would turn it into a bound).
#[inline]
pub fn clip(x: f64, low: f64, high: f64) -> f64 {
    if x < low {
        low
    } else if x > high {
        high
    } else {
        x
    }
}

#[cfg(test)]
mod tests {
    use super::clip;

    #[test]
    fn bounds_hold_and_nan_stays() {
        assert_eq!([clip(-1.0, 0.0, 2.0), clip(1.0, 0.0, 2.0), clip(3.0, 0.0, 2.0)], [0.0, 1.0, 2.0]);
        assert_eq!(clip(5.0, 0.0, f64::INFINITY), 5.0);
        assert!(clip(f64::NAN, 0.0, 1.0).is_nan());
    }
}

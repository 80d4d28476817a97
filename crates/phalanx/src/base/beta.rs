//! The beta function, and what follows from it: laws of counts and of means.

use std::f64::consts::{E, PI};

use crate::base::elementary::{exp, ln, sin};

/// ln Γ(x) for x > 0, to about 15 digits (Lanczos; Pugh, "An Analysis of the Lanczos Gamma
/// Approximation", 2004).
fn ln_gamma(x: f64) -> f64 {
    const R: f64 = 10.900511;
    const LN_2_SQRT_E_OVER_PI: f64 = 0.6207822376352452;
    const FIRST: f64 = 2.4857408913875355e-5;
    const REST: [f64; 10] = [
        1.0514237858172197,
        -3.4568709722201625,
        4.512277094668948,
        -2.9828522532357664,
        1.056397115771267,
        -1.9542877319164587e-1,
        1.709705434044412e-2,
        -5.719261174043057e-4,
        4.633994733599057e-6,
        -2.7199490848860772e-9,
    ];
    if x < 0.5 {
        // Γ(x)·Γ(1 − x) = π / sin πx.
        return ln(PI / sin(PI * x)) - ln_gamma(1.0 - x);
    }
    let sum = REST.iter().enumerate().fold(FIRST, |sum, (k, c)| sum + c / (x + k as f64));
    ln(sum) + LN_2_SQRT_E_OVER_PI + (x - 0.5) * ln((x - 0.5 + R) / E)
}

/// ln B(a, b) for a, b > 0.
pub fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

/// I_x(a, b), the share of the beta function's integral up to x, for a, b > 0 and x in [0, 1].
///
/// Its continued fraction, by the modified method of Lentz (Press et al., "Numerical Recipes", 6.4).
pub fn regularised_beta(a: f64, b: f64, x: f64) -> f64 {
    let front = if x == 0.0 || x == 1.0 { 0.0 } else { exp(a * ln(x) + b * ln(1.0 - x) - ln_beta(a, b)) };
    // On the other side of the mean the fraction of 1 − x converges faster.
    if x >= (a + 1.0) / (a + b + 2.0) {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    } else {
        front * beta_fraction(a, b, x) / a
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TERMS: u32 = 10_000;
    const LEAST: f64 = f64::MIN_POSITIVE / f64::EPSILON;
    let away_from_0 = |x: f64| if x.abs() < LEAST { LEAST } else { x };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_0(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in (1..TERMS).map(f64::from) {
        let even = m * (b - m) * x / ((a - 1.0 + 2.0 * m) * (a + 2.0 * m));
        d = 1.0 / away_from_0(1.0 + even * d);
        c = away_from_0(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 1.0 + 2.0 * m));
        d = 1.0 / away_from_0(1.0 + odd * d);
        c = away_from_0(1.0 + odd / c);
        value *= d * c;
        if (d * c - 1.0).abs() <= f64::EPSILON / 2.0 {
            break;
        }
    }
    value
}

/// The probability that a variable with Student's law exceeds t.
pub fn student_tail(freedom: f64, t: f64) -> f64 {
    let beyond = 0.5 * regularised_beta(0.5 * freedom, 0.5, freedom / (freedom + t * t));
    if t < 0.0 { 1.0 - beyond } else { beyond }
}

/// The t that a variable with Student's law exceeds with probability `miss` < ½.
pub fn student_quantile(freedom: f64, miss: f64) -> f64 {
    let exceeds = |t: f64| student_tail(freedom, t);
    let mut high = 1.0;
    while high < 1e100 && exceeds(high) > miss {
        high *= 2.0;
    }
    bisect(|t| exceeds(t) > miss, 0.0, high)
}

/// The place between `low` and `high` at which `holds` ends, which it does once.
pub fn bisect(holds: impl Fn(f64) -> bool, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        *(if holds(middle) { &mut low } else { &mut high }) = middle;
    }
    // The side that is not excluded by rounding.
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use statrs::distribution::{ContinuousCDF, StudentsT};
    use statrs::function::beta;

    #[test]
    fn as_another_library_has_it() {
        for (a, b) in [(0.5, 0.5), (3.5, 0.5), (0.2, 7.0), (12.0, 40.0), (300.0, 2.5), (499.5, 0.5)] {
            assert!((ln_beta(a, b) - beta::ln_beta(a, b)).abs() < 1e-11 * (1.0 + a + b), "{a} {b}");
            for x in [0.0, 1e-9, 0.01, 0.3, 0.5, 0.77, 0.999, 1.0] {
                let (found, wanted) = (regularised_beta(a, b, x), beta::beta_reg(a, b, x));
                assert!((found - wanted).abs() < 1e-11, "I_{x}({a}, {b}) = {found}, {wanted}");
            }
        }
        for freedom in [1.0, 2.0, 9.0, 63.0, 1023.0] {
            let student = StudentsT::new(0.0, 1.0, freedom).unwrap();
            for miss in [0.4, 0.05, 0.025, 1e-4] {
                let (found, wanted) = (student_quantile(freedom, miss), student.inverse_cdf(1.0 - miss));
                assert!((student_tail(freedom, -wanted) - 1.0 + miss).abs() < 1e-9);
                assert!((found - wanted).abs() < 1e-7 * wanted, "{freedom} {miss}: {found}, {wanted}");
            }
        }
        assert!((student_quantile(1.0, 0.25) - 1.0).abs() < 1e-12);
    }
}

//! Floating-point numbers: `f32` in networks, `f64` in the parameters of policies and where gradients are
//! checked.

use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// A floating-point number.
pub trait Real:
    Copy
    + Default
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;

    /// The nearest number to `x`.
    fn from_f64(x: f64) -> Self;

    /// Square root.
    fn sqrt(self) -> Self;

    /// Without its sign.
    fn abs(self) -> Self;

    /// e^x in plain arithmetic, so that loops over it become vector instructions.
    fn exp(self) -> Self;
}

macro_rules! real {
    ($type:ident, $exp:expr) => {
        impl Real for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $type
            }

            #[inline(always)]
            fn sqrt(self) -> Self {
                $type::sqrt(self)
            }

            #[inline(always)]
            fn abs(self) -> Self {
                $type::abs(self)
            }

            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }
        }
    };
}

real!(f32, exp);
real!(f64, f64::exp);

/// e^x for `f32`: x = k·ln 2 + r with |r| ≤ ln 2 / 2, e^r by its Taylor polynomial, 2^k through the exponent
/// bits.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Adding and subtracting 1.5·2²³ rounds to a whole number.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts: a whole multiple of the first is exact.
    const LN2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
    // Beyond these the result is 0 or infinity anyway; NaN passes.
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let k = (x * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = (x - k * LN2[0]) - k * LN2[1];
    let mut p = 1.0 / 5040.0;
    for c in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = p * r + c;
    }
    p * f32::from_bits((((k as i32) + 127) << 23) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_of_f32() {
        let mut worst: f64 = 0.0;
        for i in -860_000..880_000 {
            let x = i as f32 * 1e-4;
            let exact = f64::from(x).exp();
            worst = worst.max((f64::from(Real::exp(x)) - exact).abs() / exact);
        }
        assert!(worst < 2e-7, "{worst}");
        assert_eq!(Real::exp(0.0f32), 1.0);
        assert!(Real::exp(-1e30f32) < 1e-37);
        assert!(Real::exp(f32::NAN).is_nan());
    }
}

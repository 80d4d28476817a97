//! Floating-point numbers: `f32` in neural networks, `f64` in the parameters of policies and where gradients
//! are checked.

use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

use crate::base::elementary;

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
    fn exponential(self) -> Self;
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
            fn exponential(self) -> Self {
                $exp(self)
            }
        }
    };
}

real!(f32, elementary::exp_f32);
real!(f64, elementary::exp);

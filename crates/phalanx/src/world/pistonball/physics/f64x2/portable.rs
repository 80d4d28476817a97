//! In plain Rust.

use super::super::max;

/// Two numbers.
#[derive(Debug, Clone, Copy)]
pub struct F64x2([f64; 2]);

impl F64x2 {
    pub fn new(first: f64, second: f64) -> Self {
        F64x2([first, second])
    }

    pub fn splat(number: f64) -> Self {
        F64x2([number; 2])
    }

    pub fn first(self) -> f64 {
        self.0[0]
    }

    pub fn second(self) -> f64 {
        self.0[1]
    }

    fn zip(self, other: F64x2, f: impl Fn(f64, f64) -> f64) -> Self {
        F64x2([f(self.0[0], other.0[0]), f(self.0[1], other.0[1])])
    }

    pub fn add(self, other: F64x2) -> Self {
        self.zip(other, |a, b| a + b)
    }

    pub fn sub(self, other: F64x2) -> Self {
        self.zip(other, |a, b| a - b)
    }

    pub fn mul(self, other: F64x2) -> Self {
        self.zip(other, |a, b| a * b)
    }

    pub fn max(self, other: F64x2) -> Self {
        self.zip(other, max)
    }

    /// Whether both are equal.
    pub fn same(self, other: F64x2) -> bool {
        self.0 == other.0
    }
}

//! In plain Rust.

use super::super::max;

/// Two numbers.
#[derive(Debug, Clone, Copy)]
pub struct Both([f64; 2]);

impl Both {
    pub fn new(first: f64, second: f64) -> Self {
        Both([first, second])
    }

    pub fn splat(number: f64) -> Self {
        Both([number; 2])
    }

    pub fn first(self) -> f64 {
        self.0[0]
    }

    pub fn second(self) -> f64 {
        self.0[1]
    }

    fn zip(self, other: Both, f: impl Fn(f64, f64) -> f64) -> Self {
        Both([f(self.0[0], other.0[0]), f(self.0[1], other.0[1])])
    }

    pub fn add(self, other: Both) -> Self {
        self.zip(other, |a, b| a + b)
    }

    pub fn sub(self, other: Both) -> Self {
        self.zip(other, |a, b| a - b)
    }

    pub fn mul(self, other: Both) -> Self {
        self.zip(other, |a, b| a * b)
    }

    pub fn max(self, other: Both) -> Self {
        self.zip(other, max)
    }

    /// Whether both are equal.
    pub fn same(self, other: Both) -> bool {
        self.0 == other.0
    }
}

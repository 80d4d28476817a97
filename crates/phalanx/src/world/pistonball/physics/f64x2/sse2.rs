//! In the registers that every x86-64 processor has.

use std::arch::x86_64::__m128d;

use pulp::core_arch::x86::Sse2;

/// Two numbers.
#[derive(Debug, Clone, Copy)]
pub struct F64x2(__m128d);

/// The instructions; known to be there when the program is compiled.
#[inline(always)]
fn sse2() -> Sse2 {
    Sse2::try_new().expect("part of x86-64")
}

/// Whether both lanes of a comparison hold.
const BOTH_LANES: i32 = 0b11;

impl F64x2 {
    #[inline(always)]
    pub fn new(first: f64, second: f64) -> Self {
        F64x2(sse2()._mm_set_pd(second, first))
    }

    #[inline(always)]
    pub fn splat(number: f64) -> Self {
        F64x2(sse2()._mm_set1_pd(number))
    }

    #[inline(always)]
    pub fn first(self) -> f64 {
        sse2()._mm_cvtsd_f64(self.0)
    }

    #[inline(always)]
    pub fn second(self) -> f64 {
        sse2()._mm_cvtsd_f64(sse2()._mm_unpackhi_pd(self.0, self.0))
    }

    #[inline(always)]
    pub fn add(self, other: F64x2) -> Self {
        F64x2(sse2()._mm_add_pd(self.0, other.0))
    }

    #[inline(always)]
    pub fn sub(self, other: F64x2) -> Self {
        F64x2(sse2()._mm_sub_pd(self.0, other.0))
    }

    #[inline(always)]
    pub fn mul(self, other: F64x2) -> Self {
        F64x2(sse2()._mm_mul_pd(self.0, other.0))
    }

    #[inline(always)]
    pub fn max(self, other: F64x2) -> Self {
        F64x2(sse2()._mm_max_pd(self.0, other.0))
    }

    /// Whether both are equal.
    #[inline(always)]
    pub fn same(self, other: F64x2) -> bool {
        sse2()._mm_movemask_pd(sse2()._mm_cmpeq_pd(self.0, other.0)) == BOTH_LANES
    }
}

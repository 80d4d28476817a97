//! Vectors of numbers as wide as the CPU has them.

use pulp::{Arch, Scalar, Simd, WithSimd};

use super::real::Real;
use super::transpose;

/// Numbers that neural networks compute with. A vector has [`Lanes::lanes`] of them.
pub trait Lanes: Real {
    /// Sums over numbers that lie side by side are kept in so many parts, number k in part k mod `WIDTH`,
    /// whatever the vectors: one vector of AVX-512 or two of AVX2 for `f32`. The same sums everywhere.
    const WIDTH: usize;

    /// A vector.
    type Vector<S: Simd>: Copy;

    /// Runs `op` with the best instructions there are.
    fn dispatch<Op: WithSimd>(op: Op) -> Op::Output;

    /// Numbers in a vector.
    fn lanes<S: Simd>() -> usize;

    /// Vectors that make up [`Lanes::WIDTH`].
    #[inline(always)]
    fn parts<S: Simd>() -> usize {
        Self::WIDTH / Self::lanes::<S>()
    }

    /// The sum of the parts: the second half onto the first, until one number is left.
    #[inline(always)]
    fn sum_of_parts<S: Simd, const P: usize>(simd: S, mut parts: [Self::Vector<S>; P]) -> Self {
        let mut half = P / 2;
        while half > 0 {
            for p in 0..half {
                parts[p] = Self::sum_of(simd, parts[p], parts[p + half]);
            }
            half /= 2;
        }
        Self::sum(simd, parts[0])
    }

    /// The same number in every lane.
    fn splat<S: Simd>(simd: S, x: Self) -> Self::Vector<S>;

    /// As many whole vectors as `x` holds.
    fn vectors<S: Simd>(x: &[Self]) -> &[Self::Vector<S>];

    /// As many whole vectors as `x` holds.
    fn vectors_mut<S: Simd>(x: &mut [Self]) -> &mut [Self::Vector<S>];

    /// The first numbers of `x`, zeros in lanes beyond its end.
    fn load_part<S: Simd>(simd: S, x: &[Self]) -> Self::Vector<S>;

    /// Stores as many numbers as `x` has room for.
    fn store_part<S: Simd>(simd: S, x: &mut [Self], v: Self::Vector<S>);

    /// a·b + c.
    fn mul_add<S: Simd>(
        simd: S,
        a: Self::Vector<S>,
        b: Self::Vector<S>,
        c: Self::Vector<S>,
    ) -> Self::Vector<S>;

    /// a + b.
    fn sum_of<S: Simd>(simd: S, a: Self::Vector<S>, b: Self::Vector<S>) -> Self::Vector<S>;

    /// 0 where `v` is negative, else `v`: a NaN stays one.
    fn relu<S: Simd>(simd: S, v: Self::Vector<S>) -> Self::Vector<S>;

    /// `v` where `condition` is positive, else 0.
    fn where_positive<S: Simd>(simd: S, condition: Self::Vector<S>, v: Self::Vector<S>) -> Self::Vector<S>;

    /// The sum over the lanes, as [`Lanes::sum_of_parts`].
    fn sum<S: Simd>(simd: S, v: Self::Vector<S>) -> Self;

    /// `target[j][i] = source[i][j]` for a block of as many rows and columns as a vector has lanes. Both
    /// begin at the first number of the block; rows are a stride apart.
    fn transpose<S: Simd>(source: &[Self], stride: usize, target: &mut [Self], target_stride: usize);
}

impl Lanes for f32 {
    const WIDTH: usize = 16;

    type Vector<S: Simd> = S::f32s;

    #[inline(always)]
    fn dispatch<Op: WithSimd>(op: Op) -> Op::Output {
        Arch::new().dispatch(op)
    }

    #[inline(always)]
    fn lanes<S: Simd>() -> usize {
        S::F32_LANES
    }

    #[inline(always)]
    fn splat<S: Simd>(simd: S, x: f32) -> S::f32s {
        simd.splat_f32s(x)
    }

    #[inline(always)]
    fn vectors<S: Simd>(x: &[f32]) -> &[S::f32s] {
        S::as_simd_f32s(x).0
    }

    #[inline(always)]
    fn vectors_mut<S: Simd>(x: &mut [f32]) -> &mut [S::f32s] {
        S::as_mut_simd_f32s(x).0
    }

    #[inline(always)]
    fn load_part<S: Simd>(simd: S, x: &[f32]) -> S::f32s {
        simd.partial_load_f32s(x)
    }

    #[inline(always)]
    fn store_part<S: Simd>(simd: S, x: &mut [f32], v: S::f32s) {
        simd.partial_store_f32s(x, v)
    }

    #[inline(always)]
    fn mul_add<S: Simd>(simd: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
        simd.mul_add_e_f32s(a, b, c)
    }

    #[inline(always)]
    fn sum_of<S: Simd>(simd: S, a: S::f32s, b: S::f32s) -> S::f32s {
        simd.add_f32s(a, b)
    }

    #[inline(always)]
    fn relu<S: Simd>(simd: S, v: S::f32s) -> S::f32s {
        let zero = simd.splat_f32s(0.0);
        simd.select_f32s(simd.less_than_f32s(v, zero), zero, v)
    }

    #[inline(always)]
    fn where_positive<S: Simd>(simd: S, condition: S::f32s, v: S::f32s) -> S::f32s {
        let zero = simd.splat_f32s(0.0);
        simd.select_f32s(simd.greater_than_f32s(condition, zero), v, zero)
    }

    #[inline(always)]
    fn sum<S: Simd>(simd: S, v: S::f32s) -> f32 {
        simd.reduce_sum_f32s(v)
    }

    #[inline(always)]
    fn transpose<S: Simd>(source: &[f32], stride: usize, target: &mut [f32], target_stride: usize) {
        #[cfg(target_arch = "x86_64")]
        if std::any::TypeId::of::<S>() == std::any::TypeId::of::<pulp::x86::V4>()
            && let Some(simd) = pulp::x86::V4::try_new()
        {
            return transpose::avx512(simd, source, stride, target, target_stride);
        }
        transpose::plain(S::F32_LANES, source, stride, target, target_stride);
    }
}

/// One number at a time: double precision only checks gradients.
impl Lanes for f64 {
    const WIDTH: usize = 1;

    type Vector<S: Simd> = f64;

    fn dispatch<Op: WithSimd>(op: Op) -> Op::Output {
        op.with_simd(Scalar::new())
    }

    fn lanes<S: Simd>() -> usize {
        1
    }

    fn splat<S: Simd>(_: S, x: f64) -> f64 {
        x
    }

    fn vectors<S: Simd>(x: &[f64]) -> &[f64] {
        x
    }

    fn vectors_mut<S: Simd>(x: &mut [f64]) -> &mut [f64] {
        x
    }

    fn load_part<S: Simd>(_: S, x: &[f64]) -> f64 {
        x.first().copied().unwrap_or(0.0)
    }

    fn store_part<S: Simd>(_: S, x: &mut [f64], v: f64) {
        x.iter_mut().take(1).for_each(|x| *x = v);
    }

    fn mul_add<S: Simd>(_: S, a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }

    fn sum_of<S: Simd>(_: S, a: f64, b: f64) -> f64 {
        a + b
    }

    fn relu<S: Simd>(_: S, v: f64) -> f64 {
        if v < 0.0 { 0.0 } else { v }
    }

    fn where_positive<S: Simd>(_: S, condition: f64, v: f64) -> f64 {
        if condition > 0.0 { v } else { 0.0 }
    }

    fn sum<S: Simd>(_: S, v: f64) -> f64 {
        v
    }

    fn transpose<S: Simd>(source: &[f64], _: usize, target: &mut [f64], _: usize) {
        target[0] = source[0];
    }
}

#[cfg(test)]
mod tests {
    /// A feature of the dependency decides whether AVX2 is used: without it, which does not compile here,
    /// neural networks would be slow and round otherwise where there is no AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn processors_with_avx2_use_it() {
        if let Some(simd) = pulp::x86::V3::try_new() {
            let arch = pulp::Arch::new();
            assert!(matches!(arch, pulp::Arch::V3(_) | pulp::Arch::V4(_)), "{simd:?}");
        }
    }
}

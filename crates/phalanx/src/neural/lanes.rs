//! Vectors of numbers as wide as the CPU has them.

use pulp::{Arch, Scalar, Simd, WithSimd};

use super::transpose;

/// Vector instructions for one type of number. A vector has [`Lanes::lanes`] numbers.
pub trait Lanes: Sized + Copy {
    /// A vector.
    type Vector<S: Simd>: Copy;

    /// Runs `op` with the best instructions there are; `f64`, which only checks gradients, has plain ones,
    /// for shorter builds.
    fn dispatch<Op: WithSimd>(op: Op) -> Op::Output;

    /// Numbers in a vector.
    fn lanes<S: Simd>() -> usize;

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

    /// The sum over the lanes.
    fn sum<S: Simd>(simd: S, v: Self::Vector<S>) -> Self;

    /// `target[j][i] = source[i][j]` for a block of as many rows and columns as a vector has lanes. Both
    /// begin at the first number of the block; rows are a stride apart.
    #[inline(always)]
    fn transpose<S: Simd>(
        _simd: S,
        source: &[Self],
        stride: usize,
        target: &mut [Self],
        target_stride: usize,
    ) {
        transpose::plain(Self::lanes::<S>(), source, stride, target, target_stride);
    }
}

/// One number at a time.
struct Plain;

impl Plain {
    #[inline(always)]
    fn dispatch<Op: WithSimd>(self, op: Op) -> Op::Output {
        op.with_simd(Scalar::new())
    }
}

macro_rules! lanes {
    (
        $type:ident, $dispatch:expr, $vector:ident, $lanes:ident, $splat:ident, $vectors:ident, $vectors_mut:ident,
        $load:ident, $store:ident, $mul_add:ident, $add:ident, $less:ident, $greater:ident, $select:ident, $sum:ident,
        {$($more:item)*}
    ) => {
        impl Lanes for $type {
            type Vector<S: Simd> = S::$vector;

            #[inline(always)]
            fn dispatch<Op: WithSimd>(op: Op) -> Op::Output {
                $dispatch.dispatch(op)
            }

            #[inline(always)]
            fn lanes<S: Simd>() -> usize {
                S::$lanes
            }

            #[inline(always)]
            fn splat<S: Simd>(simd: S, x: Self) -> S::$vector {
                simd.$splat(x)
            }

            #[inline(always)]
            fn vectors<S: Simd>(x: &[Self]) -> &[S::$vector] {
                S::$vectors(x).0
            }

            #[inline(always)]
            fn vectors_mut<S: Simd>(x: &mut [Self]) -> &mut [S::$vector] {
                S::$vectors_mut(x).0
            }

            #[inline(always)]
            fn load_part<S: Simd>(simd: S, x: &[Self]) -> S::$vector {
                simd.$load(x)
            }

            #[inline(always)]
            fn store_part<S: Simd>(simd: S, x: &mut [Self], v: S::$vector) {
                simd.$store(x, v)
            }

            #[inline(always)]
            fn mul_add<S: Simd>(simd: S, a: S::$vector, b: S::$vector, c: S::$vector) -> S::$vector {
                simd.$mul_add(a, b, c)
            }

            #[inline(always)]
            fn sum_of<S: Simd>(simd: S, a: S::$vector, b: S::$vector) -> S::$vector {
                simd.$add(a, b)
            }

            #[inline(always)]
            fn relu<S: Simd>(simd: S, v: S::$vector) -> S::$vector {
                let zero = simd.$splat(0.0);
                simd.$select(simd.$less(v, zero), zero, v)
            }

            #[inline(always)]
            fn where_positive<S: Simd>(simd: S, condition: S::$vector, v: S::$vector) -> S::$vector {
                let zero = simd.$splat(0.0);
                simd.$select(simd.$greater(condition, zero), v, zero)
            }

            #[inline(always)]
            fn sum<S: Simd>(simd: S, v: S::$vector) -> Self {
                simd.$sum(v)
            }

            $($more)*
        }
    };
}

lanes!(
    f32,
    Arch::new(),
    f32s,
    F32_LANES,
    splat_f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    partial_load_f32s,
    partial_store_f32s,
    mul_add_e_f32s,
    add_f32s,
    less_than_f32s,
    greater_than_f32s,
    select_f32s,
    reduce_sum_f32s,
    {
        #[inline(always)]
        fn transpose<S: Simd>(
            _simd: S,
            source: &[f32],
            stride: usize,
            target: &mut [f32],
            target_stride: usize,
        ) {
            #[cfg(target_arch = "x86_64")]
            if std::any::TypeId::of::<S>() == std::any::TypeId::of::<pulp::x86::V4>()
                && let Some(simd) = pulp::x86::V4::try_new()
            {
                return transpose::avx512(simd, source, stride, target, target_stride);
            }
            transpose::plain(S::F32_LANES, source, stride, target, target_stride);
        }
    }
);
lanes!(
    f64,
    Plain,
    f64s,
    F64_LANES,
    splat_f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    partial_load_f64s,
    partial_store_f64s,
    mul_add_e_f64s,
    add_f64s,
    less_than_f64s,
    greater_than_f64s,
    select_f64s,
    reduce_sum_f64s,
    {}
);

//! Square blocks of numbers, transposed in registers.
//!
//! Compilers turn plain loops into single loads and stores: 0.4 ns a number instead of less than 0.2 (Zen 4).

/// `target[j][i] = source[i][j]` for a block of `size` × `size` numbers; both begin at the first number of
/// the block.
#[inline(always)]
pub(super) fn plain<T: Copy>(
    size: usize,
    source: &[T],
    stride: usize,
    target: &mut [T],
    target_stride: usize,
) {
    for i in 0..size {
        let row = &source[i * stride..][..size];
        for j in 0..size {
            target[j * target_stride + i] = row[j];
        }
    }
}

/// The same for 16 × 16 single-precision numbers with AVX-512.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn avx512(
    simd: pulp::x86::V4,
    source: &[f32],
    stride: usize,
    target: &mut [f32],
    target_stride: usize,
) {
    use pulp::{Simd, cast, f32x16};
    let x = simd.avx512f;
    let mut rows = [cast(simd.splat_f32s(0.0)); 16];
    for i in 0..16 {
        rows[i] = cast::<f32x16, _>(pulp::x86::V4::as_simd_f32s(&source[i * stride..][..16]).0[0]);
    }
    // Each part of four lanes first: numbers of two rows side by side, then of four.
    let mut pairs = rows;
    for i in 0..8 {
        pairs[2 * i] = x._mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = x._mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
    let mut fours = pairs;
    for i in 0..4 {
        let [a, b, c, d] = [pairs[4 * i], pairs[4 * i + 1], pairs[4 * i + 2], pairs[4 * i + 3]];
        fours[4 * i] = x._mm512_shuffle_ps::<0x44>(a, c);
        fours[4 * i + 1] = x._mm512_shuffle_ps::<0xEE>(a, c);
        fours[4 * i + 2] = x._mm512_shuffle_ps::<0x44>(b, d);
        fours[4 * i + 3] = x._mm512_shuffle_ps::<0xEE>(b, d);
    }
    // Part p of fours[4·q + r] is now rows 4·q, …, 4·q + 3 of column 4·p + r.
    let mut columns = fours;
    for r in 0..4 {
        let [a, b, c, d] = [fours[r], fours[4 + r], fours[8 + r], fours[12 + r]];
        let (even, odd) = (x._mm512_shuffle_f32x4::<0x88>(a, b), x._mm512_shuffle_f32x4::<0xDD>(a, b));
        let (even2, odd2) = (x._mm512_shuffle_f32x4::<0x88>(c, d), x._mm512_shuffle_f32x4::<0xDD>(c, d));
        columns[r] = x._mm512_shuffle_f32x4::<0x88>(even, even2);
        columns[8 + r] = x._mm512_shuffle_f32x4::<0xDD>(even, even2);
        columns[4 + r] = x._mm512_shuffle_f32x4::<0x88>(odd, odd2);
        columns[12 + r] = x._mm512_shuffle_f32x4::<0xDD>(odd, odd2);
    }
    for j in 0..16 {
        pulp::x86::V4::as_mut_simd_f32s(&mut target[j * target_stride..][..16]).0[0] = cast(columns[j]);
    }
}

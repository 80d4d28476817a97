//! Elementary functions in plain arithmetic: +, −, ×, ÷, √ and bits of numbers, in one order of operations.
//!
//! Those of the standard library call the C library, whose last digits differ from one version to the next,
//! and may differ with the processor. Results of training, evaluation and statistics use these instead: the
//! same bits everywhere. None of them fuses a product with a sum. `elementary.h` ([`C_TEXT`]) has the same
//! functions, operation by operation, for C and CUDA; a test compares the two. Errors are below 1 ulp, of
//! [`hypot`] and [`tanh`] below 2.5, of [`powi`] those of its products. Where a result is NaN, its sign and
//! payload are left open.

use std::f64::consts::{FRAC_2_PI, LOG2_E, LOG10_E};

/// The same functions in the common part of C99 and CUDA C, named `px_…`.
///
/// Whoever includes it defines `DEVICE` first: what stands in front of a function, `static inline` in C,
/// `static __device__ __forceinline__` in CUDA. The compiler must not contract products and sums
/// (`-ffp-contract=off`, `--fmad=false`), and must keep subnormal numbers.
pub const C_TEXT: &str = include_str!("elementary.h");

/// Adding and subtracting 1.5·2⁵² rounds to a whole number, which is in the low bits in between.
const ROUND: f64 = 6755399441055744.0;
/// ln 2 in two parts: multiples of the first by up to 2¹⁵ are exact.
const LN2: [f64; 2] = [0.6931471805582987, 1.6465949582897082e-12];
/// 2⁵², and one behind √½ in the order of bits: where mantissas begin that logarithms are taken of.
const TWO52: f64 = 4503599627370496.0;
const MANTISSAS: u64 = 0x3fe6_a09e_0000_0000;
const ONE: u64 = 0x3ff0_0000_0000_0000;
const TWO54: f64 = 18014398509481984.0;

/// e^x.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    exp_of_sum(x, 0.0)
}

/// e^(x + tail), where the tail is a rounding error of x.
///
/// x = k·ln 2 + r with |r| ≤ ln 2 / 2, e^r = 1 + r + r²·(a polynomial), 2^k in two factors, so that
/// subnormal results are rounded once. No branches: loops over it become vector instructions.
#[inline(always)]
fn exp_of_sum(x: f64, tail: f64) -> f64 {
    // Beyond these the result is 0 or infinity anyway; NaN passes.
    let x = if x < -746.0 { -746.0 } else { x };
    let x = if x > 710.0 { 710.0 } else { x };
    let shifted = x * LOG2_E + ROUND;
    let k = shifted - ROUND;
    let high = x - k * LN2[0];
    let low = k * LN2[1] - tail;
    let y = 1.0 + (high + (exp_curve(high - low) - low));
    // k + 2048 is positive.
    let biased = shifted.to_bits().wrapping_sub(ROUND.to_bits() - 2048);
    let half = biased >> 1;
    let first = f64::from_bits(half.wrapping_sub(1) << 52);
    let second = f64::from_bits(biased.wrapping_sub(half).wrapping_sub(1) << 52);
    y * first * second
}

/// e^r − 1 − r for |r| ≤ ln 2 / 2.
#[inline(always)]
fn exp_curve(r: f64) -> f64 {
    let r2 = r * r;
    let r4 = r2 * r2;
    let a = (0.5 + 0.16666666666666669 * r) + r2 * (0.041666666666666664 + 0.008333333333330051 * r);
    let b = (0.0013888888888886545 + 0.00019841269863105968 * r)
        + r2 * (2.4801587317181886e-5 + 2.7557268378684192e-6 * r);
    let c = (2.755728291148268e-7 + 2.5100424157005067e-8 * r) + r2 * 2.0911264239196083e-9;
    r2 * ((a + r4 * b) + (r4 * r4) * c)
}

/// e^x − 1, without cancellation near 0.
#[inline]
pub fn exp_m1(x: f64) -> f64 {
    if x.abs() < 5e-17 {
        return x;
    }
    if x > 40.0 {
        return exp(x);
    }
    // From here on the result is −1; NaN passes.
    let x = if x < -40.0 { -40.0 } else { x };
    let shifted = x * LOG2_E + ROUND;
    let k = shifted - ROUND;
    let high = x - k * LN2[0];
    let low = k * LN2[1];
    let rest = exp_curve(high - low) - low;
    let y = high + rest;
    if k == 0.0 {
        return y;
    }
    let power = f64::from_bits(shifted.to_bits().wrapping_sub(ROUND.to_bits() - 1023) << 52);
    // 2^k·(1 + y) − 1.
    let (sum, error) = two_sum(power - 1.0, power * y);
    sum + (error + power * ((high - y) + rest))
}

/// x = 2^k·m with m in [√½, √2): k and m. For numbers above 0 that are finite.
#[inline(always)]
fn split_power(x: f64) -> (f64, f64) {
    let is_subnormal = x < f64::MIN_POSITIVE;
    let scaled = if is_subnormal { x * TWO54 } else { x };
    let bits = scaled.to_bits().wrapping_add(ONE - MANTISSAS);
    // Exponents as the last bits of 2⁵² + exponent.
    let exponent = f64::from_bits(bits >> 52 | TWO52.to_bits());
    let k = exponent - if is_subnormal { TWO52 + 1077.0 } else { TWO52 + 1023.0 };
    (k, f64::from_bits((bits & 0x000f_ffff_ffff_ffff) + MANTISSAS))
}

/// ln x.
///
/// ln m = 2s + s·R(s²) with s = f/(2 + f), f = m − 1.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    let (k, m) = split_power(x);
    let f = m - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let odd = z
        * (0.666666666666667
            + w * (0.28571428626253836 + w * (0.18182892432537032 + w * 0.14617807153462828)));
    let even = w * (0.3999999999989889 + w * (0.22222211089379493 + w * 0.15331611722050653));
    let half = 0.5 * f * f;
    let y = k * LN2[0] - ((half - (s * (half + (odd + even)) + k * LN2[1])) - f);
    // Infinity and NaN are left as they are.
    let y = if x < f64::INFINITY { y } else { x };
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    if x < 0.0 { f64::NAN } else { y }
}

/// ln(1 + x), without cancellation near 0.
#[inline]
pub fn ln_1p(x: f64) -> f64 {
    if x.abs() < 5e-17 || x == f64::INFINITY {
        return x;
    }
    if x <= -1.0 || x.is_nan() {
        return if x == -1.0 { f64::NEG_INFINITY } else { f64::NAN };
    }
    let (one_more, error) = two_sum(1.0, x);
    let (high, low) = ln_pair(one_more);
    high + (low + error / one_more)
}

/// log₁₀ x: whole at powers of ten.
#[inline]
pub fn log10(x: f64) -> f64 {
    if !(x > 0.0 && x < f64::INFINITY) {
        return ln(x);
    }
    let (high, low) = ln_pair(x);
    let (y, error) = two_product(high, LOG10_E);
    y + (error + (high * 1.098319650216765e-17 + low * LOG10_E))
}

/// a + b and its rounding error.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// a·b and its rounding error, by halves (Dekker, Numerische Mathematik 18, 1971).
#[inline(always)]
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let halves = |x: f64| {
        let scaled = 134217729.0 * x;
        let high = scaled - (scaled - x);
        (high, x - high)
    };
    let product = a * b;
    let ((a, a_low), (b, b_low)) = (halves(a), halves(b));
    (product, ((a * b - product) + a * b_low + a_low * b) + a_low * b_low)
}

/// (a + b)·(c + d) as a number and its rounding error, where b and d are rounding errors of a and c.
#[inline(always)]
fn pair_product((a, b): (f64, f64), (c, d): (f64, f64)) -> (f64, f64) {
    let (product, error) = two_product(a, c);
    two_sum(product, error + (a * d + b * c))
}

/// ln x as a number and its rounding error, together to about 2⁻⁷⁰ of it, for numbers above 0 that are
/// finite.
///
/// ln m = 2s·(1 + z/3 + z²/5 + z³·T(z)) with z = s²; all but T in pairs.
#[inline]
fn ln_pair(x: f64) -> (f64, f64) {
    let (k, m) = split_power(x);
    let f = m - 1.0;
    let (d, d_low) = two_sum(m, 1.0);
    let s = f / d;
    let (back, error) = two_product(s, d);
    let s = (s, (((f - back) - error) - s * d_low) / d);
    let z = pair_product(s, s);
    let mut tail = 0.057836758647956905;
    for c in [0.058608658735881024, 0.06667102232253053, 0.07692303177946223, 0.09090909113141939] {
        tail = c + z.0 * tail;
    }
    let tail = z.0 * (0.142857142857143 + z.0 * (0.11111111111070107 + z.0 * tail));
    let p = two_sum(0.2, tail - 1.1102230246251566e-17);
    let p = pair_product(z, p);
    let (third, error) = two_sum(0.3333333333333333, p.0);
    let p = pair_product(z, (third, error + (p.1 + 1.850371707708594e-17)));
    let curve = pair_product(s, p);
    let (high, error) = two_sum(k * LN2[0], 2.0 * s.0);
    let low = error + (k * LN2[1] + 2.0 * (s.1 + curve.1));
    let (high, error) = two_sum(high, 2.0 * curve.0);
    two_sum(high, error + low)
}

/// x^y, with the values of C at the edges: x⁰ and 1^y are 1, a number below 0 has whole powers only.
#[inline]
pub fn pow(x: f64, y: f64) -> f64 {
    if y == 0.0 || x == 1.0 {
        return 1.0;
    }
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    let is_odd = is_whole(y) && !is_whole(0.5 * y);
    let sign = if x.is_sign_negative() && is_odd { -1.0 } else { 1.0 };
    let base = x.abs();
    if base == 0.0 || base == f64::INFINITY {
        return sign * if (base == 0.0) == (y < 0.0) { f64::INFINITY } else { 0.0 };
    }
    if x < 0.0 && !is_whole(y) {
        return f64::NAN;
    }
    if base == 1.0 {
        return sign;
    }
    // Beyond this every power is 0 or infinity.
    let y = if y < -1e19 { -1e19 } else { y };
    let y = if y > 1e19 { 1e19 } else { y };
    let (high, low) = ln_pair(base);
    let (product, error) = two_product(high, y);
    let tail = error + low * y;
    sign * exp_of_sum(product, if (-746.0..=710.0).contains(&product) { tail } else { 0.0 })
}

/// Whether x is a whole number; infinity is.
#[inline(always)]
fn is_whole(x: f64) -> bool {
    let size = x.abs();
    size >= TWO52 || (size + TWO52) - TWO52 == size
}

/// x^n by repeated squaring, from the lowest bit of n.
#[inline(always)]
pub fn powi(x: f64, n: i32) -> f64 {
    let (mut square, mut left, mut product) = (x, n.unsigned_abs(), 1.0);
    loop {
        if left & 1 == 1 {
            product *= square;
        }
        left >>= 1;
        if left == 0 {
            return if n < 0 { 1.0 / product } else { product };
        }
        square *= square;
    }
}

/// ∛x: a power, and Newton's step in pairs.
#[inline]
pub fn cbrt(x: f64) -> f64 {
    let size = x.abs();
    if !(size > 0.0 && size < f64::INFINITY) {
        return x;
    }
    // So that neither the cube nor its rounding error leaves the range; 2³⁰⁰ and 2⁻¹⁰⁰.
    let (size, scale) = if size > 1e300 {
        (0.125 * size, 2.0)
    } else if size < 1e-250 {
        (2.037035976334486e90 * size, 7.888609052210118e-31)
    } else {
        (size, 1.0)
    };
    let root = pow(size, 0.3333333333333333);
    let (square, error) = two_product(root, root);
    let (cube, cube_error) = two_product(square, root);
    let excess = (cube - size) + (cube_error + error * root);
    let root = scale * (root - excess / (3.0 * square));
    if x < 0.0 { -root } else { root }
}

/// √(a² + b²), without overflow in between.
#[inline]
pub fn hypot(a: f64, b: f64) -> f64 {
    let (a, b) = (a.abs(), b.abs());
    if a == f64::INFINITY || b == f64::INFINITY {
        return f64::INFINITY;
    }
    let (large, small) = if a < b { (b, a) } else { (a, b) };
    if large == 0.0 {
        return large + small;
    }
    let ratio = small / large;
    large * (1.0 + ratio * ratio).sqrt()
}

/// tanh x, from e^2x − 1.
#[inline]
pub fn tanh(x: f64) -> f64 {
    let size = x.abs();
    if size < 1e-9 {
        return x;
    }
    let t = exp_m1(2.0 * size);
    let y = if size > 20.0 {
        1.0
    } else if size > 0.5 {
        1.0 - 2.0 / (t + 2.0)
    } else {
        t / (t + 2.0)
    };
    if x < 0.0 { -y } else { y }
}

/// The largest size of an angle: beyond it [`sin`] and [`cos`] are NaN. Nothing here turns that often.
pub const LARGEST_ANGLE: f64 = 1e6;

/// sin x for |x| ≤ [`LARGEST_ANGLE`].
#[inline]
pub fn sin(x: f64) -> f64 {
    if x.abs() < 1e-8 {
        return x;
    }
    let (quarter, y, low) = quarter_turn(x);
    let size = if quarter & 1 == 0 { sin_part(y, low) } else { cos_part(y, low) };
    if quarter & 2 == 0 { size } else { -size }
}

/// cos x for |x| ≤ [`LARGEST_ANGLE`].
#[inline]
pub fn cos(x: f64) -> f64 {
    let (quarter, y, low) = quarter_turn(x);
    let size = if quarter & 1 == 0 { cos_part(y, low) } else { sin_part(y, low) };
    if quarter.wrapping_add(1) & 2 == 0 { size } else { -size }
}

/// x = n·π/2 + y + low: the last bits of n, and the rest with its rounding error.
#[inline(always)]
fn quarter_turn(x: f64) -> (u64, f64, f64) {
    // π/2 in three parts: multiples of the first two by up to 2²⁰ are exact.
    const PARTS: [f64; 3] = [1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21];
    let x = if x.abs() <= LARGEST_ANGLE { x } else { f64::NAN };
    let shifted = x * FRAC_2_PI + ROUND;
    let n = shifted - ROUND;
    let (rest, error) = two_sum(x - n * PARTS[0], -(n * PARTS[1]));
    let low = error - n * PARTS[2];
    let y = rest + low;
    (shifted.to_bits(), y, (rest - y) + low)
}

/// sin(x + low) for |x| ≤ π/4: x·(1 − z/6 + z²/120 + z³·T(z)) with z = x²; all but T in pairs, so that
/// nearly every result is the nearest number.
#[inline]
fn sin_part(x: f64, low: f64) -> f64 {
    let z = pair_product((x, low), (x, low));
    let mut tail = 2.7962560933584938e-15;
    for c in [-7.647058125623389e-13, 1.605904349850769e-10, -2.505210838495173e-8, 2.755731922398563e-6] {
        tail = c + z.0 * tail;
    }
    let tail = z.0 * (-0.0001984126984126984 + z.0 * tail);
    let p = two_sum(0.008333333333333333, tail + 1.1564823173178714e-19);
    let p = pair_product(z, p);
    let (sixth, error) = two_sum(-0.16666666666666666, p.0);
    let p = pair_product(z, (sixth, error + (p.1 - 9.25185853854297e-18)));
    let curve = pair_product((x, low), p);
    let (y, error) = two_sum(x, curve.0);
    y + (error + (low + curve.1))
}

/// cos(x + low) for |x| ≤ π/4: 1 − z/2 + z²/24 + z³·T(z), as [`sin_part`].
#[inline]
fn cos_part(x: f64, low: f64) -> f64 {
    let z = pair_product((x, low), (x, low));
    let mut tail = 4.7506035076216596e-14;
    for c in [-1.1470545023050939e-11, 2.087675634534695e-9, -2.755731922305534e-7, 2.480158730158681e-5] {
        tail = c + z.0 * tail;
    }
    let tail = z.0 * (-0.001388888888888889 + z.0 * tail);
    let p = two_sum(0.041666666666666664, tail + 2.3129646346357427e-18);
    let p = pair_product(z, p);
    let (half, error) = two_sum(-0.5, p.0);
    let p = pair_product(z, (half, error + p.1));
    let (y, error) = two_sum(1.0, p.0);
    y + (error + p.1)
}

/// e^x of a single-precision number: as [`exp`], with a shorter polynomial.
#[inline(always)]
pub fn exp_f32(x: f32) -> f32 {
    // 1.5·2²³.
    const ROUND: f32 = 12582912.0;
    const LN2: [f32; 2] = [0.693_115_23, 3.194_618_4e-5];
    let x = if x < -104.0 { -104.0 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let k = shifted - ROUND;
    let high = x - k * LN2[0];
    let low = k * LN2[1];
    let r = high - low;
    let r2 = r * r;
    let a = (0.5 + 0.166_666_67 * r) + r2 * (0.041_666_556 + 0.008_333_32 * r);
    let b = 0.001_392_621_3 + 0.000_198_827_31 * r;
    let y = 1.0 + (high + (r2 * (a + (r2 * r2) * b) - low));
    let biased = shifted.to_bits().wrapping_sub(ROUND.to_bits() - 256);
    let half = biased >> 1;
    let first = f32::from_bits(half.wrapping_sub(1) << 23);
    let second = f32::from_bits(biased.wrapping_sub(half).wrapping_sub(1) << 23);
    y * first * second
}

/// tanh of a single-precision number.
#[inline]
pub fn tanh_f32(x: f32) -> f32 {
    tanh(f64::from(x)) as f32
}

/// ln(1 + x) of a single-precision number.
#[inline]
pub fn ln_1p_f32(x: f32) -> f32 {
    ln_1p(f64::from(x)) as f32
}

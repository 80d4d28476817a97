/* The functions of elementary.rs, operation by operation, in the common part of C99 and CUDA C. Define DEVICE first.
   Products and sums must not be contracted, subnormal numbers not be flushed. */

typedef unsigned long long px_u64;
typedef unsigned int px_u32;

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
DEVICE px_u64 px_bits(double x) { return (px_u64)__double_as_longlong(x); }
DEVICE double px_number(px_u64 bits) { return __longlong_as_double((long long)bits); }
DEVICE px_u32 px_bits_f32(float x) { return (px_u32)__float_as_int(x); }
DEVICE float px_number_f32(px_u32 bits) { return __int_as_float((int)bits); }
DEVICE double px_sqrt(double x) { return __dsqrt_rn(x); }
#else
#include <math.h>
#include <string.h>
DEVICE px_u64 px_bits(double x) { px_u64 bits; memcpy(&bits, &x, 8); return bits; }
DEVICE double px_number(px_u64 bits) { double x; memcpy(&x, &bits, 8); return x; }
DEVICE px_u32 px_bits_f32(float x) { px_u32 bits; memcpy(&bits, &x, 4); return bits; }
DEVICE float px_number_f32(px_u32 bits) { float x; memcpy(&x, &bits, 4); return x; }
DEVICE double px_sqrt(double x) { return sqrt(x); }
#endif

#define PX_ROUND 6755399441055744.0
#define PX_ROUND_BITS 0x4338000000000000ULL
#define PX_LN2 0.6931471805582987
#define PX_LN2_LOW 1.6465949582897082e-12
#define PX_LOG2_E 1.4426950408889634
#define PX_LOG10_E 0.4342944819032518
#define PX_TWO52 4503599627370496.0
#define PX_TWO52_BITS 0x4330000000000000ULL
#define PX_TWO54 18014398509481984.0
#define PX_MANTISSAS 0x3fe6a09e00000000ULL
#define PX_ONE 0x3ff0000000000000ULL
#define PX_LARGEST_ANGLE 1e6

/* A number and its rounding error. */
typedef struct { double high, low; } px_pair;

DEVICE double px_infinity(void) { return px_number(0x7ff0000000000000ULL); }
DEVICE double px_nan(void) { return px_number(0x7ff8000000000000ULL); }
DEVICE double px_abs(double x) { return px_number(px_bits(x) & 0x7fffffffffffffffULL); }

DEVICE px_pair px_two_sum(double a, double b) {
    double sum = a + b;
    double part = sum - a;
    px_pair result;
    result.high = sum;
    result.low = (a - (sum - part)) + (b - part);
    return result;
}

DEVICE px_pair px_two_product(double a, double b) {
    double product = a * b;
    double scaled_a = 134217729.0 * a, scaled_b = 134217729.0 * b;
    double a_high = scaled_a - (scaled_a - a), b_high = scaled_b - (scaled_b - b);
    double a_low = a - a_high, b_low = b - b_high;
    px_pair result;
    result.high = product;
    result.low = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
    return result;
}

DEVICE px_pair px_pair_product(px_pair a, px_pair b) {
    px_pair product = px_two_product(a.high, b.high);
    return px_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

DEVICE double px_exp_curve(double r) {
    double r2 = r * r;
    double r4 = r2 * r2;
    double a = (0.5 + 0.16666666666666669 * r) + r2 * (0.041666666666666664 + 0.008333333333330051 * r);
    double b = (0.0013888888888886545 + 0.00019841269863105968 * r)
        + r2 * (2.4801587317181886e-5 + 2.7557268378684192e-6 * r);
    double c = (2.755728291148268e-7 + 2.5100424157005067e-8 * r) + r2 * 2.0911264239196083e-9;
    return r2 * ((a + r4 * b) + (r4 * r4) * c);
}

DEVICE double px_exp_of_sum(double x, double tail) {
    double shifted, k, high, low, y;
    px_u64 biased, half;
    x = x < -746.0 ? -746.0 : x;
    x = x > 710.0 ? 710.0 : x;
    shifted = x * PX_LOG2_E + PX_ROUND;
    k = shifted - PX_ROUND;
    high = x - k * PX_LN2;
    low = k * PX_LN2_LOW - tail;
    y = 1.0 + (high + (px_exp_curve(high - low) - low));
    biased = px_bits(shifted) - (PX_ROUND_BITS - 2048);
    half = biased >> 1;
    return y * px_number((half - 1) << 52) * px_number((biased - half - 1) << 52);
}

/* e^x. */
DEVICE double px_exp(double x) { return px_exp_of_sum(x, 0.0); }

/* e^x - 1. */
DEVICE double px_exp_m1(double x) {
    double shifted, k, high, low, rest, y, power;
    px_pair sum;
    if (px_abs(x) < 5e-17) return x;
    if (x > 40.0) return px_exp(x);
    x = x < -40.0 ? -40.0 : x;
    shifted = x * PX_LOG2_E + PX_ROUND;
    k = shifted - PX_ROUND;
    high = x - k * PX_LN2;
    low = k * PX_LN2_LOW;
    rest = px_exp_curve(high - low) - low;
    y = high + rest;
    if (k == 0.0) return y;
    power = px_number((px_bits(shifted) - (PX_ROUND_BITS - 1023)) << 52);
    sum = px_two_sum(power - 1.0, power * y);
    return sum.high + (sum.low + power * ((high - y) + rest));
}

/* x = 2^k m: k in .high, m in .low. */
DEVICE px_pair px_split_power(double x) {
    int is_subnormal = x < 2.2250738585072014e-308;
    double scaled = is_subnormal ? x * PX_TWO54 : x;
    px_u64 bits = px_bits(scaled) + (PX_ONE - PX_MANTISSAS);
    double exponent = px_number(bits >> 52 | PX_TWO52_BITS);
    px_pair result;
    result.high = exponent - (is_subnormal ? PX_TWO52 + 1077.0 : PX_TWO52 + 1023.0);
    result.low = px_number((bits & 0x000fffffffffffffULL) + PX_MANTISSAS);
    return result;
}

/* ln x. */
DEVICE double px_ln(double x) {
    px_pair split = px_split_power(x);
    double k = split.high;
    double f = split.low - 1.0;
    double s = f / (2.0 + f);
    double z = s * s;
    double w = z * z;
    double odd = z * (0.666666666666667
        + w * (0.28571428626253836 + w * (0.18182892432537032 + w * 0.14617807153462828)));
    double even = w * (0.3999999999989889 + w * (0.22222211089379493 + w * 0.15331611722050653));
    double half = 0.5 * f * f;
    double y = k * PX_LN2 - ((half - (s * (half + (odd + even)) + k * PX_LN2_LOW)) - f);
    y = x < px_infinity() ? y : x;
    y = x == 0.0 ? -px_infinity() : y;
    return x < 0.0 ? px_nan() : y;
}

DEVICE px_pair px_ln_pair(double x) {
    px_pair split = px_split_power(x), s, z, p, third, curve, high, sum;
    double k = split.high;
    double f = split.low - 1.0;
    px_pair d = px_two_sum(split.low, 1.0);
    px_pair back;
    double tail;
    s.high = f / d.high;
    back = px_two_product(s.high, d.high);
    s.low = (((f - back.high) - back.low) - s.high * d.low) / d.high;
    z = px_pair_product(s, s);
    tail = 0.057836758647956905;
    tail = 0.058608658735881024 + z.high * tail;
    tail = 0.06667102232253053 + z.high * tail;
    tail = 0.07692303177946223 + z.high * tail;
    tail = 0.09090909113141939 + z.high * tail;
    tail = z.high * (0.142857142857143 + z.high * (0.11111111111070107 + z.high * tail));
    p = px_two_sum(0.2, tail - 1.1102230246251566e-17);
    p = px_pair_product(z, p);
    third = px_two_sum(0.3333333333333333, p.high);
    third.low = third.low + (p.low + 1.850371707708594e-17);
    p = px_pair_product(z, third);
    curve = px_pair_product(s, p);
    high = px_two_sum(k * PX_LN2, 2.0 * s.high);
    sum = px_two_sum(high.high, 2.0 * curve.high);
    return px_two_sum(sum.high, sum.low + (high.low + (k * PX_LN2_LOW + 2.0 * (s.low + curve.low))));
}

/* ln(1 + x). */
DEVICE double px_ln_1p(double x) {
    px_pair one_more, y;
    if (px_abs(x) < 5e-17 || x == px_infinity()) return x;
    if (x <= -1.0 || x != x) return x == -1.0 ? -px_infinity() : px_nan();
    one_more = px_two_sum(1.0, x);
    y = px_ln_pair(one_more.high);
    return y.high + (y.low + one_more.low / one_more.high);
}

/* The logarithm to base 10. */
DEVICE double px_log10(double x) {
    px_pair y, product;
    if (!(x > 0.0 && x < px_infinity())) return px_ln(x);
    y = px_ln_pair(x);
    product = px_two_product(y.high, PX_LOG10_E);
    return product.high + (product.low + (y.high * 1.098319650216765e-17 + y.low * PX_LOG10_E));
}

DEVICE int px_is_whole(double x) {
    double size = px_abs(x);
    return size >= PX_TWO52 || (size + PX_TWO52) - PX_TWO52 == size;
}

/* x^y. */
DEVICE double px_pow(double x, double y) {
    int is_odd;
    double sign, base, tail;
    px_pair logarithm, product;
    if (y == 0.0 || x == 1.0) return 1.0;
    if (x != x || y != y) return px_nan();
    is_odd = px_is_whole(y) && !px_is_whole(0.5 * y);
    sign = px_bits(x) >> 63 && is_odd ? -1.0 : 1.0;
    base = px_abs(x);
    if (base == 0.0 || base == px_infinity())
        return sign * ((base == 0.0) == (y < 0.0) ? px_infinity() : 0.0);
    if (x < 0.0 && !px_is_whole(y)) return px_nan();
    if (base == 1.0) return sign;
    y = y < -1e19 ? -1e19 : y;
    y = y > 1e19 ? 1e19 : y;
    logarithm = px_ln_pair(base);
    product = px_two_product(logarithm.high, y);
    tail = product.low + logarithm.low * y;
    tail = product.high < -746.0 || product.high > 710.0 ? 0.0 : tail;
    return sign * px_exp_of_sum(product.high, tail);
}

/* x^n. */
DEVICE double px_powi(double x, int n) {
    px_u32 left = n < 0 ? 0u - (px_u32)n : (px_u32)n;
    double square = x, product = 1.0;
    for (;;) {
        if (left & 1) product = product * square;
        left >>= 1;
        if (left == 0) return n < 0 ? 1.0 / product : product;
        square = square * square;
    }
}

/* The cube root. */
DEVICE double px_cbrt(double x) {
    double size = px_abs(x), scale, root, excess;
    px_pair square, cube;
    if (!(size > 0.0 && size < px_infinity())) return x;
    scale = size > 1e300 ? 2.0 : size < 1e-250 ? 7.888609052210118e-31 : 1.0;
    size = size > 1e300 ? 0.125 * size : size < 1e-250 ? 2.037035976334486e90 * size : size;
    root = px_pow(size, 0.3333333333333333);
    square = px_two_product(root, root);
    cube = px_two_product(square.high, root);
    excess = (cube.high - size) + (cube.low + square.low * root);
    root = scale * (root - excess / (3.0 * square.high));
    return x < 0.0 ? -root : root;
}

/* The square root of a^2 + b^2. */
DEVICE double px_hypot(double a, double b) {
    double large, small, ratio;
    a = px_abs(a);
    b = px_abs(b);
    if (a == px_infinity() || b == px_infinity()) return px_infinity();
    large = a < b ? b : a;
    small = a < b ? a : b;
    if (large == 0.0) return large + small;
    ratio = small / large;
    return large * px_sqrt(1.0 + ratio * ratio);
}

/* tanh x. */
DEVICE double px_tanh(double x) {
    double size = px_abs(x), t, y;
    if (size < 1e-9) return x;
    t = px_exp_m1(2.0 * size);
    y = size > 20.0 ? 1.0 : size > 0.5 ? 1.0 - 2.0 / (t + 2.0) : t / (t + 2.0);
    return x < 0.0 ? -y : y;
}

/* x = n pi/2 + .high + .low: the last bits of n, and the rest. */
DEVICE px_u64 px_quarter_turn(double x, px_pair *rest) {
    double shifted, n, low;
    px_pair sum;
    x = px_abs(x) <= PX_LARGEST_ANGLE ? x : px_nan();
    shifted = x * 0.6366197723675814 + PX_ROUND;
    n = shifted - PX_ROUND;
    sum = px_two_sum(x - n * 1.5707963267341256, -(n * 6.077100506303966e-11));
    low = sum.low - n * 2.0222662487959506e-21;
    rest->high = sum.high + low;
    rest->low = (sum.high - rest->high) + low;
    return px_bits(shifted);
}

DEVICE double px_sin_part(px_pair x) {
    px_pair z = px_pair_product(x, x), p, sixth, curve, y;
    double tail = 2.7962560933584938e-15;
    tail = -7.647058125623389e-13 + z.high * tail;
    tail = 1.605904349850769e-10 + z.high * tail;
    tail = -2.505210838495173e-8 + z.high * tail;
    tail = 2.755731922398563e-6 + z.high * tail;
    tail = z.high * (-0.0001984126984126984 + z.high * tail);
    p = px_two_sum(0.008333333333333333, tail + 1.1564823173178714e-19);
    p = px_pair_product(z, p);
    sixth = px_two_sum(-0.16666666666666666, p.high);
    sixth.low = sixth.low + (p.low - 9.25185853854297e-18);
    p = px_pair_product(z, sixth);
    curve = px_pair_product(x, p);
    y = px_two_sum(x.high, curve.high);
    return y.high + (y.low + (x.low + curve.low));
}

DEVICE double px_cos_part(px_pair x) {
    px_pair z = px_pair_product(x, x), p, half, y;
    double tail = 4.7506035076216596e-14;
    tail = -1.1470545023050939e-11 + z.high * tail;
    tail = 2.087675634534695e-9 + z.high * tail;
    tail = -2.755731922305534e-7 + z.high * tail;
    tail = 2.480158730158681e-5 + z.high * tail;
    tail = z.high * (-0.001388888888888889 + z.high * tail);
    p = px_two_sum(0.041666666666666664, tail + 2.3129646346357427e-18);
    p = px_pair_product(z, p);
    half = px_two_sum(-0.5, p.high);
    half.low = half.low + p.low;
    p = px_pair_product(z, half);
    y = px_two_sum(1.0, p.high);
    return y.high + (y.low + p.low);
}

/* sin x. */
DEVICE double px_sin(double x) {
    px_pair y;
    px_u64 quarter;
    double size;
    if (px_abs(x) < 1e-8) return x;
    quarter = px_quarter_turn(x, &y);
    size = (quarter & 1) == 0 ? px_sin_part(y) : px_cos_part(y);
    return (quarter & 2) == 0 ? size : -size;
}

/* cos x. */
DEVICE double px_cos(double x) {
    px_pair y;
    px_u64 quarter = px_quarter_turn(x, &y);
    double size = (quarter & 1) == 0 ? px_cos_part(y) : px_sin_part(y);
    return ((quarter + 1) & 2) == 0 ? size : -size;
}

/* e^x in single precision. */
DEVICE float px_exp_f32(float x) {
    float shifted, k, high, low, r, r2, a, b, y;
    px_u32 biased, half;
    x = x < -104.0f ? -104.0f : x;
    x = x > 89.0f ? 89.0f : x;
    shifted = x * 1.44269504f + 12582912.0f;
    k = shifted - 12582912.0f;
    high = x - k * 0.69311523f;
    low = k * 3.1946184e-5f;
    r = high - low;
    r2 = r * r;
    a = (0.5f + 0.16666667f * r) + r2 * (0.041666556f + 0.00833332f * r);
    b = 0.0013926213f + 0.00019882731f * r;
    y = 1.0f + (high + (r2 * (a + (r2 * r2) * b) - low));
    biased = px_bits_f32(shifted) - (0x4b400000u - 256u);
    half = biased >> 1;
    return y * px_number_f32((half - 1u) << 23) * px_number_f32((biased - half - 1u) << 23);
}

/* tanh x in single precision. */
DEVICE float px_tanh_f32(float x) { return (float)px_tanh((double)x); }

/* ln(1 + x) in single precision. */
DEVICE float px_ln_1p_f32(float x) { return (float)px_ln_1p((double)x); }

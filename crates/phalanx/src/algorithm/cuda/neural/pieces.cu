// Products of matrices in shared memory, by the threads of a warp.
//
// Sums come in pieces of 16 × 8. A warp holds a piece in its registers: a lane has four sums of it, in rows
// g and g + 8 and in columns 2t and 2t + 1, where g = lane / 4 and t = lane % 4.
//
// On a device that has tensor cores (from compute capability 8.0 on) they form the products. They take ten bits
// behind the leading one of a number, so every number goes to them in two parts:
// (a + a')·(b + b') = a·b' + a'·b + a·b, where a'·b', 2⁻²⁰ of the product at most, is left out. Elsewhere,
// every lane forms its own sums.
//
// The left side of a product may be a choice of rows (“one-hot”): each sample has a code for every slot, and row
// r of the right side belongs to one code of one slot. Such a left side is exact in one part.
#ifndef PX_PIECES
#define PX_PIECES
#define PIECE_ROW(e) (LANE / 4 + (e) / 2 * 8)
#define PIECE_COLUMN(e) (LANE % 4 * 2 + (e) % 2)

struct px_choice {
    // Codes of the samples, so many per sample; slots of the first group come first, then those of the second.
    const u8 *codes;
    int per_sample, members, first, second;
};

// 1 if row r is chosen by the sample, else 0.
DEVICE float px_chosen(const struct px_choice *choice, int sample, int r) {
    int of_first = r < choice->members * choice->first, k = of_first ? r : r - choice->members * choice->first;
    int vocabulary = of_first ? choice->first : choice->second, slot = k / AT_LEAST_ONE(vocabulary);
    int code = choice->codes[sample * choice->per_sample + (of_first ? 0 : choice->members) + slot];
    return slot < choice->members && code == k - slot * vocabulary ? 1.0f : 0.0f;
}

#if defined(__CUDACC_RTC__) && __CUDA_ARCH__ >= 800
struct px_parts {
    u32 upper, lower;
};

DEVICE struct px_parts px_split(float x) {
    struct px_parts parts;
    parts.upper = __float_as_uint(x) & 0xffffe000u;
    parts.lower = __float_as_uint(x - __uint_as_float(parts.upper));
    return parts;
}

DEVICE void px_tensor_step(float *sum, const u32 *a, const u32 *b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// The left side of eight products per sum: rows g and g + 8 of two columns, in two parts.
struct px_left {
    u32 upper[4], lower[4];
};

DEVICE void px_put(struct px_left *left, int q, float x) {
    struct px_parts parts = px_split(x);
    left->upper[q] = parts.upper;
    left->lower[q] = parts.lower;
}

// sums[n] += left·right for PX_AT_ONCE pieces side by side at most, as far as they are there; `right` has two numbers for each.
// What goes to the same sums stands apart: the tensor cores need not wait for it.
#define PX_AT_ONCE 4
DEVICE void px_multiply(float (*sums)[4], int pieces, int there, const struct px_left *left, int is_exact, const float (*right)[2]) {
    u32 upper[PX_AT_ONCE][2], lower[PX_AT_ONCE][2];
    UNROLL for (int n = 0; n < pieces; n++) {
        UNROLL for (int q = 0; q < 2; q++) {
            struct px_parts parts = px_split(right[n][q]);
            upper[n][q] = parts.upper;
            lower[n][q] = parts.lower;
        }
    }
    UNROLL for (int n = 0; n < pieces; n++)
        if (n < there) px_tensor_step(sums[n], left->upper, lower[n]);
    if (!is_exact) {
        UNROLL for (int n = 0; n < pieces; n++)
            if (n < there) px_tensor_step(sums[n], left->lower, upper[n]);
    }
    UNROLL for (int n = 0; n < pieces; n++)
        if (n < there) px_tensor_step(sums[n], left->upper, upper[n]);
}

#define PX_LEFT_OF(pieces, n) ((pieces) - (n) < PX_AT_ONCE ? (pieces) - (n) : PX_AT_ONCE)

// sums[n] += a·w for so many pieces side by side, as far as they are there: Σ_k a[row][k]·w[k][column]. `along`
// and `across` are the strides of w in k and in columns. `inner` is rounded up to eight, where a and w are 0. The
// left side is the choice of the rows' samples, from `first` on, if there is one.
DEVICE void px_band(float (*sums)[4], int pieces, int there, const float *a, int stride, const struct px_choice *choice, int first,
                    const float *w, int along, int across, int inner) {
    int g = LANE / 4, t = LANE % 4;
    w += t * along + g * across;
    UNROLL_BY_TWO for (int k = 0; k < inner; k += 8) {
        struct px_left left;
        UNROLL for (int q = 0; q < 4; q++) {
            int row = g + q % 2 * 8, column = k + t + q / 2 * 4;
            px_put(&left, q, choice ? px_chosen(choice, first + row, column) : a[row * stride + column]);
        }
        UNROLL for (int n = 0; n < pieces; n += PX_AT_ONCE) {
            float right[PX_AT_ONCE][2];
            UNROLL for (int m = 0; m < PX_LEFT_OF(pieces, n); m++) {
                UNROLL for (int q = 0; q < 2; q++) right[m][q] = w[(k + 4 * q) * along + 8 * (n + m) * across];
            }
            px_multiply(sums + n, PX_LEFT_OF(pieces, n), there - n, &left, choice != 0, right);
        }
    }
}

// sums[r][c] += aᵀ·b for so many pieces: Σ over samples of a[sample][row]·b[sample][column]. `count` is
// rounded up to eight: there, a is finite and b is 0. The products of a step are those of samples 2t, then of
// samples 2t + 1: this way no two lanes read from the same bank. With a choice, `first` is the first row.
DEVICE void px_outer(float (*sums)[4], int rows, int columns, const float *a, int a_stride, const struct px_choice *choice,
                     int first, const float *b, int b_stride, int count) {
    int g = LANE / 4, t = LANE % 4;
    b += 2 * t * b_stride + g;
    UNROLL_BY_TWO for (int k = 0; k < count; k += 8) {
        UNROLL for (int r = 0; r < rows; r++) {
            struct px_left left;
            UNROLL for (int q = 0; q < 4; q++) {
                int row = 16 * r + g + q % 2 * 8, sample = k + 2 * t + q / 2;
                px_put(&left, q, choice ? px_chosen(choice, sample, first + row) : a[sample * a_stride + row]);
            }
            UNROLL for (int c = 0; c < columns; c += PX_AT_ONCE) {
                float right[PX_AT_ONCE][2];
                UNROLL for (int m = 0; m < PX_LEFT_OF(columns, c); m++) {
                    UNROLL for (int q = 0; q < 2; q++) right[m][q] = b[(k + q) * b_stride + 8 * (c + m)];
                }
                px_multiply(sums + r * columns + c, PX_LEFT_OF(columns, c), PX_AT_ONCE, &left, choice != 0, right);
            }
        }
    }
}
#else
DEVICE void px_band(float (*sums)[4], int pieces, int there, const float *a, int stride, const struct px_choice *choice, int first,
                    const float *w, int along, int across, int inner) {
    for (int n = 0; n < pieces && n < there; n++) {
        for (int e = 0; e < 4; e++) {
            int row = PIECE_ROW(e), column = 8 * n + PIECE_COLUMN(e);
            for (int k = 0; k < inner; k++) {
                float left = choice ? px_chosen(choice, first + row, k) : a[row * stride + k];
                sums[n][e] = fmaf(left, w[k * along + column * across], sums[n][e]);
            }
        }
    }
}

DEVICE void px_outer(float (*sums)[4], int rows, int columns, const float *a, int a_stride, const struct px_choice *choice,
                     int first, const float *b, int b_stride, int count) {
    for (int piece = 0; piece < rows * columns; piece++) {
        for (int e = 0; e < 4; e++) {
            int row = piece / columns * 16 + PIECE_ROW(e), column = piece % columns * 8 + PIECE_COLUMN(e);
            for (int k = 0; k < count; k++) {
                float left = choice ? px_chosen(choice, k, first + row) : a[k * a_stride + row];
                sums[piece][e] = fmaf(left, b[k * b_stride + column], sums[piece][e]);
            }
        }
    }
}
#endif
#endif

// Matrices in shared memory, and their products by the threads of a warp.
//
// Sums come in pieces of 16 × 8. A warp holds a piece in its registers: a lane has four sums of it, in rows
// g and g + 8 and in columns 2t and 2t + 1, where g = lane / 4 and t = lane % 4.
//
// On a device that has tensor cores for them (from compute capability 8.0 on) numbers lie in shared memory in two
// parts: what bfloat16 takes of a number, and what it takes of the rest, together 16 bits behind the leading one.
// Tensor cores multiply the parts: (a + a')·(b + b') = a·b' + a'·b + a·b, where a'·b', 2⁻¹⁸ of the product at most,
// is left out. All upper parts of a matrix come before all lower ones. A matrix of zeros and ones has upper parts
// alone. Elsewhere a number is a float, and every lane forms its own sums. PX_EMULATED_TENSORS says that a text
// before this one has the three functions that are instructions of tensor cores.
#ifndef PX_PIECES
#define PX_PIECES
#define PIECE_ROW(e) (LANE / 4 + (e) / 2 * 8)
#define PIECE_COLUMN(e) (LANE % 4 * 2 + (e) % 2)

#if defined(PX_EMULATED_TENSORS) || defined(__CUDACC_RTC__) && __CUDA_ARCH__ >= 800
#define PX_IN_PARTS 1
typedef u16 px_entry;
#else
#define PX_IN_PARTS 0
typedef float px_entry;
#endif

// Rows of numbers, so far from each other; `apart` is how far lower parts are from upper ones.
struct px_matrix {
    px_entry *at;
    int stride, apart;
};

// The matrix from a row and a column on.
DEVICE struct px_matrix px_from(struct px_matrix m, int row, int column) {
    m.at += row * m.stride + column;
    return m;
}

#if PX_IN_PARTS
#if !defined(PX_EMULATED_TENSORS)
// Two numbers as bfloat16, the first in the lower half.
DEVICE u32 px_rounded(float x, float y) {
    u32 both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(y), "f"(x));
    return both;
}

// Four blocks of 8 × 8 parts; every lane gives the address of a row of one of them. Turned ones are transposed.
DEVICE void px_load(u32 *four, const px_entry *row, int is_turned) {
    u32 address = (u32)__cvta_generic_to_shared(row);
    if (is_turned)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(four[0]), "=r"(four[1]), "=r"(four[2]), "=r"(four[3]) : "r"(address) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(four[0]), "=r"(four[1]), "=r"(four[2]), "=r"(four[3]) : "r"(address) : "memory");
}

DEVICE void px_tensor_step(float *sum, const u32 *a, const u32 *b) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#endif

// The parts of two numbers.
struct px_parts {
    u32 upper, lower;
};

DEVICE struct px_parts px_split(float x, float y) {
    struct px_parts parts;
    parts.upper = px_rounded(x, y);
    parts.lower = px_rounded(x - __uint_as_float(parts.upper << 16), y - __uint_as_float(parts.upper & 0xffff0000u));
    return parts;
}

// Writes a number.
DEVICE void px_put(struct px_matrix m, int row, int column, float x) {
    u32 upper = px_rounded(x, 0);
    px_entry *place = m.at + row * m.stride + column;
    place[0] = (u16)upper;
    place[m.apart] = (u16)px_rounded(x - __uint_as_float(upper << 16), 0);
}

// Writes two numbers side by side; the column is even.
DEVICE void px_put_two(struct px_matrix m, int row, int column, float x, float y) {
    struct px_parts parts = px_split(x, y);
    px_entry *place = m.at + row * m.stride + column;
    *(u32 *)place = parts.upper;
    *(u32 *)(place + m.apart) = parts.lower;
}

// Writes a 0 or a 1 of a matrix that has nothing else.
DEVICE void px_put_bit(struct px_matrix m, int row, int column, int bit) {
    m.at[row * m.stride + column] = bit ? 0x3f80 : 0;
}

// Whether a number that is not negative is positive.
DEVICE int px_is_positive(struct px_matrix m, int row, int column) {
    return m.at[row * m.stride + column] != 0;
}

// The left side of sixteen products per sum. A matrix of zeros and ones is exact without lower parts.
struct px_left {
    u32 upper[4], lower[4];
};

DEVICE void px_load_left(struct px_left *left, const px_entry *row, int apart, int is_exact, int is_turned) {
    px_load(left->upper, row, is_turned);
    if (!is_exact) px_load(left->lower, row + apart, is_turned);
}

// sums[n] += left·right for PX_AT_ONCE pieces side by side at most, as far as they are there; right[n] has the upper
// and the lower parts. What goes to the same sums stands apart: the tensor cores need not wait for it.
#define PX_AT_ONCE 4
#define PX_LEFT_OF(pieces, n) ((pieces) - (n) < PX_AT_ONCE ? (pieces) - (n) : PX_AT_ONCE)
DEVICE void px_multiply(float (*sums)[4], int pieces, int there, const struct px_left *left, int is_exact, const u32 (*right)[4]) {
    UNROLL for (int n = 0; n < pieces; n++)
        if (n < there) px_tensor_step(sums[n], left->upper, right[n] + 2);
    if (!is_exact) {
        UNROLL for (int n = 0; n < pieces; n++)
            if (n < there) px_tensor_step(sums[n], left->lower, right[n]);
    }
    UNROLL for (int n = 0; n < pieces; n++)
        if (n < there) px_tensor_step(sums[n], left->upper, right[n]);
}

// sums[n] += a·w for so many pieces side by side, as far as they are there: Σ_k a[row][k]·w[k][column], of sixteen
// rows. If w is turned, it is w[column][k]. `inner` is rounded up to sixteen: there, a is finite and w is 0, or
// the other way round.
DEVICE void px_band(float (*sums)[4], int pieces, int there, struct px_matrix a, int is_exact, struct px_matrix w, int is_turned,
                    int inner) {
    const px_entry *left = a.at + LANE % 16 * a.stride + LANE / 16 * 8, *right = w.at + LANE / 16 * w.apart;
    right += is_turned ? LANE % 8 * w.stride + LANE / 8 % 2 * 8 : LANE % 16 * w.stride;
    UNROLL_BY_TWO for (int k = 0; k < inner; k += 16) {
        struct px_left of_a;
        px_load_left(&of_a, left + k, a.apart, is_exact, 0);
        UNROLL for (int n = 0; n < pieces; n += PX_AT_ONCE) {
            u32 of_w[PX_AT_ONCE][4];
            UNROLL for (int m = 0; m < PX_LEFT_OF(pieces, n); m++)
                if (n + m < there) px_load(of_w[m], right + (is_turned ? 8 * (n + m) * w.stride + k : k * w.stride + 8 * (n + m)), !is_turned);
            px_multiply(sums + n, PX_LEFT_OF(pieces, n), there - n, &of_a, is_exact, of_w);
        }
    }
}

// sums[r][c] += aᵀ·b for so many pieces: Σ over samples of a[sample][row]·b[sample][column]. `count` is rounded up
// to sixteen: there, a is finite and b is 0.
DEVICE void px_outer(float (*sums)[4], int rows, int columns, struct px_matrix a, int is_exact, struct px_matrix b, int count) {
    const px_entry *left = a.at + (LANE / 16 * 8 + LANE % 8) * a.stride + LANE / 8 % 2 * 8;
    const px_entry *right = b.at + LANE / 16 * b.apart + LANE % 16 * b.stride;
    UNROLL_BY_TWO for (int k = 0; k < count; k += 16) {
        UNROLL for (int r = 0; r < rows; r++) {
            struct px_left of_a;
            px_load_left(&of_a, left + k * a.stride + 16 * r, a.apart, is_exact, 1);
            UNROLL for (int c = 0; c < columns; c += PX_AT_ONCE) {
                u32 of_b[PX_AT_ONCE][4];
                UNROLL for (int m = 0; m < PX_LEFT_OF(columns, c); m++) px_load(of_b[m], right + k * b.stride + 8 * (c + m), 1);
                px_multiply(sums + r * columns + c, PX_LEFT_OF(columns, c), PX_AT_ONCE, &of_a, is_exact, of_b);
            }
        }
    }
}

// Σ over samples of b[sample][column] for eight columns: sums[0] and sums[1] of the first four lanes have them.
DEVICE void px_total(float *sums, struct px_matrix b, int count) {
    const px_entry *right = b.at + LANE / 16 * b.apart + LANE % 16 * b.stride;
    const u32 ones[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
    UNROLL_BY_TWO for (int k = 0; k < count; k += 16) {
        u32 of_b[4];
        px_load(of_b, right + k * b.stride, 1);
        px_tensor_step(sums, ones, of_b + 2);
        px_tensor_step(sums, ones, of_b);
    }
}
#else
DEVICE void px_put(struct px_matrix m, int row, int column, float x) {
    m.at[row * m.stride + column] = x;
}

DEVICE void px_put_two(struct px_matrix m, int row, int column, float x, float y) {
    px_put(m, row, column, x);
    px_put(m, row, column + 1, y);
}

DEVICE void px_put_bit(struct px_matrix m, int row, int column, int bit) {
    px_put(m, row, column, bit ? 1.0f : 0.0f);
}

DEVICE int px_is_positive(struct px_matrix m, int row, int column) {
    return m.at[row * m.stride + column] > 0;
}

DEVICE void px_band(float (*sums)[4], int pieces, int there, struct px_matrix a, int is_exact, struct px_matrix w, int is_turned,
                    int inner) {
    for (int n = 0; n < pieces && n < there; n++) {
        for (int e = 0; e < 4; e++) {
            int row = PIECE_ROW(e), column = 8 * n + PIECE_COLUMN(e);
            for (int k = 0; k < inner; k++) {
                float right = w.at[is_turned ? column * w.stride + k : k * w.stride + column];
                sums[n][e] = fmaf(a.at[row * a.stride + k], right, sums[n][e]);
            }
        }
    }
}

DEVICE void px_outer(float (*sums)[4], int rows, int columns, struct px_matrix a, int is_exact, struct px_matrix b, int count) {
    for (int piece = 0; piece < rows * columns; piece++) {
        for (int e = 0; e < 4; e++) {
            int row = piece / columns * 16 + PIECE_ROW(e), column = piece % columns * 8 + PIECE_COLUMN(e);
            for (int k = 0; k < count; k++)
                sums[piece][e] = fmaf(a.at[k * a.stride + row], b.at[k * b.stride + column], sums[piece][e]);
        }
    }
}

DEVICE void px_total(float *sums, struct px_matrix b, int count) {
    for (int e = 0; e < 2; e++)
        for (int k = 0; k < count; k++) sums[e] += b.at[k * b.stride + PIECE_COLUMN(e)];
}
#endif
#endif

// Forward and backward passes of one network over a tile of samples, by the threads of one block.
//
// The text is used several times, with NET_ and net_ replaced: for critics that learn, for their values, and for
// policies. Sizes are constants, the
// largest of all agents; an agent with fewer members or rows has zeros there. What threads share lies at the
// offsets NET_AT_…, which the host counts in floats.
//
// A sample is the symbols of its members. A view is worked out from their states and goes through the layer of
// the rows; embedded symbols never reach the first layer one by one: their tables are multiplied with its
// weights once (NET_AT_PRODUCTS), and a sample adds up a row for each slot.
//
// Warps take samples, lanes take units: a unit's weights are read from consecutive places, what a sample
// brings is the same for all lanes. A warp takes its samples to their outputs without waiting for others. Sums
// have one order, so that two runs give the same bits.
#define NET_WARPS (NET_THREADS / 32)
// Samples of a warp: how many, the first of them, and those that there are in a tile of `count`.
#define NET_SHARE (NET_TILE / NET_WARPS)
#define NET_FIRST (WARP * NET_SHARE)
#define NET_THERE(count) ((count) - NET_FIRST < NET_SHARE ? (count) - NET_FIRST : NET_SHARE)
#define NET_FEATURES (NET_ROWS * NET_ROW_UNITS)
#define NET_TOP (NET_D2 > 0 ? NET_D2 : NET_D1)
#define NET_GROUPS ((NET_STATES > 0) + (NET_ACTIONS > 0))
#define NET_VOCABULARY (NET_STATES > NET_ACTIONS ? NET_STATES : NET_ACTIONS)
#define NET_TABLE ((NET_STATES + NET_ACTIONS) * NET_DIMENSION)
// Strides of rows in shared memory: weights so that lanes can run along either side, the rest by fours.
#define NET_STRIDE_W1 (NET_D1 + 1)
#define NET_STRIDE_W2 (NET_D2 + 1)
#define NET_STRIDE_VIEW ((NET_WIDTH + 3) / 4 * 4)
#define NET_STRIDE_ROWS ((NET_FEATURES + 3) / 4 * 4)
#define NET_STRIDE_H1 ((NET_D1 + 3) / 4 * 4 + 4)
#define NET_STRIDE_H2 ((NET_D2 + 3) / 4 * 4 + 4)
#define NET_AT_TOP (NET_D2 > 0 ? NET_AT_H2 : NET_AT_H1)
#define NET_STRIDE_TOP (NET_D2 > 0 ? NET_STRIDE_H2 : NET_STRIDE_H1)
// Tiles of matrices that a thread has the gradient of: rows of a warp, units of a lane.
#define NET_R1 PARTS(NET_FEATURES, NET_WARPS)
#define NET_C1 PARTS(NET_D1, 32)
#define NET_R2 PARTS(NET_D1, NET_WARPS)
#define NET_C2 PARTS(NET_D2, 32)
#define NET_RV PARTS(NET_WIDTH, NET_WARPS)
#define NET_CV PARTS(NET_ROW_UNITS, 32)
#define NET_MOST_UNITS \
    (NET_D1 > NET_D2 ? (NET_D1 > NET_FEATURES ? NET_D1 : NET_FEATURES) : (NET_D2 > NET_FEATURES ? NET_D2 : NET_FEATURES))
#define NET_MOST PARTS(NET_MOST_UNITS, 32)
#define NET_OWN(n) AT_LEAST_ONE(PARTS(n, NET_THREADS))

// Sizes of an agent's networks, and where the parts of their parameters lie, in the order of checkpoints.
struct net_shape {
    int members, rows, width, states, actions, outputs, slots, features;
    int row_bias, state_table, action_table, first, first_bias, second, second_bias, last, last_bias, parameters;
};

// What a thread has of a gradient.
struct net_gradient {
    float first[AT_LEAST_ONE(NET_R1 * NET_C1)], second[AT_LEAST_ONE(NET_R2 * NET_C2)];
    float row[AT_LEAST_ONE(NET_RV * NET_CV)], last[NET_OWN(NET_TOP * NET_OUTPUTS)];
    float row_bias[NET_OWN(NET_ROW_UNITS)], first_bias[NET_OWN(NET_D1)];
    float second_bias[NET_OWN(NET_D2)], last_bias[NET_OWN(NET_OUTPUTS)], table[NET_OWN(NET_TABLE)];
};

// A slot of symbols: its rows of the products, its embedding table, its place among a sample's symbols.
struct net_slot {
    int products, vocabulary, table, code;
};

DEVICE struct net_shape net_shape_of(const struct Run *run, long long agent) {
    struct net_shape s;
    const u32 *sizes = run->net_sizes + agent;
    s.members = sizes[0];
    s.rows = sizes[AGENTS];
    s.width = sizes[2 * AGENTS];
    s.states = sizes[3 * AGENTS];
    s.actions = sizes[4 * AGENTS];
    s.outputs = sizes[5 * AGENTS];
    s.slots = NET_GROUPS * s.members;
    s.features = s.rows * NET_ROW_UNITS;
    s.row_bias = s.width * NET_ROW_UNITS;
    s.state_table = s.rows > 0 ? s.row_bias + NET_ROW_UNITS : 0;
    s.action_table = s.state_table + s.states * NET_DIMENSION;
    s.first = s.action_table + s.actions * NET_DIMENSION;
    s.first_bias = s.first + (s.features + s.slots * NET_DIMENSION) * NET_D1;
    s.second = s.first_bias + NET_D1;
    s.second_bias = s.second + NET_D1 * NET_D2;
    s.last = s.second_bias + NET_D2;
    s.last_bias = s.last + NET_TOP * s.outputs;
    s.parameters = s.last_bias + s.outputs;
    return s;
}

DEVICE struct net_slot net_slot_of(const struct net_shape *s, int slot) {
    struct net_slot t;
    int of_states = NET_STATES > 0 && slot < s->members, m = of_states || NET_STATES == 0 ? slot : slot - s->members;
    t.vocabulary = of_states ? NET_STATES : NET_ACTIONS;
    t.products = of_states ? m * NET_STATES : NET_MEMBERS * NET_STATES + m * NET_ACTIONS;
    t.table = of_states ? 0 : NET_STATES * NET_DIMENSION;
    t.code = of_states ? m : NET_MEMBERS + m;
    return t;
}

// Products of a slot's table with its weights in the first layer, for one unit.
DEVICE void net_multiply(const float *table, const struct net_slot *t, const float *w, float *products) {
    float sums[AT_LEAST_ONE(NET_VOCABULARY)];
    UNROLL for (int v = 0; v < NET_VOCABULARY; v++) sums[v] = 0;
    UNROLL for (int d = 0; d < NET_DIMENSION; d++) {
        float weight = w[d * NET_D1];
        UNROLL for (int v = 0; v < NET_VOCABULARY; v++)
            if (v < t->vocabulary) sums[v] = fmaf(table[t->table + v * NET_DIMENSION + d], weight, sums[v]);
    }
    UNROLL for (int v = 0; v < NET_VOCABULARY; v++)
        if (v < t->vocabulary) products[(t->products + v) * NET_D1] = sums[v];
}

DEVICE void net_products(const struct net_shape *s, const float *w, float *sh) {
    for (int item = threadIdx.x; item < s->slots * NET_D1; item += NET_THREADS) {
        int slot = item / NET_D1, u = item % NET_D1;
        struct net_slot t = net_slot_of(s, slot);
        const float *weights = w + s->first + (s->features + slot * NET_DIMENSION) * NET_D1 + u;
        net_multiply(sh + NET_AT_TABLE, &t, weights, sh + NET_AT_PRODUCTS + u);
    }
}

// Brings a network's parameters into shared memory: all but the embedded symbols' weights in the first layer,
// which are there as products. Ends with everything in place.
DEVICE void net_load(const struct Run *run, const struct net_shape *s, long long agent, const u32 *group,
                     const float *w, float *sh) {
    int tid = threadIdx.x;
    SYNC();
    UNROLL_BY_EIGHT for (int k = tid; k < NET_FEATURES * NET_D1; k += NET_THREADS) {
        int i = k / NET_D1, u = k % NET_D1;
        sh[NET_AT_W1 + i * NET_STRIDE_W1 + u] = i < s->features ? w[s->first + k] : 0;
    }
    UNROLL_BY_EIGHT for (int k = tid; k < NET_D1 * NET_D2; k += NET_THREADS)
        sh[NET_AT_W2 + k / AT_LEAST_ONE(NET_D2) * NET_STRIDE_W2 + k % AT_LEAST_ONE(NET_D2)] = w[s->second + k];
    for (int k = tid; k < NET_D1; k += NET_THREADS) sh[NET_AT_B1 + k] = w[s->first_bias + k];
    for (int k = tid; k < NET_D2; k += NET_THREADS) sh[NET_AT_B2 + k] = w[s->second_bias + k];
    for (int k = tid; k < NET_TOP * NET_OUTPUTS; k += NET_THREADS) {
        int i = k / NET_OUTPUTS, o = k % NET_OUTPUTS;
        sh[NET_AT_LAST + k] = o < s->outputs ? w[s->last + i * s->outputs + o] : 0;
    }
    for (int k = tid; k < NET_OUTPUTS; k += NET_THREADS) sh[NET_AT_LAST_BIAS + k] = k < s->outputs ? w[s->last_bias + k] : 0;
    for (int k = tid; k < NET_WIDTH * NET_ROW_UNITS; k += NET_THREADS)
        sh[NET_AT_ROW + k] = k < s->row_bias ? w[k] : 0;
    for (int k = tid; k < NET_ROW_UNITS; k += NET_THREADS) sh[NET_AT_ROW_BIAS + k] = s->rows > 0 ? w[s->row_bias + k] : 0;
    for (int k = tid; k < NET_TABLE; k += NET_THREADS) {
        int of_states = k < NET_STATES * NET_DIMENSION, j = of_states ? k : k - NET_STATES * NET_DIMENSION;
        int from = of_states ? s->state_table : s->action_table;
        float number = j < (of_states ? s->states : s->actions) * NET_DIMENSION ? w[from + j] : 0;
        sh[NET_AT_TABLE + k] = number;
        sh[NET_AT_NEW_TABLE + k] = number;
    }
    u32 *members = (u32 *)(sh + NET_AT_GROUP);
    for (int m = tid; m < s->members; m += NET_THREADS) members[m] = group[m * AGENTS + agent];
    SYNC();
    net_products(s, w, sh);
    SYNC();
}

// Brings the symbols of the warp's samples into shared memory, where their rows of `pairs` are, and works out the
// view.
DEVICE void net_observe(const struct Run *run, const struct net_shape *s, long long agent, int count, float *sh) {
    const u32 *rows = (const u32 *)(sh + NET_AT_SAMPLES) + NET_FIRST, *members = (const u32 *)(sh + NET_AT_GROUP);
    u8 *symbols = (u8 *)(sh + NET_AT_SYMBOLS) + NET_FIRST * 2 * NET_MEMBERS;
    const pair_t *pairs = run->pairs;
    int there = NET_THERE(count);
    GLOBAL(pairs);
    UNROLL_BY_THREE for (int k = LANE; k < there * s->members; k += 32) {
        int sample = k / s->members, m = k % s->members;
        pair_t pair = pairs[(long long)rows[sample] * AGENTS + members[m]];
        symbols[sample * 2 * NET_MEMBERS + m] = STATE_OF(pair);
        symbols[sample * 2 * NET_MEMBERS + NET_MEMBERS + m] = ACTION_OF(pair);
    }
    WARP_SYNC();
#if NET_ROWS > 0
    const u8 *member = run->net_view_member + agent * (NET_ROWS * NET_WIDTH);
    const float *value = run->net_view_value + agent * (NET_ROWS * NET_WIDTH * MAX_STATES);
    float *view = sh + NET_AT_VIEW + NET_FIRST * NET_ROWS * NET_STRIDE_VIEW, *out = sh + NET_AT_ROWS + NET_FIRST * NET_STRIDE_ROWS;
    GLOBAL(member);
    GLOBAL(value);
    UNROLL_BY_THREE for (int k = LANE; k < there * (NET_ROWS * NET_WIDTH); k += 32) {
        int sample = k / (NET_ROWS * NET_WIDTH), place = k % (NET_ROWS * NET_WIDTH), m = member[place];
        int state = m == 255 ? 0 : symbols[sample * 2 * NET_MEMBERS + m];
        view[(sample * NET_ROWS + place / NET_WIDTH) * NET_STRIDE_VIEW + place % NET_WIDTH] = value[place * MAX_STATES + state];
    }
    WARP_SYNC();
    for (int h = LANE; h < NET_ROW_UNITS; h += 32) {
        // A unit's weights stay with its lane: only views are read again and again, by fours.
        float own[NET_STRIDE_VIEW], bias = sh[NET_AT_ROW_BIAS + h];
        UNROLL for (int c = 0; c < NET_STRIDE_VIEW; c++) own[c] = c < NET_WIDTH ? sh[NET_AT_ROW + c * NET_ROW_UNITS + h] : 0;
        UNROLL_BY_FOUR for (int k = 0; k < there * NET_ROWS; k++) {
            int sample = k / NET_ROWS, row = k % NET_ROWS;
            float sum = bias;
            UNROLL for (int c = 0; c < NET_WIDTH; c += 4) {
                FOUR four = *(const FOUR *)(view + k * NET_STRIDE_VIEW + c);
                sum = fmaf(four.x, own[c], sum);
                if (c + 1 < NET_WIDTH) sum = fmaf(four.y, own[c + 1], sum);
                if (c + 2 < NET_WIDTH) sum = fmaf(four.z, own[c + 2], sum);
                if (c + 3 < NET_WIDTH) sum = fmaf(four.w, own[c + 3], sum);
            }
            out[sample * NET_STRIDE_ROWS + row * NET_ROW_UNITS + h] = row < s->rows && sum > 0 ? sum : 0;
        }
    }
    WARP_SYNC();
#endif
}

// sum[q][c] += Σ_k a[q][k]·w[k][u], u the lane's c-th unit; `along` and `across` are the strides of w in k and
// in u.
DEVICE void net_accumulate(float (*sum)[AT_LEAST_ONE(NET_MOST)], const float *a, int stride, const float *w, int along, int across,
                           int inner, int units) {
    UNROLL_BY_TWO for (int k = 0; k < inner; k += 4) {
        float left[NET_SHARE][4];
        UNROLL for (int q = 0; q < NET_SHARE; q++) {
            FOUR four = *(const FOUR *)(a + q * stride + k);
            left[q][0] = four.x;
            left[q][1] = four.y;
            left[q][2] = four.z;
            left[q][3] = four.w;
        }
        UNROLL for (int j = 0; j < 4; j++) {
            if (k + j >= inner) continue;
            UNROLL for (int c = 0; c < PARTS(units, 32); c++) {
                int u = LANE + 32 * c;
                float right = u < units ? w[(k + j) * along + u * across] : 0;
                UNROLL for (int q = 0; q < NET_SHARE; q++) sum[q][c] = fmaf(left[q][j], right, sum[q][c]);
            }
        }
    }
}

// The outputs for the warp's samples, which were observed.
DEVICE void net_forward(const struct net_shape *s, int count, float *sh) {
    const u8 *symbols = (const u8 *)(sh + NET_AT_SYMBOLS);
    int first = NET_FIRST;
    if (first < count) {
        float sum[NET_SHARE][AT_LEAST_ONE(NET_MOST)];
        UNROLL for (int q = 0; q < NET_SHARE; q++) {
            UNROLL for (int c = 0; c < NET_C1; c++) sum[q][c] = LANE + 32 * c < NET_D1 ? sh[NET_AT_B1 + LANE + 32 * c] : 0;
        }
        for (int slot = 0; slot < s->slots; slot++) {
            struct net_slot t = net_slot_of(s, slot);
            UNROLL for (int q = 0; q < NET_SHARE; q++) {
                // What lies behind the last sample is of an earlier one, and is not looked at.
                int code = first + q < count ? symbols[(first + q) * 2 * NET_MEMBERS + t.code] : 0;
                const float *row = sh + NET_AT_PRODUCTS + (t.products + code) * NET_D1;
                UNROLL for (int c = 0; c < NET_C1; c++)
                    if (LANE + 32 * c < NET_D1) sum[q][c] += row[LANE + 32 * c];
            }
        }
        net_accumulate(sum, sh + NET_AT_ROWS + first * NET_STRIDE_ROWS, NET_STRIDE_ROWS, sh + NET_AT_W1, NET_STRIDE_W1, 1,
                       NET_FEATURES, NET_D1);
        UNROLL for (int q = 0; q < NET_SHARE; q++) {
            UNROLL for (int c = 0; c < NET_C1; c++) {
                int u = LANE + 32 * c;
                if (u < NET_D1) sh[NET_AT_H1 + (first + q) * NET_STRIDE_H1 + u] = sum[q][c] > 0 ? sum[q][c] : 0;
            }
        }
    }
    WARP_SYNC();
#if NET_D2 > 0
    if (first < count) {
        float sum[NET_SHARE][AT_LEAST_ONE(NET_MOST)];
        UNROLL for (int q = 0; q < NET_SHARE; q++) {
            UNROLL for (int c = 0; c < NET_C2; c++) sum[q][c] = LANE + 32 * c < NET_D2 ? sh[NET_AT_B2 + LANE + 32 * c] : 0;
        }
        net_accumulate(sum, sh + NET_AT_H1 + first * NET_STRIDE_H1, NET_STRIDE_H1, sh + NET_AT_W2, NET_STRIDE_W2, 1, NET_D1,
                       NET_D2);
        UNROLL for (int q = 0; q < NET_SHARE; q++) {
            UNROLL for (int c = 0; c < NET_C2; c++) {
                int u = LANE + 32 * c;
                if (u < NET_D2) sh[NET_AT_H2 + (first + q) * NET_STRIDE_H2 + u] = sum[q][c] > 0 ? sum[q][c] : 0;
            }
        }
    }
#endif
    WARP_SYNC();
    for (int k = LANE; k < NET_THERE(count) * NET_OUTPUTS; k += 32) {
        int sample = k / NET_OUTPUTS, o = k % NET_OUTPUTS;
        const float *x = sh + NET_AT_TOP + (first + sample) * NET_STRIDE_TOP;
        float sum = sh[NET_AT_LAST_BIAS + o];
        UNROLL for (int i = 0; i < NET_TOP; i += 4) {
            FOUR four = *(const FOUR *)(x + i);
            sum = fmaf(four.x, sh[NET_AT_LAST + i * NET_OUTPUTS + o], sum);
            if (i + 1 < NET_TOP) sum = fmaf(four.y, sh[NET_AT_LAST + (i + 1) * NET_OUTPUTS + o], sum);
            if (i + 2 < NET_TOP) sum = fmaf(four.z, sh[NET_AT_LAST + (i + 2) * NET_OUTPUTS + o], sum);
            if (i + 3 < NET_TOP) sum = fmaf(four.w, sh[NET_AT_LAST + (i + 3) * NET_OUTPUTS + o], sum);
        }
        sh[NET_AT_OUTPUTS + first * NET_OUTPUTS + k] = sum;
    }
    WARP_SYNC();
}

// sum[r][c] += Σ over samples of a[sample][i]·b[sample][u], i the warp's r-th row, u the lane's c-th unit.
DEVICE void net_outer(float *sum, int rows, int columns, const float *a, int a_stride, const float *b, int b_stride, int units,
                      int count) {
    UNROLL_BY_FOUR for (int sample = 0; sample < count; sample++) {
        const float *left = a + sample * a_stride + WARP * rows;
        float right[AT_LEAST_ONE(NET_MOST)];
        UNROLL for (int c = 0; c < columns; c++) {
            int u = LANE + 32 * c;
            right[c] = u < units ? b[sample * b_stride + u] : 0;
        }
        if (rows % 4 == 0) {
            UNROLL for (int r = 0; r < rows; r += 4) {
                FOUR four = *(const FOUR *)(left + r);
                UNROLL for (int c = 0; c < columns; c++) {
                    sum[r * columns + c] = fmaf(four.x, right[c], sum[r * columns + c]);
                    sum[(r + 1) * columns + c] = fmaf(four.y, right[c], sum[(r + 1) * columns + c]);
                    sum[(r + 2) * columns + c] = fmaf(four.z, right[c], sum[(r + 2) * columns + c]);
                    sum[(r + 3) * columns + c] = fmaf(four.w, right[c], sum[(r + 3) * columns + c]);
                }
            }
        } else {
            UNROLL for (int r = 0; r < rows; r++) {
                float one = left[r];
                UNROLL for (int c = 0; c < columns; c++) sum[r * columns + c] = fmaf(one, right[c], sum[r * columns + c]);
            }
        }
    }
}

// sum[j] += Σ over samples of d[sample][u], u the thread's j-th unit.
DEVICE void net_add_rows(float *sum, const float *d, int stride, int units, int count) {
    UNROLL for (int j = 0; j < PARTS(units, NET_THREADS); j++) {
        int u = threadIdx.x + j * NET_THREADS;
        if (u < units) {
            UNROLL_BY_EIGHT for (int sample = 0; sample < count; sample++) sum[j] += d[sample * stride + u];
        }
    }
}

// d[sample][u] = Σ_k above[sample][k]·w[u][k] where x[sample][u] > 0, in the place of x.
DEVICE void net_pass_back(const float *above, int above_stride, const float *w, int w_stride, int inner, float *x, int stride,
                          int units, int count) {
    int first = WARP * NET_SHARE;
    if (first >= count) return;
    float sum[NET_SHARE][AT_LEAST_ONE(NET_MOST)];
    UNROLL for (int q = 0; q < NET_SHARE; q++) {
        UNROLL for (int c = 0; c < PARTS(units, 32); c++) sum[q][c] = 0;
    }
    net_accumulate(sum, above + first * above_stride, above_stride, w, 1, w_stride, inner, units);
    UNROLL for (int q = 0; q < NET_SHARE; q++) {
        UNROLL for (int c = 0; c < PARTS(units, 32); c++) {
            int u = LANE + 32 * c;
            float *place = x + (first + q) * stride + u;
            if (u < units) *place = *place > 0 ? sum[q][c] : 0;
        }
    }
}

// Adds the gradient of Σ slopes·outputs of a tile, the slopes standing where the outputs were, to what threads
// have of it; that of the products is added to NET_AT_SLOPES.
DEVICE void net_backward(const struct net_shape *s, int count, struct net_gradient *g, float *sh) {
    const float *slopes = sh + NET_AT_OUTPUTS;
    float *top = sh + NET_AT_TOP, *h1 = sh + NET_AT_H1;
    UNROLL for (int j = 0; j < PARTS(NET_TOP * NET_OUTPUTS, NET_THREADS); j++) {
        int k = threadIdx.x + j * NET_THREADS, i = k / NET_OUTPUTS, o = k % NET_OUTPUTS;
        if (k < NET_TOP * NET_OUTPUTS) {
            UNROLL_BY_EIGHT for (int sample = 0; sample < count; sample++)
                g->last[j] = fmaf(top[sample * NET_STRIDE_TOP + i], slopes[sample * NET_OUTPUTS + o], g->last[j]);
        }
    }
    net_add_rows(g->last_bias, slopes, NET_OUTPUTS, NET_OUTPUTS, count);
    SYNC();
    for (int k = threadIdx.x; k < count * NET_TOP; k += NET_THREADS) {
        int sample = k / NET_TOP, i = k % NET_TOP;
        float sum = 0;
        UNROLL for (int o = 0; o < NET_OUTPUTS; o++)
            sum = fmaf(slopes[sample * NET_OUTPUTS + o], sh[NET_AT_LAST + i * NET_OUTPUTS + o], sum);
        float *place = top + sample * NET_STRIDE_TOP + i;
        *place = *place > 0 ? sum : 0;
    }
    SYNC();
#if NET_D2 > 0
    net_outer(g->second, NET_R2, NET_C2, h1, NET_STRIDE_H1, top, NET_STRIDE_H2, NET_D2, count);
    net_add_rows(g->second_bias, top, NET_STRIDE_H2, NET_D2, count);
    SYNC();
    net_pass_back(top, NET_STRIDE_H2, sh + NET_AT_W2, NET_STRIDE_W2, NET_D2, h1, NET_STRIDE_H1, NET_D1, count);
    SYNC();
#endif
    net_add_rows(g->first_bias, h1, NET_STRIDE_H1, NET_D1, count);
#if NET_GROUPS > 0
    const u8 *symbols = (const u8 *)(sh + NET_AT_SYMBOLS);
    u64 *masks = (u64 *)(sh + NET_AT_MASKS);
    for (int k = threadIdx.x; k < s->slots * NET_VOCABULARY; k += NET_THREADS) {
        int slot = k / NET_VOCABULARY, v = k % NET_VOCABULARY;
        struct net_slot t = net_slot_of(s, slot);
        if (v >= t.vocabulary) continue;
        u64 mask = 0;
        UNROLL_BY_EIGHT for (int sample = 0; sample < count; sample++)
            mask |= (u64)(symbols[sample * 2 * NET_MEMBERS + t.code] == v) << sample;
        masks[t.products + v] = mask;
    }
#endif
#if NET_ROWS > 0
    net_outer(g->first, NET_R1, NET_C1, sh + NET_AT_ROWS, NET_STRIDE_ROWS, h1, NET_STRIDE_H1, NET_D1, count);
#endif
    SYNC();
#if NET_GROUPS > 0
    // Samples with the same symbol in a slot meet in a row.
    for (int k = WARP; k < s->slots * NET_VOCABULARY; k += NET_WARPS) {
        int slot = k / NET_VOCABULARY, v = k % NET_VOCABULARY;
        struct net_slot t = net_slot_of(s, slot);
        if (v >= t.vocabulary) continue;
        float sum[NET_C1];
        float *row = sh + NET_AT_SLOPES + (t.products + v) * NET_D1;
        UNROLL for (int c = 0; c < NET_C1; c++) sum[c] = 0;
        for (u64 mask = masks[t.products + v]; mask != 0;) {
            // Four samples at a time: what they bring is waited for once.
            float d[4][NET_C1];
            UNROLL for (int q = 0; q < 4; q++) {
                const float *from = h1 + (mask == 0 ? 0 : LOWEST_BIT(mask)) * NET_STRIDE_H1;
                UNROLL for (int c = 0; c < NET_C1; c++) d[q][c] = mask != 0 && LANE + 32 * c < NET_D1 ? from[LANE + 32 * c] : 0;
                mask &= mask - 1;
            }
            UNROLL for (int c = 0; c < NET_C1; c++) sum[c] = sum[c] + d[0][c] + d[1][c] + d[2][c] + d[3][c];
        }
        UNROLL for (int c = 0; c < NET_C1; c++)
            if (LANE + 32 * c < NET_D1) row[LANE + 32 * c] = sum[c] + (NET_SLOPES_APART ? row[LANE + 32 * c] : 0);
    }
#endif
#if NET_ROWS > 0
    net_pass_back(h1, NET_STRIDE_H1, sh + NET_AT_W1, NET_STRIDE_W1, NET_D1, sh + NET_AT_ROWS, NET_STRIDE_ROWS, NET_FEATURES,
                  count);
    SYNC();
    for (int row = 0; row < s->rows; row++) {
        const float *d = sh + NET_AT_ROWS + row * NET_ROW_UNITS;
        net_outer(g->row, NET_RV, NET_CV, sh + NET_AT_VIEW + row * NET_STRIDE_VIEW, NET_ROWS * NET_STRIDE_VIEW, d, NET_STRIDE_ROWS,
                  NET_ROW_UNITS, count);
        net_add_rows(g->row_bias, d, NET_STRIDE_ROWS, NET_ROW_UNITS, count);
    }
#endif
    SYNC();
}

// The gradient of the embedding tables from that of the products. Adds the squares of that of the symbols'
// weights to `squares`. Uses the place of the first hidden layer.
DEVICE float net_backward_tables(const struct net_shape *s, const float *w, struct net_gradient *g, float squares, float *sh) {
#if NET_GROUPS > 0
    float *parts = sh + NET_AT_H1;
    for (int k = WARP; k < NET_GROUPS * NET_DIMENSION; k += NET_WARPS) {
        int group = k / NET_DIMENSION, d = k % NET_DIMENSION;
        float sums[NET_VOCABULARY], own[NET_VOCABULARY];
        struct net_slot t = net_slot_of(s, group * s->members);
        UNROLL for (int v = 0; v < NET_VOCABULARY; v++) {
            sums[v] = 0;
            own[v] = v < t.vocabulary ? sh[NET_AT_TABLE + t.table + v * NET_DIMENSION + d] : 0;
        }
        // Several slots at once: each waits for weights from global memory.
        UNROLL_BY_THREE for (int slot = group * s->members; slot < (group + 1) * s->members; slot++) {
            t = net_slot_of(s, slot);
            const float *weights = w + s->first + (s->features + slot * NET_DIMENSION + d) * NET_D1;
            UNROLL for (int c = 0; c < NET_C1; c++) {
                int u = LANE + 32 * c;
                float weight = u < NET_D1 ? weights[u] : 0, slope = 0;
                UNROLL for (int v = 0; v < NET_VOCABULARY; v++) {
                    float above = v < t.vocabulary && u < NET_D1 ? sh[NET_AT_SLOPES + (t.products + v) * NET_D1 + u] : 0;
                    sums[v] = fmaf(above, weight, sums[v]);
                    slope = fmaf(above, own[v], slope);
                }
                squares = fmaf(slope, slope, squares);
            }
        }
        UNROLL for (int v = 0; v < NET_VOCABULARY; v++)
            if (v < t.vocabulary) parts[(t.table + v * NET_DIMENSION + d) * 33 + LANE] = sums[v];
    }
    SYNC();
    UNROLL for (int j = 0; j < PARTS(NET_TABLE, NET_THREADS); j++) {
        int k = threadIdx.x + j * NET_THREADS;
        g->table[j] = 0;
        if (k < NET_TABLE) {
            UNROLL for (int lane = 0; lane < 32; lane++) g->table[j] += parts[k * 33 + lane];
        }
    }
    SYNC();
#endif
    return squares;
}

DEVICE void net_clear(struct net_gradient *g, const struct net_shape *s, float *sh) {
    float *all = (float *)g;
    UNROLL for (int k = 0; k < (int)(sizeof(struct net_gradient) / sizeof(float)); k++) all[k] = 0;
    if (NET_SLOPES_APART)
        for (int k = threadIdx.x; k < NET_MEMBERS * (NET_STATES + NET_ACTIONS) * NET_D1; k += NET_THREADS) sh[NET_AT_SLOPES + k] = 0;
    SYNC();
}

// Call EACH(where, part, place) for parameters that the thread has the gradient of: where it lies among the
// parameters, its member of net_gradient, where it lies in shared memory. The first has those of the matrices between layers, but for symbols' weights
// in the first layer, the second all others.
#define NET_EACH_WEIGHT(EACH, s, sh) \
    UNROLL for (int r = 0; r < NET_R1; r++) { \
        UNROLL for (int c = 0; c < NET_C1; c++) { \
            int i = WARP * NET_R1 + r, u = LANE + 32 * c; \
            if (i < s.features && u < NET_D1) \
                EACH(s.first + i * NET_D1 + u, first[r * NET_C1 + c], sh + NET_AT_W1 + i * NET_STRIDE_W1 + u); \
        } \
    } \
    if (NET_D2 > 0) { \
        UNROLL for (int r = 0; r < NET_R2; r++) { \
            UNROLL for (int c = 0; c < NET_C2; c++) { \
                int i = WARP * NET_R2 + r, u = LANE + 32 * c; \
                if (i < NET_D1 && u < NET_D2) \
                    EACH(s.second + i * NET_D2 + u, second[r * NET_C2 + c], sh + NET_AT_W2 + i * NET_STRIDE_W2 + u); \
            } \
        } \
    }
#define NET_EACH_OTHER(EACH, s, sh) \
    UNROLL for (int r = 0; r < NET_RV; r++) { \
        UNROLL for (int c = 0; c < NET_CV; c++) { \
            int i = WARP * NET_RV + r, u = LANE + 32 * c; \
            if (i < s.width && u < NET_ROW_UNITS) \
                EACH(i * NET_ROW_UNITS + u, row[r * NET_CV + c], sh + NET_AT_ROW + i * NET_ROW_UNITS + u); \
        } \
    } \
    UNROLL for (int j = 0; j < PARTS(NET_ROW_UNITS, NET_THREADS); j++) { \
        int u = threadIdx.x + j * NET_THREADS; \
        if (u < NET_ROW_UNITS && s.rows > 0) EACH(s.row_bias + u, row_bias[j], sh + NET_AT_ROW_BIAS + u); \
    } \
    UNROLL for (int j = 0; j < PARTS(NET_D1, NET_THREADS); j++) { \
        int u = threadIdx.x + j * NET_THREADS; \
        if (u < NET_D1) EACH(s.first_bias + u, first_bias[j], sh + NET_AT_B1 + u); \
    } \
    UNROLL for (int j = 0; j < PARTS(NET_D2, NET_THREADS); j++) { \
        int u = threadIdx.x + j * NET_THREADS; \
        if (u < NET_D2) EACH(s.second_bias + u, second_bias[j], sh + NET_AT_B2 + u); \
    } \
    UNROLL for (int j = 0; j < PARTS(NET_TOP * NET_OUTPUTS, NET_THREADS); j++) { \
        int k = threadIdx.x + j * NET_THREADS, i = k / NET_OUTPUTS, o = k % NET_OUTPUTS; \
        if (i < NET_TOP && o < s.outputs) EACH(s.last + i * s.outputs + o, last[j], sh + NET_AT_LAST + k); \
    } \
    UNROLL for (int j = 0; j < PARTS(NET_OUTPUTS, NET_THREADS); j++) { \
        int o = threadIdx.x + j * NET_THREADS; \
        if (o < s.outputs) EACH(s.last_bias + o, last_bias[j], sh + NET_AT_LAST_BIAS + o); \
    } \
    UNROLL for (int j = 0; j < PARTS(NET_TABLE, NET_THREADS); j++) { \
        int k = threadIdx.x + j * NET_THREADS, of_states = k < NET_STATES * NET_DIMENSION; \
        int at = of_states ? k : k - NET_STATES * NET_DIMENSION; \
        if (k < NET_TABLE && at < (of_states ? s.states : s.actions) * NET_DIMENSION) \
            EACH((of_states ? s.state_table : s.action_table) + at, table[j], sh + NET_AT_TABLE + k); \
    }

// The slope of a symbol's weight in the first layer: of slot t, dimension d, unit u.
DEVICE float net_symbol_slope(const struct net_slot *t, int d, int u, const float *sh) {
    float slope = 0;
    UNROLL for (int v = 0; v < NET_VOCABULARY; v++)
        if (v < t->vocabulary)
            slope = fmaf(sh[NET_AT_SLOPES + (t->products + v) * NET_D1 + u], sh[NET_AT_TABLE + t->table + v * NET_DIMENSION + d], slope);
    return slope;
}

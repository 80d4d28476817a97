// Forward and backward passes of one network over a tile of samples, by the threads of one block.
//
// The text is used several times, with NET_ and net_ replaced: for critics that learn, for their values, and for
// policies. Sizes are constants, the largest of all agents; an agent with fewer members or rows has zeros there.
// What threads share lies at the offsets NET_AT_…, which the host counts in floats; it is all 0 before parameters
// come in, so that products may go a little beyond a matrix.
//
// A sample is the symbols of its members. A view is worked out from their states and goes through the layer of
// the rows; embedded symbols never reach the first layer one by one: their tables are multiplied with its
// weights once (NET_AT_PRODUCTS), and a sample chooses a row for each slot.
//
// Matrices whose products are formed are px_matrix; what they have beyond an agent's parameters is 0. Units of a
// row are rounded up to eight there, all other rows and columns to sixteen.
//
// Every warp observes samples of its own and works out their outputs. In between, sixteen samples are a band: as
// many warps as observed them share the units of each layer, and wait for nobody else. Sums have one order, so
// that two runs give the same bits.
#define NET_WARPS (NET_THREADS / 32)
// Samples that a warp observes: how many, the first of them, and those that there are in a tile of `count`.
#define NET_SHARE (NET_TILE / NET_WARPS)
#define NET_FIRST (WARP * NET_SHARE)
#define NET_THERE(count) ((count) - NET_FIRST < NET_SHARE ? (count) - NET_FIRST : NET_SHARE)
// Bands: how many warps have one, the first sample of the warp's, and its place among those warps.
#define NET_PER_BAND (16 / NET_SHARE)
#define NET_BAND (WARP / NET_PER_BAND * 16)
#define NET_PART (WARP % NET_PER_BAND)
#define NET_WAIT() WAIT_FOR(NET_PER_BAND, NET_BAND / 16)
// Pieces of so many units that a warp of a band has, the first of them, and those that there are.
#define NET_PIECES(units) AT_LEAST_ONE(PARTS(SIXTEENS(units) / 8, NET_PER_BAND))
#define NET_FIRST_PIECE(units) (NET_PART * NET_PIECES(units))
#define NET_PIECES_THERE(units) \
    (SIXTEENS(units) / 8 % NET_PER_BAND == 0 ? NET_PIECES(units) : SIXTEENS(units) / 8 - NET_FIRST_PIECE(units))
#define NET_ROW_COLUMNS (PARTS(NET_ROW_UNITS, 8) * 8)
#define NET_FEATURES (NET_ROWS * NET_ROW_COLUMNS)
#define NET_VIEW_COLUMNS SIXTEENS(NET_WIDTH)
#define NET_TOP (NET_D2 > 0 ? NET_D2 : NET_D1)
#define NET_GROUPS ((NET_STATES > 0) + (NET_ACTIONS > 0))
#define NET_VOCABULARY (NET_STATES > NET_ACTIONS ? NET_STATES : NET_ACTIONS)
#define NET_TABLE ((NET_STATES + NET_ACTIONS) * NET_DIMENSION)
#define NET_C1 PARTS(NET_D1, 32)
#define NET_OTHERS (NET_AT_NEW_TABLE - NET_AT_B1)
#define NET_PRODUCT_ROWS (NET_MEMBERS * (NET_STATES + NET_ACTIONS))
#define NET_MOST_UNITS (NET_D1 > NET_FEATURES ? NET_D1 : NET_FEATURES)
#define NET_OWN(n) AT_LEAST_ONE(PARTS(n, NET_THREADS))
// Weights of the layer of the rows, of the first and the second layer; the products of embedded symbols.
#define NET_MATRIX_ROW(sh) net_matrix(sh, NET_AT_ROW_WEIGHTS, NET_VIEW_COLUMNS, NET_STRIDE_ROW)
#define NET_MATRIX_W1(sh) net_matrix(sh, NET_AT_W1, SIXTEENS(NET_FEATURES), NET_STRIDE_D1)
#define NET_MATRIX_W2(sh) net_matrix(sh, NET_AT_W2, SIXTEENS(NET_D1), NET_STRIDE_D2)
#define NET_MATRIX_PRODUCTS(sh) net_matrix(sh, NET_AT_PRODUCTS, SIXTEENS(NET_PRODUCT_ROWS), NET_STRIDE_D1)
// Of samples: their views, units of the rows and of hidden layers (then slopes in them), rows of the products that
// they choose. Units of the last hidden layer are floats at NET_AT_TOP instead; only slopes in them are matrices.
#define NET_MATRIX_VIEW(sh) net_matrix(sh, NET_AT_VIEW, NET_TILE, NET_STRIDE_VIEW)
#define NET_MATRIX_H0(sh) net_matrix(sh, NET_AT_H0, NET_TILE, NET_STRIDE_H0)
#define NET_MATRIX_H1(sh) net_matrix(sh, NET_AT_H1, NET_TILE, NET_STRIDE_D1)
#define NET_MATRIX_H2(sh) net_matrix(sh, NET_AT_H2, NET_TILE, NET_STRIDE_D2)
#define NET_MATRIX_CHOICES(sh) net_matrix(sh, NET_AT_CHOICES, NET_TILE, NET_STRIDE_CHOICES)

// Sizes of an agent's networks, and where the parts of their parameters lie, in the order of checkpoints.
struct net_shape {
    int members, rows, width, states, actions, outputs, slots, features;
    int row_bias, state_table, action_table, first, first_bias, second, second_bias, last, last_bias, parameters;
};

// What a thread has of the gradient of matrices between layers: its part of pieces, which warps take as NET_G…
// say. The gradient of the symbols' products is at NET_AT_SLOPES, that of all other parameters at
// NET_AT_OTHER_SLOPES.
struct net_gradient {
    float first[NET_G1_ROWS * NET_G1_COLUMNS][4], second[NET_G2_ROWS * NET_G2_COLUMNS][4];
};

// A slot of symbols: its rows of the products, its embedding table.
struct net_slot {
    int products, vocabulary, table;
};

DEVICE struct px_matrix net_matrix(float *sh, int at, int rows, int stride) {
    struct px_matrix m = {(px_entry *)(sh + at), stride, rows * stride};
    return m;
}

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
    return t;
}

// Where number k of the other parameters, which lie from NET_AT_B1 to NET_AT_NEW_TABLE, is among all of an agent's
// parameters; −1 if it has none there.
DEVICE int net_other(const struct net_shape *s, int k) {
    k += NET_AT_B1;
    if (k < NET_AT_B2) return (k -= NET_AT_B1) < NET_D1 ? s->first_bias + k : -1;
    if (k < NET_AT_LAST) return (k -= NET_AT_B2) < NET_D2 ? s->second_bias + k : -1;
    if (k < NET_AT_LAST_BIAS) {
        int i = (k - NET_AT_LAST) / NET_OUTPUTS, o = (k - NET_AT_LAST) % NET_OUTPUTS;
        return i < NET_TOP && o < s->outputs ? s->last + i * s->outputs + o : -1;
    }
    if (k < NET_AT_ROW) return (k -= NET_AT_LAST_BIAS) < s->outputs ? s->last_bias + k : -1;
    if (k < NET_AT_ROW_BIAS) return (k -= NET_AT_ROW) < s->row_bias ? k : -1;
    if (k < NET_AT_TABLE) return (k -= NET_AT_ROW_BIAS) < NET_ROW_UNITS && s->rows > 0 ? s->row_bias + k : -1;
    k -= NET_AT_TABLE;
    if (k < NET_STATES * NET_DIMENSION) return k < s->states * NET_DIMENSION ? s->state_table + k : -1;
    k -= NET_STATES * NET_DIMENSION;
    return k < s->actions * NET_DIMENSION ? s->action_table + k : -1;
}

// The parameter row of the first layer that row i of its matrix is, −1 if there is none.
DEVICE int net_input(int i) {
    if (NET_ROW_COLUMNS == NET_ROW_UNITS) return i;
    int row = i / AT_LEAST_ONE(NET_ROW_COLUMNS), unit = i % AT_LEAST_ONE(NET_ROW_COLUMNS);
    return unit < NET_ROW_UNITS ? row * NET_ROW_UNITS + unit : -1;
}

// Products of slots' tables with their weights in the first layer.
DEVICE void net_products(const struct net_shape *s, const float *w, float *sh) {
    for (int item = threadIdx.x; item < s->slots * NET_D1; item += NET_THREADS) {
        int slot = item / NET_D1, u = item % NET_D1;
        struct net_slot t = net_slot_of(s, slot);
        const float *weights = w + s->first + (s->features + slot * NET_DIMENSION) * NET_D1 + u;
        float sums[AT_LEAST_ONE(NET_VOCABULARY)];
        UNROLL for (int v = 0; v < NET_VOCABULARY; v++) sums[v] = 0;
        UNROLL for (int d = 0; d < NET_DIMENSION; d++) {
            float weight = weights[d * NET_D1];
            UNROLL for (int v = 0; v < NET_VOCABULARY; v++)
                if (v < t.vocabulary) sums[v] = fmaf(sh[NET_AT_TABLE + t.table + v * NET_DIMENSION + d], weight, sums[v]);
        }
        UNROLL for (int v = 0; v < NET_VOCABULARY; v++)
            if (v < t.vocabulary) px_put(NET_MATRIX_PRODUCTS(sh), t.products + v, u, sums[v]);
    }
}

// The weights of the layer of the rows become a matrix.
DEVICE void net_row_weights(float *sh) {
    for (int k = threadIdx.x; k < NET_WIDTH * NET_ROW_UNITS; k += NET_THREADS)
        px_put(NET_MATRIX_ROW(sh), k / AT_LEAST_ONE(NET_ROW_UNITS), k % AT_LEAST_ONE(NET_ROW_UNITS), sh[NET_AT_ROW + k]);
}

// Parameters of so many rows become a matrix; `group` rows of them have `columns` rows of it.
DEVICE void net_load_matrix(struct px_matrix m, int rows, int group, int group_rows, int columns, const float *w) {
    UNROLL_BY_EIGHT for (int k = threadIdx.x; k < rows * PARTS(columns, 2); k += NET_THREADS) {
        int row = k / PARTS(columns, 2), column = k % PARTS(columns, 2) * 2;
        const float *from = w + row * columns + column;
        px_put_two(m, row / group * group_rows + row % group, column, from[0], column + 1 < columns ? from[1] : 0);
    }
}

// The group of an agent; shared memory is 0 from a place on.
DEVICE void net_clear_shared(const struct Run *run, const struct net_shape *s, long long agent, const u32 *group, int from, float *sh) {
    const FOUR zeros = {0, 0, 0, 0};
    u32 *members = (u32 *)(sh + NET_AT_GROUP);
    UNROLL_BY_FOUR for (int k = from / 4 + threadIdx.x; k < NET_AT_END / 4; k += NET_THREADS) ((FOUR *)sh)[k] = zeros;
    SYNC();
    for (int m = threadIdx.x; m < s->members; m += NET_THREADS) members[m] = group[m * AGENTS + agent];
}

// Brings a network's parameters into shared memory: all but the embedded symbols' weights in the first layer,
// which are there as products. What is not a parameter is 0. Ends with everything in place.
DEVICE void net_load(const struct Run *run, const struct net_shape *s, long long agent, const u32 *group, const float *w,
                     float *sh) {
    int tid = threadIdx.x;
    SYNC();
    for (int k = tid * 32; k < s->parameters; k += NET_THREADS * 32) FETCH(w + k);
    net_clear_shared(run, s, agent, group, 0, sh);
    for (int k = tid; k < NET_OTHERS; k += NET_THREADS) {
        int at = net_other(s, k);
        if (at >= 0) COPY(sh + NET_AT_B1 + k, w + at);
    }
#if NET_ROWS > 0
    net_load_matrix(NET_MATRIX_W1(sh), s->features, NET_ROW_UNITS, NET_ROW_COLUMNS, NET_D1, w + s->first);
#endif
#if NET_D2 > 0
    net_load_matrix(NET_MATRIX_W2(sh), NET_D1, 1, 1, NET_D2, w + s->second);
#endif
    WAIT_FOR_COPIES();
    SYNC();
    net_row_weights(sh);
    net_products(s, w, sh);
    SYNC();
}

// What parameters are in shared memory, from its start on, is written down, and brought back as a whole.
DEVICE void net_write_image(float *image, const float *sh) {
    for (int k = threadIdx.x; k < NET_AT_NEW_TABLE / 4; k += NET_THREADS) ((FOUR *)image)[k] = ((const FOUR *)sh)[k];
}

DEVICE void net_load_image(const struct Run *run, const struct net_shape *s, long long agent, const u32 *group,
                           const float *image, float *sh) {
    UNROLL_BY_FOUR for (int k = 4 * threadIdx.x; k < NET_AT_NEW_TABLE; k += 4 * NET_THREADS) COPY_FOUR(sh + k, image + k);
    net_clear_shared(run, s, agent, group, NET_AT_NEW_TABLE, sh);
    WAIT_FOR_COPIES();
    SYNC();
}

// Pairs of the warp's samples and their members, on their way from global memory.
struct net_asked {
    pair_t pairs[PARTS(NET_SHARE * NET_MEMBERS, 32)];
};

// Asks for the pairs of a tile of `count` samples, whose rows of `pairs` are at NET_AT_SAMPLES: early, so that
// other work is done before they come.
DEVICE void net_ask(const struct Run *run, const struct net_shape *s, int count, struct net_asked *asked, const float *sh) {
    const u32 *rows = (const u32 *)(sh + NET_AT_SAMPLES) + NET_FIRST, *members = (const u32 *)(sh + NET_AT_GROUP);
    const pair_t *pairs = run->pairs;
    int there = NET_THERE(count) * s->members;
    GLOBAL(pairs);
    WARP_SYNC();
    UNROLL for (int j = 0; j < PARTS(NET_SHARE * NET_MEMBERS, 32); j++) {
        int k = LANE + 32 * j, sample = k / s->members, m = k % s->members;
        if (k < there) asked->pairs[j] = pairs[(long long)rows[sample] * AGENTS + members[m]];
    }
}

// Brings the symbols of the warp's samples, which were asked for, into shared memory: what they choose and view.
DEVICE void net_observe(const struct Run *run, const struct net_shape *s, long long agent, int count, const struct net_asked *asked,
                        float *sh) {
    u8 *symbols = (u8 *)(sh + NET_AT_SYMBOLS);
    struct px_matrix choices = NET_MATRIX_CHOICES(sh);
    int there = NET_THERE(count);
#if NET_GROUPS > 0
    u32 *words = (u32 *)(choices.at + NET_FIRST * NET_STRIDE_CHOICES);
    for (int k = LANE; k < NET_SHARE * NET_STRIDE_CHOICES * (int)sizeof(px_entry) / 4; k += 32) words[k] = 0;
    WARP_SYNC();
#endif
    UNROLL for (int j = 0; j < PARTS(NET_SHARE * NET_MEMBERS, 32); j++) {
        int k = LANE + 32 * j, sample = NET_FIRST + k / s->members, m = k % s->members;
        int state = STATE_OF(asked->pairs[j]), action = ACTION_OF(asked->pairs[j]);
        if (k >= there * s->members) continue;
        symbols[sample * 2 * NET_MEMBERS + m] = state;
        symbols[sample * 2 * NET_MEMBERS + NET_MEMBERS + m] = action;
        if (NET_STATES > 0) px_put_bit(choices, sample, m * NET_STATES + state, 1);
        if (NET_ACTIONS > 0) px_put_bit(choices, sample, NET_MEMBERS * NET_STATES + m * NET_ACTIONS + action, 1);
    }
    WARP_SYNC();
#if NET_ROWS > 0
    const u8 *member = run->net_view_member + agent * (NET_ROWS * NET_WIDTH);
    const float *value = run->net_view_value + agent * (NET_ROWS * NET_WIDTH * MAX_STATES);
    GLOBAL(member);
    GLOBAL(value);
    UNROLL_BY_THREE for (int k = LANE; k < there * (NET_ROWS * NET_WIDTH); k += 32) {
        int sample = NET_FIRST + k / (NET_ROWS * NET_WIDTH), place = k % (NET_ROWS * NET_WIDTH), m = member[place];
        int state = m == 255 ? 0 : symbols[sample * 2 * NET_MEMBERS + m];
        px_put(NET_MATRIX_VIEW(sh), sample, place / NET_WIDTH * NET_VIEW_COLUMNS + place % NET_WIDTH, value[place * MAX_STATES + state]);
    }
    WARP_SYNC();
#endif
}

// A band's sums before there are any: the biases of its units, which begin at `bias`.
DEVICE void net_begin(float (*sums)[4], int pieces, int there, const float *bias) {
    UNROLL for (int n = 0; n < pieces; n++) {
        UNROLL for (int e = 0; e < 4; e++) sums[n][e] = n < there ? bias[8 * n + PIECE_COLUMN(e)] : 0;
    }
}

// What of a band's sums is positive becomes its units.
DEVICE void net_keep(float (*sums)[4], int pieces, int there, struct px_matrix x) {
    UNROLL for (int n = 0; n < pieces; n++) {
        if (n >= there) continue;
        UNROLL for (int e = 0; e < 4; e += 2)
            px_put_two(x, PIECE_ROW(e), 8 * n + PIECE_COLUMN(e), sums[n][e] > 0 ? sums[n][e] : 0, sums[n][e + 1] > 0 ? sums[n][e + 1] : 0);
    }
}

// The same for the last hidden layer.
DEVICE void net_keep_top(float (*sums)[4], int pieces, int there, float *x) {
    UNROLL for (int n = 0; n < pieces; n++) {
        if (n >= there) continue;
        UNROLL for (int e = 0; e < 4; e += 2) {
            TWO two = {sums[n][e] > 0 ? sums[n][e] : 0, sums[n][e + 1] > 0 ? sums[n][e + 1] : 0};
            *(TWO *)(x + PIECE_ROW(e) * NET_STRIDE_TOP + 8 * n + PIECE_COLUMN(e)) = two;
        }
    }
}

// The outputs for the warp's samples, which were observed.
DEVICE void net_forward(const struct net_shape *s, int count, float *sh) {
    int first = NET_FIRST, band = NET_BAND;
    NET_WAIT();
#if NET_ROWS > 0
    if (band < count) {
        int piece = NET_FIRST_PIECE(NET_ROW_COLUMNS), there = NET_PIECES_THERE(NET_ROW_COLUMNS);
        // Pieces beyond a row's columns would meet the next row.
        if (NET_ROW_COLUMNS % 16 != 0 && there > NET_ROW_COLUMNS / 8 - piece) there = NET_ROW_COLUMNS / 8 - piece;
        UNROLL for (int row = 0; row < NET_ROWS; row++) {
            float sums[NET_PIECES(NET_ROW_COLUMNS)][4];
            net_begin(sums, NET_PIECES(NET_ROW_COLUMNS), there, sh + NET_AT_ROW_BIAS + 8 * piece);
            px_band(sums, NET_PIECES(NET_ROW_COLUMNS), there, px_from(NET_MATRIX_VIEW(sh), band, row * NET_VIEW_COLUMNS), 0,
                    px_from(NET_MATRIX_ROW(sh), 0, 8 * piece), 0, NET_WIDTH);
            if (row < s->rows)
                net_keep(sums, NET_PIECES(NET_ROW_COLUMNS), there, px_from(NET_MATRIX_H0(sh), band, row * NET_ROW_COLUMNS + 8 * piece));
        }
    }
    NET_WAIT();
#endif
    if (band < count) {
        int piece = NET_FIRST_PIECE(NET_D1), there = NET_PIECES_THERE(NET_D1);
        float sums[NET_PIECES(NET_D1)][4];
        net_begin(sums, NET_PIECES(NET_D1), there, sh + NET_AT_B1 + 8 * piece);
#if NET_GROUPS > 0
        px_band(sums, NET_PIECES(NET_D1), there, px_from(NET_MATRIX_CHOICES(sh), band, 0), 1,
                px_from(NET_MATRIX_PRODUCTS(sh), 0, 8 * piece), 0, NET_PRODUCT_ROWS);
#endif
        px_band(sums, NET_PIECES(NET_D1), there, px_from(NET_MATRIX_H0(sh), band, 0), 0, px_from(NET_MATRIX_W1(sh), 0, 8 * piece), 0,
                NET_FEATURES);
#if NET_D2 > 0
        net_keep(sums, NET_PIECES(NET_D1), there, px_from(NET_MATRIX_H1(sh), band, 8 * piece));
#else
        net_keep_top(sums, NET_PIECES(NET_D1), there, sh + NET_AT_TOP + band * NET_STRIDE_TOP + 8 * piece);
#endif
    }
    NET_WAIT();
#if NET_D2 > 0
    if (band < count) {
        int piece = NET_FIRST_PIECE(NET_D2), there = NET_PIECES_THERE(NET_D2);
        float sums[NET_PIECES(NET_D2)][4];
        net_begin(sums, NET_PIECES(NET_D2), there, sh + NET_AT_B2 + 8 * piece);
        px_band(sums, NET_PIECES(NET_D2), there, px_from(NET_MATRIX_H1(sh), band, 0), 0, px_from(NET_MATRIX_W2(sh), 0, 8 * piece), 0,
                NET_D1);
        net_keep_top(sums, NET_PIECES(NET_D2), there, sh + NET_AT_TOP + band * NET_STRIDE_TOP + 8 * piece);
    }
    NET_WAIT();
#endif
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

// Adds Σ over samples of a[sample][i]·b[sample][u] to the warp's pieces of a matrix of so many inputs.
DEVICE void net_outer(float (*sums)[4], int rows, int columns, int across, int inputs, struct px_matrix a, int is_exact,
                      struct px_matrix b, int count) {
    int i = WARP / across * rows * 16, u = WARP % across * columns * 8;
    if (i < inputs) px_outer(sums, rows, columns, px_from(a, 0, i), is_exact, px_from(b, 0, u), count);
}

// totals[u] += Σ over samples and so many groups of units of d[sample][u].
DEVICE void net_add_samples(float *totals, struct px_matrix d, int units, int groups, int group_columns, int count) {
    for (int piece = WARP; piece < PARTS(units, 8); piece += NET_WARPS) {
        float sums[4] = {0, 0, 0, 0};
        for (int k = 0; k < groups; k++) px_total(sums, px_from(d, 0, k * group_columns + 8 * piece), count);
        UNROLL for (int e = 0; e < 2; e++)
            if (LANE < 4 && 8 * piece + PIECE_COLUMN(e) < units) totals[8 * piece + PIECE_COLUMN(e)] += sums[e];
    }
}

// d[sample][u] = Σ_k above[sample][k]·w[u][k] where x[sample][u] > 0, in the place of x.
DEVICE void net_pass_back(struct px_matrix above, struct px_matrix w, int inner, struct px_matrix x, int units, int count) {
    if (NET_BAND >= count) return;
    int piece = NET_FIRST_PIECE(units), there = NET_PIECES_THERE(units);
    float sums[NET_PIECES(NET_MOST_UNITS)][4];
    UNROLL for (int n = 0; n < NET_PIECES(units); n++) {
        UNROLL for (int e = 0; e < 4; e++) sums[n][e] = 0;
    }
    px_band(sums, NET_PIECES(units), there, px_from(above, NET_BAND, 0), 0, px_from(w, 8 * piece, 0), 1, inner);
    x = px_from(x, NET_BAND, 8 * piece);
    UNROLL for (int n = 0; n < NET_PIECES(units); n++) {
        if (n >= there) continue;
        UNROLL for (int e = 0; e < 4; e += 2) {
            int row = PIECE_ROW(e), u = 8 * n + PIECE_COLUMN(e);
            float left = px_is_positive(x, row, u) ? sums[n][e] : 0, right = px_is_positive(x, row, u + 1) ? sums[n][e + 1] : 0;
            px_put_two(x, row, u, left, right);
        }
    }
}

// Whether an agent has the symbol that row r of the products is of.
DEVICE int net_has_product(const struct net_shape *s, int r) {
    int k = r - NET_MEMBERS * NET_STATES;
    int member = k < 0 ? r / AT_LEAST_ONE(NET_STATES) : k / AT_LEAST_ONE(NET_ACTIONS);
    return r < NET_PRODUCT_ROWS && member < s->members;
}

// Adds to the gradient of the products: samples that choose the same row meet there.
DEVICE void net_backward_products(const struct net_shape *s, int count, float *sh) {
    int r = WARP / NET_GP_ACROSS * NET_GP_ROWS * 16, u = WARP % NET_GP_ACROSS * NET_GP_COLUMNS * 8;
    float sums[NET_GP_ROWS * NET_GP_COLUMNS][4];
    UNROLL for (int n = 0; n < NET_GP_ROWS * NET_GP_COLUMNS; n++) {
        UNROLL for (int e = 0; e < 4; e++) sums[n][e] = 0;
    }
    if (r >= NET_PRODUCT_ROWS) return;
    px_outer(sums, NET_GP_ROWS, NET_GP_COLUMNS, px_from(NET_MATRIX_CHOICES(sh), 0, r), 1, px_from(NET_MATRIX_H1(sh), 0, u), count);
    UNROLL for (int n = 0; n < NET_GP_ROWS * NET_GP_COLUMNS; n++) {
        UNROLL for (int e = 0; e < 4; e++) {
            int row = r + n / NET_GP_COLUMNS * 16 + PIECE_ROW(e);
            float *place = sh + NET_AT_SLOPES + row * NET_STRIDE_D1 + u + n % NET_GP_COLUMNS * 8 + PIECE_COLUMN(e);
            // Rows of members that an agent does not have stay 0.
            if (net_has_product(s, row)) *place += sums[n][e];
        }
    }
}

// Adds to the gradient of the layer of the rows.
DEVICE void net_backward_rows(const struct net_shape *s, int count, float *sh) {
#if NET_ROWS > 0
    float *others = sh + NET_AT_OTHER_SLOPES - NET_AT_B1, sums[NET_GV_ROWS * NET_GV_COLUMNS][4];
    UNROLL for (int n = 0; n < NET_GV_ROWS * NET_GV_COLUMNS; n++) {
        UNROLL for (int e = 0; e < 4; e++) sums[n][e] = 0;
    }
    for (int row = 0; row < s->rows; row++)
        net_outer(sums, NET_GV_ROWS, NET_GV_COLUMNS, NET_GV_ACROSS, NET_WIDTH, px_from(NET_MATRIX_VIEW(sh), 0, row * NET_VIEW_COLUMNS), 0,
                  px_from(NET_MATRIX_H0(sh), 0, row * NET_ROW_COLUMNS), count);
    net_add_samples(others + NET_AT_ROW_BIAS, NET_MATRIX_H0(sh), NET_ROW_UNITS, s->rows, NET_ROW_COLUMNS, count);
    int top = WARP / NET_GV_ACROSS * NET_GV_ROWS * 16, left = WARP % NET_GV_ACROSS * NET_GV_COLUMNS * 8;
    UNROLL for (int n = 0; n < NET_GV_ROWS * NET_GV_COLUMNS; n++) {
        UNROLL for (int e = 0; e < 4; e++) {
            int i = top + n / NET_GV_COLUMNS * 16 + PIECE_ROW(e), u = left + n % NET_GV_COLUMNS * 8 + PIECE_COLUMN(e);
            if (i < NET_WIDTH && u < NET_ROW_UNITS) others[NET_AT_ROW + i * NET_ROW_UNITS + u] += sums[n][e];
        }
    }
#endif
}

// Adds the gradient of Σ slopes·outputs of a tile, the slopes standing where the outputs were.
DEVICE void net_backward(const struct net_shape *s, int count, struct net_gradient *g, float *sh) {
    const float *slopes = sh + NET_AT_OUTPUTS, *top = sh + NET_AT_TOP;
    float *others = sh + NET_AT_OTHER_SLOPES - NET_AT_B1, *sums = sh + NET_AT_SUMS;
    struct px_matrix h1 = NET_MATRIX_H1(sh), d2 = NET_D2 > 0 ? NET_MATRIX_H2(sh) : h1;
    // Weights and biases of the outputs: each warp adds up its own samples, then all of these are added up.
    for (int k = LANE; k < (NET_TOP + 1) * NET_OUTPUTS; k += 32) {
        int i = k / NET_OUTPUTS, o = k % NET_OUTPUTS;
        float sum = 0;
        UNROLL_BY_FOUR for (int sample = NET_FIRST; sample < NET_FIRST + NET_THERE(count); sample++)
            sum = fmaf(i < NET_TOP ? top[sample * NET_STRIDE_TOP + i] : 1.0f, slopes[sample * NET_OUTPUTS + o], sum);
        sums[WARP * ((NET_TOP + 1) * NET_OUTPUTS) + k] = sum;
    }
    // Behind the last sample slopes are 0, whatever else is there.
    for (int k = threadIdx.x; k < NET_TILE * PARTS(NET_TOP, 2); k += NET_THREADS) {
        int sample = k / PARTS(NET_TOP, 2), i = k % PARTS(NET_TOP, 2) * 2;
        float both[2] = {0, 0};
        UNROLL for (int j = 0; j < 2; j++) {
            if (i + j >= NET_TOP || sample >= count || !(top[sample * NET_STRIDE_TOP + i + j] > 0)) continue;
            UNROLL for (int o = 0; o < NET_OUTPUTS; o++)
                both[j] = fmaf(slopes[sample * NET_OUTPUTS + o], sh[NET_AT_LAST + (i + j) * NET_OUTPUTS + o], both[j]);
        }
        px_put_two(d2, sample, i, both[0], both[1]);
    }
    SYNC();
    for (int k = threadIdx.x; k < (NET_TOP + 1) * NET_OUTPUTS; k += NET_THREADS) {
        float *place = others + (k < NET_TOP * NET_OUTPUTS ? NET_AT_LAST + k : NET_AT_LAST_BIAS + k - NET_TOP * NET_OUTPUTS), sum = *place;
        UNROLL for (int warp = 0; warp < NET_WARPS; warp++) sum += sums[warp * ((NET_TOP + 1) * NET_OUTPUTS) + k];
        *place = sum;
    }
#if NET_D2 > 0
    net_outer(g->second, NET_G2_ROWS, NET_G2_COLUMNS, NET_G2_ACROSS, NET_D1, h1, 0, d2, count);
    net_add_samples(others + NET_AT_B2, d2, NET_D2, 1, 0, count);
    SYNC();
    net_pass_back(d2, NET_MATRIX_W2(sh), NET_D2, h1, NET_D1, count);
    SYNC();
#endif
    net_add_samples(others + NET_AT_B1, h1, NET_D1, 1, 0, count);
#if NET_GROUPS > 0
    net_backward_products(s, count, sh);
#endif
#if NET_ROWS > 0
    net_outer(g->first, NET_G1_ROWS, NET_G1_COLUMNS, NET_G1_ACROSS, NET_FEATURES, NET_MATRIX_H0(sh), 0, h1, count);
    SYNC();
    net_pass_back(h1, NET_MATRIX_W1(sh), NET_D1, NET_MATRIX_H0(sh), NET_FEATURES, count);
    SYNC();
    net_backward_rows(s, count, sh);
#endif
    SYNC();
}

// The gradient of the embedding tables from that of the products. Adds the squares of that of the symbols'
// weights to `squares`. Uses the place of the first hidden layer.
DEVICE float net_backward_tables(const struct net_shape *s, const float *w, float squares, float *sh) {
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
                    float above = v < t.vocabulary && u < NET_D1 ? sh[NET_AT_SLOPES + (t.products + v) * NET_STRIDE_D1 + u] : 0;
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
    for (int k = threadIdx.x; k < NET_TABLE; k += NET_THREADS) {
        float sum = 0;
        UNROLL for (int lane = 0; lane < 32; lane++) sum += parts[k * 33 + lane];
        sh[NET_AT_OTHER_SLOPES + NET_AT_TABLE - NET_AT_B1 + k] = sum;
    }
    SYNC();
#endif
    return squares;
}

DEVICE void net_clear(struct net_gradient *g, const struct net_shape *s, float *sh) {
    float *all = (float *)g;
    UNROLL for (int k = 0; k < (int)(sizeof(struct net_gradient) / sizeof(float)); k++) all[k] = 0;
    for (int k = threadIdx.x; k < NET_OTHERS; k += NET_THREADS) sh[NET_AT_OTHER_SLOPES + k] = 0;
    for (int k = threadIdx.x; k < NET_PRODUCT_ROWS * NET_STRIDE_D1; k += NET_THREADS) sh[NET_AT_SLOPES + k] = 0;
    SYNC();
}

// Call EACH(where, part, row, column) for parameters of matrices between layers that the thread has the gradient of,
// but for symbols' weights in the first: where it lies among the parameters, its member of net_gradient, its place in
// the matrix. The first has those of one matrix, the second of both.
#define NET_EACH_OF(EACH, G, part, from, input, inputs, units) \
    UNROLL for (int r = 0; r < G##_ROWS; r++) { \
        UNROLL for (int c = 0; c < G##_COLUMNS; c++) { \
            UNROLL for (int e = 0; e < 4; e++) { \
                int row = (WARP / G##_ACROSS * G##_ROWS + r) * 16 + PIECE_ROW(e), i = input(row); \
                int u = (WARP % G##_ACROSS * G##_COLUMNS + c) * 8 + PIECE_COLUMN(e); \
                if (i >= 0 && i < (inputs) && u < (units)) { EACH((from) + i * (units) + u, part[r * G##_COLUMNS + c][e], row, u); } \
            } \
        } \
    }
#define NET_EACH_WEIGHT(EACH, s) \
    NET_EACH_OF(EACH, NET_G1, first, s.first, net_input, s.features, NET_D1) \
    NET_EACH_OF(EACH, NET_G2, second, s.second, (int), NET_D2 > 0 ? NET_D1 : 0, NET_D2)

// The slope of a symbol's weight in the first layer: of slot t, dimension d, unit u.
DEVICE float net_symbol_slope(const struct net_slot *t, int d, int u, const float *sh) {
    float slope = 0;
    UNROLL for (int v = 0; v < NET_VOCABULARY; v++)
        if (v < t->vocabulary)
            slope = fmaf(sh[NET_AT_SLOPES + (t->products + v) * NET_STRIDE_D1 + u], sh[NET_AT_TABLE + t->table + v * NET_DIMENSION + d], slope);
    return slope;
}

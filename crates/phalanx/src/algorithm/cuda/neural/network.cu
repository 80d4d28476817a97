// Forward and backward passes of one network over a tile of samples, by the threads of one block.
//
// The text is used several times, with NET_ and net_ replaced: for critics that learn, for their values, and for
// policies. Sizes are constants, the largest of all agents; an agent with fewer members or rows has zeros there.
// What threads share lies at the offsets NET_AT_…, which the host counts in floats; it is all 0 before parameters
// come in, so that products may go a little beyond a matrix.
//
// A sample is the symbols of its members. A view is worked out from their states and goes through the layer of
// the rows; embedded symbols never reach the first layer one by one: their tables are multiplied with its
// weights once (NET_AT_PRODUCTS), and a sample adds up a row for each slot.
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
#define NET_PIECES(units) AT_LEAST_ONE(PARTS(PARTS(units, 8), NET_PER_BAND))
#define NET_FIRST_PIECE(units) (NET_PART * NET_PIECES(units))
#define NET_PIECES_THERE(units) \
    (PARTS(units, 8) % NET_PER_BAND == 0 ? NET_PIECES(units) : PARTS(units, 8) - NET_FIRST_PIECE(units))
#define NET_FEATURES (NET_ROWS * NET_ROW_UNITS)
#define NET_TOP (NET_D2 > 0 ? NET_D2 : NET_D1)
#define NET_GROUPS ((NET_STATES > 0) + (NET_ACTIONS > 0))
#define NET_VOCABULARY (NET_STATES > NET_ACTIONS ? NET_STATES : NET_ACTIONS)
#define NET_TABLE ((NET_STATES + NET_ACTIONS) * NET_DIMENSION)
#define NET_AT_TOP (NET_D2 > 0 ? NET_AT_H2 : NET_AT_H1)
#define NET_STRIDE_TOP (NET_D2 > 0 ? NET_STRIDE_H2 : NET_STRIDE_H1)
#define NET_C1 PARTS(NET_D1, 32)
#define NET_OTHERS (NET_AT_NEW_TABLE - NET_AT_B1)
#define NET_PRODUCT_ROWS (NET_MEMBERS * (NET_STATES + NET_ACTIONS))
#define NET_MOST_UNITS (NET_D1 > NET_FEATURES ? NET_D1 : NET_FEATURES)
#define NET_OWN(n) AT_LEAST_ONE(PARTS(n, NET_THREADS))

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
        if (v < t->vocabulary) products[(t->products + v) * NET_STRIDE_PRODUCTS] = sums[v];
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
// which are there as products. What is not a parameter is 0. Ends with everything in place.
DEVICE void net_load(const struct Run *run, const struct net_shape *s, long long agent, const u32 *group,
                     const float *w, float *sh) {
    const FOUR zeros = {0, 0, 0, 0};
    int tid = threadIdx.x;
    SYNC();
    for (int k = tid * 32; k < s->parameters; k += NET_THREADS * 32) FETCH(w + k);
    UNROLL_BY_FOUR for (int k = tid; k < NET_AT_END / 4; k += NET_THREADS) ((FOUR *)sh)[k] = zeros;
    SYNC();
    UNROLL_BY_EIGHT for (int k = tid; k < s->features * NET_D1; k += NET_THREADS)
        COPY(sh + NET_AT_W1 + k / NET_D1 * NET_STRIDE_W1 + k % NET_D1, w + s->first + k);
    UNROLL_BY_EIGHT for (int k = tid; k < NET_D1 * NET_D2; k += NET_THREADS)
        COPY(sh + NET_AT_W2 + k / AT_LEAST_ONE(NET_D2) * NET_STRIDE_W2 + k % AT_LEAST_ONE(NET_D2), w + s->second + k);
    for (int k = tid; k < NET_OTHERS; k += NET_THREADS) {
        int at = net_other(s, k);
        if (at >= 0) COPY(sh + NET_AT_B1 + k, w + at);
    }
    u32 *members = (u32 *)(sh + NET_AT_GROUP);
    for (int m = tid; m < s->members; m += NET_THREADS) members[m] = group[m * AGENTS + agent];
    WAIT_FOR_COPIES();
    SYNC();
    net_products(s, w, sh);
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

// Brings the symbols of the warp's samples, which were asked for, into shared memory, and works out the view.
DEVICE void net_observe(const struct Run *run, const struct net_shape *s, long long agent, int count, const struct net_asked *asked,
                        float *sh) {
    u8 *symbols = (u8 *)(sh + NET_AT_SYMBOLS) + NET_FIRST * 2 * NET_MEMBERS;
    int there = NET_THERE(count);
    UNROLL for (int j = 0; j < PARTS(NET_SHARE * NET_MEMBERS, 32); j++) {
        int k = LANE + 32 * j, sample = k / s->members, m = k % s->members;
        if (k >= there * s->members) continue;
        symbols[sample * 2 * NET_MEMBERS + m] = STATE_OF(asked->pairs[j]);
        symbols[sample * 2 * NET_MEMBERS + NET_MEMBERS + m] = ACTION_OF(asked->pairs[j]);
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

// What of a band's sums is positive becomes its units.
DEVICE void net_keep(float (*sums)[4], int pieces, int there, float *x, int stride) {
    x += PIECE_ROW(0) * stride + PIECE_COLUMN(0);
    UNROLL for (int n = 0; n < pieces; n++) {
        if (n >= there) continue;
        UNROLL for (int half = 0; half < 2; half++) {
            TWO two = {sums[n][2 * half], sums[n][2 * half + 1]};
            two.x = two.x > 0 ? two.x : 0;
            two.y = two.y > 0 ? two.y : 0;
            *(TWO *)(x + half * 8 * stride + 8 * n) = two;
        }
    }
}

// The rows of the products that samples choose with their symbols.
DEVICE struct px_choice net_choice(float *sh) {
    struct px_choice choice = {(const u8 *)(sh + NET_AT_SYMBOLS), 2 * NET_MEMBERS, NET_MEMBERS, NET_STATES, NET_ACTIONS};
    return choice;
}

// The outputs for the warp's samples, which were observed.
DEVICE void net_forward(const struct net_shape *s, int count, float *sh) {
    int first = NET_FIRST, band = NET_BAND;
    NET_WAIT();
    if (band < count) {
        int piece = NET_FIRST_PIECE(NET_D1), there = NET_PIECES_THERE(NET_D1), u = 8 * piece + PIECE_COLUMN(0);
        float sums[NET_PIECES(NET_D1)][4];
        UNROLL for (int n = 0; n < NET_PIECES(NET_D1); n++) {
            UNROLL for (int e = 0; e < 4; e++) sums[n][e] = n < there ? sh[NET_AT_B1 + u + 8 * n + e % 2] : 0;
        }
#if NET_GROUPS > 0
        struct px_choice choice = net_choice(sh);
        px_band(sums, NET_PIECES(NET_D1), there, 0, 0, &choice, band, sh + NET_AT_PRODUCTS + 8 * piece, NET_STRIDE_PRODUCTS, 1,
                NET_PRODUCT_ROWS);
#endif
        px_band(sums, NET_PIECES(NET_D1), there, sh + NET_AT_ROWS + band * NET_STRIDE_ROWS, NET_STRIDE_ROWS, 0, 0,
                sh + NET_AT_W1 + 8 * piece, NET_STRIDE_W1, 1, NET_FEATURES);
        net_keep(sums, NET_PIECES(NET_D1), there, sh + NET_AT_H1 + band * NET_STRIDE_H1 + 8 * piece, NET_STRIDE_H1);
    }
    NET_WAIT();
#if NET_D2 > 0
    if (band < count) {
        int piece = NET_FIRST_PIECE(NET_D2), there = NET_PIECES_THERE(NET_D2), u = 8 * piece + PIECE_COLUMN(0);
        float sums[NET_PIECES(NET_D2)][4];
        UNROLL for (int n = 0; n < NET_PIECES(NET_D2); n++) {
            UNROLL for (int e = 0; e < 4; e++) sums[n][e] = n < there ? sh[NET_AT_B2 + u + 8 * n + e % 2] : 0;
        }
        px_band(sums, NET_PIECES(NET_D2), there, sh + NET_AT_H1 + band * NET_STRIDE_H1, NET_STRIDE_H1, 0, 0,
                sh + NET_AT_W2 + 8 * piece, NET_STRIDE_W2, 1, NET_D1);
        net_keep(sums, NET_PIECES(NET_D2), there, sh + NET_AT_H2 + band * NET_STRIDE_H2 + 8 * piece, NET_STRIDE_H2);
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
DEVICE void net_outer(float (*sums)[4], int rows, int columns, int across, int inputs, const float *a, int a_stride,
                      const float *b, int b_stride, int count) {
    int i = WARP / across * rows * 16, u = WARP % across * columns * 8;
    if (i < inputs) px_outer(sums, rows, columns, a + i, a_stride, 0, 0, b + u, b_stride, count);
}

// sums[u] += Σ over samples of d[sample][u].
DEVICE void net_add_rows(float *sums, const float *d, int stride, int units, int count) {
    for (int u = threadIdx.x; u < units; u += NET_THREADS) {
        float sum = sums[u];
        UNROLL_BY_EIGHT for (int sample = 0; sample < count; sample++) sum += d[sample * stride + u];
        sums[u] = sum;
    }
}

// d[sample][u] = Σ_k above[sample][k]·w[u][k] where x[sample][u] > 0, in the place of x.
DEVICE void net_pass_back(const float *above, int above_stride, const float *w, int w_stride, int inner, float *x, int stride,
                          int units, int count) {
    if (NET_BAND >= count) return;
    int piece = NET_FIRST_PIECE(units), there = NET_PIECES_THERE(units);
    float sums[NET_PIECES(NET_MOST_UNITS)][4];
    UNROLL for (int n = 0; n < NET_PIECES(units); n++) {
        UNROLL for (int e = 0; e < 4; e++) sums[n][e] = 0;
    }
    px_band(sums, NET_PIECES(units), there, above + NET_BAND * above_stride, above_stride, 0, 0, w + 8 * piece * w_stride, 1,
            w_stride, inner);
    x += (NET_BAND + PIECE_ROW(0)) * stride + 8 * piece + PIECE_COLUMN(0);
    UNROLL for (int n = 0; n < NET_PIECES(units); n++) {
        UNROLL for (int half = 0; half < 2; half++) {
            TWO *place = (TWO *)(x + half * 8 * stride + 8 * n);
            if (n >= there) continue;
            place->x = place->x > 0 ? sums[n][2 * half] : 0;
            place->y = place->y > 0 ? sums[n][2 * half + 1] : 0;
        }
    }
}

// Adds to the gradient of the products: samples that choose the same row meet there.
DEVICE void net_backward_products(const struct net_shape *s, int count, float *sh) {
    struct px_choice choice = net_choice(sh);
    int r = WARP / NET_GP_ACROSS * NET_GP_ROWS * 16, u = WARP % NET_GP_ACROSS * NET_GP_COLUMNS * 8;
    float sums[NET_GP_ROWS * NET_GP_COLUMNS][4];
    UNROLL for (int n = 0; n < NET_GP_ROWS * NET_GP_COLUMNS; n++) {
        UNROLL for (int e = 0; e < 4; e++) sums[n][e] = 0;
    }
    if (r >= NET_PRODUCT_ROWS) return;
    px_outer(sums, NET_GP_ROWS, NET_GP_COLUMNS, 0, 0, &choice, r, sh + NET_AT_H1 + u, NET_STRIDE_H1, count);
    UNROLL for (int n = 0; n < NET_GP_ROWS * NET_GP_COLUMNS; n++) {
        UNROLL for (int e = 0; e < 4; e++) {
            int row = r + n / NET_GP_COLUMNS * 16 + PIECE_ROW(e), k = row - NET_MEMBERS * NET_STATES;
            int member = k < 0 ? row / AT_LEAST_ONE(NET_STATES) : k / AT_LEAST_ONE(NET_ACTIONS);
            float *place = sh + NET_AT_SLOPES + row * NET_STRIDE_PRODUCTS + u + n % NET_GP_COLUMNS * 8 + PIECE_COLUMN(e);
            // Rows of members that an agent does not have stay 0.
            if (row < NET_PRODUCT_ROWS && member < s->members) *place = sums[n][e] + (NET_SLOPES_APART ? *place : 0);
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
    for (int row = 0; row < s->rows; row++) {
        const float *d = sh + NET_AT_ROWS + row * NET_ROW_UNITS;
        net_outer(sums, NET_GV_ROWS, NET_GV_COLUMNS, NET_GV_ACROSS, NET_WIDTH, sh + NET_AT_VIEW + row * NET_STRIDE_VIEW,
                  NET_ROWS * NET_STRIDE_VIEW, d, NET_STRIDE_ROWS, count);
        net_add_rows(others + NET_AT_ROW_BIAS, d, NET_STRIDE_ROWS, NET_ROW_UNITS, count);
    }
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
    const float *slopes = sh + NET_AT_OUTPUTS;
    float *top = sh + NET_AT_TOP, *h1 = sh + NET_AT_H1, *others = sh + NET_AT_OTHER_SLOPES - NET_AT_B1;
    for (int k = threadIdx.x; k < NET_TOP * NET_OUTPUTS; k += NET_THREADS) {
        int i = k / NET_OUTPUTS, o = k % NET_OUTPUTS;
        float sum = others[NET_AT_LAST + k];
        UNROLL_BY_EIGHT for (int sample = 0; sample < count; sample++)
            sum = fmaf(top[sample * NET_STRIDE_TOP + i], slopes[sample * NET_OUTPUTS + o], sum);
        others[NET_AT_LAST + k] = sum;
    }
    net_add_rows(others + NET_AT_LAST_BIAS, slopes, NET_OUTPUTS, NET_OUTPUTS, count);
    SYNC();
    // Behind the last sample slopes are 0, whatever else is there.
    for (int k = threadIdx.x; k < NET_TILE * NET_TOP; k += NET_THREADS) {
        int sample = k / NET_TOP, i = k % NET_TOP;
        float sum = 0;
        UNROLL for (int o = 0; o < NET_OUTPUTS; o++)
            sum = fmaf(slopes[sample * NET_OUTPUTS + o], sh[NET_AT_LAST + i * NET_OUTPUTS + o], sum);
        float *place = top + sample * NET_STRIDE_TOP + i;
        *place = *place > 0 && sample < count ? sum : 0;
    }
    SYNC();
#if NET_D2 > 0
    net_outer(g->second, NET_G2_ROWS, NET_G2_COLUMNS, NET_G2_ACROSS, NET_D1, h1, NET_STRIDE_H1, top, NET_STRIDE_H2, count);
    net_add_rows(others + NET_AT_B2, top, NET_STRIDE_H2, NET_D2, count);
    SYNC();
    net_pass_back(top, NET_STRIDE_H2, sh + NET_AT_W2, NET_STRIDE_W2, NET_D2, h1, NET_STRIDE_H1, NET_D1, count);
    SYNC();
#endif
    net_add_rows(others + NET_AT_B1, h1, NET_STRIDE_H1, NET_D1, count);
#if NET_GROUPS > 0
    net_backward_products(s, count, sh);
#endif
#if NET_ROWS > 0
    net_outer(g->first, NET_G1_ROWS, NET_G1_COLUMNS, NET_G1_ACROSS, NET_FEATURES, sh + NET_AT_ROWS, NET_STRIDE_ROWS, h1,
              NET_STRIDE_H1, count);
    SYNC();
    net_pass_back(h1, NET_STRIDE_H1, sh + NET_AT_W1, NET_STRIDE_W1, NET_D1, sh + NET_AT_ROWS, NET_STRIDE_ROWS, NET_FEATURES,
                  count);
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
                    float above = v < t.vocabulary && u < NET_D1 ? sh[NET_AT_SLOPES + (t.products + v) * NET_STRIDE_PRODUCTS + u] : 0;
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
    if (NET_SLOPES_APART)
        for (int k = threadIdx.x; k < NET_MEMBERS * (NET_STATES + NET_ACTIONS) * NET_STRIDE_PRODUCTS; k += NET_THREADS) sh[NET_AT_SLOPES + k] = 0;
    SYNC();
}

// Call EACH(where, part, place) for parameters of matrices between layers that the thread has the gradient of, but
// for symbols' weights in the first: where it lies among the parameters, its member of net_gradient, where it
// lies in shared memory. The first has those of one matrix, the second of both.
#define NET_EACH_OF(EACH, G, part, from, inputs, units, at, stride) \
    UNROLL for (int r = 0; r < G##_ROWS; r++) { \
        UNROLL for (int c = 0; c < G##_COLUMNS; c++) { \
            UNROLL for (int e = 0; e < 4; e++) { \
                int i = (WARP / G##_ACROSS * G##_ROWS + r) * 16 + PIECE_ROW(e); \
                int u = (WARP % G##_ACROSS * G##_COLUMNS + c) * 8 + PIECE_COLUMN(e); \
                if (i < (inputs) && u < (units)) EACH((from) + i * (units) + u, part[r * G##_COLUMNS + c][e], (at) + i * (stride) + u); \
            } \
        } \
    }
#define NET_EACH_WEIGHT(EACH, s, sh) \
    NET_EACH_OF(EACH, NET_G1, first, s.first, s.features, NET_D1, sh + NET_AT_W1, NET_STRIDE_W1) \
    NET_EACH_OF(EACH, NET_G2, second, s.second, NET_D2 > 0 ? NET_D1 : 0, NET_D2, sh + NET_AT_W2, NET_STRIDE_W2)

// The slope of a symbol's weight in the first layer: of slot t, dimension d, unit u.
DEVICE float net_symbol_slope(const struct net_slot *t, int d, int u, const float *sh) {
    float slope = 0;
    UNROLL for (int v = 0; v < NET_VOCABULARY; v++)
        if (v < t->vocabulary)
            slope = fmaf(sh[NET_AT_SLOPES + (t->products + v) * NET_STRIDE_PRODUCTS + u], sh[NET_AT_TABLE + t->table + v * NET_DIMENSION + d], slope);
    return slope;
}

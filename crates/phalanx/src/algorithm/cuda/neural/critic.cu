// Neural critics: temporal differences with target networks, one block per network. Paper: alg:subroutine.
//
// Transition k is step k % C of trajectory k / C, C transitions each, of the chains or of the batch.
#define CRITIC_ROW(k, step)                                                                            \
    (CHAINS > 0 ? CHAIN_ROW((k) / CRITIC_EACH, (k) % CRITIC_EACH + (step))                             \
                : BATCH_ROW((k) / CRITIC_EACH, (k) % CRITIC_EACH + (step)))

// An agent's order of transitions in every pass, and the step sizes of this iteration. A block per agent.
KERNEL_OF(128, critic_order) {
    long long agent = blockIdx.x;
    u32 *order = run->critic_order + agent * (CRITIC_PASSES * CRITIC_TRANSITIONS);
    SHARED(u32, shared);
    u32 *places = CRITIC_ORDER_SHARED ? shared : order, *others = CRITIC_ORDER_SHARED ? shared + CRITIC_TRANSITIONS : shared;
    for (int pass = 0; pass < CRITIC_PASSES; pass++) {
        if (!CRITIC_ORDER_SHARED) places = order + (long long)pass * CRITIC_TRANSITIONS;
        for (int k = threadIdx.x; k < CRITIC_TRANSITIONS; k += 128) {
            places[k] = k;
            // Draw number (transitions − 1 − k) of this pass says with which place k is exchanged.
            u32 draw = (u32)pass * (CRITIC_TRANSITIONS - 1) + (CRITIC_TRANSITIONS - 1 - k), words[4];
            if (CRITIC_ORDER_SHARED && k > 0) {
                philox(run, (u32)agent, draw / 4, (u32)now->iteration, (u32)CRITIC_ORDER_PURPOSE << 24, words);
                others[k] = (u32)(((u64)words[draw % 4] * ((u64)k + 1)) >> 32);
            }
        }
        SYNC();
        if (threadIdx.x == 0) {
            u32 words[4], block = 0xffffffffu;
            for (int k = CRITIC_TRANSITIONS - 1; k > 0; k--) {
                u32 other, moved = places[k];
                if (CRITIC_ORDER_SHARED) {
                    other = others[k];
                } else {
                    u32 draw = (u32)pass * (CRITIC_TRANSITIONS - 1) + (CRITIC_TRANSITIONS - 1 - k);
                    if (draw / 4 != block) {
                        block = draw / 4;
                        philox(run, (u32)agent, block, (u32)now->iteration, (u32)CRITIC_ORDER_PURPOSE << 24, words);
                    }
                    other = (u32)(((u64)words[draw % 4] * ((u64)k + 1)) >> 32);
                }
                places[k] = places[other];
                places[other] = moved;
            }
        }
        SYNC();
        if (CRITIC_ORDER_SHARED)
            for (int k = threadIdx.x; k < CRITIC_TRANSITIONS; k += 128) order[pass * CRITIC_TRANSITIONS + k] = places[k];
        SYNC();
    }
    if (agent == 0 && threadIdx.x == 0) {
        u64 step = (u64)now->critic_steps;
        for (int k = 0; k < CRITIC_STEPS; k++) {
            step++;
            double root = sqrt(1.0 - px_power(0.999, step));
            run->critic_rates[2 * k] = (float)(CRITIC_LEARNING_RATE * root / (1.0 - px_power(0.9, step)));
            run->critic_rates[2 * k + 1] = (float)(CRITIC_EPSILON * root);
        }
    }
}

// Asks for the pairs of the tile of samples that begins with `begin`, if there is one before `end`; see
// critic_values for x.
DEVICE void reader_ask_ahead(const struct Run *run, const struct reader_shape *s, int x, int begin, int end,
                             struct reader_asked *asked, float *sh) {
    u32 *rows = (u32 *)(sh + READER_AT_SAMPLES);
    int count = end - begin < READER_TILE ? end - begin : READER_TILE;
    for (int k = READER_FIRST + LANE; k < READER_FIRST + READER_THERE(count); k += 32)
        rows[k] = x == 0 ? CRITIC_ROW(begin + k, 1) : BATCH_ROW((begin + k) / HORIZON, (begin + k) % HORIZON);
    reader_ask(run, s, count, asked, sh);
}

// Values of networks: of next states by the targets (x = 0), or along the batch (x = 1). Blocks are networks ×
// parts of the samples.
KERNEL_OF(READER_THREADS, critic_values) {
    SHARED(float, sh);
    long long network = blockIdx.x, agent = run->critic_agent[network];
    struct reader_shape s = reader_shape_of(run, agent);
    const float *w = (x == 0 && CRITIC_HAS_TARGET ? run->critic_target : run->critic_weights) + run->critic_start[network];
    GLOBAL(w);
    int total = x == 0 ? CRITIC_TRANSITIONS : BATCH * HORIZON;
    int own = PARTS(total, gridDim.y), end = own * (blockIdx.y + 1) < total ? own * (blockIdx.y + 1) : total;
    int begin = own * blockIdx.y;
    struct reader_asked asked;
    reader_load(run, &s, agent, run->q_group, w, sh);
    reader_ask_ahead(run, &s, x, begin, end, &asked, sh);
    for (int first = begin; first < end; first += READER_TILE) {
        int count = end - first < READER_TILE ? end - first : READER_TILE;
        reader_observe(run, &s, agent, count, &asked, sh);
        reader_ask_ahead(run, &s, x, first + READER_TILE, end, &asked, sh);
        reader_forward(&s, count, sh);
        for (int k = READER_FIRST + LANE; k < READER_FIRST + READER_THERE(count); k += 32) {
            float value = sh[READER_AT_OUTPUTS + k];
            if (x == 0) run->critic_next[network * CRITIC_TRANSITIONS + first + k] = value;
            else run->critic_along[((long long)(first + k) * CRITIC_SLOTS + run->critic_slot[network]) * AGENTS + agent] = value;
        }
        WARP_SYNC();
    }
}

// r of a transition: the shadow reward of a utility, or of all of them weighed by μ where networks are merged.
DEVICE float critic_reward(const struct Run *run, long long agent, int utility, long long row) {
    pair_t pair = run->pairs[row * AGENTS + agent];
    int cells = run->state_count[agent] * run->action_count[agent];
    int cell = STATE_OF(pair) * run->action_count[agent] + ACTION_OF(pair);
    int last = CRITIC_MERGED ? (int)run->constraint_count[agent] : utility;
    double reward = 0;
    for (int e = -1; e < CHANNELS; e++) {
        int entry = e < 0 ? cell : cells + e;
        double weight = run->rewards[((long long)(CRITIC_MERGED ? 0 : utility) * REWARD_ROW + entry) * AGENTS + agent];
        if (CRITIC_MERGED)
            for (int u = 1; u <= last; u++)
                weight += run->mu[(long long)(u - 1) * AGENTS + agent] * run->rewards[((long long)u * REWARD_ROW + entry) * AGENTS + agent];
        if (e < 0) reward = weight;
#if CHANNELS > 0
        else if (weight != 0) reward += weight * (double)run->sampled[((long long)e * ROWS + row) * AGENTS + agent];
#endif
    }
    return (float)reward;
}

// Slope of the loss in one of `count` predictions that is off by e.
DEVICE float critic_slope(float e, int count) {
    float scale = (float)(1.0 / (double)count);
    if (!CRITIC_HUBER) return scale * (e + e);
    return scale * (e > 1 ? 1 : e < -1 ? -1 : e);
}

// A gradient step: where parameters, moments and targets lie, its size, and how many steps the targets take with it:
// two with every other one, since both the parameter before it and the one after it are known then. That saves an
// eighth of what is read and written, which is what steps wait for.
struct critic_descent {
    float *w, *first, *second, *target, factor, rate, epsilon;
    int blends;
};

// What a parameter's step reads.
struct critic_memory {
    float w, first, second, target;
};

// All networks at work are a little too large for the L2 cache, and each step reads what the last one wrote. Targets
// go first, so that the rest stays: otherwise everything would leave before it is read again.
DEVICE struct critic_memory critic_recall(const struct critic_descent *to, int at) {
    struct critic_memory memory = {to->w[at], 0, 0, 0};
#if CRITIC_ADAM
    memory.first = to->first[at];
    memory.second = to->second[at];
#endif
    if (CRITIC_HAS_TARGET && to->blends > 0) memory.target = READ_PASSING(to->target + at);
    return memory;
}

// One step of a parameter, which is returned, and of its target. `trace` stays 0 as long as parameters are finite.
DEVICE float critic_step(const struct critic_descent *to, int at, float slope, struct critic_memory memory, float *trace) {
    float w = memory.w;
    slope *= to->factor;
#if CRITIC_ADAM
    float m = fmaf(0.9f, memory.first, CRITIC_REST_FIRST * slope);
    float v = fmaf(0.999f, memory.second, CRITIC_REST_SECOND * slope * slope);
    to->first[at] = m;
    to->second[at] = v;
    w -= px_quotient(to->rate * m, px_root(v) + to->epsilon);
#else
    w -= (float)CRITIC_LEARNING_RATE * slope;
#endif
    if (CRITIC_HAS_TARGET && to->blends > 0) {
        float target = memory.target;
        if (to->blends == 2) target = fmaf(CRITIC_POLYAK, target, (1.0f - CRITIC_POLYAK) * memory.w);
        WRITE_PASSING(to->target + at, fmaf(CRITIC_POLYAK, target, (1.0f - CRITIC_POLYAK) * w));
    }
    *trace = fmaf(w, 0.0f, *trace);
    to->w[at] = w;
    return w;
}

// The descent from a parameter on.
DEVICE struct critic_descent critic_from(struct critic_descent to, int at) {
    to.w += at;
    to.first += at;
    to.second += at;
    to.target += at;
    return to;
}

// Steps of so many pieces side by side, 1, 2 or 4, of which so many rows and columns are there: their parameters begin
// at `to`, their numbers in the matrix at w. Slopes are turned in `own`, so that lanes take neighbouring parameters.
// Memory is asked for by all of them before the first one moves: otherwise each would wait for the one before.
DEVICE void critic_move_pieces(const struct critic_descent *to, int units, float (*slopes)[4], int pieces, int is_whole, int rows,
                               int columns, struct px_matrix w, float *own, float *trace) {
    // The lane's first parameter; the others are so many rows apart, which the compiler knows.
    int row = LANE / (8 * pieces), u = LANE % (8 * pieces), step = 4 / pieces;
    struct critic_descent here = critic_from(*to, row * units + u);
    struct critic_memory memory[16];
    UNROLL for (int j = 0; j < 4 * pieces; j++)
        if (is_whole || (row + j * step < rows && u < columns)) memory[j] = critic_recall(&here, j * step * units);
    UNROLL for (int c = 0; c < pieces; c++) {
        UNROLL for (int e = 0; e < 4; e++) own[PIECE_ROW(e) * 33 + 8 * c + PIECE_COLUMN(e)] = slopes[c][e];
    }
    WARP_SYNC();
    own += row * 33 + u;
    w = px_from(w, row, u);
    UNROLL for (int j = 0; j < 4 * pieces; j++)
        if (is_whole || (row + j * step < rows && u < columns))
            px_put(w, j * step, 0, critic_step(&here, j * step * units, own[j * step * 33], memory[j], trace));
    WARP_SYNC();
}

// Steps of the warp's pieces of a matrix of so many inputs and units, whose parameters begin at `from`; `across`
// warps stand side by side. If inputs come in sixteens, pieces are there as a whole or not at all, which saves
// registers.
DEVICE void critic_move(const struct critic_descent *to, int from, int in_sixteens, float (*slopes)[4], int rows, int columns,
                        int across, int inputs, int units, struct px_matrix w, float *own, float *trace) {
    int top = WARP / across * rows * 16, left = WARP % across * columns * 8, begin = from + top * units + left;
    int pieces = columns % 4 == 0 ? 4 : columns % 2 == 0 ? 2 : 1;
    // One address for all, worked out here: many of them would fill the registers.
    OPAQUE(begin);
    OPAQUE(top);
    UNROLL for (int k = 0; k < rows * columns; k += pieces) {
        int r = k / columns, c = k % columns, rows_there = inputs - top - 16 * r, columns_there = units - left - 8 * c;
        struct critic_descent here = critic_from(*to, begin + 16 * r * units + 8 * c);
        struct px_matrix place = px_from(w, top + 16 * r, left + 8 * c);
        if (!in_sixteens || units % (8 * columns) != 0)
            critic_move_pieces(&here, units, slopes + k, pieces, 0, rows_there, columns_there, place, own, trace);
        else if (rows_there > 0) critic_move_pieces(&here, units, slopes + k, pieces, 1, 0, 0, place, own, trace);
    }
}

#if CRITIC_GROUPS > 0
// Steps of a symbol's weights in the first layer, and their products with the new embeddings: of one unit of a slot.
DEVICE void critic_move_symbol(const struct critic_descent *to, const struct critic_shape *s, int slot, int u, float *sh, float *trace) {
    struct critic_slot t = critic_slot_of(s, slot);
    struct critic_descent here = critic_from(*to, s->first + (s->features + slot * CRITIC_DIMENSION) * CRITIC_D1 + u);
    struct critic_memory memory[CRITIC_DIMENSION];
    float products[CRITIC_VOCABULARY];
    UNROLL for (int d = 0; d < CRITIC_DIMENSION; d++) memory[d] = critic_recall(&here, d * CRITIC_D1);
    UNROLL for (int v = 0; v < CRITIC_VOCABULARY; v++) products[v] = 0;
    UNROLL for (int d = 0; d < CRITIC_DIMENSION; d++) {
        float moved = critic_step(&here, d * CRITIC_D1, critic_symbol_slope(&t, d, u, sh), memory[d], trace);
        UNROLL for (int v = 0; v < CRITIC_VOCABULARY; v++)
            if (v < t.vocabulary)
                products[v] = fmaf(sh[CRITIC_AT_NEW_TABLE + t.table + v * CRITIC_DIMENSION + d], moved, products[v]);
    }
    UNROLL for (int v = 0; v < CRITIC_VOCABULARY; v++)
        if (v < t.vocabulary) px_put(CRITIC_MATRIX_PRODUCTS(sh), t.products + v, u, products[v]);
}
#endif

// Asks for the pairs of the tile that begins with transition `begin` of the order, if there is one.
DEVICE void critic_ask_ahead(const struct Run *run, const struct critic_shape *s, const u32 *order, int begin,
                             struct critic_asked *asked, float *sh) {
    u32 *rows = (u32 *)(sh + CRITIC_AT_SAMPLES);
    int end = begin - begin % CRITIC_MINIBATCH + CRITIC_MINIBATCH;
    if (end > CRITIC_TRANSITIONS) end = CRITIC_TRANSITIONS;
    int count = end - begin < CRITIC_TILE ? end - begin : CRITIC_TILE;
    for (int k = CRITIC_FIRST + LANE; k < CRITIC_FIRST + CRITIC_THERE(count); k += 32) rows[k] = CRITIC_ROW(order[begin + k], 0);
    critic_ask(run, s, count, asked, sh);
}

// A pass (number x) over all transitions in minibatches. A block per network.
KERNEL_OF(CRITIC_THREADS, critic_learn) {
    SHARED(float, sh);
    long long network = blockIdx.x, agent = run->critic_agent[network], start = run->critic_start[network];
    int slot_of_agent = run->critic_slot[network], utility = slot_of_agent / CRITIC_TWINS;
    struct critic_shape s = critic_shape_of(run, agent);
    float *wanted = sh + CRITIC_AT_WANTED, *sums = sh + CRITIC_AT_SUMS, *turned = sh + CRITIC_AT_H1 + WARP * (16 * 33);
    const float *slopes = sh + CRITIC_AT_OTHER_SLOPES;
    const float *w = run->critic_weights + start;
    const u32 *order = run->critic_order + (agent * CRITIC_PASSES + x) * CRITIC_TRANSITIONS;
    const float *next = run->critic_next + (network - slot_of_agent % CRITIC_TWINS) * CRITIC_TRANSITIONS;
    struct critic_gradient g;
    struct critic_descent to = {run->critic_weights + start, run->critic_first + start, run->critic_second + start,
                                run->critic_target + start, 1, 0, 0, 0};
    GLOBAL(w);
    GLOBAL(order);
    GLOBAL(next);
    GLOBAL(to.w);
    GLOBAL(to.first);
    GLOBAL(to.second);
    GLOBAL(to.target);
    float trace = 0;
    int tid = threadIdx.x;
    // r + γ·Q' of all transitions, in their order: what they are made of lies here and there.
    float *all_wanted = run->critic_wanted + network * CRITIC_TRANSITIONS;
    for (int k = tid; k < CRITIC_TRANSITIONS; k += CRITIC_THREADS) {
        u32 transition = order[k];
        float after = next[transition];
        if (CRITIC_TWINS == 2) {
            float other = next[CRITIC_TRANSITIONS + transition];
            after = other < after ? other : after;
        }
        all_wanted[k] = critic_reward(run, agent, utility, CRITIC_ROW(transition, 0)) + (float)run->gamma * after;
    }
    struct critic_asked asked;
    critic_load(run, &s, agent, run->q_group, w, sh);
    critic_ask_ahead(run, &s, order, 0, &asked, sh);
    for (int from = 0; from < CRITIC_TRANSITIONS; from += CRITIC_MINIBATCH) {
        int size = CRITIC_TRANSITIONS - from < CRITIC_MINIBATCH ? CRITIC_TRANSITIONS - from : CRITIC_MINIBATCH;
        int number = (x * CRITIC_STEPS_OF_PASS + from / CRITIC_MINIBATCH);
        critic_clear(&g, &s, sh);
        for (int first = 0; first < size; first += CRITIC_TILE) {
            int count = size - first < CRITIC_TILE ? size - first : CRITIC_TILE;
            int end = CRITIC_FIRST + CRITIC_THERE(count);
            for (int k = CRITIC_FIRST + LANE; k < end; k += 32) wanted[k] = all_wanted[from + first + k];
            critic_observe(run, &s, agent, count, &asked, sh);
            critic_forward(&s, count, sh);
            for (int k = CRITIC_FIRST + LANE; k < end; k += 32) {
                float *output = sh + CRITIC_AT_OUTPUTS + k;
                *output = critic_slope(*output - wanted[k], size);
            }
            critic_ask_ahead(run, &s, order, from + first + count, &asked, sh);
            SYNC();
            critic_backward(&s, count, &g, sh);
        }
        float squares = critic_backward_tables(&s, w, 0, sh);
        float factor = 1;
#if CRITIC_CLIPS
#define CRITIC_SQUARE(at, part, row, column) squares = fmaf(g.part, g.part, squares)
        CRITIC_EACH_WEIGHT(CRITIC_SQUARE, s)
        for (int k = tid; k < CRITIC_OTHERS; k += CRITIC_THREADS) squares = fmaf(slopes[k], slopes[k], squares);
        sums[tid] = squares;
        SYNC();
        for (int half = CRITIC_THREADS / 2; half > 0; half /= 2) {
            if (tid < half) sums[tid] += sums[tid + half];
            SYNC();
        }
        float norm = sqrtf(sums[0]);
        if (norm > CRITIC_CLIP) factor = CRITIC_CLIP / norm;
#endif
        to.factor = factor;
        to.blends = from / CRITIC_MINIBATCH % 2 == 1 ? 2 : from + CRITIC_MINIBATCH >= CRITIC_TRANSITIONS ? 1 : 0;
        to.rate = run->critic_rates[2 * number];
        to.epsilon = run->critic_rates[2 * number + 1];
#if CRITIC_ROWS > 0 && CRITIC_ROW_COLUMNS != CRITIC_ROW_UNITS
#define CRITIC_MOVE(at, part, row, column) \
    px_put(CRITIC_MATRIX_W1(sh), row, column, critic_step(&to, at, g.part, critic_recall(&to, at), &trace))
        CRITIC_EACH_OF(CRITIC_MOVE, CRITIC_G1, first, s.first, critic_input, s.features, CRITIC_D1)
#elif CRITIC_ROWS > 0
        critic_move(&to, s.first, CRITIC_ROW_UNITS % 16 == 0, g.first, CRITIC_G1_ROWS, CRITIC_G1_COLUMNS, CRITIC_G1_ACROSS, s.features,
                    CRITIC_D1, CRITIC_MATRIX_W1(sh), turned, &trace);
#endif
#if CRITIC_D2 > 0
        critic_move(&to, s.second, CRITIC_D1 % 16 == 0, g.second, CRITIC_G2_ROWS, CRITIC_G2_COLUMNS, CRITIC_G2_ACROSS, CRITIC_D1,
                    CRITIC_D2, CRITIC_MATRIX_W2(sh), turned, &trace);
#endif
        // All other parameters. New embeddings wait until the old ones have been used.
        struct critic_memory memory[CRITIC_OWN(CRITIC_OTHERS)];
        int places[CRITIC_OWN(CRITIC_OTHERS)];
        UNROLL for (int j = 0; j < CRITIC_OWN(CRITIC_OTHERS); j++) {
            int k = tid + j * CRITIC_THREADS;
            places[j] = k < CRITIC_OTHERS ? critic_other(&s, k) : -1;
            if (places[j] >= 0) memory[j] = critic_recall(&to, places[j]);
        }
        UNROLL for (int j = 0; j < CRITIC_OWN(CRITIC_OTHERS); j++) {
            int k = tid + j * CRITIC_THREADS;
            if (places[j] < 0) continue;
            int is_table = k >= CRITIC_AT_TABLE - CRITIC_AT_B1;
            sh[(is_table ? CRITIC_AT_NEW_TABLE - CRITIC_AT_TABLE : 0) + CRITIC_AT_B1 + k] =
                critic_step(&to, places[j], slopes[k], memory[j], &trace);
        }
        SYNC();
#if CRITIC_GROUPS > 0
        for (int item = tid; item < s.slots * CRITIC_D1; item += CRITIC_THREADS)
            critic_move_symbol(&to, &s, item / CRITIC_D1, item % CRITIC_D1, sh, &trace);
#endif
        SYNC();
        critic_row_weights(sh);
        for (int k = tid; k < CRITIC_TABLE; k += CRITIC_THREADS) sh[CRITIC_AT_TABLE + k] = sh[CRITIC_AT_NEW_TABLE + k];
        SYNC();
    }
    if (trace != 0) complain(run, COMPLAINT_Q, agent);
}

#if PER_STEP > 1
// Values along the batch with each member's action replaced by each alternative. Blocks (network, part).
KERNEL_OF(READER_THREADS, critic_alternatives) {
    SHARED(float, sh);
    long long network = blockIdx.x, agent = run->critic_agent[network];
    struct reader_shape s = reader_shape_of(run, agent);
    u32 *rows = (u32 *)(sh + READER_AT_SAMPLES);
    const u32 *members = (const u32 *)(sh + READER_AT_GROUP);
    u8 *symbols = (u8 *)(sh + READER_AT_SYMBOLS);
    int total = BATCH * HORIZON;
    int own = PARTS(total, gridDim.y), end = own * (blockIdx.y + 1) < total ? own * (blockIdx.y + 1) : total;
    reader_load(run, &s, agent, run->q_group, run->critic_weights + run->critic_start[network], sh);
    for (int first = own * blockIdx.y; first < end; first += READER_TILE) {
        int count = end - first < READER_TILE ? end - first : READER_TILE;
        int end = READER_FIRST + READER_THERE(count);
        for (int k = READER_FIRST + LANE; k < end; k += 32) rows[k] = BATCH_ROW((first + k) / HORIZON, (first + k) % HORIZON);
        struct reader_asked asked;
        reader_ask(run, &s, count, &asked, sh);
        reader_observe(run, &s, agent, count, &asked, sh);
        for (int m = 0; m < s.members; m++) {
            int actions = run->action_count[members[m]];
            for (int b = 0; b <= actions; b++) {
                for (int k = READER_FIRST + LANE; k < end; k += 32) {
                    u8 *symbol = symbols + k * 2 * CRITIC_MEMBERS + CRITIC_MEMBERS + m;
                    int own = CRITIC_MEMBERS * READER_STATES + m * READER_ACTIONS;
                    px_put_bit(READER_MATRIX_CHOICES(sh), k, own + *symbol, 0);
                    // After the last alternative: the action that was taken.
                    *symbol = b < actions ? b : ACTION_OF(run->pairs[(long long)rows[k] * AGENTS + members[m]]);
                    px_put_bit(READER_MATRIX_CHOICES(sh), k, own + *symbol, 1);
                }
                WARP_SYNC();
                if (b == actions) break;
                reader_forward(&s, count, sh);
                for (int k = READER_FIRST + LANE; k < end; k += 32) {
                    long long at = ((long long)(first + k) * CRITIC_MEMBERS + m) * PER_STEP + b;
                    run->critic_along[(at * CRITIC_SLOTS + run->critic_slot[network]) * AGENTS + agent] = sh[READER_AT_OUTPUTS + k];
                }
                WARP_SYNC();
            }
        }
    }
}
#endif

// What an agent receives along the batch: Σ over neighbours of the weighed values of their networks.
KERNEL_OF(256, critic_receive) {
    long long item = THREAD, agent = item % AGENTS, sample = item / AGENTS;
    if (sample >= BATCH * HORIZON) return;
    int neighbours = run->q_count[agent];
    for (int b = 0; b < PER_STEP; b++) {
        if (PER_STEP > 1 && b >= run->action_count[agent]) break;
        double received = 0;
        for (int m = 0; m < neighbours; m++) {
            long long entry = (long long)m * AGENTS + agent, j = run->q_group[entry], at = sample;
            if (PER_STEP > 1) at = (sample * CRITIC_MEMBERS + run->critic_own_place[entry]) * PER_STEP + b;
            int utilities = CRITIC_MERGED || (IS_PARTIAL && !run->g_member[entry]) ? 1 : 1 + (int)run->constraint_count[j];
            double value = 0;
            for (int u = 0; u < utilities; u++) {
                const float *along = run->critic_along + (at * CRITIC_SLOTS + u * CRITIC_TWINS) * AGENTS + j;
                float least = along[0];
                if (CRITIC_TWINS == 2 && along[(CRITIC_TWINS - 1) * AGENTS] < least) least = along[(CRITIC_TWINS - 1) * AGENTS];
                double weight = u == 0 ? 1.0 : run->mu[(long long)(u - 1) * AGENTS + j];
                if (weight != 0) value += weight * (double)least;
            }
            received += value;
        }
        if (NEIGHBOUR_MEAN) received /= (double)neighbours;
        run->received[(sample * PER_STEP + b) * AGENTS + agent] = received;
    }
}

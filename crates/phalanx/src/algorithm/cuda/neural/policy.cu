// Neural policies: acting, and gradients along the batch. Paper: eq:grad_estimate.

// θ in single precision.
KERNEL_OF(256, policy_refresh) {
    long long k = THREAD;
    if (k < run->parameters) run->policy_weights[k] = (float)run->theta[k];
}

// How a policy's network lies in shared memory: steps of a trajectory need not make it anew. A block per agent.
KERNEL_OF(POLICY_THREADS, policy_prepare) {
    SHARED(float, sh);
    long long agent = blockIdx.x;
    struct policy_shape s = policy_shape_of(run, agent);
    const float *w = run->policy_weights + run->policy_start[agent];
    GLOBAL(w);
    policy_load(run, &s, agent, run->p_group, w, sh);
    policy_write_image(run->policy_image + agent * POLICY_AT_NEW_TABLE, sh);
}

// Laws of the warp's samples from their logits, as `softmax` has them: a lane per sample and action.
DEVICE void policy_laws(const struct policy_shape *s, int count, float *sh) {
    const float *logits = sh + POLICY_AT_OUTPUTS + POLICY_FIRST * POLICY_OUTPUTS;
    double *laws = (double *)(sh + POLICY_AT_LAWS) + POLICY_FIRST * POLICY_OUTPUTS, own[PARTS(POLICY_SHARE * POLICY_OUTPUTS, 32)];
    UNROLL for (int j = 0; j < PARTS(POLICY_SHARE * POLICY_OUTPUTS, 32); j++) {
        int k = LANE + 32 * j, first = k / POLICY_OUTPUTS * POLICY_OUTPUTS;
        if (k >= POLICY_THERE(count) * POLICY_OUTPUTS) continue;
        double largest = -px_infinity();
        EACH_ACTION(b, s->outputs) largest = fmax(largest, (double)logits[first + b]);
        own[j] = k - first < s->outputs ? px_exp((double)logits[k] - largest) : 0;
        laws[k] = own[j];
    }
    WARP_SYNC();
    UNROLL for (int j = 0; j < PARTS(POLICY_SHARE * POLICY_OUTPUTS, 32); j++) {
        int k = LANE + 32 * j, first = k / POLICY_OUTPUTS * POLICY_OUTPUTS;
        if (k >= POLICY_THERE(count) * POLICY_OUTPUTS) continue;
        double total = 0;
        EACH_ACTION(b, s->outputs) total += laws[first + b];
        own[j] /= total;
    }
    WARP_SYNC();
    UNROLL for (int j = 0; j < PARTS(POLICY_SHARE * POLICY_OUTPUTS, 32); j++)
        if (LANE + 32 * j < POLICY_THERE(count) * POLICY_OUTPUTS) laws[LANE + 32 * j] = own[j];
    WARP_SYNC();
}

// The row of `pairs` of sample t: of step x of trajectory t, of the batch or behind it of the chains; or, if x is
// −1, of the batch, trajectory after trajectory.
DEVICE u32 policy_row(const struct Run *run, int t, int of_batch, int x) {
    if (x < 0) return BATCH_ROW(t / HORIZON, t % HORIZON);
    return t < of_batch ? BATCH_ROW(t, x) : CHAIN_ROW(t - of_batch, x);
}

// Asks for the pairs of the tile of samples that begins with `begin`, if there is one before `end`.
DEVICE void policy_ask_ahead(const struct Run *run, const struct policy_shape *s, int of_batch, int x, int begin, int end,
                             struct policy_asked *asked, float *sh) {
    u32 *rows = (u32 *)(sh + POLICY_AT_SAMPLES);
    int count = end - begin < POLICY_TILE ? end - begin : POLICY_TILE;
    for (int k = POLICY_FIRST + LANE; k < POLICY_FIRST + POLICY_THERE(count); k += 32) rows[k] = policy_row(run, begin + k, of_batch, x);
    policy_ask(run, s, count, asked, sh);
}

// Actions of step x in all trajectories. Blocks (agent, part of the trajectories).
KERNEL_OF_TWO(POLICY_THREADS, policy_act_step) {
    SHARED(float, sh);
    long long agent = blockIdx.x;
    struct policy_shape s = policy_shape_of(run, agent);
    int of_batch = x < BATCH_ROOM ? BATCH : 0, total = of_batch + (x < CHAIN_ROOM ? CHAINS : 0);
    int own = PARTS(total, gridDim.y), end = own * (blockIdx.y + 1) < total ? own * (blockIdx.y + 1) : total;
    if (own * blockIdx.y >= total) return;
    const float *image = run->policy_image + agent * POLICY_AT_NEW_TABLE;
    GLOBAL(image);
    int begin = own * blockIdx.y;
    struct policy_asked asked;
    policy_load_image(run, &s, agent, run->p_group, image, sh);
    policy_ask_ahead(run, &s, of_batch, x, begin, end, &asked, sh);
    for (int first = begin; first < end; first += POLICY_TILE) {
        int count = end - first < POLICY_TILE ? end - first : POLICY_TILE;
        policy_observe(run, &s, agent, count, &asked, sh);
        policy_ask_ahead(run, &s, of_batch, x, first + POLICY_TILE, end, &asked, sh);
        policy_forward(&s, count, sh);
        policy_laws(&s, count, sh);
        const double *laws = (const double *)(sh + POLICY_AT_LAWS);
        for (int k = POLICY_FIRST + LANE; k < POLICY_FIRST + POLICY_THERE(count); k += 32) {
            int t = first + k;
            u32 words[4], purpose = t < of_batch ? BATCH_PURPOSE : CRITIC_PURPOSE;
            u32 trajectory = t < of_batch ? FIRST_TRAJECTORY + t : t - of_batch + BATCH;
            philox(run, (u32)agent, (u32)x / 2, (u32)now->iteration, purpose << 24 | trajectory, words);
            u32 thresholds[MAX_ACTIONS], draw = words[x % 2 * 2] >> 1;
            int action = 0;
            write_thresholds(laws + k * POLICY_OUTPUTS, s.outputs, thresholds);
            EACH_ACTION(b, s.outputs - 1) action += draw >= thresholds[b];
            pair_t *pair = run->pairs + (long long)policy_row(run, t, of_batch, x) * AGENTS + agent;
            *pair = PAIR(STATE_OF(*pair), action);
        }
        WARP_SYNC();
    }
}

// The slope of logit b of a sample whose law is given.
DEVICE double policy_slope(const struct Run *run, const struct Now *now, long long agent, int sample, int action, int b, double mean,
                           double scale, int count, const double *law) {
    double w = run->weights[sample % HORIZON], bonus = now->entropy * w, p = law[b], own = 0, expected = mean;
    const double *values = run->received + (long long)sample * PER_STEP * AGENTS + agent;
    double taken = values[PER_STEP > 1 ? action * AGENTS : 0];
    if (bonus != 0) {
        double entropy = 0;
        EACH_ACTION(c, count) entropy -= law[c] * px_ln(law[c] > 2.2250738585072014e-308 ? law[c] : 2.2250738585072014e-308);
        own = -bonus * p * (px_ln(p > 2.2250738585072014e-308 ? p : 2.2250738585072014e-308) + entropy);
    }
    if (PER_STEP > 1) {
        expected = 0;
        EACH_ACTION(c, count) expected += law[c] * values[c * AGENTS];
    }
    if (ALL_ACTIONS) return w * (p * (values[PER_STEP > 1 ? b * AGENTS : 0] - expected)) + own;
    return w * (scale * (taken - expected) * ((b == action ? 1.0 : 0.0) - p)) + own;
}

// Weighted mean of what an agent received, and 1 / its deviation, as far as they are asked for.
DEVICE void policy_spread(const struct Run *run, long long agent, double *sums, double *mean, double *scale) {
    *mean = 0;
    *scale = 1;
    if (PER_STEP > 1 || (BASELINE != 1 && !NORMALISE)) return;
    double mass = 0, total = 0, squares = 0;
    for (int k = threadIdx.x; k < BATCH * HORIZON; k += POLICY_THREADS) {
        double w = run->weights[k % HORIZON], v = run->received[(long long)k * AGENTS + agent];
        mass += w;
        total += w * v;
        squares += w * v * v;
    }
    sums[threadIdx.x] = mass;
    sums[POLICY_THREADS + threadIdx.x] = total;
    sums[2 * POLICY_THREADS + threadIdx.x] = squares;
    SYNC();
    for (int half = POLICY_THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            for (int k = 0; k < 3; k++) sums[k * POLICY_THREADS + threadIdx.x] += sums[k * POLICY_THREADS + threadIdx.x + half];
        SYNC();
    }
    double average = sums[POLICY_THREADS] / sums[0], spread = sums[2 * POLICY_THREADS] / sums[0] - average * average;
    if (BASELINE == 1 && !ALL_ACTIONS) *mean = average;
    if (NORMALISE) *scale = 1.0 / (sqrt(spread > 0 ? spread : 0) + 1e-8);
    SYNC();
}

// Gradients in θ of parts of the batch. Blocks (agent, part).
KERNEL_OF_TWO(POLICY_THREADS, policy_gradients) {
    SHARED(float, sh);
    long long agent = blockIdx.x;
    struct policy_shape s = policy_shape_of(run, agent);
    const float *w = run->policy_weights + run->policy_start[agent];
    float *out = run->policy_partial + (long long)blockIdx.y * run->parameters + run->policy_start[agent];
    struct policy_gradient g;
    GLOBAL(w);
    GLOBAL(out);
    double mean, scale;
    policy_spread(run, agent, (double *)(sh + POLICY_AT_SUMS), &mean, &scale);
    policy_load(run, &s, agent, run->p_group, w, sh);
    policy_clear(&g, &s, sh);
    int own = PARTS(BATCH * HORIZON, POLICY_PARTS), end = own * (blockIdx.y + 1);
    if (end > BATCH * HORIZON) end = BATCH * HORIZON;
    int begin = own * blockIdx.y;
    struct policy_asked asked;
    policy_ask_ahead(run, &s, 0, -1, begin, end, &asked, sh);
    for (int first = begin; first < end; first += POLICY_TILE) {
        int count = end - first < POLICY_TILE ? end - first : POLICY_TILE;
        policy_observe(run, &s, agent, count, &asked, sh);
        policy_forward(&s, count, sh);
        policy_laws(&s, count, sh);
        for (int k = LANE; k < POLICY_THERE(count) * POLICY_OUTPUTS; k += 32) {
            int sample = POLICY_FIRST + k / POLICY_OUTPUTS, b = k % POLICY_OUTPUTS;
            int action = ACTION_OF(run->pairs[(long long)policy_row(run, first + sample, 0, -1) * AGENTS + agent]);
            const double *law = (const double *)(sh + POLICY_AT_LAWS) + sample * POLICY_OUTPUTS;
            sh[POLICY_AT_OUTPUTS + sample * POLICY_OUTPUTS + b] =
                b < s.outputs ? (float)policy_slope(run, now, agent, first + sample, action, b, mean, scale, s.outputs, law) : 0;
        }
        policy_ask_ahead(run, &s, 0, -1, first + POLICY_TILE, end, &asked, sh);
        SYNC();
        policy_backward(&s, count, &g, sh);
    }
    policy_backward_tables(&s, w, 0, sh);
#define POLICY_WRITE(at, part, row, column) out[at] = g.part
    POLICY_EACH_WEIGHT(POLICY_WRITE, s)
    for (int k = threadIdx.x; k < POLICY_OTHERS; k += POLICY_THREADS) {
        int at = policy_other(&s, k);
        if (at >= 0) out[at] = sh[POLICY_AT_OTHER_SLOPES + k];
    }
    for (int item = threadIdx.x; item < s.slots * POLICY_D1; item += POLICY_THREADS) {
        int slot = item / POLICY_D1, u = item % POLICY_D1;
        struct policy_slot t = policy_slot_of(&s, slot);
        for (int d = 0; d < POLICY_DIMENSION; d++)
            out[s.first + (s.features + slot * POLICY_DIMENSION + d) * POLICY_D1 + u] = policy_symbol_slope(&t, d, u, sh);
    }
}

// The gradient of an agent: its parts in order, and the sum of its squares. A block per agent.
KERNEL_OF(256, policy_sum) {
    SHARED(double, sums);
    long long agent = blockIdx.x, start = run->policy_start[agent], end = run->policy_start[agent + 1];
    double squares = 0;
    int is_finite = 1;
    for (long long k = start + threadIdx.x; k < end; k += 256) {
        float total = 0;
        for (int part = 0; part < POLICY_PARTS; part++) total += run->policy_partial[part * run->parameters + k];
        double slope = (double)total;
        run->gradient[k] = slope;
        is_finite &= slope - slope == 0;
        squares += slope * slope;
    }
    sums[threadIdx.x] = squares;
    SYNC();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        SYNC();
    }
    squares = sums[0];
#if HAS_CLIP
    double norm = sqrt(squares);
    if (norm > run->clip) {
        for (long long k = start + threadIdx.x; k < end; k += 256) run->gradient[k] *= run->clip / norm;
        squares *= run->clip / norm * (run->clip / norm);
    }
#endif
    if (threadIdx.x == 0) run->gradient_squares[agent] = squares;
    if (!is_finite) complain(run, COMPLAINT_GRADIENT, agent);
}

// Log-linear soft-max policies: logits are sums of rows of θ, `[feature][action]`, one after the other.
//
// Rows of agents lie one after the other too: an action needs |A| numbers of each of a dozen features, which
// are neighbours there; entry by entry they would be a memory transaction each.

// The numbers of the active features, in the order of `LinearPolicy::active`.
DEVICE int policy_active(const struct Run *run, long long agent, SEEN_ARGS, u32 *out) {
    const u32 own = SEEN(agent);
    int count = 0;
#if POLICY_OWN
    out[count++] = own;
#else
    const int members = (int)run->p_count[agent];
    for (int m = 0; m < members; m++) {
        const long long at = m * AGENTS + agent;
        out[count++] = run->p_first[at] + run->p_stride[at] * own + SEEN(run->p_group[at]);
    }
#endif
#if POLICY_WORLD
    const int more = world_policy_features(run, agent, SEEN_PASS, out + count);
    for (int m = 0; m < more; m++) out[count + m] += run->p_world_first[agent];
    count += more;
#endif
    return count;
}

DEVICE void policy_law(const struct Run *run, long long agent, const u32 *active, int count, double *law) {
    const int actions = ACTIONS(agent);
    const double *rows = run->theta + run->row_start[agent];
    for (int b = 0; b < actions; b++) law[b] = 0.0;
    for (int m = 0; m < count; m++) {
        const double *row = rows + (u64)active[m] * actions;
        for (int b = 0; b < actions; b++) law[b] += row[b];
    }
    softmax(law, actions);
}

// Nothing is kept from step to step.
struct Actor {
    int unused;
};

DEVICE void actor_load(const struct Run *run, long long agent, int local, long long base, u8 *kept, struct Actor *actor) {
    actor->unused = 0;
}

DEVICE u32 policy_act(const struct Run *run, const struct Actor *actor, long long agent, u32 draw, READ_ARGS) {
    u32 active[POLICY_ACTIVE], thresholds[MAX_ACTIONS], passed = 0;
    double law[MAX_ACTIONS];
    const int count = policy_active(run, agent, px_pairs, px_base, SPAN, active);
    policy_law(run, agent, active, count, law);
    const int actions = ACTIONS(agent);
    write_thresholds(law, actions, thresholds);
    for (int b = 0; b < actions - 1; b++) passed += draw >= thresholds[b];
    return passed;
}

#if HAS_SPREAD
// The mean of what an agent receives, and one over its spread, where they are asked for.
KERNEL(linear_spread) {
    const long long agent = THREAD;
    if (!IS_OWN(agent)) return;
    double mass = 0.0, total = 0.0, squares = 0.0;
    for (int t = 0; t < BATCH; t++) {
        for (int k = 0; k < HORIZON; k++) {
            const double value = run->received[(long long)(t * HORIZON + k) * AGENTS + agent], w = run->weights[k];
            mass += w;
            total += w * value;
            squares += w * value * value;
        }
    }
    const double mean = total / mass, variance = squares / mass - mean * mean;
    run->p_mean[agent] = BASELINE == 1 && !ALL_ACTIONS ? mean : 0.0;
    run->p_scale[agent] = NORMALISE ? 1.0 / (sqrt(variance > 0.0 ? variance : 0.0) + 1e-8) : 1.0;
}
#endif

// Replaces the law at a sample by the gradient with respect to the logits, as `logit_gradients`.
DEVICE void logit_slopes(const struct Run *run, long long agent, int sample, u32 taken, double w, double entropy, double *law) {
    const int actions = ACTIONS(agent);
    const double *received = run->received + (long long)sample * PER_STEP * AGENTS + agent;
    double values[PER_STEP], bonuses[MAX_ACTIONS];
    const double bonus = entropy * w;
    for (int b = 0; b < actions; b++) bonuses[b] = 0.0;
    if (bonus != 0.0) {
        double sum = -0.0;
        for (int b = 0; b < actions; b++) {
            bonuses[b] = px_ln(fmax(law[b], 2.2250738585072014e-308));
            sum += law[b] * bonuses[b];
        }
        for (int b = 0; b < actions; b++) bonuses[b] = -bonus * law[b] * (bonuses[b] + -sum);
    }
#if PER_STEP == 1
    values[0] = received[0];
#if HAS_SPREAD
    const double expected = run->p_mean[agent], scale = run->p_scale[agent];
#else
    const double expected = 0.0, scale = 1.0;
#endif
    const double advantage = values[0] - expected;
#else
    double expected = -0.0, advantage = 0.0;
    const double scale = 1.0;
    for (int b = 0; b < PER_STEP; b++) {
        if (b >= actions) break;
        values[b] = received[b * AGENTS];
        expected += law[b] * values[b];
        if (b == (int)taken) advantage = values[b];
    }
    advantage = advantage - expected;
#endif
    for (int b = 0; b < actions; b++) {
#if ALL_ACTIONS
        const double slope = law[b] * (values[b] - expected);
#else
        const double slope = scale * advantage * ((b == (int)taken ? 1.0 : 0.0) - law[b]);
#endif
        law[b] = w * slope + bonuses[b];
    }
}

// Line 8: a block per agent. Slopes of a chunk of samples are kept in shared memory, and for every feature a
// mask of the samples in which it is active; then a thread per entry adds up its slopes in the order of
// samples.
KERNEL(linear_gradient) {
    SHARED(double, memory);
    double *slopes = memory;
    u32 *masks = (u32 *)(memory + GRADIENT_CHUNK * MAX_ACTIONS);
    const long long agent = blockIdx.x;
    if (!IS_OWN(agent)) return;
    const int actions = ACTIONS(agent), features = (int)run->p_features[agent];
    const int entries = features * actions, samples = BATCH * HORIZON;
    double *gradient = run->gradient + run->row_start[agent];
    for (int first = 0; first < samples; first += GRADIENT_CHUNK) {
        const int count = samples - first < GRADIENT_CHUNK ? samples - first : GRADIENT_CHUNK;
        for (int at = threadIdx.x; at < features * GRADIENT_STRIDE; at += blockDim.x) masks[at] = 0;
        SYNC();
        for (int at = threadIdx.x; at < count; at += blockDim.x) {
            const int sample = first + at, k = sample % HORIZON;
            const pair_t *row = run->pairs + BATCH_ROW(sample / HORIZON, k) * AGENTS;
            u32 active[POLICY_ACTIVE];
            double law[MAX_ACTIONS];
            const int found = policy_active(run, agent, row, 0, AGENTS, active);
            policy_law(run, agent, active, found, law);
            logit_slopes(run, agent, sample, ACTION_OF(row[agent]), run->weights[k], now->entropy, law);
            for (int b = 0; b < actions; b++) slopes[at * actions + b] = law[b];
            for (int m = 0; m < found; m++) atomic_or(&masks[active[m] * GRADIENT_STRIDE + at / 32], 1u << (at % 32));
        }
        SYNC();
        for (int e = threadIdx.x; e < entries; e += blockDim.x) {
            const u32 *mask = masks + e / actions * GRADIENT_STRIDE;
            const double *own = slopes + e % actions;
            double sum = first == 0 ? 0.0 : gradient[e];
            for (int word = 0; word < GRADIENT_WORDS; word++)
                for (u32 bits = mask[word]; bits != 0; bits &= bits - 1)
                    sum += own[(word * 32 + LOWEST(bits)) * actions];
            gradient[e] = sum;
        }
        SYNC();
    }
    // The sum of squares has the host's order: one thread forms it, from shared memory.
    double squares = -0.0;
    for (int clipped = 0; clipped < 2; clipped++) {
        squares = -0.0;
        for (int first = 0; first < entries; first += GRADIENT_ROOM) {
            const int count = entries - first < GRADIENT_ROOM ? entries - first : GRADIENT_ROOM;
            for (int at = threadIdx.x; at < count; at += blockDim.x) {
                const double g = gradient[first + at];
                if (!is_finite(g)) complain(run, COMPLAINT_GRADIENT, agent);
                memory[at] = g * g;
            }
            SYNC();
            if (threadIdx.x == 0)
                for (int at = 0; at < count; at++) squares += memory[at];
            SYNC();
        }
#if HAS_CLIP
        if (threadIdx.x == 0) memory[0] = squares;
        SYNC();
        const double norm = sqrt(memory[0]);
        SYNC();
        if (clipped || !(norm > run->clip)) break;
        for (int e = threadIdx.x; e < entries; e += blockDim.x) gradient[e] *= run->clip / norm;
        SYNC();
#else
        break;
#endif
    }
    if (threadIdx.x == 0) run->gradient_squares[agent] = squares;
}

// Policies that are tables over the joint states of a neighbourhood: entry (x, b) of agent i.

struct Actor {
    int place[P_SLOTS];
    u32 stride[P_SLOTS];
    const u32 *thresholds;
    long long apart;
};

// Reads what an agent's choices depend on; its thresholds go to shared memory where there is room.
DEVICE void actor_load(const struct Run *run, long long agent, int local, long long base, u8 *kept, struct Actor *actor) {
    UNROLL for (int m = 0; m < P_SLOTS; m++) {
        long long at = (long long)run->p_group[m * AGENTS + agent] - base;
        actor->place[m] = (int)PLACE(at);
        actor->stride[m] = run->p_stride[m * AGENTS + agent];
    }
#if THRESHOLDS_SHARED
    u32 *own = (u32 *)kept + local;
    for (int e = 0; e < THRESHOLDS; e++) own[e * SPAN] = run->thresholds[(long long)e * AGENTS + agent];
    actor->thresholds = own;
    actor->apart = SPAN;
#else
    actor->thresholds = run->thresholds + agent;
    actor->apart = AGENTS;
#endif
}

DEVICE u32 policy_act(const struct Run *run, const struct Actor *actor, long long agent, u32 draw, READ_ARGS) {
    u32 seen = 0;
    UNROLL for (int m = 0; m < P_SLOTS; m++) seen += actor->stride[m] * STATE_OF(px_pairs[actor->place[m]]);
#if MAX_ACTIONS == 2
    return draw >= actor->thresholds[seen * actor->apart];
#else
    u32 passed = 0;
    const int others = (int)run->action_count[agent] - 1;
    for (int b = 0; b < others; b++) passed += draw >= actor->thresholds[(seen * others + b) * actor->apart];
    return passed;
#endif
}

// Line 9, after the step: π and the thresholds that sample it.
KERNEL(tables_refresh) {
    const long long agent = THREAD;
    if (!IS_OWN(agent)) return;
    const int actions = (int)run->action_count[agent], seen = (int)run->p_size[agent];
    double law[MAX_ACTIONS];
    u32 thresholds[MAX_ACTIONS];
    for (int x = 0; x < seen; x++) {
        for (int b = 0; b < actions; b++) law[b] = run->theta[(long long)(x * actions + b) * AGENTS + agent];
        softmax(law, actions);
        if (actions == 1) law[0] = 1.0;
        write_thresholds(law, actions, thresholds);
        for (int b = 0; b < actions; b++) run->pi[(long long)(x * actions + b) * AGENTS + agent] = law[b];
        for (int b = 0; b < actions - 1; b++)
            run->thresholds[(long long)(x * (actions - 1) + b) * AGENTS + agent] = thresholds[b];
    }
}

// Distance of an agent's entries: small in shared memory.
#if CRITIC_TABLES && GRADIENT_SHARED
typedef int apart_t;
#else
typedef long long apart_t;
#endif

// Σ over samples of w·(Q − baseline) at each (x, a), turned into the gradient of a soft-max. `apart` is the
// distance of an agent's entries. Paper: eq:grad_estimate.
DEVICE void finish_gradient(const struct Run *run, const struct Now *now, long long agent, double *out, const double *pi,
                            double *visits, double spread[3], apart_t apart) {
    const int actions = (int)run->action_count[agent], entries = (int)run->p_size[agent] * actions;
#if BASELINE == 1 && !ALL_ACTIONS
    double sum = -0.0, mass = -0.0;
    for (int e = 0; e < entries; e++) sum += out[e * apart];
    for (int e = 0; e < entries; e++) mass += visits[e * apart];
    const double mean = sum / mass;
    for (int e = 0; e < entries; e++) out[e * apart] -= mean * visits[e * apart];
#endif
#if NORMALISE
    const double middle = spread[1] / spread[0], squares = spread[2] / spread[0] - middle * middle;
    const double deviation = sqrt(squares > 0.0 ? squares : 0.0) + 1e-8;
    for (int e = 0; e < entries; e++) out[e * apart] /= deviation;
#endif
    for (int x = 0; x < entries; x += actions) {
        double total = -0.0;
        for (int b = 0; b < actions; b++) total += out[(x + b) * apart];
        for (int b = 0; b < actions; b++) out[(x + b) * apart] -= pi[(x + b) * apart] * total;
        if (now->entropy != 0.0) {
            double seen = -0.0, entropy = -0.0, logarithms[MAX_ACTIONS];
            for (int b = 0; b < actions; b++) seen += visits[(x + b) * apart];
            for (int b = 0; b < actions; b++) {
                const double p = pi[(x + b) * apart];
                logarithms[b] = px_ln(fmax(p, 2.2250738585072014e-308));
                entropy += p * logarithms[b];
            }
            entropy = -entropy;
            const double bonus = now->entropy * seen;
            for (int b = 0; b < actions; b++)
                out[(x + b) * apart] += -bonus * pi[(x + b) * apart] * (logarithms[b] + entropy);
        }
    }
    double squares_sum = -0.0;
    for (int e = 0; e < entries; e++) {
        if (!is_finite(out[e * apart])) complain(run, COMPLAINT_GRADIENT, agent);
        squares_sum += out[e * apart] * out[e * apart];
    }
#if HAS_CLIP
    const double norm = sqrt(squares_sum);
    if (norm > run->clip) {
        squares_sum = -0.0;
        for (int e = 0; e < entries; e++) {
            out[e * apart] *= run->clip / norm;
            squares_sum += out[e * apart] * out[e * apart];
        }
    }
#endif
    run->gradient_squares[agent] = squares_sum;
    for (int e = 0; e < entries; e++) run->gradient[(long long)e * AGENTS + agent] = out[e * apart];
}

// The joint state that agent i's policy saw in a row.
DEVICE u32 seen_in(const struct Run *run, long long agent, long long row) {
    u32 seen = 0;
    for (int m = 0; m < P_SLOTS; m++)
        seen += run->p_stride[m * AGENTS + agent] * STATE_OF(run->pairs[row * AGENTS + run->p_group[m * AGENTS + agent]]);
    return seen;
}

// One sample: values at the alternatives, or at the action taken where `PER_STEP` is 1.
DEVICE void add_sample(double *out, const double *pi, double *visits, double spread[3], apart_t apart, u32 seen, u32 action,
                       int actions, double weight, double entropy, const double *values) {
    const int row = (int)seen * actions, cell = row + (int)action;
#if NORMALISE
    spread[0] += weight;
    spread[1] += weight * values[0];
    spread[2] += weight * values[0] * values[0];
#endif
#if BASELINE == 1 && !ALL_ACTIONS
    out[cell * apart] += weight * values[0];
    visits[cell * apart] += weight;
#else
    if (entropy != 0.0) visits[cell * apart] += weight;
#if ALL_ACTIONS
    double expected = -0.0;
    for (int b = 0; b < actions; b++) expected += pi[(row + b) * apart] * values[b];
    for (int b = 0; b < actions; b++)
        out[(row + b) * apart] += weight * pi[(row + b) * apart] * (values[b] - expected);
#elif BASELINE == 2
    double expected = 0.0;
    for (int b = 0; b < actions; b++) expected += pi[(row + b) * apart] * values[b];
    out[cell * apart] += weight * (values[action] - expected);
#else
    out[cell * apart] += weight * values[0];
#endif
#endif
}

DEVICE void clear_sums(double *out, double *visits, apart_t apart, int entries) {
    for (int e = 0; e < entries; e++) {
        out[e * apart] = 0.0;
        if (HAS_VISITS) visits[e * apart] = 0.0;
    }
}

// Memory of an agent in a gradient kernel: the sums, π and, where they are needed, visits.
#define GRADIENT_ARRAYS (HAS_VISITS ? 3 : 2)

#if CRITIC_TABLES
// Samples that are read at a time.
#if Q_SLOTS * PER_STEP <= 8
#define SAMPLES_AHEAD 5
#elif Q_SLOTS <= 8
#define SAMPLES_AHEAD 2
#else
#define SAMPLES_AHEAD 1
#endif

// The senders' indices, the own action and what was seen, at the samples from `first` on.
DEVICE void read_samples(const struct Run *run, long long agent, const u32 sender[Q_SLOTS], int first,
                         u32 index[SAMPLES_AHEAD][Q_SLOTS], u32 action[SAMPLES_AHEAD], u32 seen[SAMPLES_AHEAD],
                         double weight[SAMPLES_AHEAD]) {
    UNROLL for (int c = 0; c < SAMPLES_AHEAD; c++) {
        const int sample = first + c < BATCH * HORIZON ? first + c : 0;
        const long long step = BATCH_ROW(sample / HORIZON, sample % HORIZON), row = step * AGENTS;
        UNROLL for (int m = 0; m < Q_SLOTS; m++) index[c][m] = LOAD(run->index + row + sender[m]);
        action[c] = ACTION_OF(LOAD(run->pairs + row + agent));
        weight[c] = LOAD(run->weights + sample % HORIZON);
#if SAME_GROUPS
        seen[c] = LOAD(run->index + row + agent);
#if JOINT_ACTIONS_ARE_POWERS
        seen[c] >>= run->joint_actions[agent];
#else
        seen[c] /= run->joint_actions[agent];
#endif
#else
        seen[c] = seen_in(run, agent, step);
#endif
    }
}

// Line 8 where critics are tables too: neighbours' values are looked up as they are needed.
KERNEL(tables_gradient) {
    const long long agent = THREAD;
    const int is_active = IS_OWN(agent);
#if GRADIENT_SHARED
    SHARED(double, memory);
    const apart_t apart = blockDim.x;
    double *out = memory + threadIdx.x, *pi = out + PI_ENTRIES * apart, *visits = pi + PI_ENTRIES * apart;
#else
    // Then the sums are made in place: `finish_gradient` writes every entry where it is.
    const apart_t apart = AGENTS;
    double *out = run->gradient + agent, *pi = run->pi + agent, *visits = run->visits + agent;
#endif
#if VALUES_SHARED
    // The tables of all senders of this block's agents, which are at most `Q_BAND` apart.
    double *tables = memory + GRADIENT_ARRAYS * PI_ENTRIES * apart;
    const long long first = (long long)blockIdx.x * blockDim.x - Q_BAND;
    const int width = blockDim.x + 2 * Q_BAND;
    for (int at = threadIdx.x; at < width; at += blockDim.x)
        if (first + at >= 0 && first + at < AGENTS)
            copy_entries(tables + at, width, run->weighted + first + at, AGENTS, TABLE_ENTRIES);
    SYNC();
#endif
    if (!is_active) return;
    const int actions = (int)run->action_count[agent], entries = (int)run->p_size[agent] * actions;
    double spread[3] = {0.0, 0.0, 0.0};
    clear_sums(out, visits, apart, entries);
#if GRADIENT_SHARED
    copy_entries(pi, apart, run->pi + agent, AGENTS, entries);
#endif
    // Senders, and what one unit of this agent's action adds to their index.
    const int senders = (int)run->q_count[agent];
    u32 sender[Q_SLOTS], stride[Q_SLOTS];
#if VALUES_SHARED
    // Places rather than pointers: the compiler then knows that they are in shared memory.
    int place[Q_SLOTS];
#define TABLE(m) (tables + place[m])
#else
    const double *table[Q_SLOTS];
#define TABLE(m) table[m]
#endif
    UNROLL for (int m = 0; m < Q_SLOTS; m++) {
        sender[m] = run->q_group[m * AGENTS + agent];
        stride[m] = run->own_stride[m * AGENTS + agent];
#if IS_PARTIAL
        table[m] = (run->g_member[m * AGENTS + agent] ? run->weighted : run->q) + sender[m];
#elif VALUES_SHARED
        place[m] = (int)(sender[m] - first);
#else
        table[m] = run->weighted + sender[m];
#endif
    }
#if VALUES_SHARED
    const int entry = width;
#else
    const long long entry = AGENTS;
#endif
    // Samples are read well before they are needed, some at a time; what each adds is worked out before the sums
    // change, which would make reads wait.
    u32 here[SAMPLES_AHEAD][Q_SLOTS], there[SAMPLES_AHEAD][Q_SLOTS], did[SAMPLES_AHEAD], does[SAMPLES_AHEAD];
    u32 saw[SAMPLES_AHEAD], sees[SAMPLES_AHEAD];
    double weighs[SAMPLES_AHEAD], weight[SAMPLES_AHEAD];
    read_samples(run, agent, sender, 0, there, does, sees, weighs);
    for (int first = 0; first < BATCH * HORIZON; first += SAMPLES_AHEAD) {
        UNROLL for (int c = 0; c < SAMPLES_AHEAD; c++) {
            UNROLL for (int m = 0; m < Q_SLOTS; m++) here[c][m] = there[c][m];
            did[c] = does[c];
            saw[c] = sees[c];
            weight[c] = weighs[c];
        }
        read_samples(run, agent, sender, first + SAMPLES_AHEAD, there, does, sees, weighs);
        double values[SAMPLES_AHEAD][PER_STEP];
        UNROLL for (int c = 0; c < SAMPLES_AHEAD; c++) {
            UNROLL for (int b = 0; b < PER_STEP; b++) values[c][b] = 0.0;
            UNROLL for (int m = 0; m < Q_SLOTS; m++) {
                if (m < senders) {
#if PER_STEP == 1
                    values[c][0] += TABLE(m)[here[c][m] * entry];
#else
                    const double *q = TABLE(m) + (here[c][m] - did[c] * stride[m]) * entry;
                    UNROLL for (int b = 0; b < PER_STEP; b++)
                        if (b < actions) values[c][b] += q[b * (stride[m] * entry)];
#endif
                }
            }
#if NEIGHBOUR_MEAN
            UNROLL for (int b = 0; b < PER_STEP; b++) values[c][b] /= (double)senders;
#endif
        }
#if BASELINE == 2 && !ALL_ACTIONS
        UNROLL for (int c = 0; c < SAMPLES_AHEAD; c++) {
            double expected = 0.0, taken = values[c][0];
            UNROLL for (int b = 0; b < PER_STEP; b++) {
                if (b < actions) expected += pi[(saw[c] * actions + b) * apart] * values[c][b];
                if (b == did[c]) taken = values[c][b];
            }
            values[c][0] = weight[c] * (taken - expected);
        }
        UNROLL for (int c = 0; c < SAMPLES_AHEAD; c++) {
            if (first + c < BATCH * HORIZON) {
                out[(saw[c] * actions + did[c]) * apart] += values[c][0];
                if (HAS_VISITS && now->entropy != 0.0)
                    visits[(saw[c] * actions + did[c]) * apart] += weight[c];
            }
        }
#else
        UNROLL for (int c = 0; c < SAMPLES_AHEAD; c++)
            if (first + c < BATCH * HORIZON)
                add_sample(out, pi, visits, spread, apart, saw[c], did[c], actions, weight[c], now->entropy, values[c]);
#endif
    }
    finish_gradient(run, now, agent, out, pi, visits, spread, apart);
}
#else
// Line 8 from what neighbours have sent.
KERNEL(tables_gradient) {
    const long long agent = THREAD;
    if (!IS_OWN(agent)) return;
    const apart_t apart = AGENTS;
    double *out = run->gradient + agent, *pi = run->pi + agent, *visits = run->visits + agent;
    const int actions = (int)run->action_count[agent], entries = (int)run->p_size[agent] * actions;
    double spread[3] = {0.0, 0.0, 0.0};
    clear_sums(out, visits, apart, entries);
    for (int t = 0; t < BATCH; t++) {
        for (int k = 0; k < HORIZON; k++) {
            const long long row = BATCH_ROW(t, k);
            double values[PER_STEP];
            for (int b = 0; b < PER_STEP; b++)
                values[b] = run->received[((long long)(t * HORIZON + k) * PER_STEP + b) * AGENTS + agent];
            add_sample(out, pi, visits, spread, apart, seen_in(run, agent, row), ACTION_OF(run->pairs[row * AGENTS + agent]),
                       actions, run->weights[k], now->entropy, values);
        }
    }
    finish_gradient(run, now, agent, out, pi, visits, spread, apart);
}
#endif

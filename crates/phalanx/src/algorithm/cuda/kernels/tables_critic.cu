// Critics that are tables over the pairs of a neighbourhood. Paper: alg:subroutine, eq:td_learning.

#define ROWS_AT_ONCE 5

// The index of every agent's neighbourhood in every row: learning and gradients look it up. Blocks are agents × rows.
KERNEL(index_pairs) {
    const long long agent = THREAD;
    if (agent >= AGENTS) return;
    u32 ids[Q_SLOTS], of_state[Q_SLOTS], of_action[Q_SLOTS];
    for (int m = 0; m < Q_SLOTS; m++) {
        ids[m] = run->q_group[m * AGENTS + agent];
        of_state[m] = run->q_state_stride[m * AGENTS + agent];
        of_action[m] = run->q_action_stride[m * AGENTS + agent];
    }
    const long long first = (long long)blockIdx.y * INDEX_ROWS;
    const int count = (int)(ROWS - first < INDEX_ROWS ? ROWS - first : INDEX_ROWS);
    const pair_t *pairs[Q_SLOTS];
    UNROLL for (int m = 0; m < Q_SLOTS; m++) pairs[m] = run->pairs + first * AGENTS + ids[m];
    index_t *index = run->index + first * AGENTS + agent;
    const long long apart = AGENTS;
    for (int r = 0; r < count; r += ROWS_AT_ONCE) {
        u32 z[ROWS_AT_ONCE];
        UNROLL for (int c = 0; c < ROWS_AT_ONCE; c++) {
            // Reads stay within the rows, whatever becomes of them.
            const long long row = (r + c < count ? c : 0) * apart;
            z[c] = 0;
            UNROLL for (int m = 0; m < Q_SLOTS; m++) {
                const pair_t pair = LOAD(pairs[m] + row);
                z[c] += of_state[m] * STATE_OF(pair) + of_action[m] * ACTION_OF(pair);
            }
        }
        UNROLL for (int c = 0; c < ROWS_AT_ONCE; c++)
            if (r + c < count) index[c * apart] = (index_t)z[c];
        UNROLL for (int m = 0; m < Q_SLOTS; m++) pairs[m] += ROWS_AT_ONCE * apart;
        index += ROWS_AT_ONCE * apart;
    }
}

// Distance of an agent's entries while it learns: small in shared memory.
#if TD_SHARED
typedef int td_apart_t;
#else
typedef long long td_apart_t;
#endif

// What utility u pays agent i at a row: its shadow reward at the own pair, and of sampled channels.
DEVICE double reward_at(const struct Run *run, const double *rewards, td_apart_t apart, int u, long long row, long long agent, u32 own) {
    double reward = rewards[(u * REWARD_ROW + own) * apart];
#if CHANNELS > 0
    const int cells = (int)(run->state_count[agent] * run->action_count[agent]);
    for (int channel = 0; channel < CHANNELS; channel++) {
        const double weight = rewards[(u * REWARD_ROW + cells + channel) * apart];
        if (weight != 0.0)
            reward += weight * (double)run->sampled[((long long)channel * ROWS + row) * AGENTS + agent];
    }
#endif
    return reward;
}

#define TRANSITIONS (CHAIN_ROOM - 1)
#define AHEAD 8

// Line 6: K updates along the chain, one thread per agent.
KERNEL(td_learn) {
    const long long agent = THREAD;
    if (!IS_OWN(agent)) return;
    const int utilities = 1 + (int)run->constraint_count[agent], size = (int)run->q_size[agent];
#if TD_SHARED
    SHARED(double, memory);
    const td_apart_t apart = blockDim.x;
    double *q = memory + threadIdx.x, *rewards = q + UTILITIES * TABLE_ENTRIES * apart;
    if (IS_WARM) copy_entries(q, apart, run->q + agent, AGENTS, UTILITIES * TABLE_ENTRIES);
    else
        for (int e = 0; e < UTILITIES * TABLE_ENTRIES; e++) q[e * apart] = 0.0;
    copy_entries(rewards, apart, run->rewards + agent, AGENTS, UTILITIES * REWARD_ROW);
#else
    const td_apart_t apart = AGENTS;
    double *q = run->q + agent;
    const double *rewards = run->rewards + agent;
    if (!IS_WARM)
        for (int e = 0; e < UTILITIES * TABLE_ENTRIES; e++) q[e * apart] = 0.0;
#endif
    const int actions = (int)run->action_count[agent];
    const index_t *index = run->index + CHAIN_ROW(0, 1) * AGENTS + agent;
    const pair_t *pairs = run->pairs + CHAIN_ROW(0, 0) * AGENTS + agent;
    // A step changes Q at z, and the next one needs Q there: values stay in registers, and what comes next is
    // read well before it is needed.
    u32 z = LOAD(run->index + CHAIN_ROW(0, 0) * AGENTS + agent), before = ~0u, here[AHEAD], there[AHEAD];
    pair_t did[AHEAD], does[AHEAD];
    double value[UTILITIES], last[UTILITIES], eta[AHEAD], eta_there[AHEAD];
    const double gamma = run->gamma, *steps = run->td_steps;
    const long long row = AGENTS;
    UNROLL for (int u = 0; u < UTILITIES; u++) value[u] = last[u] = u < utilities ? q[(u * TABLE_ENTRIES + z) * apart] : 0.0;
    UNROLL for (int c = 0; c < AHEAD; c++) {
        // Reads stay within the chain, whatever becomes of them.
        const int k = c < TRANSITIONS ? c : TRANSITIONS - 1;
        here[c] = LOAD(index + k * row);
        did[c] = LOAD(pairs + k * row);
        eta[c] = LOAD(steps + k);
    }
    for (int first = 0; first < TRANSITIONS; first += AHEAD) {
        UNROLL for (int c = 0; c < AHEAD; c++) {
            const int next = first + AHEAD + c, k = next < TRANSITIONS ? next : TRANSITIONS - 1;
            there[c] = LOAD(index + k * row);
            does[c] = LOAD(pairs + k * row);
            eta_there[c] = LOAD(steps + k);
        }
        UNROLL for (int c = 0; c < AHEAD; c++) {
            const int k = first + c;
            if (k < TRANSITIONS) {
                const u32 next = here[c], own = STATE_OF(did[c]) * actions + ACTION_OF(did[c]);
                UNROLL for (int u = 0; u < UTILITIES; u++) {
                    if (u < utilities) {
                        // The step before wrote `last` at `before`, after this was read.
                        double after = q[(u * TABLE_ENTRIES + next) * apart];
                        if (before != ~0u) q[(u * TABLE_ENTRIES + before) * apart] = last[u];
                        if (next == before) after = last[u];
                        const double reward = reward_at(run, rewards, apart, u, CHAIN_ROW(0, k), agent, own);
                        const double target = reward + gamma * after;
                        last[u] = value[u] + eta[c] * (target - value[u]);
                        value[u] = next == z ? last[u] : after;
                    }
                }
                before = z;
                z = next;
            }
        }
        UNROLL for (int c = 0; c < AHEAD; c++) {
            here[c] = there[c];
            did[c] = does[c];
            eta[c] = eta_there[c];
        }
    }
    if (before != ~0u)
        UNROLL for (int u = 0; u < UTILITIES; u++)
            if (u < utilities) q[(u * TABLE_ENTRIES + before) * apart] = last[u];
#if TD_SHARED
    for (int u = 0; u < utilities; u++)
        for (int e = 0; e < size; e++)
            run->q[(long long)(u * TABLE_ENTRIES + e) * AGENTS + agent] = q[(u * TABLE_ENTRIES + e) * apart];
#endif
}

// Line 8 begins: W = Q_f + Σ μ·Q_g of every agent.
KERNEL(weigh_tables) {
    const long long agent = THREAD;
    if (agent >= AGENTS) return;
    const int constraints = (int)run->constraint_count[agent], size = (int)run->q_size[agent];
    for (int first = 0; first < size; first += COPIED) {
        double sum[COPIED];
        UNROLL for (int z = 0; z < COPIED; z++)
            sum[z] = LOAD(run->q + (long long)(first + z < size ? first + z : 0) * AGENTS + agent);
        for (int c = 0; c < constraints; c++) {
            const double mu = run->mu[(long long)c * AGENTS + agent];
            const double *q = run->q + ((long long)(1 + c) * TABLE_ENTRIES + first) * AGENTS + agent;
            UNROLL for (int z = 0; z < COPIED; z++)
                sum[z] += mu * LOAD(q + (long long)(first + z < size ? z : 0) * AGENTS);
        }
        UNROLL for (int z = 0; z < COPIED; z++) {
            if (first + z >= size) break;
            if (!is_finite(sum[z])) complain(run, COMPLAINT_Q, agent);
            run->weighted[(long long)(first + z) * AGENTS + agent] = sum[z];
        }
    }
}

#if !POLICY_TABLES
// What agents receive, for policies that are not tables. Blocks are agents × steps of the batch.
KERNEL(send_tables) {
    const long long agent = THREAD, step = blockIdx.y;
    if (!IS_OWN(agent)) return;
    const long long row = BATCH_ROW(step / HORIZON, step % HORIZON) * AGENTS;
    const int senders = (int)run->q_count[agent], actions = (int)run->action_count[agent];
    const u32 action = ACTION_OF(run->pairs[row + agent]);
    for (int b = 0; b < PER_STEP; b++) {
        double sum = 0.0;
        for (int m = 0; m < senders; m++) {
            const long long j = run->q_group[m * AGENTS + agent];
            const double *table = IS_PARTIAL && !run->g_member[m * AGENTS + agent] ? run->q : run->weighted;
            long long z = run->index[row + j];
            if (PER_STEP > 1) z += ((long long)b - action) * run->own_stride[m * AGENTS + agent];
            if (b < actions) sum += table[z * AGENTS + j];
        }
        if (NEIGHBOUR_MEAN) sum /= (double)senders;
        run->received[(step * PER_STEP + b) * AGENTS + agent] = sum;
    }
}
#endif

// What all kernels share: pairs of state and action, rows of trajectories, random numbers, complaints.

typedef PAIR_TYPE pair_t;
#define AGENTS (run->agents)
#define STATE_OF(pair) ((u32)(pair) & ((1u << STATE_BITS) - 1))
#define ACTION_OF(pair) ((u32)(pair) >> STATE_BITS)
#define PAIR(state, action) ((pair_t)((state) | (action) << STATE_BITS))

// Where several ranks have a part of the graph each, some agents here are ghosts: copies of agents that another
// rank owns. Draws are keyed by numbers in the whole graph.
#if HAS_GHOSTS
#define IS_OWN(agent) ((agent) < AGENTS && run->is_own[agent])
#define AGENT_ID(agent) (run->agent_ids[agent])
#else
#define IS_OWN(agent) ((agent) < AGENTS)
#define AGENT_ID(agent) (agent)
#endif

// Rows of `pairs`: the batch, then the chains of Q-evaluation, step after step.
#define BATCH_ROW(t, k) ((long long)(t) * BATCH_ROOM + (k))
#define CHAIN_ROW(c, k) ((long long)BATCH * BATCH_ROOM + (long long)(c) * CHAIN_ROOM + (k))

// Where an evaluation goes on, its first trajectory is a later one.
#ifndef FIRST_TRAJECTORY
#define FIRST_TRAJECTORY 0
#endif

// What worlds and policies read of a step: the pairs of the agents from `px_base` on.
#define READ_ARGS const pair_t *px_pairs, long long px_base
#define READ_PASS px_pairs, px_base
// At the edge of a tile an agent may read beyond it: what comes of that is not used.
#if HALO > 0
#define PLACE(at) ((at) < 0 ? 0 : (at) < SPAN ? (at) : SPAN - 1)
#else
#define PLACE(at) (at)
#endif
#define STATE(agent) STATE_OF(px_pairs[PLACE(LOCAL(agent) - px_base)])
#define ACTION(agent) ACTION_OF(px_pairs[PLACE(LOCAL(agent) - px_base)])
// The number here of an agent that a world's text names; see `sub_world_begin.cu`.
#define LOCAL(agent) (agent)

// Philox4x32-10, as in `base/stream.rs`: the numbers of an agent at a place.
DEVICE void philox(const struct Run *run, u32 agent, u32 block, u32 iteration, u32 last, u32 out[4]) {
    u32 c0 = AGENT_ID(agent), c1 = block, c2 = iteration, c3 = last;
    u32 k0 = (u32)run->key0, k1 = (u32)run->key1;
#if defined(__CUDACC_RTC__)
#pragma unroll
#endif
    for (int round = 0; round < 10; round++) {
        u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
        u32 n0 = (u32)(p1 >> 32) ^ c1 ^ k0, n2 = (u32)(p0 >> 32) ^ c3 ^ k1;
        c1 = (u32)p1;
        c3 = (u32)p0;
        c0 = n0;
        c2 = n2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

// Notes the first agent for which something is not finite; the host says what it means. Of ghosts their owner
// complains.
DEVICE void complain(const struct Run *run, int what, long long agent) {
#if HAS_GHOSTS
    if (!run->is_own[agent]) return;
#endif
    atomic_min(&run->complaints[what], (u32)agent);
}

DEVICE int is_finite(double x) {
    return x - x == 0.0;
}

// As `f64::clamp`: a NaN stays one.
DEVICE double clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

// Copies an agent's entries from one place to another, several at a time: a copy waits for its reads only once.
#define COPIED 16
DEVICE void copy_entries(double *to, long long to_apart, const double *from, long long from_apart, int count) {
    for (int first = 0; first < count; first += COPIED) {
        double part[COPIED];
        UNROLL for (int c = 0; c < COPIED; c++)
            part[c] = LOAD(from + (first + c < count ? first + c : 0) * from_apart);
        UNROLL for (int c = 0; c < COPIED; c++)
            if (first + c < count) to[(first + c) * to_apart] = part[c];
    }
}

// Of few actions all are worked out side by side.
#if MAX_ACTIONS <= 8
#define EACH_ACTION(b, count) UNROLL for (int b = 0; b < MAX_ACTIONS; b++) if (b < (count))
#else
#define EACH_ACTION(b, count) for (int b = 0; b < (count); b++)
#endif

// Thresholds of a law on draws of 31 bits, as in `phalanx_agent::draw`.
DEVICE void write_thresholds(const double *law, int count, u32 *out) {
    double total = -0.0, cumulative = 0.0;
    int last = 0;
    EACH_ACTION(b, count) {
        total += law[b];
        if (law[b] > 0.0) last = b;
    }
    EACH_ACTION(b, count - 1) {
        cumulative += law[b];
        out[b] = b >= last ? 0x80000000u : (u32)round(cumulative / total * 2147483648.0);
    }
}

// The soft-max of logits, in place, as in `phalanx_agent::law`.
DEVICE void softmax(double *law, int count) {
    double largest = -px_infinity(), total = 0.0;
    EACH_ACTION(b, count) largest = fmax(largest, law[b]);
    EACH_ACTION(b, count) {
        law[b] = px_exp(law[b] - largest);
        total += law[b];
    }
    EACH_ACTION(b, count) law[b] /= total;
}

// Linear truncated Q-functions over indicator features.

#if ON_CHAINS
#define LEARN_ROW(r) (CHAIN_ROW(0, 0) + (r))
#define LEARN_ROOM CHAIN_ROOM
#define LEARN_ROWS (CHAINS * CHAIN_ROOM)
#else
#define LEARN_ROW(r) ((long long)(r))
#define LEARN_ROOM BATCH_ROOM
#define LEARN_ROWS (BATCH * BATCH_ROOM)
#endif

DEVICE u32 pair_number(const struct Run *run, long long agent, const pair_t *row) {
    return STATE_OF(row[agent]) * ACTIONS(agent) + ACTION_OF(row[agent]);
}

// The numbers of the active features, in the order of `FeatureSet::active`.
DEVICE int critic_active(const struct Run *run, long long agent, const pair_t *row, u32 *out) {
    const u32 own = pair_number(run, agent, row);
    int count = 0;
#if CRITIC_OWN
    out[count++] = own;
#else
    const int members = (int)run->q_count[agent];
    for (int m = 0; m < members; m++) {
        const long long at = m * AGENTS + agent;
        out[count++] = run->c_first[at] + run->c_stride[at] * own + pair_number(run, run->q_group[at], row);
    }
#endif
#if CRITIC_WORLD
    const int more = world_features(run, agent, row, out + count);
    for (int m = 0; m < more; m++) out[count + m] += run->c_world_first[agent];
    count += more;
#endif
    return count;
}

#if IS_LSTD
#define TRANSITIONS ((double)((LEARN_ROWS / LEARN_ROOM) * (LEARN_ROOM - 1)))

// What a block keeps of a chunk of samples: for every feature a mask of the rows in which it is active, marks
// of the rows that a transition leaves, what they paid, and how often features are active, where that is more
// than once.
struct Samples {
    u32 *masks, *leaves;
    float *paid;
    u8 *times;
    int first, is_last;
};

// The averaged number of an equation; `kept` is what it was, and moves on.
DEVICE double averaged(const struct Run *run, const struct Now *now, double before, double *kept, double sum) {
    const double fresh = sum / TRANSITIONS;
#if IS_AVERAGED
    const double moved = run->c_average * before + (1.0 - run->c_average) * fresh;
    *kept = moved;
    return moved / now->critic_mass;
#else
    return fresh;
#endif
}

#define KEPT(pointer) (IS_AVERAGED ? *(pointer) : 0.0)

// Entries of row x of A that lanes form side by side.
#define SIDE_BY_SIDE 3

// Adds what a chunk says of row x of A, every entry in the order of samples: 1 where both features are
// active, then −γ where the other one is in the next step. A warp has the row; the rows of masks are an odd
// number of words apart, so that its lanes read different banks.
DEVICE void add_row(const struct Run *run, const struct Now *now, const struct Samples *samples, int x, int count,
                    double *row, double *kept) {
    const int lane = threadIdx.x % 32, first = samples->first, is_last = samples->is_last;
    const u32 *of_x = samples->masks + x * LEARN_STRIDE;
    const double gamma = run->gamma;
    for (int base = lane; base < count; base += 32 * SIDE_BY_SIDE) {
        const u32 *of_y[SIDE_BY_SIDE];
        double sums[SIDE_BY_SIDE], before[SIDE_BY_SIDE];
        u32 here[SIDE_BY_SIDE], next[SIDE_BY_SIDE];
        UNROLL
        for (int g = 0; g < SIDE_BY_SIDE; g++) {
            const int y = base + 32 * g < count ? base + 32 * g : base;
            of_y[g] = samples->masks + y * LEARN_STRIDE;
            here[g] = of_y[g][0];
            sums[g] = first == 0 ? 0.0 : row[y];
            before[g] = is_last ? KEPT(kept + y) : 0.0;
        }
        for (int word = 0; word < LEARN_WORDS; word++) {
            u32 bits = of_x[word] & samples->leaves[word], after[SIDE_BY_SIDE];
            UNROLL
            for (int g = 0; g < SIDE_BY_SIDE; g++) {
                after[g] = of_y[g][word + 1];
                next[g] = here[g] >> 1 | after[g] << 31;
            }
            for (; bits != 0; bits &= bits - 1) {
#if HAS_REPEATS
                const int at = word * 32 + LOWEST(bits);
                for (int g = 0; g < SIDE_BY_SIDE; g++) {
                    const int y = base + 32 * g < count ? base + 32 * g : base;
                    const u8 *of = samples->times + y * LEARN_ROWS_AT_ONCE + at;
                    for (int times = samples->times[x * LEARN_ROWS_AT_ONCE + at]; times > 0; times--) {
                        for (int seen = of[0]; seen > 0; seen--) sums[g] += 1.0;
                        for (int seen = of[1]; seen > 0; seen--) sums[g] -= gamma;
                    }
                }
#else
                const u32 low = bits & (0u - bits);
                UNROLL
                for (int g = 0; g < SIDE_BY_SIDE; g++) {
                    if (here[g] & low) sums[g] += 1.0;
                    if (next[g] & low) sums[g] -= gamma;
                }
#endif
            }
            UNROLL
            for (int g = 0; g < SIDE_BY_SIDE; g++) here[g] = after[g];
        }
        UNROLL
        for (int g = 0; g < SIDE_BY_SIDE; g++) {
            const int y = base + 32 * g;
            if (y >= count) break;
            double entry = sums[g];
            if (is_last) {
                entry = averaged(run, now, before[g], kept + y, entry);
                if (x == y) entry += run->c_ridge;
            }
            row[y] = entry;
        }
    }
}

// Adds how often feature x was active with each own pair: whole numbers, which have one sum.
DEVICE void add_cells(const struct Run *run, const struct Now *now, const struct Samples *samples, int x, int own_first,
                      int cells, double *visits, double *kept) {
    const u32 *of_x = samples->masks + x * LEARN_STRIDE;
    for (int e = threadIdx.x % 32; e < cells; e += 32) {
        const u32 *of_pair = samples->masks + (own_first + e) * LEARN_STRIDE;
        const double before = samples->is_last ? KEPT(kept + e) : 0.0;
        int seen = 0;
        for (int word = 0; word < LEARN_WORDS; word++) {
            u32 bits = of_x[word] & of_pair[word] & samples->leaves[word];
#if HAS_REPEATS
            for (; bits != 0; bits &= bits - 1) seen += samples->times[x * LEARN_ROWS_AT_ONCE + word * 32 + LOWEST(bits)];
#else
            seen += POPCOUNT(bits);
#endif
        }
        const double sum = (samples->first == 0 ? 0.0 : visits[e]) + (double)seen;
        visits[e] = samples->is_last ? averaged(run, now, before, kept + e, sum) : sum;
    }
}

// Adds what a sampled channel paid while feature x was active.
DEVICE void add_paid(const struct Run *run, const struct Now *now, const struct Samples *samples, int x, int channel,
                     double *visit, double *kept) {
    double sum = samples->first == 0 ? 0.0 : *visit;
    for (int word = 0; word < LEARN_WORDS; word++) {
        for (u32 bits = samples->masks[x * LEARN_STRIDE + word] & samples->leaves[word]; bits != 0; bits &= bits - 1) {
            const int at = word * 32 + LOWEST(bits);
            const double reward = (double)samples->paid[channel * LEARN_CHUNK + at];
#if HAS_REPEATS
            for (int times = samples->times[x * LEARN_ROWS_AT_ONCE + at]; times > 0; times--) sum += reward;
#else
            sum += reward;
#endif
        }
    }
    *visit = samples->is_last ? averaged(run, now, KEPT(kept), kept, sum) : sum;
}

// Reads the rows of a chunk, and one more: the last transition ends there.
DEVICE void read_samples(const struct Run *run, const struct Samples *samples, long long agent, int count) {
    const int left = LEARN_ROWS - samples->first, rows = left < LEARN_ROWS_AT_ONCE ? left : LEARN_ROWS_AT_ONCE;
    for (int at = threadIdx.x; at < count * LEARN_STRIDE; at += blockDim.x) samples->masks[at] = 0;
    for (int at = threadIdx.x; at < LEARN_WORDS; at += blockDim.x) samples->leaves[at] = 0;
#if HAS_REPEATS
    for (int at = threadIdx.x; at < count * LEARN_ROWS_AT_ONCE; at += blockDim.x) samples->times[at] = 0;
#endif
    SYNC();
    for (int at = threadIdx.x; at < rows; at += blockDim.x) {
        const long long row = LEARN_ROW(samples->first + at);
        u32 active[CRITIC_ACTIVE];
        const int found = critic_active(run, agent, run->pairs + row * AGENTS, active);
        for (int m = 0; m < found; m++) {
            atomic_or(&samples->masks[active[m] * LEARN_STRIDE + at / 32], 1u << (at % 32));
#if HAS_REPEATS
            samples->times[active[m] * LEARN_ROWS_AT_ONCE + at]++;
#endif
        }
        if (at >= LEARN_CHUNK) continue;
        if ((samples->first + at) % LEARN_ROOM < LEARN_ROOM - 1) atomic_or(&samples->leaves[at / 32], 1u << (at % 32));
        for (int channel = 0; channel < CHANNELS; channel++)
            samples->paid[channel * LEARN_CHUNK + at] = run->sampled[((long long)channel * ROWS + row) * AGENTS + agent];
    }
    SYNC();
}

// The first of the rows from place k on with the largest number in column k changes places with the one
// there. Rows stay where they are: `order` says which one stands at each place.
DEVICE void choose_pivot(const double *system, int width, u32 *order, int count, int k) {
#if defined(__CUDACC_RTC__)
    if (threadIdx.x < 32) {
        double largest = -1.0;
        int pivot = k;
        for (int i = k + threadIdx.x; i < count; i += 32) {
            const double size = fabs(system[order[i] * width + k]);
            if (size > largest) {
                largest = size;
                pivot = i;
            }
        }
        for (int apart = 16; apart > 0; apart /= 2) {
            const double other = __shfl_down_sync(0xffffffffu, largest, apart);
            const int place = __shfl_down_sync(0xffffffffu, pivot, apart);
            if (other > largest || (other == largest && place < pivot)) {
                largest = other;
                pivot = place;
            }
        }
        if (threadIdx.x == 0) {
            const u32 row = order[k];
            order[k] = order[pivot];
            order[pivot] = row;
        }
    }
#else
    if (threadIdx.x == 0) {
        int pivot = k;
        for (int i = k + 1; i < count; i++)
            if (fabs(system[order[i] * width + k]) > fabs(system[order[pivot] * width + k])) pivot = i;
        const u32 row = order[k];
        order[k] = order[pivot];
        order[pivot] = row;
    }
#endif
}

// Elimination with partial pivoting, as in `base/elimination.rs`: l = a / pivot, a -= l·u, column after column;
// then back substitution, from the last unknown on. Solutions take the place of the right-hand sides, in the
// order of `order`.
//
// Shared memory is what it waits for: so entries wait for two pivots, and are read and written once for both.
// `factors` are two numbers for every row of the system.
DEVICE void solve_system(double *system, int width, u32 *order, double *factors, int count, int sides) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, end = count + sides;
    for (int k = 0; k + 1 < count; k += 2) {
        choose_pivot(system, width, order, count, k);
        SYNC();
        const double *one = system + order[k] * width;
        for (int i = k + 1 + threadIdx.x; i < count; i += blockDim.x) {
            double *row = system + order[i] * width;
            const double factor = row[k] / one[k];
            factors[2 * order[i]] = factor;
            if (factor != 0.0) row[k + 1] -= factor * one[k + 1];
        }
        SYNC();
        choose_pivot(system, width, order, count, k + 1);
        SYNC();
        double *two = system + order[k + 1] * width;
        const double own = factors[2 * order[k + 1]];
        for (int i = k + 2 + threadIdx.x; i < count; i += blockDim.x)
            factors[2 * order[i] + 1] = system[order[i] * width + k + 1] / two[k + 1];
        if (own != 0.0)
            for (int j = k + 2 + threadIdx.x; j < end; j += blockDim.x) two[j] -= own * one[j];
        SYNC();
        // A warp has a row; its lanes keep their part of the pivots' rows from one row to the next.
        for (int base = k + 2 + lane; base < end; base += 32 * SIDE_BY_SIDE) {
            double ones[SIDE_BY_SIDE], twos[SIDE_BY_SIDE];
            UNROLL
            for (int g = 0; g < SIDE_BY_SIDE; g++) {
                const int j = base + 32 * g;
                ones[g] = j < end ? one[j] : 0.0;
                twos[g] = j < end ? two[j] : 0.0;
            }
            for (int i = k + 2 + warp; i < count; i += warps) {
                const double first = factors[2 * order[i]], second = factors[2 * order[i] + 1];
                if (first == 0.0 && second == 0.0) continue;
                double *row = system + order[i] * width + base;
                UNROLL
                for (int g = 0; g < SIDE_BY_SIDE; g++) {
                    if (base + 32 * g >= end) break;
                    double entry = row[32 * g];
                    if (first != 0.0) entry -= first * ones[g];
                    if (second != 0.0) entry -= second * twos[g];
                    row[32 * g] = entry;
                }
            }
        }
        SYNC();
    }
    for (int k = count - 1; k >= 0; k--) {
        double *solved = system + order[k] * width;
        if (threadIdx.x < sides) solved[count + threadIdx.x] /= solved[k];
        SYNC();
        for (int at = threadIdx.x; at < k * sides; at += blockDim.x) {
            double *row = system + order[at / sides] * width;
            const int side = count + at % sides;
            row[side] -= row[k] * solved[side];
        }
        SYNC();
    }
}

// Line 6 by LSTD: a block per agent, and the next ones after it.
//
// A thread forms an entry of A from the masks of two features, in a register. So sums have the host's order
// without a read and a write of shared memory for every pair of active features in every sample, which would
// be several times as much work.
KERNEL(linear_lstd) {
    SHARED(double, memory);
#if SYSTEM_SHARED
    double *system = memory, *factors = memory + SYSTEM_ROOM;
#else
    double *system = run->c_system + (long long)blockIdx.x * SYSTEM_ROOM, *factors = memory;
#endif
    struct Samples samples;
    samples.masks = (u32 *)(factors + 2 * FEATURES);
    samples.leaves = samples.masks + FEATURES * LEARN_STRIDE;
    u32 *order = samples.leaves + LEARN_WORDS;
    samples.paid = (float *)(order + FEATURES);
    samples.times = (u8 *)(samples.paid + CHANNELS * LEARN_CHUNK);
    double *visits = run->c_visits + (long long)blockIdx.x * FEATURES * REWARD_ROW;
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (long long agent = blockIdx.x; agent < AGENTS; agent += gridDim.x) {
        if (!IS_OWN(agent)) continue;
        const int count = (int)run->c_count[agent], sides = 1 + (int)run->constraint_count[agent];
        const int cells = (int)run->state_count[agent] * ACTIONS(agent), width = (count + sides) | 1;
        const int length = cells + CHANNELS;
        double *kept = run->c_equations + (IS_AVERAGED ? run->c_equation_start[agent] : 0);
        double *kept_visits = kept + count * count;
        for (int first = 0; first < LEARN_ROWS; first += LEARN_CHUNK) {
            samples.first = first;
            samples.is_last = first + LEARN_CHUNK >= LEARN_ROWS;
            read_samples(run, &samples, agent, count);
            for (int x = warp; x < count; x += warps) {
                add_row(run, now, &samples, x, count, system + x * width, kept + x * count);
                add_cells(run, now, &samples, x, (int)run->c_own_first[agent], cells, visits + x * REWARD_ROW,
                          kept_visits + x * length);
            }
            for (int at = threadIdx.x; at < count * CHANNELS; at += blockDim.x) {
                const int x = at % count, channel = at / count;
                add_paid(run, now, &samples, x, channel, visits + x * REWARD_ROW + cells + channel,
                         kept_visits + x * length + cells + channel);
            }
            SYNC();
        }
        for (int at = threadIdx.x; at < count * sides; at += blockDim.x) {
            const int x = at % count, u = at / count;
            double sum = -0.0;
            for (int e = 0; e < length; e++)
                sum += visits[x * REWARD_ROW + e] * run->rewards[(u * REWARD_ROW + e) * AGENTS + agent];
            system[x * width + count + u] = sum;
            if (u == 0) order[x] = x;
        }
        SYNC();
        solve_system(system, width, order, factors, count, sides);
        for (int at = threadIdx.x; at < count * sides; at += blockDim.x) {
            const int x = at % count, u = at / count;
            run->c_weights[(u * FEATURES + x) * AGENTS + agent] = system[order[x] * width + count + u];
        }
        SYNC();
    }
}
#else

DEVICE double critic_value(const double *weights, const struct Run *run, const u32 *active, int count) {
    double sum = -0.0;
    for (int m = 0; m < count; m++) sum += weights[active[m] * AGENTS];
    return sum;
}

// Line 6 by temporal differences, one pass over the samples: a thread per agent and utility.
KERNEL(linear_td) {
    const long long agent = THREAD;
    const int u = blockIdx.y;
    if (!IS_OWN(agent) || u > (int)run->constraint_count[agent]) return;
    const int cells = (int)run->state_count[agent] * ACTIONS(agent);
    double *weights = run->c_weights + (long long)u * FEATURES * AGENTS + agent;
    const double *rewards = run->rewards + (long long)u * REWARD_ROW * AGENTS + agent;
    u32 lists[2][CRITIC_ACTIVE];
    int counts[2] = {0, 0}, update = 0;
    for (int r = 0; r < LEARN_ROWS; r++) {
        const pair_t *row = run->pairs + LEARN_ROW(r) * AGENTS;
        const int here = r & 1, before = here ^ 1;
        counts[here] = critic_active(run, agent, row, lists[here]);
        if (r % LEARN_ROOM == 0) continue;
        // From the row before to this one.
        double reward = rewards[pair_number(run, agent, row - AGENTS) * AGENTS];
        for (int channel = 0; channel < CHANNELS; channel++) {
            const double weight = rewards[(cells + channel) * AGENTS];
            if (weight != 0.0)
                reward += weight * (double)run->sampled[((long long)channel * ROWS + LEARN_ROW(r - 1)) * AGENTS + agent];
        }
        const double step = run->c_steps[update++] / (double)counts[before];
        const double next = critic_value(weights, run, lists[here], counts[here]);
        const double difference = reward + run->gamma * next - critic_value(weights, run, lists[before], counts[before]);
        for (int m = 0; m < counts[before]; m++) weights[lists[before][m] * AGENTS] += step * difference;
    }
}
#endif

// Line 8 begins: weights of Q_f + Σ μ·Q_g. Blocks are agents × features.
KERNEL(linear_weigh) {
    const long long agent = THREAD, x_at = blockIdx.y;
    if (agent >= AGENTS || x_at >= run->c_count[agent]) return;
    const int constraints = (int)run->constraint_count[agent];
    double sum = run->c_weights[x_at * AGENTS + agent];
    for (int c = 0; c < constraints; c++)
        sum += run->mu[c * AGENTS + agent] * run->c_weights[((1 + c) * FEATURES + x_at) * AGENTS + agent];
    if (!is_finite(sum)) complain(run, COMPLAINT_Q, agent);
    run->c_weighted[x_at * AGENTS + agent] = sum;
}

#if PER_STEP > 1
// Generic features of the sender in a slot that change with the agent's action, at each of its alternatives.
DEVICE void add_generic(const struct Run *run, long long agent, int slot, const pair_t *row, const double *weights, double *out) {
    const long long sender = run->q_group[slot * AGENTS + agent];
    const int actions = ACTIONS(agent);
    const u32 own = STATE_OF(row[agent]) * actions;
#if CRITIC_OWN
    if (sender != agent) return;
    for (int b = 0; b < actions; b++) out[b] += weights[(own + b) * AGENTS];
#else
    if (sender != agent || !CRITIC_PAIR) {
        const u32 first = run->c_told_first[slot * AGENTS + agent] +
                          run->c_told_stride[slot * AGENTS + agent] * pair_number(run, sender, row) + own;
        for (int b = 0; b < actions; b++) out[b] += weights[(first + b) * AGENTS];
        return;
    }
    const int members = (int)run->q_count[agent];
    for (int m = 0; m < members; m++) {
        const long long at = m * AGENTS + agent, other = run->q_group[at];
        for (int b = 0; b < actions; b++) {
            const u32 pair = other == agent ? own + b : pair_number(run, other, row);
            out[b] += weights[(run->c_first[at] + run->c_stride[at] * (own + b) + pair) * AGENTS];
        }
    }
#endif
}

#if HAS_AHEAD
// The same with those that do not change, as `FeatureSet::add_all_alternatives`.
DEVICE void add_generic_levels(const struct Run *run, long long agent, int slot, const pair_t *row, const double *weights, double *out) {
    const long long sender = run->q_group[slot * AGENTS + agent];
    const int actions = ACTIONS(agent);
    double common = 0.0;
    add_generic(run, agent, slot, row, weights, out);
#if CRITIC_OWN
    if (sender != agent) common += weights[pair_number(run, sender, row) * AGENTS];
#else
    const int members = (int)run->q_count[sender];
    const u32 own = pair_number(run, sender, row);
    for (int m = 0; m < members; m++) {
        const long long at = m * AGENTS + sender, other = run->q_group[at];
        if (other == agent || (CRITIC_PAIR && sender == agent)) continue;
        common += weights[(run->c_first[at] + run->c_stride[at] * own + pair_number(run, other, row)) * AGENTS];
    }
#endif
    for (int b = 0; b < actions; b++) out[b] += common;
}
#endif
#endif

// What every agent receives along the batch. A warp has neighbouring agents at one step; a block looks at
// many steps of the same agents, so that their senders' weights stay in the cache of its multiprocessor.
KERNEL(linear_values) {
    const long long agent = (long long)blockIdx.x * 32 + threadIdx.x % 32;
    if (!IS_OWN(agent)) return;
    const int senders = (int)run->q_count[agent], actions = ACTIONS(agent);
    const int apart = gridDim.y * (blockDim.x / 32);
    for (int sample = blockIdx.y * (blockDim.x / 32) + threadIdx.x / 32; sample < BATCH * HORIZON; sample += apart) {
        const pair_t *row = run->pairs + BATCH_ROW(sample / HORIZON, sample % HORIZON) * AGENTS;
        double values[PER_STEP];
        for (int b = 0; b < PER_STEP; b++) values[b] = 0.0;
#if CRITIC_WORLD && PER_STEP > 1
        struct WorldMoment moment;
        world_moment(run, agent, row, &moment);
#endif
        for (int slot = 0; slot < senders; slot++) {
            const long long sender = run->q_group[slot * AGENTS + agent];
#if IS_PARTIAL
            const int is_partial = !run->g_member[slot * AGENTS + agent];
#else
            const int is_partial = 0;
#endif
            const double *weights = (is_partial ? run->c_weights : run->c_weighted) + sender;
#if PER_STEP == 1
            u32 active[CRITIC_ACTIVE];
            const int count = critic_active(run, sender, row, active);
            double sum = -0.0;
            for (int m = 0; m < count; m++) sum += weights[active[m] * AGENTS];
            values[0] += sum;
#else
            double told[PER_STEP];
            for (int b = 0; b < PER_STEP; b++) told[b] = 0.0;
#if CRITIC_WORLD
            const double *of_world = weights + run->c_world_first[sender] * AGENTS;
#endif
#if HAS_AHEAD
            if (run->c_ahead[sender]) {
                add_generic_levels(run, agent, slot, row, weights, told);
#if CRITIC_WORLD
                world_alternatives(run, &moment, agent, slot, row, of_world, is_partial, told);
#endif
            } else
#endif
            {
#if CRITIC_WORLD
                world_changes(run, &moment, agent, slot, row, of_world, told);
#endif
                add_generic(run, agent, slot, row, weights, told);
            }
            for (int b = 0; b < PER_STEP; b++) values[b] += told[b];
#endif
        }
        for (int b = 0; b < PER_STEP; b++) {
            if (NEIGHBOUR_MEAN) values[b] /= (double)senders;
            if (PER_STEP == 1 || b < actions)
                run->received[((long long)sample * PER_STEP + b) * AGENTS + agent] = values[b];
        }
    }
}

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
    return STATE_OF(row[agent]) * run->action_count[agent] + ACTION_OF(row[agent]);
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

// Adds what a chunk of samples says of A's entry (x, y) to `sum`, in the order of samples: 1 where both are
// active, then −γ where y is in the next step.
DEVICE double add_entry(const struct Run *run, const u32 *masks, const u32 *valid, const u8 *times, int x, int y, double sum) {
    const u32 *of_x = masks + x * LEARN_WORDS, *of_y = masks + y * LEARN_WORDS;
    const double gamma = run->gamma;
    for (int word = 0; word + 1 < LEARN_WORDS; word++) {
        const u32 now_y = of_y[word], next_y = now_y >> 1 | of_y[word + 1] << 31;
        for (u32 bits = of_x[word] & valid[word] & (now_y | next_y); bits != 0; bits &= bits - 1) {
            const u32 low = bits & (0u - bits);
#if HAS_REPEATS
            const int at = word * 32 + LOWEST(bits);
            const u8 *row_y = times + y * LEARN_CHUNK_ROWS + at;
            for (int of = times[x * LEARN_CHUNK_ROWS + at]; of > 0; of--) {
                for (int count = row_y[0]; count > 0; count--) sum += 1.0;
                for (int count = row_y[1]; count > 0; count--) sum -= gamma;
            }
#else
            sum += now_y & low ? 1.0 : 0.0;
            sum -= next_y & low ? gamma : 0.0;
#endif
        }
    }
    return sum;
}

// The averaged number of an equation that is kept in `kept`, which moves on.
DEVICE double averaged(const struct Run *run, const struct Now *now, double *kept, double sum) {
    const double fresh = sum / TRANSITIONS;
#if IS_AVERAGED
    const double moved = run->c_average * *kept + (1.0 - run->c_average) * fresh;
    *kept = moved;
    return moved / now->critic_mass;
#else
    return fresh;
#endif
}

// The first of the rows from place k on with the largest number in column k changes places with the one there.
// Rows stay where they are: `order` says which one stands at each place.
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

// Elimination with partial pivoting, column after column: l = a / pivot, a -= l·u; then back substitution, from
// the last unknown on. Solutions take the place of the right-hand sides, in the order of `order`.
DEVICE void solve_system(double *system, int width, u32 *order, double *factors, int count, int sides) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int k = 0; k < count; k++) {
        choose_pivot(system, width, order, count, k);
        SYNC();
        const double *pivot = system + order[k] * width;
        for (int i = k + 1 + threadIdx.x; i < count; i += blockDim.x) factors[i] = system[order[i] * width + k] / pivot[k];
        SYNC();
        for (int i = k + 1 + warp; i < count; i += warps) {
            const double factor = factors[i];
            if (factor == 0.0) continue;
            double *row = system + order[i] * width;
            for (int j = k + 1 + lane; j < count + sides; j += 32) row[j] -= factor * pivot[j];
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
// For every feature a mask says in which rows of a chunk of samples it is active. A thread then forms an entry
// of A from two masks, in a register: the sums have the host's order without a write to memory per sample, which
// took five times as long.
KERNEL(linear_lstd) {
    SHARED(double, memory);
#if SYSTEM_SHARED
    double *system = memory, *factors = memory + SYSTEM_ROOM;
#else
    double *system = run->c_system + (long long)blockIdx.x * SYSTEM_ROOM, *factors = memory;
#endif
    u32 *masks = (u32 *)(factors + FEATURES), *valid = masks + FEATURES * LEARN_WORDS, *order = valid + LEARN_WORDS;
    float *paid = (float *)(order + FEATURES);
    u8 *times = (u8 *)(paid + CHANNELS * LEARN_CHUNK);
    double *visits = run->c_visits + (long long)blockIdx.x * FEATURES * REWARD_ROW;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (long long agent = blockIdx.x; agent < AGENTS; agent += gridDim.x) {
        const int count = (int)run->c_count[agent], sides = 1 + (int)run->constraint_count[agent];
        const int cells = (int)(run->state_count[agent] * run->action_count[agent]), width = (count + sides) | 1;
        const int length = cells + CHANNELS;
        for (int first = 0; first < LEARN_ROWS; first += LEARN_CHUNK) {
            // One row more than the chunk: the last transition ends there.
            const int rows = LEARN_ROWS - first < LEARN_CHUNK_ROWS ? LEARN_ROWS - first : LEARN_CHUNK_ROWS;
            for (int at = threadIdx.x; at < count * LEARN_WORDS; at += blockDim.x) masks[at] = 0;
            for (int at = threadIdx.x; at < LEARN_WORDS; at += blockDim.x) valid[at] = 0;
#if HAS_REPEATS
            for (int at = threadIdx.x; at < count * LEARN_CHUNK_ROWS; at += blockDim.x) times[at] = 0;
#endif
            SYNC();
            for (int at = threadIdx.x; at < rows; at += blockDim.x) {
                const pair_t *row = run->pairs + LEARN_ROW(first + at) * AGENTS;
                u32 active[CRITIC_ACTIVE];
                const int found = critic_active(run, agent, row, active);
                for (int m = 0; m < found; m++) {
                    atomic_or(&masks[active[m] * LEARN_WORDS + at / 32], 1u << (at % 32));
#if HAS_REPEATS
                    times[active[m] * LEARN_CHUNK_ROWS + at]++;
#endif
                }
                if (at >= LEARN_CHUNK) continue;
                if ((first + at) % LEARN_ROOM < LEARN_ROOM - 1) atomic_or(&valid[at / 32], 1u << (at % 32));
                for (int channel = 0; channel < CHANNELS; channel++)
                    paid[channel * LEARN_CHUNK + at] =
                        run->sampled[((long long)channel * ROWS + LEARN_ROW(first + at)) * AGENTS + agent];
            }
            SYNC();
            for (int x = warp; x < count; x += warps) {
                for (int y = lane; y < count; y += 32) {
                    double *entry = system + x * width + y;
                    *entry = add_entry(run, masks, valid, times, x, y, first == 0 ? 0.0 : *entry);
                }
                // How often the own pair was e: whole numbers, which have one sum.
                for (int e = lane; e < cells; e += 32) {
                    const u32 *of_x = masks + x * LEARN_WORDS;
                    const u32 *of_pair = masks + (run->c_own_first[agent] + e) * LEARN_WORDS;
                    int seen = 0;
                    for (int word = 0; word + 1 < LEARN_WORDS; word++) {
                        const u32 bits = of_x[word] & of_pair[word] & valid[word];
#if HAS_REPEATS
                        for (u32 left = bits; left != 0; left &= left - 1)
                            seen += times[x * LEARN_CHUNK_ROWS + word * 32 + LOWEST(left)];
#else
                        seen += POPCOUNT(bits);
#endif
                    }
                    double *visit = visits + x * REWARD_ROW + e;
                    *visit = (first == 0 ? 0.0 : *visit) + (double)seen;
                }
            }
            for (int at = threadIdx.x; at < count * CHANNELS; at += blockDim.x) {
                const int x = at % count, channel = at / count;
                double *visit = visits + x * REWARD_ROW + cells + channel, sum = first == 0 ? 0.0 : *visit;
                for (int word = 0; word + 1 < LEARN_WORDS; word++) {
                    for (u32 bits = masks[x * LEARN_WORDS + word] & valid[word]; bits != 0; bits &= bits - 1) {
                        const int sample = word * 32 + LOWEST(bits);
                        const double reward = (double)paid[channel * LEARN_CHUNK + sample];
#if HAS_REPEATS
                        for (int of = times[x * LEARN_CHUNK_ROWS + sample]; of > 0; of--) sum += reward;
#else
                        sum += reward;
#endif
                    }
                }
                *visit = sum;
            }
            SYNC();
        }
        double *kept = run->c_equations + (IS_AVERAGED ? run->c_equation_start[agent] : 0);
        for (int x = warp; x < count; x += warps) {
            for (int y = lane; y < count; y += 32) {
                double *entry = system + x * width + y;
                const double a = averaged(run, now, kept + x * count + y, *entry);
                *entry = x == y ? a + run->c_ridge : a;
            }
            for (int e = lane; e < length; e += 32) {
                double *visit = visits + x * REWARD_ROW + e;
                *visit = averaged(run, now, kept + count * count + x * length + e, *visit);
            }
        }
        for (int x = threadIdx.x; x < count; x += blockDim.x) order[x] = x;
        SYNC();
        for (int at = threadIdx.x; at < count * sides; at += blockDim.x) {
            const int x = at % count, u = at / count;
            double sum = -0.0;
            for (int e = 0; e < length; e++)
                sum += visits[x * REWARD_ROW + e] * run->rewards[(u * REWARD_ROW + e) * AGENTS + agent];
            system[x * width + count + u] = sum;
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
    if (agent >= AGENTS || u > (int)run->constraint_count[agent]) return;
    const int cells = (int)(run->state_count[agent] * run->action_count[agent]);
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
    const int actions = (int)run->action_count[agent];
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
    const int actions = (int)run->action_count[agent];
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

// What every agent receives along the batch. A warp has neighbouring agents at one step; a block looks at many
// steps of the same agents, so that their senders' weights stay in the cache of its multiprocessor.
KERNEL(linear_values) {
    const long long agent = (long long)blockIdx.x * 32 + threadIdx.x % 32;
    if (agent >= AGENTS) return;
    const int senders = (int)run->q_count[agent], actions = (int)run->action_count[agent];
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

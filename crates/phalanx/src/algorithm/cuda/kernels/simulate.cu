// Line 3: trajectories of factored worlds.
//
// A block advances a tile of agents for many steps without waiting for other blocks: it recomputes the agents
// near its own, whose draws depend on place, agent and step alone. A tile of all agents needs none of that.
// Where neither works, `act_step` and `move_step` take one step of all agents at a time.

#define UNIFORM_START(count, word) ((u32)(((u64)((word) >> 1) * (count)) >> 31))

// The trajectories that a launch advances: those with most steps first.
#if CHAINS > 0 && CHAIN_ROOM > BATCH_ROOM
#define IS_CHAIN(slot) ((slot) < CHAINS)
#define NUMBER_OF(slot) ((slot) < CHAINS ? (slot) : (slot) - CHAINS)
#else
#define IS_CHAIN(slot) ((slot) >= BATCH)
#define NUMBER_OF(slot) ((slot) < BATCH ? (slot) : (slot) - BATCH)
#endif
#define ROW_OF(slot, k) (IS_CHAIN(slot) ? CHAIN_ROW(NUMBER_OF(slot), k) : BATCH_ROW(NUMBER_OF(slot), k))
#define ROOM_OF(slot) (IS_CHAIN(slot) ? CHAIN_ROOM : BATCH_ROOM)

// The last counter of a trajectory's numbers: what they are for, and its place among all trajectories.
DEVICE u32 last_counter(const struct Run *run, const struct Now *now, int slot, int is_start) {
    u32 number = IS_CHAIN(slot) ? BATCH + NUMBER_OF(slot) : FIRST_TRAJECTORY + NUMBER_OF(slot);
    u32 purpose = IS_CHAIN(slot) ? CRITIC_PURPOSE : BATCH_PURPOSE;
    return (purpose + is_start) << 24 | number;
}

DEVICE u32 start_state(const struct Run *run, const struct Now *now, u32 iteration, int slot, long long agent) {
    u32 words[4];
    philox(run, (u32)agent, 0, iteration, last_counter(run, now, slot, 1), words);
    if (IS_CHAIN(slot)) return UNIFORM_START(run->state_count[agent], words[0]);
    return world_start(run, agent, words);
}

// Bytes that the threads of a block share: pairs of two steps, then what the policy keeps.
#define PAIR_BYTES ((SPAN * sizeof(pair_t) + 15) / 16 * 16)

#if SPAN > 0
#if IS_LOOPED
#define EACH_AGENT for (int local = threadIdx.x; local < count; local += blockDim.x)
#else
#define EACH_AGENT if (threadIdx.x < count)
#endif

// `x` is the first step, of `STEPS_AT_ONCE`; blocks are tiles × trajectories.
KERNEL(simulate) {
    SHARED(u8, memory);
    const int slot = blockIdx.y, room = ROOM_OF(slot), part = (x / STEPS_AT_ONCE) & 1;
    const int end = room < x + STEPS_AT_ONCE ? room : x + STEPS_AT_ONCE;
    const long long own_first = (long long)blockIdx.x * OWN;
    const long long own_end = own_first + OWN < AGENTS ? own_first + OWN : AGENTS;
    const long long first = own_first > HALO ? own_first - HALO : 0;
    const int count = (int)((own_end + HALO < AGENTS ? own_end + HALO : AGENTS) - first);
    const u32 iteration = (u32)now->iteration, last = last_counter(run, now, slot, 0);
    const long long slots = BATCH + CHAINS;
    pair_t *pairs = (pair_t *)memory, *next = (pair_t *)(memory + PAIR_BYTES);
    u8 *kept = memory + 2 * PAIR_BYTES;
    (void)kept;
#if !IS_LOOPED
    const int local = threadIdx.x;
    const long long agent = first + local;
    struct Actor actor;
    u32 words[4] = {0, 0, 0, 0};
    const int is_own = agent >= own_first && agent < own_end;
    if (local >= count) pairs[local] = next[local] = 0;
#endif
    EACH_AGENT {
#if IS_LOOPED
        const long long agent = first + local;
#else
        actor_load(run, agent, local, first, kept, &actor);
#endif
        u32 state = x == 0 ? start_state(run, now, iteration, slot, agent)
                           : run->carried[((part ^ 1) * slots + slot) * AGENTS + agent];
        pairs[local] = PAIR(state, 0);
    }
    SYNC();
    for (int k = x; k < end; k++) {
        const long long row = ROW_OF(slot, k) * AGENTS;
        EACH_AGENT {
#if IS_LOOPED
            const long long agent = first + local;
            struct Actor actor;
            u32 words[4];
            actor_load(run, agent, local, first, kept, &actor);
            philox(run, (u32)agent, k / 2, iteration, last, words);
#else
            if ((k & 1) == 0) philox(run, (u32)agent, k / 2, iteration, last, words);
#endif
            const u32 draw = (k & 1 ? words[2] : words[0]) >> 1;
            const u32 action = policy_act(run, &actor, agent, draw, pairs, first);
            pairs[local] = PAIR(STATE_OF(pairs[local]), action);
        }
#if IS_LOOPED || WORLD_READS_ACTIONS || CHANNELS > 0
        SYNC();
#endif
        EACH_AGENT {
#if IS_LOOPED
            const long long agent = first + local;
            const int is_own = 1;
            u32 words[4];
            philox(run, (u32)agent, k / 2, iteration, last, words);
#endif
            const u32 draw = (k & 1 ? words[3] : words[1]) >> 1;
            if (is_own) {
                run->pairs[row + agent] = pairs[local];
#if CHANNELS > 0
                for (int channel = 0; channel < CHANNELS; channel++)
                    run->sampled[(long long)channel * ROWS * AGENTS + row + agent] =
                        world_reward(run, agent, pairs, first, draw, channel);
#endif
            }
            next[local] = PAIR(world_step(run, agent, pairs, first, draw), 0);
        }
        SYNC();
        pair_t *swapped = pairs;
        pairs = next;
        next = swapped;
    }
    if (end < room) {
        EACH_AGENT {
#if IS_LOOPED
            const long long agent = first + local;
            const int is_own = 1;
#endif
            if (is_own) run->carried[(part * slots + slot) * AGENTS + agent] = (u8)STATE_OF(pairs[local]);
        }
    }
}
#else

// One step of all agents at a time; blocks are agents × trajectories.
KERNEL(begin_steps) {
    const long long agent = THREAD;
    const int slot = blockIdx.y;
    if (agent >= AGENTS) return;
    u32 state = start_state(run, now, (u32)now->iteration, slot, agent);
    run->pairs[ROW_OF(slot, 0) * AGENTS + agent] = PAIR(state, 0);
}

#if POLICY_ACTS_ALONE
// a^x of agents that act from the present states.
KERNEL(act_step) {
    const long long agent = THREAD;
    const int slot = blockIdx.y;
    if (!IS_OWN(agent)) return;
    pair_t *row = run->pairs + ROW_OF(slot, x) * AGENTS;
    struct Actor actor;
    u32 words[4];
    actor_load(run, agent, 0, 0, 0, &actor);
    philox(run, (u32)agent, x / 2, (u32)now->iteration, last_counter(run, now, slot, 0), words);
    const u32 action = policy_act(run, &actor, agent, (x & 1 ? words[2] : words[0]) >> 1, row, 0);
    row[agent] = PAIR(STATE_OF(row[agent]), action);
}
#endif

// s^{x + 1}, and what step x earns.
KERNEL(move_step) {
    const long long agent = THREAD;
    const int slot = blockIdx.y;
    if (!IS_OWN(agent)) return;
    const long long at = ROW_OF(slot, x) * AGENTS;
    const pair_t *row = run->pairs + at;
    u32 words[4];
    philox(run, (u32)agent, x / 2, (u32)now->iteration, last_counter(run, now, slot, 0), words);
    const u32 draw = (x & 1 ? words[3] : words[1]) >> 1;
#if CHANNELS > 0
    for (int channel = 0; channel < CHANNELS; channel++)
        run->sampled[(long long)channel * ROWS * AGENTS + at + agent] =
            world_reward(run, agent, row, 0, draw, channel);
#endif
    if (x + 1 < ROOM_OF(slot))
        run->pairs[at + AGENTS + agent] = PAIR(world_step(run, agent, row, 0, draw), 0);
}
#endif

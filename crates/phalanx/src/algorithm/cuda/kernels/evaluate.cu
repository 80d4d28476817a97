// Evaluation of a fixed policy: the visits of a chunk of episodes, and what is left of all of them without one.
//
// Sums over episodes have the processor's order: a thread owns a number and reads the episodes one after the
// other. What concerns a single episode of an agent is a thread's own.

// Numbers of all agents in all episodes of a chunk.
#define LANES ((long long)BATCH * AGENTS)

// The visits of every episode to the cells of small tables, in `scratch`; how often they were visited.
KERNEL(visit_cells) {
    SHARED(double, memory);
    const long long lane = THREAD, agent = lane % AGENTS, episode = lane / AGENTS;
    if (episode >= now->count) return;
    const int actions = (int)run->action_count[agent], cells = (int)run->state_count[agent] * actions;
    if (cells > SMALL_TABLE) return;
    const int apart = blockDim.x;
    double *sums = memory + threadIdx.x;
    u32 *seen = (u32 *)(memory + PHASES * SMALL_CELLS * apart) + threadIdx.x;
    visit_small_table(run, BATCH_ROW(episode, 0) * AGENTS + agent, actions, cells, sums, seen, apart);
    for (int e = 0; e < cells; e++) {
        run->scratch[e * LANES + lane] = PHASE_TOTAL(sums, e, cells, apart);
        // Whole numbers: their order does not matter.
        if (seen[e * apart] > 0) atomic_add(&run->counts[e * AGENTS + agent], (double)seen[e * apart]);
    }
}

// λ̃ of small tables, of all episodes so far: a thread per agent, a row of blocks per cell. It reads several
// numbers before it adds them up, and so waits for them once.
KERNEL(pool_visits) {
    const long long agent = THREAD, episodes = now->count;
    const int cell = blockIdx.y;
    if (agent >= AGENTS) return;
    const int cells = (int)(run->state_count[agent] * run->action_count[agent]);
    if (cells > SMALL_TABLE || cell >= cells) return;
    const double *visits = run->scratch + cell * LANES + agent;
    double sum = run->occupancy[cell * AGENTS + agent];
    for (long long first = 0; first < episodes; first += READ_AHEAD) {
        double part[READ_AHEAD];
        UNROLL for (int c = 0; c < READ_AHEAD; c++)
            part[c] = LOAD(visits + (first + c < episodes ? first + c : 0) * AGENTS);
        UNROLL for (int c = 0; c < READ_AHEAD; c++)
            if (first + c < episodes) sum += part[c];
    }
    run->occupancy[cell * AGENTS + agent] = sum;
}

// Steps that a block reads at a time: its first warp adds them up while the others read the next ones.
#define READERS (SCAN_WARPS - 1)
#define SCANNED (READERS * READ_AHEAD)

// λ̃ of large tables and totals of channels, of all episodes so far, and plain counts: both are added up step
// by step. A block has 32 agents and an entry. A visit is a reward of 1.
KERNEL(scan_visits) {
    SHARED(float, memory);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, entry = blockIdx.x % OCCUPANCY_ROW;
    const long long agent = (long long)(blockIdx.x / OCCUPANCY_ROW) * 32 + lane, rows = now->count * HORIZON;
    if (agent >= AGENTS) return;
    const int actions = (int)run->action_count[agent], cells = (int)run->state_count[agent] * actions;
    if (entry >= cells + CHANNELS || (entry < cells && cells <= SMALL_TABLE)) return;
    const float *rewards = run->sampled + (entry < cells ? 0 : entry - cells) * ROWS * AGENTS + agent;
    const pair_t *pairs = run->pairs + agent;
    double sum = run->occupancy[entry * AGENTS + agent], plain = run->counts[entry * AGENTS + agent];
    int k = 0;
    for (long long first = -SCANNED; first < rows; first += SCANNED) {
        const long long next = first + SCANNED;
        if (warp > 0) {
            float *to = memory + (next / SCANNED & 1) * (SCANNED * 32) + lane, part[READ_AHEAD];
            UNROLL for (int c = 0; c < READ_AHEAD; c++) {
                const long long row = next + c * READERS + warp - 1, at = (row < rows ? row : 0) * AGENTS;
                if (entry < cells) {
                    const pair_t pair = LOAD(pairs + at);
                    part[c] = (int)(STATE_OF(pair) * actions + ACTION_OF(pair)) == entry;
                } else {
                    part[c] = LOAD(rewards + at);
                }
            }
            UNROLL for (int c = 0; c < READ_AHEAD; c++) to[(c * READERS + warp - 1) * 32] = part[c];
        } else if (first >= 0) {
            const float *from = memory + (first / SCANNED & 1) * (SCANNED * 32) + lane;
            const int count = (int)(rows - first < SCANNED ? rows - first : SCANNED);
            UNROLL_BY_5 for (int c = 0; c < SCANNED; c++) {
                const double reward = (double)from[c * 32];
                sum = c < count ? sum + run->visit_weights[k] * reward : sum;
                plain = c < count ? plain + reward : plain;
                k = k + 1 < HORIZON ? k + 1 : 0;
            }
        }
        SYNC();
    }
    if (warp > 0) return;
    run->occupancy[entry * AGENTS + agent] = sum;
    run->counts[entry * AGENTS + agent] = plain;
}

// Number `which` of an agent in an episode: changes of its utilities, then its return, then its totals of
// channels, then whether events happened.
#define NUMBER(which) run->numbers[(which) * LANES + lane]
#define FIRST_TOTAL (UTILITIES + HAS_RETURN)
#define FIRST_EVENT (FIRST_TOTAL + CHANNELS)

// Every utility at λ̄ without one episode, (E·λ̄ − λ_e)/(E − 1), less its value at λ̄, as `leave_one_out` has it;
// and what the agent did and earned in that episode.
KERNEL(leave_out) {
    SHARED(double, memory);
    const long long lane = THREAD, agent = lane % AGENTS, episode = lane / AGENTS;
    if (episode >= now->count) return;
    const int states = (int)run->state_count[agent], actions = (int)run->action_count[agent];
    const int cells = states * actions, constraints = (int)run->constraint_count[agent];
    const long long first = BATCH_ROW(episode, 0) * AGENTS + agent;
#if ROW_SHARED
    double *row = memory + threadIdx.x;
    const long long apart = blockDim.x;
#else
    double *row = run->scratch + lane;
    const long long apart = LANES;
    (void)memory;
#endif
    for (int e = 0; e < cells + CHANNELS; e++) row[e * apart] = run->occupancy[e * AGENTS + agent];
    u32 seen[(MAX_CELLS + 31) / 32];
    for (int word = 0; word < (MAX_CELLS + 31) / 32; word++) seen[word] = 0;
    double earned = -0.0;
    UNROLL_BY_5 for (int k = 0; k < HORIZON; k++) {
        const pair_t pair = run->pairs[first + (long long)k * AGENTS];
        const int cell = (int)(STATE_OF(pair) * actions + ACTION_OF(pair));
        row[cell * apart] -= run->visit_weights[k];
        seen[cell / 32] |= 1u << cell % 32;
#if HAS_RETURN && RETURN_CHANNEL < 0
        if (k < COUNTED) earned += run->return_table[cell * AGENTS + agent];
#endif
    }
#if CHANNELS > 0
    for (int channel = 0; channel < CHANNELS; channel++) {
        const float *rewards = run->sampled + (long long)channel * ROWS * AGENTS + first;
        const int from = (int)run->channel_first[channel];
        double weighted = -0.0, total = -0.0, paid = -0.0;
        UNROLL_BY_5 for (int k = 0; k < HORIZON; k++) {
            const double reward = (double)rewards[(long long)k * AGENTS];
            weighted += run->visit_weights[k] * reward;
            if (k < COUNTED) paid += reward;
            if (k >= from && k < COUNTED) total += reward;
        }
        row[(cells + channel) * apart] -= weighted;
        NUMBER(FIRST_TOTAL + channel) = total;
        if (channel == RETURN_CHANNEL) earned = paid;
    }
    for (int event = 0; event < EVENTS; event++) {
        const float *rewards = run->sampled + (long long)run->event_channel[event] * ROWS * AGENTS + first;
        int happened = 0;
        for (int k = 0; k < COUNTED; k++) happened |= rewards[(long long)k * AGENTS] != 0.0f;
        NUMBER(FIRST_EVENT + event) = happened;
    }
#endif
#if HAS_RETURN
    NUMBER(UTILITIES) = earned;
#endif
    for (int e = 0; e < cells + CHANNELS; e++) {
        const double left = row[e * apart] * now->rescale;
        // Rounding may leave a cell that only this episode visited a little below zero.
        row[e * apart] = e < cells && !(left > 0.0) ? 0.0 : left;
    }
    for (int e = 0; e < cells; e++)
        if (seen[e / 32] >> e % 32 & 1) atomic_add(&run->visited[e * AGENTS + agent], 1.0);
    const long long problem = (long long)run->problem_of[agent] * UTILITIES;
    for (int u = 0; u <= constraints; u++) {
        const struct Utility utility = utility_at(run, problem + u);
        const double value = utility.scale * utility_value(run, &utility, row, apart, states, actions) + utility.offset;
        NUMBER(u) = value - run->pool_values[u * AGENTS + agent];
    }
}

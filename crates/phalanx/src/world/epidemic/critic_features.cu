// `Exposure`: the own conduct with the level of exposure, and the conduct of everybody else in the group.

#define EPIDEMIC_CONDUCTS (EPIDEMIC_STATES + 2)

DEVICE u32 epidemic_exposure(const struct Run *run, long long agent, const pair_t *row) {
    const int members = (int)run->q_count[agent];
    u32 infected = 0;
    for (int m = 0; m < members; m++)
        infected += run->epidemic_role[m * AGENTS + agent] == EPIDEMIC_CONTACT &&
                    STATE_OF(row[run->q_group[m * AGENTS + agent]]) == 1;
    return epidemic_level(infected);
}

// The indicator that a member in that role makes active by its conduct.
DEVICE u32 epidemic_feature(int role, u32 own_state, u32 level, u32 conduct) {
    if (role == EPIDEMIC_OWN) return conduct * EPIDEMIC_LEVELS + level;
    if (role == EPIDEMIC_CONTACT) return (EPIDEMIC_LEVELS + own_state) * EPIDEMIC_CONDUCTS + conduct;
    return (EPIDEMIC_LEVELS + EPIDEMIC_STATES) * EPIDEMIC_CONDUCTS + conduct;
}

DEVICE int world_features(const struct Run *run, long long agent, const pair_t *row, u32 *out) {
    const int members = (int)run->q_count[agent];
    const u32 level = epidemic_exposure(run, agent, row), own = STATE_OF(row[agent]);
    for (int m = 0; m < members; m++) {
        const pair_t pair = row[run->q_group[m * AGENTS + agent]];
        out[m] = epidemic_feature(run->epidemic_role[m * AGENTS + agent], own, level,
                                  epidemic_conduct(STATE_OF(pair), ACTION_OF(pair)));
    }
    return members;
}

// What all senders need to know of a step: nothing.
struct WorldMoment {
    u32 unused;
};

DEVICE void world_moment(const struct Run *run, long long agent, const pair_t *row, struct WorldMoment *moment) {
    moment->unused = 0;
}

// Of all indicators that of the agent alone changes: with the exposure if it is the sender itself, else with
// the sender's state.
DEVICE void world_changes(const struct Run *run, const struct WorldMoment *moment, long long agent, int slot,
                          const pair_t *row, const double *weights, double *out) {
    const long long sender = run->q_group[slot * AGENTS + agent];
    const int role = run->epidemic_told_role[slot * AGENTS + agent];
    const u32 level = role == EPIDEMIC_OWN ? epidemic_exposure(run, agent, row) : 0;
    const u32 own = STATE_OF(row[sender]), state = STATE_OF(row[agent]);
    for (u32 b = 0; b < 3; b++) out[b] += weights[epidemic_feature(role, own, level, epidemic_conduct(state, b)) * AGENTS];
}

// Both ways to work them out are the same here.
DEVICE void world_alternatives(const struct Run *run, const struct WorldMoment *moment, long long agent, int slot,
                               const pair_t *row, const double *weights, int is_left_out, double *out) {
    const long long sender = run->q_group[slot * AGENTS + agent];
    const int members = (int)run->q_count[sender], role = run->epidemic_told_role[slot * AGENTS + agent];
    const u32 level = epidemic_exposure(run, sender, row);
    const u32 own = STATE_OF(row[sender]), state = STATE_OF(row[agent]);
    double value = -0.0;
    for (int m = 0; m < members; m++) {
        const pair_t pair = row[run->q_group[m * AGENTS + sender]];
        const u32 conduct = epidemic_conduct(STATE_OF(pair), ACTION_OF(pair));
        value += weights[epidemic_feature(run->epidemic_role[m * AGENTS + sender], own, level, conduct) * AGENTS];
    }
    const u32 taken = epidemic_conduct(state, ACTION_OF(row[agent]));
    const double rest = value - weights[epidemic_feature(role, own, level, taken) * AGENTS];
    for (u32 b = 0; b < 3; b++)
        out[b] += rest + weights[epidemic_feature(role, own, level, epidemic_conduct(state, b)) * AGENTS];
}

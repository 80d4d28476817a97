// The wireless network, as `mod.rs` has it: one draw decides whether a packet gets through and whether one arrives.

DEVICE u32 world_start(const struct Run *run, long long agent, const u32 words[4]) {
    return (u32)(((u64)(words[0] >> 1) * run->state_count[agent]) >> 31);
}

// Whether a packet of the agent gets through: it has luck, and nobody else addresses the access point. Beyond the
// edge of the grid this looks at four other users, which does not matter: nobody has luck there.
DEVICE u32 wireless_delivers(const struct Run *run, long long agent, READ_ARGS, u32 draw) {
    const u32 action = ACTION(agent);
    const u32 first = run->wireless_through[(2 * action) * AGENTS + agent];
    const u32 second = run->wireless_through[(2 * action + 1) * AGENTS + agent];
    const int is_lucky = draw < first || (draw >= run->wireless_arrival[agent] && draw < second);
    if (!is_lucky || STATE(agent) == 0) return 0;
    const long long back = action == 1 ? WIRELESS_COLUMNS + 1 : action == 2 ? WIRELESS_COLUMNS : action == 3 ? 1 : 0;
    const long long most = AGENTS - WIRELESS_COLUMNS - 2;
    long long corner = agent - back;
    if (corner < 0 || corner > most) corner = most;
    const int count = (ACTION(corner) == 4) + (ACTION(corner + 1) == 3) + (ACTION(corner + WIRELESS_COLUMNS) == 2) +
                      (ACTION(corner + WIRELESS_COLUMNS + 1) == 1);
    return count == 1;
}

DEVICE u32 world_step(const struct Run *run, long long agent, READ_ARGS, u32 draw) {
    u32 queue = STATE(agent);
    if (wireless_delivers(run, agent, READ_PASS, draw)) queue &= queue - 1;
    return queue >> 1 | (draw >= run->wireless_arrival[agent] ? run->wireless_newest[agent] : 0);
}

DEVICE float world_reward(const struct Run *run, long long agent, READ_ARGS, u32 draw, int channel) {
    return (float)wireless_delivers(run, agent, READ_PASS, draw);
}

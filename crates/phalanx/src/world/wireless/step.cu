// The wireless network, as `mod.rs` has it: one draw decides success and arrival together.

DEVICE u32 world_start(const struct Run *run, long long agent, const u32 words[4]) {
    const u64 queues = 2 * (u64)run->wireless_newest[agent];
    return (u32)(((u64)(words[0] >> 1) * queues) >> 31);
}

// Whether a packet gets through: from a queue that is not empty, with luck, and alone at its access point.
// Luck is asked first: there is none where no access point is, so only users who exist are looked at.
DEVICE int wireless_delivers(const struct Run *run, long long agent, READ_ARGS, u32 draw) {
    const u32 action = ACTION(agent), arrival = run->wireless_arrival[agent];
    if (action == 0 || STATE(agent) == 0) return 0;
    const u32 below = run->wireless_through[(2 * (action - 1)) * AGENTS + agent];
    const u32 end = run->wireless_through[(2 * (action - 1) + 1) * AGENTS + agent];
    if (!(draw < below || (draw >= arrival && draw < end))) return 0;
    const long long columns = WIRELESS_COLUMNS;
    const long long back = action == 1 ? columns + 1 : action == 2 ? columns : action == 3 ? 1 : 0;
    const long long first = agent - back;
    return (ACTION(first) == 4) + (ACTION(first + 1) == 3) + (ACTION(first + columns) == 2) +
               (ACTION(first + columns + 1) == 1) == 1;
}

DEVICE u32 world_step(const struct Run *run, long long agent, READ_ARGS, u32 draw) {
    const u32 queue = STATE(agent);
    const u32 left = wireless_delivers(run, agent, READ_PASS, draw) ? queue & (queue - 1) : queue;
    return left >> 1 | (draw >= run->wireless_arrival[agent] ? run->wireless_newest[agent] : 0);
}

DEVICE float world_reward(const struct Run *run, long long agent, READ_ARGS, u32 draw, int channel) {
    return wireless_delivers(run, agent, READ_PASS, draw) ? 1.0f : 0.0f;
}

#undef world_start
#undef world_step
#undef world_reward
#undef LOCAL
#define LOCAL(agent) (agent)
#undef AGENTS
#define AGENTS (run->agents)

DEVICE u32 world_start(const struct Run *run, long long agent, const u32 words[4]) {
    return whole_start(run, run->whole_ids[agent], words);
}

DEVICE u32 world_step(const struct Run *run, long long agent, READ_ARGS, u32 draw) {
    return whole_step(run, run->whole_ids[agent], READ_PASS, draw);
}

#if CHANNELS > 0
DEVICE float world_reward(const struct Run *run, long long agent, READ_ARGS, u32 draw, int channel) {
    return whole_reward(run, run->whole_ids[agent], READ_PASS, draw, channel);
}
#endif

// The epidemic, as `mod.rs` has it: a table of moves by own state, own action and infected contacts.

DEVICE u32 world_start(const struct Run *run, long long agent, const u32 words[4]) {
    return (words[0] >> 1) >= EPIDEMIC_INFECTED_FROM;
}

DEVICE u32 world_step(const struct Run *run, long long agent, READ_ARGS, u32 draw) {
    const u64 end = run->epidemic_ends[agent + 1];
    u32 infected = 0;
    for (u64 at = run->epidemic_ends[agent]; at < end; at++) infected += STATE(run->epidemic_contacts[at]) == 1;
    const u32 move = (STATE(agent) * 3 + ACTION(agent)) * EPIDEMIC_WIDTH + infected;
    return run->epidemic_outcomes[2 * move + (draw >= run->epidemic_thresholds[move])];
}

// Any finite model, as `table.rs` has it: thresholds by the joint values of the parents.

DEVICE u32 table_outcome(const u32 *thresholds, u32 count, u32 draw) {
    u32 passed = 0;
    for (u32 at = 0; at < count; at++) passed += draw >= thresholds[at];
    return passed;
}

DEVICE u32 world_start(const struct Run *run, long long agent, const u32 words[4]) {
    const u64 first = run->table_start_ends[agent];
    return table_outcome(run->table_start + first, (u32)(run->table_start_ends[agent + 1] - first), words[0] >> 1);
}

DEVICE u32 world_step(const struct Run *run, long long agent, READ_ARGS, u32 draw) {
    const u64 end = run->table_parent_ends[agent + 1];
    u32 row = 0;
    for (u64 at = run->table_parent_ends[agent]; at < end; at++) {
        const u32 *term = run->table_parents + 3 * at;
        row += term[1] * STATE(term[0]) + term[2] * ACTION(term[0]);
    }
    const u64 first = run->table_start_ends[agent];
    const u32 others = (u32)(run->table_start_ends[agent + 1] - first);
    return table_outcome(run->table_thresholds + run->table_law_ends[agent] + (u64)row * others, others, draw);
}

// The line, as `line.rs` has it: thresholds on the draw decide the next state.

DEVICE u32 world_start(const struct Run *run, long long agent, const u32 words[4]) {
#if LINE_START == 0
    return 1;
#elif LINE_START == 1
    return (u32)(((u64)(words[0] >> 1) * 2) >> 31);
#else
    return 0;
#endif
}

DEVICE u32 world_step(const struct Run *run, long long agent, READ_ARGS, u32 draw) {
    const u32 action = ACTION(agent);
    if (agent == LINE_LAST) return draw >= (action ? LINE_COPY_1 : LINE_COPY_0);
    const u32 right = STATE(agent + 1);
    if (agent == LINE_FIRST) return draw >= (right ? LINE_COPY_1 : LINE_COPY_0);
    return draw >= (action ? (right ? LINE_MIDDLE_11 : LINE_MIDDLE_10) : (right ? LINE_MIDDLE_01 : LINE_MIDDLE_00));
}

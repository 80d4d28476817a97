// `Risk`: the own state with the level of exposure, and how many are infected farther away.

DEVICE int world_policy_features(const struct Run *run, long long agent, SEEN_ARGS, u32 *out) {
    const int members = (int)run->p_count[agent];
    u32 near = 0, far = 0;
    for (int m = 0; m < members; m++) {
        const u8 role = run->epidemic_seen_role[m * AGENTS + agent];
        const u32 infected = SEEN(run->p_group[m * AGENTS + agent]) == 1;
        near += role == EPIDEMIC_CONTACT ? infected : 0;
        far += role == EPIDEMIC_FAR ? infected : 0;
    }
    out[0] = SEEN(agent) * EPIDEMIC_LEVELS + epidemic_level(near);
    out[1] = EPIDEMIC_STATES * EPIDEMIC_LEVELS + epidemic_level(far);
    return 1 + run->epidemic_sees_far[agent];
}

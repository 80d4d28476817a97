// `Rivals`: the urgency of the own queue and of those who could be in the way, for each access point.

DEVICE u32 wireless_urgency(u32 queue) {
    return queue == 0 ? 0 : queue & 1 ? 1 : 2;
}

DEVICE int world_policy_features(const struct Run *run, long long agent, SEEN_ARGS, u32 *out) {
    const u32 own = wireless_urgency(SEEN(agent));
    int count = 0;
    for (int point = 0; point < 4; point++) {
        const u32 first = run->wireless_rivals_first[point * AGENTS + agent];
        if (first == WIRELESS_NOBODY) break;
        u32 joint = own;
        for (int rival = 0; rival < 3; rival++) {
            const u32 user = run->wireless_rivals[(3 * point + rival) * AGENTS + agent];
            if (user != WIRELESS_NOBODY) joint = joint * 3 + wireless_urgency(SEEN(user));
        }
        out[count++] = first + joint;
    }
    return count;
}

// `Sends`: queues of neighbours, and sends that nobody in the group disturbs.

DEVICE int world_features(const struct Run *run, long long agent, const pair_t *row, u32 *out) {
    const int members = (int)run->q_count[agent];
    int count = 0, points[Q_SLOTS];
    for (int m = 0; m < members; m++) {
        const u32 user = run->q_group[m * AGENTS + agent];
        points[m] = wireless_point((int)user, (int)ACTION_OF(row[user]));
    }
    for (int m = 0; m < members; m++) {
        const u32 user = run->q_group[m * AGENTS + agent], queue = STATE_OF(row[user]);
        const u32 sends = run->wireless_sends[m * AGENTS + agent];
        if (user != agent) out[count++] = sends - run->state_count[user] + queue;
        int load = 0;
        for (int other = 0; other < members; other++) load += points[other] == points[m];
        if (queue != 0 && points[m] >= 0 && load == 1) out[count++] = sends + queue;
    }
    return count;
}

// What all senders need to know of a step: the own queue, who of the twelve rivals is where it can be in the
// way, and from which queue it sends.
struct WorldMoment {
    u32 queue, there;
    u32 queues[12];
};

DEVICE void world_moment(const struct Run *run, long long agent, const pair_t *row, struct WorldMoment *moment) {
    moment->queue = STATE_OF(row[agent]);
    moment->there = 0;
    UNROLL
    for (int action = 1; action < 5; action++) {
        const int own = 4 - action;
        const int exists = wireless_point((int)agent, action) >= 0;
        UNROLL
        for (int rival = 0; rival < 3; rival++) {
            const int place = rival + (rival >= own);
            const long long user = agent - WIRELESS_AROUND(own) + WIRELESS_AROUND(place);
            const int at = 3 * (action - 1) + rival;
            const pair_t pair = exists ? row[user] : 0;
            moment->there |= (u32)(exists && ACTION_OF(pair) == (u32)(4 - place)) << at;
            moment->queues[at] = STATE_OF(pair);
        }
    }
}

// Only the sends at the agent's access points change: its own if nobody is there, that of the one who is
// there if it is one. `wireless_told` numbers them as the sender in that slot does.
DEVICE void world_changes(const struct Run *run, const struct WorldMoment *moment, long long agent, int slot,
                          const pair_t *row, const double *weights, double *out) {
    const u32 *told = run->wireless_told + (long long)slot * 13 * AGENTS + agent;
    const u32 own = LOAD(told);
    UNROLL
    for (int action = 1; action < 5; action++) {
        if (wireless_point((int)agent, action) < 0) continue;
        int count = 0;
        double lost = 0.0;
        UNROLL
        for (int rival = 0; rival < 3; rival++) {
            const int at = 3 * (action - 1) + rival;
            const u32 sends = LOAD(told + (1 + at) * AGENTS);
            if (sends == WIRELESS_NOBODY || !(moment->there >> at & 1)) continue;
            count++;
            if (moment->queues[at] != 0) lost += weights[(sends + moment->queues[at]) * AGENTS];
        }
        const double gained = count == 0 && moment->queue != 0 ? weights[(own + moment->queue) * AGENTS] : 0.0;
        out[action] += gained - (count == 1 ? lost : 0.0);
    }
}

// Value of a member's undisturbed send: from an empty queue nothing is sent.
DEVICE double wireless_send(const struct Run *run, long long sender, int member, u32 queue, const double *weights) {
    return queue == 0 ? 0.0 : weights[(run->wireless_sends[member * AGENTS + sender] + queue) * AGENTS];
}

// Everybody's sends are looked at once; then the agent is taken away from its access point, as in
// `add_all_alternatives`. Or it is left out from the beginning, as in `add_alternatives`.
DEVICE void world_alternatives(const struct Run *run, const struct WorldMoment *moment, long long agent, int slot,
                               const pair_t *row, const double *weights, int is_left_out, double *out) {
    const long long sender = run->q_group[slot * AGENTS + agent];
    const int members = (int)run->q_count[sender];
    int points[Q_SLOTS], chooser = 0;
    double common = 0.0;
    for (int m = 0; m < members; m++) {
        const u32 user = run->q_group[m * AGENTS + sender];
        if (user == agent) chooser = m;
        points[m] = wireless_point((int)user, (int)ACTION_OF(row[user]));
    }
    for (int m = 0; m < members; m++) {
        const u32 user = run->q_group[m * AGENTS + sender], queue = STATE_OF(row[user]);
        const u32 first = run->wireless_sends[m * AGENTS + sender] - run->state_count[user];
        int load = 0;
        for (int other = 0; other < members; other++)
            load += points[other] == points[m] && !(is_left_out && other == chooser);
        common += user == sender ? 0.0 : weights[(first + queue) * AGENTS];
        if (is_left_out && m == chooser) continue;
        common += points[m] >= 0 && load == 1 ? wireless_send(run, sender, m, queue, weights) : 0.0;
    }
    const int left = points[chooser];
    const double value = wireless_send(run, sender, chooser, moment->queue, weights);
    double without = common;
    for (int pass = -1; pass < (int)run->action_count[agent]; pass++) {
        // First the access point that it leaves, then those that it could address.
        const int point = pass < 0 ? left : wireless_point((int)agent, pass);
        int load = 0, who = 0;
        for (int m = 0; m < members; m++) {
            if (points[m] != point) continue;
            load++;
            if (m != chooser) who = m;
        }
        const double other = wireless_send(run, sender, who, STATE_OF(row[run->q_group[who * AGENTS + sender]]), weights);
        if (pass < 0) {
            if (is_left_out) continue;
            if (point >= 0 && load == 1) without = common - value;
            if (point >= 0 && load == 2) without = common + other;
            continue;
        }
        double change = 0.0;
        if (point >= 0) {
            const int others = load - (point == left);
            change = others == 0 ? value : others == 1 ? -other : 0.0;
        }
        out[pass] += without + change;
    }
}

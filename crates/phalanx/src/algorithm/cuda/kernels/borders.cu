// What ranks tell each other of the agents at their borders, by way of the host: own agents that others must know
// of are packed, and what others told of theirs is written into the ghosts here.

// A byte per agent and trajectory: actions of step x (y = 0), or states (y = 1). Blocks are agents × trajectories.
KERNEL(pack_step) {
    const long long at = THREAD;
    const int slot = blockIdx.y;
    if (at >= run->step_sends) return;
    const pair_t pair = run->pairs[ROW_OF(slot, x) * AGENTS + run->step_sent[at]];
    run->step_out[slot * run->step_sends + at] = (u8)(y ? STATE_OF(pair) : ACTION_OF(pair));
}

KERNEL(unpack_step) {
    const long long at = THREAD;
    const int slot = blockIdx.y;
    if (at >= run->step_receives) return;
    pair_t *pair = run->pairs + ROW_OF(slot, x) * AGENTS + run->step_received[at];
    const u32 told = run->step_in[slot * run->step_receives + at];
    *pair = y ? PAIR(told, 0) : PAIR(STATE_OF(*pair), told);
}

// Critics and multipliers, number by number: the lists say where each is.
KERNEL(pack_values) {
    const long long at = THREAD;
    if (at < run->value_sends) run->values_out[at] = run->VALUES_ARRAY[run->value_sent[at]];
    if (at < run->mu_sends) run->mu_out[at] = run->mu[run->mu_sent[at]];
}

KERNEL(unpack_values) {
    const long long at = THREAD;
    if (at < run->value_receives) run->VALUES_ARRAY[run->value_received[at]] = run->values_in[at];
    if (at < run->mu_receives) run->mu[run->mu_received[at]] = run->mu_in[at];
}

// Visits of an agent to the cells of a small table in one trajectory.

// Cells up to this number are added up in four phases, as in `sample/occupancy.rs`.
#define SMALL_TABLE 16
#define PHASES 4

// The weight of a cell's visits: the sums of its phases, in the processor's order.
#define PHASE_TOTAL(sums, e, cells, apart)                                     \
    (((sums)[(e) * (apart)] + (sums)[((cells) + (e)) * (apart)]) +             \
     ((sums)[(2 * (cells) + (e)) * (apart)] + (sums)[(3 * (cells) + (e)) * (apart)]))

// Entries of `sums` and `seen` are `apart` numbers from each other; `first` is the agent's first pair.
DEVICE void visit_small_table(const struct Run *run, long long first, int actions, int cells, double *sums, u32 *seen,
                              int apart) {
    for (int e = 0; e < PHASES * cells; e++) sums[e * apart] = 0.0;
    for (int e = 0; e < cells; e++) seen[e * apart] = 0;
    UNROLL_BY_5 for (int k = 0; k < HORIZON; k++) {
        const pair_t pair = run->pairs[first + (long long)k * AGENTS];
        const int cell = (int)(STATE_OF(pair) * actions + ACTION_OF(pair));
        sums[((k % PHASES) * cells + cell) * apart] += run->visit_weights[k];
        seen[cell * apart]++;
    }
}

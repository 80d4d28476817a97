// What linear policies read: states of the agents from `px_base` on, as many as `px_span`.

#define SEEN_ARGS const pair_t *px_pairs, long long px_base, long long px_span
#define SEEN_PASS px_pairs, px_base, px_span
#if HALO > 0
// At the edge of a tile an agent may read beyond it: what comes of that is not used.
DEVICE long long seen_place(long long at, long long span) {
    return at < 0 ? 0 : at < span ? at : span - 1;
}
#define SEEN(agent) STATE_OF(px_pairs[seen_place((long long)(agent) - px_base, px_span)])
#else
#define SEEN(agent) STATE_OF(px_pairs[(long long)(agent) - px_base])
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* How many actions an agent has; -1 if there is no such agent. */
int phalanx_actions(int agent);

/* How many agents' states an agent reads, itself among them; -1 if there is no such agent. */
int phalanx_members(int agent);

/* Which agent the place-th of them is, from 0; -1 if there is none. */
int phalanx_member(int agent, int place);


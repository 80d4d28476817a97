// What linear policies and critics share: words of bits, on a device and in C; and loops over actions.
#ifndef LOWEST
#if defined(__CUDACC_RTC__)
#define LOWEST(bits) (__ffs((int)(bits)) - 1)
#define POPCOUNT(bits) __popc(bits)
#define UNROLL _Pragma("unroll")
#else
#define LOWEST(bits) __builtin_ctz(bits)
#define POPCOUNT(bits) __builtin_popcount(bits)
#define UNROLL
#endif
// Where all agents have as many actions, the compiler knows how many: what there is of each stays in
// registers.
#if SAME_ACTIONS
#define ACTIONS(agent) MAX_ACTIONS
#else
#define ACTIONS(agent) ((int)run->action_count[agent])
#endif
#endif

// Words of bits, on a device and in C.
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
#endif

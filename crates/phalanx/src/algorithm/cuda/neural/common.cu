// What all kernels of networks share; critics and policies each bring it.
#ifndef PX_NETWORKS
#define PX_NETWORKS
#if defined(__CUDACC_RTC__)
#define FOUR float4
#define TWO float2
// The compiler may use all registers that so many threads leave to each of them.
#define KERNEL_OF(threads, name) \
    extern "C" __global__ void __launch_bounds__(threads) \
        name(const struct Run *__restrict__ run, const struct Now *__restrict__ now, int x, int y)
// Two blocks of so many threads are to fit on a multiprocessor.
#define KERNEL_OF_TWO(threads, name) \
    extern "C" __global__ void __launch_bounds__(threads, 2) \
        name(const struct Run *__restrict__ run, const struct Now *__restrict__ now, int x, int y)
// Says that a pointer that was read from memory leads to global memory: what goes through it then cannot meet
// shared memory, and loads and stores need not wait for each other.
#define GLOBAL(pointer) __builtin_assume(__isGlobal(pointer))
#define UNROLL _Pragma("unroll")
#define UNROLL_BY_THREE _Pragma("unroll 3")
#define UNROLL_BY_FOUR _Pragma("unroll 4")
#define UNROLL_BY_TWO _Pragma("unroll 2")
#define UNROLL_BY_EIGHT _Pragma("unroll 8")
#define WARP_SYNC() __syncwarp()
// So many warps, the group with this number among all of them, wait for each other.
#define WAIT_FOR(warps, group)                                                                          \
    if ((warps) == 1) __syncwarp();                                                                    \
    else asm volatile("bar.sync %0, %1;" : : "r"((group) + 1), "r"(32 * (warps)) : "memory")
// Copies a number, or four of them, to shared memory, without waiting for it where a device can do that.
#if __CUDA_ARCH__ >= 800
#define COPY(to, from) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" : : "r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory")
#define COPY_FOUR(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"((u32)__cvta_generic_to_shared(to)), "l"(from) : "memory")
#define WAIT_FOR_COPIES() asm volatile("cp.async.wait_all;" : : : "memory")
#else
#define COPY(to, from) (*(to) = *(from))
#define COPY_FOUR(to, from) (*(FOUR *)(to) = *(const FOUR *)(from))
#define WAIT_FOR_COPIES()
#endif
// Brings 128 bytes nearer that will be read soon.
#define FETCH(address) asm volatile("prefetch.global.L2 [%0];" : : "l"(address))
// Reads and writes what may leave the caches first.
#define READ_PASSING(from) __ldcs(from)
#define WRITE_PASSING(to, x) __stcs(to, x)
// A number that the compiler shall not work with ahead of time.
#define OPAQUE(x) asm volatile("" : "+r"(x))
DEVICE float px_quotient(float a, float b) {
    float quotient;
    asm("div.approx.ftz.f32 %0, %1, %2;" : "=f"(quotient) : "f"(a), "f"(b));
    return quotient;
}
DEVICE float px_root(float a) {
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(a));
    return root;
}
#else
typedef struct { float x, y, z, w; } FOUR;
typedef struct { float x, y; } TWO;
#define GLOBAL(pointer)
#define KERNEL_OF(threads, name) KERNEL(name)
#define KERNEL_OF_TWO(threads, name) KERNEL(name)
#define UNROLL
#define UNROLL_BY_TWO
#define UNROLL_BY_THREE
#define UNROLL_BY_FOUR
#define UNROLL_BY_EIGHT
#define WARP_SYNC() PX_WAIT_FOR_WARP()
#define WAIT_FOR(warps, group) PX_WAIT_FOR_WARPS(warps, group)
#define OPAQUE(x)
#define COPY(to, from) (*(to) = *(from))
#define COPY_FOUR(to, from) (*(FOUR *)(to) = *(const FOUR *)(from))
#define WAIT_FOR_COPIES()
#define FETCH(address)
#define READ_PASSING(from) (*(from))
#define WRITE_PASSING(to, x) (*(to) = (x))
#define px_quotient(a, b) ((a) / (b))
#define px_root(a) sqrtf(a)
#endif
#define LANE ((int)threadIdx.x & 31)
#define WARP ((int)threadIdx.x >> 5)
#define AT_LEAST_ONE(n) ((n) > 0 ? (n) : 1)
#define PARTS(n, size) (((n) + (size) - 1) / (size))
#define SIXTEENS(n) (PARTS(n, 16) * 16)

// base to the power of a whole number, by squaring: what the processor's compiler makes of `powi`.
DEVICE double px_power(double base, u64 exponent) {
    double power = 1.0;
    for (;;) {
        if (exponent & 1) power *= base;
        exponent >>= 1;
        if (exponent == 0) return power;
        base *= base;
    }
}
#endif

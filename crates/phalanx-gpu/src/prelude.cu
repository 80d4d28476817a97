// What kernel text can rely on, on a CUDA device and compiled as C.
//
// KERNEL(name) { … }   a kernel: reads `run` (arrays and sizes), `now` (numbers of this call), `x`, `y` (of the launch)
// DEVICE               a function that kernels call
// THREAD               number of this thread among all of the first dimension
// SYNC()               all threads of a block wait for each other
// UNROLL               before a loop: all of its rounds one after the other
// LOAD(pointer)        a number that nobody changes while the kernel runs
// SHARED(type, name)   memory that the threads of a block share, as many bytes as the launch says
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define KERNEL(name) \
    extern "C" __global__ void name(const struct Run *__restrict__ run, const struct Now *__restrict__ now, int x, int y)
#define DEVICE static __device__ __forceinline__
#define SYNC() __syncthreads()
extern __shared__ double px_shared[];
#define SHARED(type, name) type *name = (type *)px_shared
#define LOAD(pointer) __ldg(pointer)
#define atomic_min(address, value) atomicMin(address, value)
#define atomic_add(address, value) atomicAdd(address, value)
#define atomic_or(address, value) atomicOr(address, value)
#define RESTRICT __restrict__
#define UNROLL _Pragma("unroll")
#define UNROLL_BY_5 _Pragma("unroll 5")
#else
#define KERNEL(name) void name(const struct Run *run, const struct Now *now, int x, int y)
#define DEVICE static inline
#define SYNC() PX_WAIT_FOR_BLOCK()
#define SHARED(type, name) type *name = (type *)px_shared
#define LOAD(pointer) (*(pointer))
#define atomic_min(address, value) px_atomic_min(address, value)
#define atomic_add(address, value) (*(address) += (value))
#define atomic_or(address, value) (*(address) |= (value))
#define RESTRICT
#define UNROLL
#define UNROLL_BY_5
#endif
#define THREAD ((long long)blockIdx.x * blockDim.x + threadIdx.x)
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

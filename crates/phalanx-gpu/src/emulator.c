// Runs kernels on the processor: one block after the other, its threads as contexts that wait for each other.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

typedef struct { int x, y, z; } px_dim;
static px_dim threadIdx, blockIdx, blockDim, gridDim;
static double *px_shared;

enum { PX_STACK = 1 << 16, PX_MOST = 1024 };
static char *px_stacks;
static jmp_buf px_at[PX_MOST], px_back;
static int px_state[PX_MOST]; // 0: not begun, 1: waits, 2: done
static int px_self;
static void (*px_kernel)(const void *, const void *, int, int);
static const void *px_run, *px_now;
static int px_x, px_y;

static void px_yield(void) {
    int self = px_self;
    if (_setjmp(px_at[self]) == 0) { px_state[self] = 1; _longjmp(px_back, 1); }
    px_self = self;
    threadIdx.x = self;
}

static void px_main(void) {
    px_kernel(px_run, px_now, px_x, px_y);
    px_state[px_self] = 2;
    _longjmp(px_back, 1);
}

static inline unsigned px_atomic_min(unsigned *address, unsigned value) {
    unsigned old = *address;
    if (value < old) *address = value;
    return old;
}

void px_launch(void *kernel, int gx, int gy, int block, int shared, const void *run, const void *now, int x, int y) {
    if (!px_stacks) px_stacks = malloc((size_t)PX_STACK * PX_MOST);
    px_shared = calloc(shared / 8 + 1, 8);
    px_kernel = (void (*)(const void *, const void *, int, int))kernel;
    px_run = run; px_now = now; px_x = x; px_y = y;
    blockDim.x = block; blockDim.y = blockDim.z = 1;
    gridDim.x = gx; gridDim.y = gy; gridDim.z = 1;
    for (int by = 0; by < gy; by++) for (int bx = 0; bx < gx; bx++) {
        blockIdx.x = bx; blockIdx.y = by;
        for (int t = 0; t < block; t++) px_state[t] = 0;
        int left = block;
        while (left > 0) {
            for (int t = 0; t < block; t++) {
                if (px_state[t] == 2) continue;
                px_self = t; threadIdx.x = t;
                if (_setjmp(px_back) == 0) {
                    if (px_state[t] == 1) _longjmp(px_at[t], 1);
                    static ucontext_t context, here;
                    getcontext(&context);
                    context.uc_stack.ss_sp = px_stacks + (size_t)t * PX_STACK;
                    context.uc_stack.ss_size = PX_STACK;
                    context.uc_link = 0;
                    makecontext(&context, px_main, 0);
                    swapcontext(&here, &context);
                }
                // Locals may be stale after the jump; what is needed is in statics.
                t = px_self;
                if (px_state[t] == 2) left--;
            }
        }
    }
    free(px_shared);
}

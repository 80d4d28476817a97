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

enum { PX_STACK = 1 << 16, PX_MOST = 1024, PX_PLACES = 1 + PX_MOST / 32 * 2 };
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

// Threads wait for each other at a place: 0 is the whole block's, others a warp's or several warps'. Those that are
// done are waited for no more.
static int px_arrived[PX_PLACES], px_round[PX_PLACES], px_done_in[PX_MOST / 32 + 1], px_done;

static void px_wait(int place, int count) {
    int round = px_round[place];
    px_arrived[place]++;
    while (px_round[place] == round) {
        int done = place == 0 ? px_done : count == 32 ? px_done_in[threadIdx.x / 32] : 0;
        if (px_arrived[place] + done >= count) {
            px_arrived[place] = 0;
            px_round[place]++;
        } else px_yield();
    }
}

#define PX_WAIT_FOR_BLOCK() px_wait(0, blockDim.x)
#define PX_WAIT_FOR_WARP() px_wait(1 + threadIdx.x / 32, 32)
// As many warps, the group with this number among all of them.
#define PX_WAIT_FOR_WARPS(warps, group) px_wait(1 + PX_MOST / 32 + (group), 32 * (warps))

static void px_main(void) {
    px_kernel(px_run, px_now, px_x, px_y);
    px_done_in[px_self / 32]++;
    px_done++;
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
        memset(px_done_in, 0, sizeof px_done_in);
        memset(px_arrived, 0, sizeof px_arrived);
        px_done = 0;
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

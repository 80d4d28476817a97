// The instructions of tensor cores that pieces.cu uses, as the lanes of a warp carry them out together, in C: so its
// text for a card runs in the emulation. Sixteen products are added exactly, and the sum is then cut off to 24 bits;
// cards may cut a little earlier.
#define PX_EMULATED_TENSORS
static const u16 *px_rows[PX_MOST];
static u32 px_left_of[PX_MOST][4], px_right_of[PX_MOST][2];

static float __uint_as_float(u32 bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static u32 px_bfloat(float x) {
    u32 bits;
    memcpy(&bits, &x, 4);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static u32 px_rounded(float x, float y) {
    return px_bfloat(x) | px_bfloat(y) << 16;
}

static void px_load(u32 *four, const u16 *row, int is_turned) {
    int lane = threadIdx.x % 32, first = threadIdx.x - lane;
    // A row is sixteen bytes, and begins at a multiple of as many.
    if ((size_t)row % 16 != 0) abort();
    px_rows[threadIdx.x] = row;
    PX_WAIT_FOR_WARP();
    for (int m = 0; m < 4; m++) {
        const u16 **rows = px_rows + first + 8 * m;
        int i = lane / 4, j = lane % 4 * 2;
        four[m] = is_turned ? rows[j][i] | (u32)rows[j + 1][i] << 16 : rows[i][j] | (u32)rows[i][j + 1] << 16;
    }
    PX_WAIT_FOR_WARP();
}

// Of numbers side by side, the one at an odd or an even place.
static double px_half(u32 both, int is_odd) {
    return __uint_as_float(is_odd ? both & 0xffff0000u : both << 16);
}

static void px_tensor_step(float *sum, const u32 *a, const u32 *b) {
    int lane = threadIdx.x % 32, first = threadIdx.x - lane;
    memcpy(px_left_of[threadIdx.x], a, 16);
    memcpy(px_right_of[threadIdx.x], b, 8);
    PX_WAIT_FOR_WARP();
    for (int e = 0; e < 4; e++) {
        int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
        double exact = sum[e];
        for (int k = 0; k < 16; k++) {
            u32 left = px_left_of[first + row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
            u32 right = px_right_of[first + column * 4 + k % 8 / 2][k / 8];
            exact += px_half(left, k % 2) * px_half(right, k % 2);
        }
        float cut = (float)exact;
        if (fabs((double)cut) > fabs(exact)) cut = nextafterf(cut, 0);
        sum[e] = cut;
    }
    PX_WAIT_FOR_WARP();
}

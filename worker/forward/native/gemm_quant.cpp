// Products with weights in blocks of 32 small integers; activations are rounded to 8 bits a block.
#include <memory>
#include <new>
#include <vector>

#include "gemm.h"
#include "quant_blocks.h"

namespace rg {
namespace {

#if defined(RG_AVX512)
constexpr int MOST_ROWS = 12;
#elif defined(RG_AVX2)
constexpr int MOST_ROWS = 4;
#else
constexpr int MOST_ROWS = 2;
#endif

// Sums over all blocks for M rows and W columns; `stride` is in blocks.
template <int M>
void sum_blocks(const Activations* x, int64_t stride, const Packed4* weights, int blocks,
                vf (&sums)[M]) {
    for (int b = 0; b < blocks; b++, weights++, x++) {
        SmallSums small[M];
#pragma GCC unroll 4
        for (int group = 0; group < 4; group++) {
            const vb both = load_bytes(weights->q[group]), low = low_bits(both),
                     high = high_bits(both);
#pragma GCC unroll 16
            for (int m = 0; m < M; m++) {
                small[m].add(low, four_bytes(x[m * stride].a + 4 * group));
                small[m].add(high, four_bytes(x[m * stride].a + 4 * group + 16));
            }
        }
        const vf d = load(weights->d), least = load(weights->m);
#pragma GCC unroll 16
        for (int m = 0; m < M; m++) {
            const vf exact = __builtin_convertvector(small[m].take(), vf);
            sums[m] = fma(exact, d * x[m * stride].scale, sums[m]);
            sums[m] = fma(least, splat(x[m * stride].scaled_sum), sums[m]);
        }
    }
}

template <int M>
void sum_blocks(const Activations* x, int64_t stride, const Packed8* weights, int blocks,
                vf (&sums)[M]) {
    for (int b = 0; b < blocks; b++, weights++, x++) {
        WideSums wide[M];
#pragma GCC unroll 8
        for (int group = 0; group < 8; group++) {
            const vb four = load_bytes(weights->q[group]);
#pragma GCC unroll 16
            for (int m = 0; m < M; m++) wide[m].add(four, four_bytes(x[m * stride].a + 4 * group));
        }
        const vf d = load(weights->d);
#pragma GCC unroll 16
        for (int m = 0; m < M; m++) {
            const vi exact = wide[m].take() - 128 * x[m * stride].sum;
            sums[m] = fma(__builtin_convertvector(exact, vf), d * x[m * stride].scale, sums[m]);
        }
    }
}

template <class Packed, class Raw>
void pack(const Raw* weight, const Raw* second, int64_t rows, int64_t blocks, Packed* packed) {
    const int64_t each = second ? W : PANEL, panels = (rows + each - 1) / each;
#pragma omp parallel for schedule(static)
    for (int64_t panel = 0; panel < panels; panel++)
        for (int64_t column = 0; column < PANEL; column++) {
            const bool other = second && column >= W;
            const int64_t row = panel * each + (other ? column - W : column);
            for (int64_t b = 0; b < blocks; b++) {
                Packed& to = packed[(panel * 2 + column / W) * blocks + b];
                const Raw* from =
                    row < rows ? (other ? second : weight) + row * blocks + b : nullptr;
                pack_column(to, column % W, from ? *from : Raw{});
            }
        }
}

template <class Packed>
void linear(const float* x, int64_t x_stride, int64_t rows, int64_t blocks, const Packed* packed,
            const Output& out) {
    // Kept from call to call by the calling thread; as large as its largest product.
    static thread_local std::vector<Activations> kept;
    if (static_cast<int64_t>(kept.size()) < rows * blocks) kept.resize(rows * blocks);
    Activations* activations = kept.data();
#pragma omp parallel for schedule(static) if (rows > 32)
    for (int64_t row = 0; row < rows; row++)
        for (int64_t b = 0; b < blocks; b++)
            quantize(x + row * x_stride + b * BLOCK, activations[row * blocks + b]);
    for_all_tiles(rows, out.panels(), [&](int panel, int first, int count) {
        const Packed* weights = packed + static_cast<int64_t>(panel) * 2 * blocks;
        for_even_tiles<MOST_ROWS>(count, [&](auto height, int start) {
            const Activations* from = activations + (first + start) * blocks;
            vf left[height] = {}, right[height] = {};
            sum_blocks<height>(from, blocks, weights, blocks, left);
            sum_blocks<height>(from, blocks, weights + blocks, blocks, right);
            for (int m = 0; m < height; m++)
                finish_row(out, first + start + m, panel, left[m], right[m]);
        });
    });
}

}  // namespace
}  // namespace rg

extern "C" {

// `bits` is 4 for Q4_1 and 8 for Q8_0. Bytes of one panel whose columns have `depth` elements.
int64_t rg_quant_panel_bytes(int bits, int64_t depth) {
    return (bits == 4 ? sizeof(rg::Packed4) : sizeof(rg::Packed8)) * 2 * (depth / rg::BLOCK);
}

// A weight [rows][depth / 32] of blocks into panels; with `second` as rg_pack_f32 does.
void rg_pack_quant(int bits, const void* weight, const void* second, int64_t rows, int64_t depth,
                   void* packed) {
    const int64_t blocks = depth / rg::BLOCK;
    if (bits == 4)
        rg::pack(static_cast<const rg::Q4_1*>(weight), static_cast<const rg::Q4_1*>(second), rows,
                 blocks, static_cast<rg::Packed4*>(packed));
    else
        rg::pack(static_cast<const rg::Q8_0*>(weight), static_cast<const rg::Q8_0*>(second), rows,
                 blocks, static_cast<rg::Packed8*>(packed));
}

// 0, or 1 if there is not enough memory.
int rg_linear_quant(int bits, const float* x, int64_t x_stride, int64_t rows, int64_t depth,
                    const void* packed, float* data, int64_t stride, int64_t columns,
                    const float* bias, int finish) try {
    const rg::Output out{data, stride, static_cast<int>(columns), bias, finish};
    const int64_t blocks = depth / rg::BLOCK;
    if (bits == 4)
        rg::linear(x, x_stride, rows, blocks, static_cast<const rg::Packed4*>(packed), out);
    else
        rg::linear(x, x_stride, rows, blocks, static_cast<const rg::Packed8*>(packed), out);
    return 0;
} catch (const std::bad_alloc&) {
    return 1;
}

}  // extern "C"

// Products with float weights: near the machine's peak for many rows, near its memory for few.
#include "gemm.h"

namespace rg {
namespace {

#if defined(RG_AVX512)
constexpr int MOST_ROWS = 12;  // two sums each fill the registers
#else
constexpr int MOST_ROWS = 6;
#endif

template <int M>
void multiply(const float* x, int64_t stride, const float* panel, int depth, const Output& out,
              int row, int place) {
    vf sums[M][2] = {};
    for (int k = 0; k < depth; k++) {
        const vf first = load(panel + k * PANEL), second = load(panel + k * PANEL + W);
#pragma GCC unroll 16
        for (int m = 0; m < M; m++) {
            const vf value = splat(x[m * stride + k]);
            sums[m][0] = fma(value, first, sums[m][0]);
            sums[m][1] = fma(value, second, sums[m][1]);
        }
    }
    for (int m = 0; m < M; m++) finish_row(out, row + m, place, sums[m][0], sums[m][1]);
}

}  // namespace
}  // namespace rg

extern "C" {

int64_t rg_panel_columns() { return rg::PANEL; }

// A weight [rows][depth] into panels [depth][PANEL], missing columns as zeros. With `second` the
// panels hold W rows of each: see GATED.
void rg_pack_f32(const float* weight, const float* second, int64_t rows, int64_t depth,
                 float* packed) {
    const int64_t each = second ? rg::W : rg::PANEL, panels = (rows + each - 1) / each;
#pragma omp parallel for schedule(static)
    for (int64_t panel = 0; panel < panels; panel++)
        for (int64_t column = 0; column < rg::PANEL; column++) {
            const bool other = second && column >= rg::W;
            const int64_t row = panel * each + (other ? column - rg::W : column);
            const float* from = (other ? second : weight) + row * depth;
            float* to = packed + panel * depth * rg::PANEL + column;
            for (int64_t k = 0; k < depth; k++) to[k * rg::PANEL] = row < rows ? from[k] : 0.0f;
        }
}

void rg_linear_f32(const float* x, int64_t x_stride, int64_t rows, int64_t depth,
                   const float* packed, float* data, int64_t stride, int64_t columns,
                   const float* bias, int finish) {
    const rg::Output out{data, stride, static_cast<int>(columns), bias, finish};
    rg::for_all_tiles(rows, out.panels(), [&](int place, int first, int count) {
        const float* panel = packed + static_cast<int64_t>(place) * depth * rg::PANEL;
        rg::for_even_tiles<rg::MOST_ROWS>(count, [&](auto height, int start) {
            const int row = first + start;
            rg::multiply<height>(x + row * x_stride, x_stride, panel, depth, out, row, place);
        });
    });
}

}  // extern "C"

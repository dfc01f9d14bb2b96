// What all matrix products here share: y[rows][columns] in panels of two vectors of columns.
#pragma once

#include <omp.h>

#include <utility>

#include "simd.h"

namespace rg {

// What is done with a product. GATED: a panel holds W columns of the gate and the same W columns of
// the up projection, and silu(gate) * up is what is written.
enum Finish { PLAIN = 0, ADDED = 1, GATED = 2 };

constexpr int PANEL = 2 * W;  // columns of a weight that lie together

struct Output {
    float* data;
    int64_t stride;
    int columns;        // of `data`: half of the weight's rows if GATED
    const float* bias;  // or null
    int finish;

    int panels() const {
        const int each = finish == GATED ? W : PANEL;
        return (columns + each - 1) / each;
    }
};

inline void put(float* to, vf x, int count, bool add) {
    if (count >= W) {
        store(to, add ? load(to) + x : x);
        return;
    }
    for (int i = 0; i < count; i++) to[i] = add ? to[i] + x[i] : x[i];
}

// Of columns first..first + W, those that exist.
inline vf bias_of(const Output& out, int first) {
    if (!out.bias) return vf{};
    if (first + W <= out.columns) return load(out.bias + first);
    vf x = {};
    for (int i = 0; first + i < out.columns; i++) x[i] = out.bias[first + i];
    return x;
}

inline void finish_row(const Output& out, int row, int panel, vf first, vf second) {
    float* to = out.data + row * out.stride;
    if (out.finish == GATED) {
        put(to + panel * W, silu(first) * second, out.columns - panel * W, false);
        return;
    }
    const int column = panel * PANEL, rest = out.columns - column;
    const bool add = out.finish == ADDED;
    put(to + column, first + bias_of(out, column), rest, add);
    if (rest > W) put(to + column + W, second + bias_of(out, column + W), rest - W, add);
}

// Calls run<M>(first row) for tiles of about the same height M <= Most that cover `rows`, in order.
template <int Most, class Run>
inline void for_even_tiles(int rows, Run run) {
    int row = 0;
    for (int tiles = (rows + Most - 1) / Most; tiles > 0; tiles--) {
        const int height = (rows - row + tiles - 1) / tiles;
        [&]<int... M>(std::integer_sequence<int, M...>) {
            ((height == M + 1 ? run(std::integral_constant<int, M + 1>(), row) : void()), ...);
        }(std::make_integer_sequence<int, Most>());
        row += height;
    }
}

// Calls tile(panel, first row, rows) until all is done; a panel is read from memory once if all its
// rows follow one another. Few rows are never cut: what takes time is to read the weight, and that
// is fastest in long runs. With many rows small shares even out better.
template <class Tile>
void for_all_tiles(int rows, int panels, Tile tile) {
    constexpr int TOGETHER = 96;
    const int cuts = (rows + TOGETHER - 1) / TOGETHER;
    const int threads = omp_get_max_threads();
    const int shares = threads * (rows <= 4 ? 2 : 6);
    const int grain = panels / shares > 0 ? panels / shares : 1;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (int i = 0; i < (panels + grain - 1) / grain * cuts; i++) {
        const int row = i % cuts * TOGETHER, from = i / cuts * grain;
        const int count = rows - row < TOGETHER ? rows - row : TOGETHER;
        for (int panel = from; panel < from + grain && panel < panels; panel++)
            tile(panel, row, count);
    }
}

}  // namespace rg

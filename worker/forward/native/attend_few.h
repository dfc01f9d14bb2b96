// Attention of few query vectors over one segment: keys and values are read where they are stored
// and worked on in registers, as to write them down as floats would take longer than what is done
// with them. Every sum is made in the order in which attend_tile.h makes it.
#pragma once

#include <utility>

#include "kv_rows.h"

namespace rg {

#if defined(RG_AVX512)
constexpr int WEIGHED = 6;  // queries whose outputs are kept in registers
constexpr int PARTS = 4;    // vectors of an output at once
constexpr int FEW = 12;     // queries for which keys are turned anew, and values made floats
#else
constexpr int WEIGHED = 6;
constexpr int PARTS = 2;
constexpr int FEW = 6;
#endif

// Calls run<Q>() for the Q <= Most that is `count`, if there is one.
template <int Most, class Run>
[[gnu::always_inline]] inline void for_count(int count, Run run) {
    [&]<int... Q>(std::integer_sequence<int, Q...>) {
        ((count == Q + 1 ? run(std::integral_constant<int, Q + 1>()) : void()), ...);
    }(std::make_integer_sequence<int, Most>());
}

template <int Q, class T>
[[gnu::noinline]] void score_stored(Stored<T> keys, const Place& place, const float* queries,
                                    float* scores, Fetcher<T>& fetcher) {
    const int width = padded(keys.dim);
    for (int start = 0; start < place.tokens; start += W) {
        const Columns<T> columns(keys, place, start);
        vf sums[Q] = {};
        for (int i = 0; i < width; i += DEPTH) {
            vf some[DEPTH];
            columns.read(i, some);
#pragma GCC unroll 8
            for (int j = 0; j < DEPTH; j++)
#pragma GCC unroll 16
                for (int q = 0; q < Q; q++)
                    sums[q] = fma(splat(queries[q * width + i + j]), some[j], sums[q]);
            fetcher.fetch(1);
        }
#pragma GCC unroll 16
        for (int q = 0; q < Q; q++) store(scores + q * SEGMENT + start, sums[q]);
    }
}

template <int Q, int P, class T>
[[gnu::noinline]] void weigh_stored(const float* weights, Stored<T> values, const Place& place,
                                    int first, float* out, Fetcher<T>& fetcher) {
    const int width = padded(values.dim);
    vf sums[Q][P] = {};
    for (int t = 0; t < place.tokens; t++) {
        vf value[P];
#pragma GCC unroll 4
        for (int p = 0; p < P; p++)
            value[p] = read_part(values, place.slots[t], place.head, first + p * W);
#pragma GCC unroll 16
        for (int q = 0; q < Q; q++) {
            const vf weight = splat(weights[q * SEGMENT + t]);
#pragma GCC unroll 4
            for (int p = 0; p < P; p++) sums[q][p] = fma(weight, value[p], sums[q][p]);
        }
        if (t % 2 == 0) fetcher.fetch(1);
    }
#pragma GCC unroll 16
    for (int q = 0; q < Q; q++)
#pragma GCC unroll 4
        for (int p = 0; p < P; p++) store(out + q * width + first + p * W, sums[q][p]);
}

template <int Q, class T>
inline void weigh_few(const float* weights, Stored<T> values, const Place& place, float* out,
                      Fetcher<T>& fetcher) {
    const int width = padded(values.dim);
    int i = 0;
    for (; i + PARTS * W <= width; i += PARTS * W)
        weigh_stored<Q, PARTS>(weights, values, place, i, out, fetcher);
    for (; i < width; i += W) weigh_stored<Q, 1>(weights, values, place, i, out, fetcher);
}

// The scores of at most FEW queries.
template <class T>
void score_few(Stored<T> keys, const Place& place, int queries, const float* from, float* scores,
               Fetcher<T>& fetcher) {
    for_count<FEW>(queries, [&](auto count) {
        score_stored<count>(keys, place, from, scores, fetcher);
    });
}

// The values as each of some queries weighs them.
template <class T>
void weigh_few(Stored<T> values, const Place& place, int queries, const float* weights, float* out,
               Fetcher<T>& fetcher) {
    const int width = padded(values.dim);
    for (int q = 0; q < queries; q += WEIGHED)
        for_count<WEIGHED>(std::min(WEIGHED, queries - q), [&](auto count) {
            weigh_few<count>(weights + q * SEGMENT, values, place, out + q * width, fetcher);
        });
}

}  // namespace rg

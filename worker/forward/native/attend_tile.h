// Attention of some query vectors over one segment of tokens, and how segments are put together.
#pragma once

#include "attend_few.h"

namespace rg {

constexpr int MOST_QUERIES = 192;  // of one tile, unless the heads of one row are more

// What is known of one query after some tokens: the largest score, the sum of the weights
// e^(score - largest), and the weighted sum of the values beside it.
struct Softmax {
    float largest;
    float sum;
};

// The working memory of one thread.
struct Scratch {
    float* queries;  // [queries][padded dim], scaled by 1 / sqrt(dim)
    float* scores;   // [queries][SEGMENT], then weights
    float* keys;     // [padded dim][TURNED]
    float* values;   // [SEGMENT][padded dim]
    float* part;     // [queries][padded dim], of the segment
    float* total;    // [queries][padded dim], of all segments so far
    Softmax* parts;
    Softmax* totals;
};

#if defined(RG_AVX512)
constexpr int SCORED = 12;  // queries whose scores are kept in registers, two vectors each
#else
constexpr int SCORED = 6;
#endif

template <int Q>
inline void score(const float* queries, int width, const float* keys, float* scores) {
    vf sums[Q][2] = {};
    for (int i = 0; i < width; i++) {
        const vf first = load(keys + i * TURNED), second = load(keys + i * TURNED + W);
#pragma GCC unroll 16
        for (int q = 0; q < Q; q++) {
            const vf x = splat(queries[q * width + i]);
            sums[q][0] = fma(x, first, sums[q][0]);
            sums[q][1] = fma(x, second, sums[q][1]);
        }
    }
#pragma GCC unroll 16
    for (int q = 0; q < Q; q++) {
        store(scores + q * SEGMENT, sums[q][0]);
        store(scores + q * SEGMENT + W, sums[q][1]);
    }
}

template <int Q, int P>
inline void weigh(const float* weights, const float* values, int width, int tokens, float* out) {
    vf sums[Q][P] = {};
    for (int t = 0; t < tokens; t++) {
        vf value[P];
#pragma GCC unroll 4
        for (int p = 0; p < P; p++) value[p] = load(values + t * width + p * W);
#pragma GCC unroll 16
        for (int q = 0; q < Q; q++) {
            const vf weight = splat(weights[q * SEGMENT + t]);
#pragma GCC unroll 4
            for (int p = 0; p < P; p++) sums[q][p] = fma(weight, value[p], sums[q][p]);
        }
    }
#pragma GCC unroll 16
    for (int q = 0; q < Q; q++)
#pragma GCC unroll 4
        for (int p = 0; p < P; p++) store(out + q * width + p * W, sums[q][p]);
}

template <int Q>
inline void weigh_all(const float* weights, const float* values, int width, int tokens,
                      float* out) {
    int i = 0;
    for (; i + PARTS * W <= width; i += PARTS * W)
        weigh<Q, PARTS>(weights, values + i, width, tokens, out + i);
    for (; i < width; i += W) weigh<Q, 1>(weights, values + i, width, tokens, out + i);
}

// Scores of one query become weights; those of tokens from `seen` on become 0.
inline Softmax weights_of(float* scores, int tokens, int seen) {
    vf lane = {};
    for (int i = 0; i < W; i++) lane[i] = static_cast<float>(i);
    const vf nothing = splat(-INFINITY);
    vf largest = nothing;
    for (int t = 0; t < tokens; t += W) {
        const vf hidden = lane + static_cast<float>(t);
        const vf x = hidden < static_cast<float>(seen) ? load(scores + t) : nothing;
        store(scores + t, x);
        largest = larger(x, largest);
    }
    const float most = max_of(largest);
    vf sum = {};
    for (int t = 0; t < tokens; t += W) {
        const vf weight = exp_of(load(scores + t) - most);
        store(scores + t, weight);
        sum += weight;
    }
    return {most, sum_of(sum)};
}

// Adds a segment's result to what came before it.
inline void merge(Softmax& total, float* out, const Softmax& part, const float* part_out,
                  int width) {
    const float largest = part.largest > total.largest ? part.largest : total.largest;
    const float old_share = std::exp(total.largest - largest);
    const float new_share = std::exp(part.largest - largest);
    for (int i = 0; i < width; i += W)
        store(out + i, fma(load(part_out + i), splat(new_share), load(out + i) * old_share));
    total.sum = total.sum * old_share + part.sum * new_share;
    total.largest = largest;
}

template <class T>
void score_many(Stored<T> keys, const Place& place, int queries, Scratch& scratch,
                Fetcher<T>& fetcher) {
    const int width = padded(keys.dim);
    for (int t = 0; t < place.tokens; t += TURNED) {
        read_turned(keys, place, t, scratch.keys, fetcher);
        for (int q = 0; q < queries; q += SCORED)
            for_count<SCORED>(std::min(SCORED, queries - q), [&](auto count) {
                score<count>(scratch.queries + q * width, width, scratch.keys,
                             scratch.scores + q * SEGMENT + t);
            });
    }
}

template <class T>
void weigh_many(Stored<T> values, const Place& place, int queries, Scratch& scratch,
                Fetcher<T>& fetcher) {
    const int width = padded(values.dim), tokens = place.tokens;
    read_rows(values, place, scratch.values, fetcher);
    for (int q = 0; q < queries; q += WEIGHED)
        for_count<WEIGHED>(std::min(WEIGHED, queries - q), [&](auto count) {
            weigh_all<count>(scratch.scores + q * SEGMENT, scratch.values, width, tokens,
                             scratch.part + q * width);
        });
}

// All `queries` over the tokens of one segment, of which query q sees the first seen(q). Leaves the
// results in scratch.parts and scratch.part; a query that sees none gets a sum of 0. What is wanted
// `next` is fetched on the way.
template <class T, class Seen>
void attend_segment(Stored<T> keys, Stored<T> values, const Place& place, const Place& next,
                    int queries, Seen seen, Scratch& scratch) {
    const int tokens = place.tokens;
    Fetcher<T> fetcher(keys, values, next);
    if (queries <= FEW)
        score_few(keys, place, queries, scratch.queries, scratch.scores, fetcher);
    else
        score_many(keys, place, queries, scratch, fetcher);
    for (int q = 0; q < queries; q++) {
        float* scores = scratch.scores + q * SEGMENT;
        if (seen(q) > 0) {
            scratch.parts[q] = weights_of(scores, tokens, seen(q) < tokens ? seen(q) : tokens);
        } else {
            scratch.parts[q] = {-INFINITY, 0.0f};
            std::memset(scores, 0, sizeof(float) * tokens);
        }
    }
    if (queries <= FEW)
        weigh_few(values, place, queries, scratch.scores, scratch.part, fetcher);
    else
        weigh_many(values, place, queries, scratch, fetcher);
}

}  // namespace rg

// How one layer's keys and values lie in the pool, and how they are written and read as floats.
#pragma once

#include <algorithm>

#include "simd.h"

namespace rg {

// One side (keys or values) of one layer: [slots][heads][dim] of T; for int8 also [slots][heads]
// scales, by which each stored row is multiplied.
template <class T>
struct Stored {
    T* data;
    float* scales;
    int heads;
    int dim;

    T* row(int64_t slot, int head) const { return data + (slot * heads + head) * dim; }
    float scale(int64_t slot, int head) const { return scales[slot * heads + head]; }
};

// Contexts are cut into segments at multiples of this many tokens, wherever their pages lie. Each
// segment is attended by itself and the results are merged in order: so it makes no difference who
// else attends a segment in the same go, or which thread does.
constexpr int SEGMENT = 128;
constexpr int TURNED = 2 * W;  // tokens whose keys are turned at once

inline int padded(int dim) { return (dim + W - 1) / W * W; }

template <class T>
inline void write_row(Stored<T> to, int64_t slot, int head, const float* from) {
    T* row = to.row(slot, head);
    for (int i = 0; i < to.dim; i++) row[i] = static_cast<T>(from[i]);
}

#if defined(RG_AVX512) || defined(RG_AVX2)
template <>
inline void write_row(Stored<half> to, int64_t slot, int head, const float* from) {
    half* row = to.row(slot, head);
    int i = 0;
    for (; i + 8 <= to.dim; i += 8) {
        const __m128i eight = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(row + i), eight);
    }
    for (; i < to.dim; i++) row[i] = static_cast<half>(from[i]);
}
#endif

// One scale a row, so that its largest magnitude becomes 127.
template <>
inline void write_row(Stored<int8_t> to, int64_t slot, int head, const float* from) {
    float most = 0.0f;
    for (int i = 0; i < to.dim; i++) most = std::fmax(most, std::fabs(from[i]));
    const float scale = most / 127.0f;
    const float divisor = scale > 0.0f ? scale : 1.0f;
    int8_t* row = to.row(slot, head);
    for (int i = 0; i < to.dim; i++)
        row[i] = static_cast<int8_t>(std::nearbyint(from[i] / divisor));
    to.scales[slot * to.heads + head] = scale;
}

// The W elements from `i` on, those past the end as zeros.
template <class T>
inline vf read_part(const T* row, int i, int dim) {
    if (i + W <= dim) return load(row + i);
    vf x = {};
    for (int j = 0; i + j < dim; j++) x[j] = static_cast<float>(row[i + j]);
    return x;
}

template <class T>
inline vf read_part(Stored<T> from, int64_t slot, int head, int i) {
    return read_part(from.row(slot, head), i, from.dim);
}

template <>
inline vf read_part(Stored<int8_t> from, int64_t slot, int head, int i) {
    return read_part(from.row(slot, head), i, from.dim) * from.scale(slot, head);
}

// Where the tokens of a segment lie, and of which head they are wanted.
struct Place {
    int64_t slots[SEGMENT];
    int tokens = 0;
    int head = 0;
};

// Brings what is wanted next into the second-level cache, a little at a time: pages lie anywhere,
// so the processor cannot foresee them. (Into the first level they would take all the places for
// reads under way, and what is being computed would wait for them.)
template <class T>
class Fetcher {
public:
    Fetcher(Stored<T> keys, Stored<T> values, const Place& next)
        : keys_(keys), values_(values), next_(next) {}

    // (GCC takes a function that only prefetches for one without effect, and drops the call.)
    [[gnu::always_inline]] void fetch(int tokens) {
        const int end = done_ + tokens < next_.tokens ? done_ + tokens : next_.tokens;
        for (; done_ < end; done_++) {
            const int64_t slot = next_.slots[done_];
            fetch_row(keys_, slot);
            fetch_row(values_, slot);
        }
    }

private:
    [[gnu::always_inline]] void fetch_row(const Stored<T>& side, int64_t slot) {
        constexpr int LINE = 64;
        const char* row = reinterpret_cast<const char*>(side.row(slot, next_.head));
        for (int i = 0; i < side.dim * static_cast<int>(sizeof(T)); i += LINE)
            __builtin_prefetch(row + i, 0, 2);
        if (sizeof(T) == 1) __builtin_prefetch(side.scales + slot * side.heads + next_.head, 0, 2);
    }

    const Stored<T> keys_, values_;
    const Place& next_;
    int done_ = 0;
};

// The values of some tokens of one head, as floats: to [count][padded(dim)].
template <class T>
inline void read_rows(Stored<T> from, const Place& place, float* to, Fetcher<T>& fetcher) {
    const int width = padded(from.dim);
    for (int t = 0; t < place.tokens; t++, to += width) {
        const int64_t slot = place.slots[t];
        for (int i = 0; i < width; i += W) store(to + i, read_part(from, slot, place.head, i));
        if (t % 4 == 0) fetcher.fetch(1);
    }
}

// The rows of W tokens of one head from `start` on, read DEPTH dimensions at a time and turned, so
// that each vector is one dimension of them all. Tokens past the last one, and dimensions past the
// end, count as zeros, so that nothing that was never written is read.
template <class T>
class Columns {
public:
    Columns(Stored<T> from, const Place& place, int start) : dim_(from.dim) {
        const int count = place.tokens - start;
        float scales[W] = {};
        for (int t = 0; t < W; t++) {
            rows_[t] = t < count ? from.row(place.slots[start + t], place.head) : nullptr;
            if constexpr (sizeof(T) == 1)
                if (t < count) scales[t] = from.scale(place.slots[start + t], place.head);
        }
        whole_ = count >= W;
        if constexpr (sizeof(T) == 1) scales_ = load(scales);
    }

    [[gnu::always_inline]] void read(int i, vf (&columns)[DEPTH]) const {
        if (whole_ && i + DEPTH <= dim_)
            turned(i, rows_, columns);
        else
            read_some(i, columns);
        if constexpr (sizeof(T) == 1)
            for (int j = 0; j < DEPTH; j++) columns[j] *= scales_;
    }

private:
    // (By itself, so that it takes no registers from what is usual.)
    [[gnu::noinline]] void read_some(int i, vf (&columns)[DEPTH]) const {
        T some[W][DEPTH] = {};
        const T* rows[W];
        for (int t = 0; t < W; t++) {
            rows[t] = some[t];
            const int there = rows_[t] ? std::min(DEPTH, dim_ - i) : 0;
            for (int j = 0; j < there; j++) some[t][j] = rows_[t][i + j];
        }
        turned(0, rows, columns);
    }

    [[gnu::always_inline]] static void turned(int i, const T* const (&rows)[W],
                                              vf (&columns)[DEPTH]) {
        if constexpr (sizeof(T) == sizeof(float)) {
            for (int t = 0; t < DEPTH; t++) columns[t] = load_apart(rows, t, i);
            turn_tile(columns);
        } else {
            // Halves the work: what is turned is 16 bits wide, and becomes floats afterwards.
            vs tile[DEPTH];
#pragma GCC unroll 8
            for (int t = 0; t < DEPTH; t++) tile[t] = load_apart(rows, t, i);
            turn_tile(tile);
#pragma GCC unroll 8
            for (int j = 0; j < DEPTH; j++) columns[j] = floats_of<T>(tile[j]);
        }
    }

    const int dim_;
    bool whole_;
    const T* rows_[W];
    vf scales_;
};

// The keys of TURNED tokens from `start` on, turned: to [padded(dim)][TURNED].
template <class T>
inline void read_turned(Stored<T> from, const Place& place, int start, float* to,
                        Fetcher<T>& fetcher) {
    for (int first = 0; first < TURNED; first += W) {
        const Columns<T> columns(from, place, start + first);
        for (int i = 0; i < padded(from.dim); i += DEPTH) {
            vf some[DEPTH];
            columns.read(i, some);
#pragma GCC unroll 8
            for (int j = 0; j < DEPTH; j++) store(to + (i + j) * TURNED + first, some[j]);
            fetcher.fetch(2);
        }
    }
}

}  // namespace rg

// Vectors of floats as wide as the machine has them, and what the kernels need of them.
//
// Every kernel keeps one rule: an output element is summed in one fixed order, whatever else is in
// the batch. So a row's result does not depend, not even in its last bit, on how many rows are
// computed beside it or how its tokens are cut into chunks and pages.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if !defined(__FLT16_MAX__)
#error "the compiler has no half-precision type"
#endif

namespace rg {

#if defined(__AVX512F__) && defined(__AVX512BW__)
#define RG_AVX512 1
constexpr int W = 16;
#elif defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define RG_AVX2 1
constexpr int W = 8;
#else
constexpr int W = 4;
#endif

using half = _Float16;

typedef float vf __attribute__((vector_size(W * 4)));
typedef int32_t vi __attribute__((vector_size(W * 4)));
typedef float vf_anywhere __attribute__((vector_size(W * 4), aligned(4), may_alias));

inline vf splat(float x) { return x - vf{}; }
inline vf load(const float* from) { return *reinterpret_cast<const vf_anywhere*>(from); }
inline void store(float* to, vf x) { *reinterpret_cast<vf_anywhere*>(to) = x; }

inline vf fma(vf a, vf b, vf c) {
#if defined(RG_AVX512)
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(RG_AVX2)
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
    return a * b + c;
#endif
}

inline vf load(const half* from) {
#if defined(RG_AVX512)
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#elif defined(RG_AVX2)
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#else
    vf x;
    for (int i = 0; i < W; i++) x[i] = static_cast<float>(from[i]);
    return x;
#endif
}

inline vf load(const int8_t* from) {
#if defined(RG_AVX512)
    __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return (vf)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
#elif defined(RG_AVX2)
    __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    return (vf)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
#else
    vf x;
    for (int i = 0; i < W; i++) x[i] = from[i];
    return x;
#endif
}

inline float sum_of(vf x) {
    for (int step = W / 2; step > 0; step /= 2)
        for (int i = 0; i < step; i++) x[i] += x[i + step];
    return x[0];
}

inline float max_of(vf x) {
    float most = x[0];
    for (int i = 1; i < W; i++) most = x[i] > most ? x[i] : most;
    return most;
}

inline vf larger(vf a, vf b) { return a > b ? a : b; }
inline vf absolute(vf x) { return (vf)((vi)x & 0x7fffffff); }

// To the nearest integer, halves to the even one; for magnitudes below 4 million.
inline vf rounded(vf x) {
    const vf magic = splat(12582912.0f);
    return (x + magic) - magic;
}

// e^x for x <= 0, to a relative 2e-7; 0 below -87.
inline vf exp_of(vf x) {
    const vf least = splat(-87.0f);
    const vf n = rounded(larger(x, least) * 1.44269504088896341f);
    vf r = fma(n, splat(-0.693359375f), larger(x, least));
    r = fma(n, splat(2.12194440e-4f), r);
    vf p = splat(1.9875691500e-4f);
    p = fma(p, r, splat(1.3981999507e-3f));
    p = fma(p, r, splat(8.3334519073e-3f));
    p = fma(p, r, splat(4.1665795894e-2f));
    p = fma(p, r, splat(1.6666665459e-1f));
    p = fma(p, r, splat(5.0000001201e-1f));
    p = fma(p, r * r, r + 1.0f);
    const vi exponent = (__builtin_convertvector(n, vi) + 127) << 23;
    return x > least ? p * (vf)exponent : vf{};
}

// x / (1 + e^-x) for any x; overflow of the exponential never happens, as it is taken of -|x|.
inline vf silu(vf x) {
    const vf small = exp_of(-absolute(x));
    const vf sigmoid = (x < 0.0f ? small : splat(1.0f)) / (1.0f + small);
    return x * sigmoid;
}

// W tokens by DEPTH dimensions are turned at once: vector t holds DEPTH elements of token t, then
// as many of token t + DEPTH, as far as it is wide.
constexpr int DEPTH = W < 8 ? W : 8;

typedef int16_t vs __attribute__((vector_size(W * 2)));

template <class V>
struct Interleaved;

#if defined(RG_AVX512)
template <>
struct Interleaved<vf> {
    static constexpr vi LOW = {0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27};
    static constexpr vi HIGH = {4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31};
};
template <>
struct Interleaved<vs> {
    static constexpr vs LOW = {0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27};
    static constexpr vs HIGH = {4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31};
};
#elif defined(RG_AVX2)
template <>
struct Interleaved<vf> {
    static constexpr vi LOW = {0, 8, 1, 9, 2, 10, 3, 11}, HIGH = {4, 12, 5, 13, 6, 14, 7, 15};
};
template <>
struct Interleaved<vs> {
    static constexpr vs LOW = {0, 8, 1, 9, 2, 10, 3, 11}, HIGH = {4, 12, 5, 13, 6, 14, 7, 15};
};
#else
template <>
struct Interleaved<vf> {
    static constexpr vi LOW = {0, 4, 1, 5}, HIGH = {2, 6, 3, 7};
};
template <>
struct Interleaved<vs> {
    static constexpr vs LOW = {0, 4, 1, 5}, HIGH = {2, 6, 3, 7};
};
#endif

// Each round moves one bit of the place in a token's elements into the vector's number, and one of
// the vector's number into the place, until vector j holds dimension j of all tokens in order.
template <class V>
[[gnu::always_inline]] inline void turn_tile(V (&rows)[DEPTH]) {
#pragma GCC unroll 4
    for (int round = 1; round < DEPTH; round *= 2) {
        V next[DEPTH];
#pragma GCC unroll 8
        for (int i = 0; i < DEPTH / 2; i++) {
            const V first = rows[i], second = rows[i + DEPTH / 2];
            next[2 * i] = __builtin_shuffle(first, second, Interleaved<V>::LOW);
            next[2 * i + 1] = __builtin_shuffle(first, second, Interleaved<V>::HIGH);
        }
#pragma GCC unroll 8
        for (int i = 0; i < DEPTH; i++) rows[i] = next[i];
    }
}

// DEPTH elements from `i` on of token t, and of those DEPTH and more behind it.
inline vf load_apart(const float* const (&rows)[W], int t, int i) {
#if defined(RG_AVX512)
    const __m512 first = _mm512_castps256_ps512(_mm256_loadu_ps(rows[t] + i));
    return (vf)_mm512_insertf32x8(first, _mm256_loadu_ps(rows[t + 8] + i), 1);
#else
    return load(rows[t] + i);
#endif
}

inline vs load_apart(const half* const (&rows)[W], int t, int i) {
#if defined(RG_AVX512)
    const auto at = [&](int row) { return reinterpret_cast<const __m128i*>(rows[row] + i); };
    const __m256i first = _mm256_castsi128_si256(_mm_loadu_si128(at(t)));
    return (vs)_mm256_inserti128_si256(first, _mm_loadu_si128(at(t + 8)), 1);
#else
    vs x;
    std::memcpy(&x, rows[t] + i, sizeof x);
    return x;
#endif
}

inline vs load_apart(const int8_t* const (&rows)[W], int t, int i) {
#if defined(RG_AVX512)
    const auto at = [&](int row) { return reinterpret_cast<const __m128i*>(rows[row] + i); };
    return (vs)_mm256_cvtepi8_epi16(
        _mm_unpacklo_epi64(_mm_loadl_epi64(at(t)), _mm_loadl_epi64(at(t + 8))));
#elif defined(RG_AVX2)
    return (vs)_mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(rows[t] + i)));
#else
    vs x;
    for (int j = 0; j < W; j++) x[j] = rows[t][i + j];
    return x;
#endif
}

// Of W elements of T, 16 bits each by now.
template <class T>
inline vf floats_of(vs from);

template <>
inline vf floats_of<half>(vs from) {
    half halves[W];
    std::memcpy(halves, &from, sizeof from);
    return load(halves);
}

template <>
inline vf floats_of<int8_t>(vs from) {
    return __builtin_convertvector(__builtin_convertvector(from, vi), vf);
}

}  // namespace rg

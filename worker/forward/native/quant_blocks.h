// Weights in blocks of 32 small integers, activations in blocks of 32 bytes, and their products.
//
// Q4_1: a weight is d * q + m with q in 0..15; Q8_0: d * q with q in -127..127. An activation is
// s * a with a in -127..127. Sums of q * a are exact; only the sum over blocks is rounded.
#pragma once

#include "simd.h"

namespace rg {

constexpr int BLOCK = 32;

struct Q4_1 {
    half d;
    half m;
    uint8_t q[16];  // q[i]: element i in the low four bits, element i + 16 in the high ones
};

struct Q8_0 {
    half d;
    int8_t q[32];
};

// What multiplies W columns: lane i of group g holds elements 4g..4g + 3 of column i.
struct Packed4 {
    static constexpr int GROUPS = 8;
    uint8_t q[4][W * 4];  // group g in the low four bits, group g + 4 in the high ones
    half d[W];
    half m[W];
};

struct Packed8 {
    static constexpr int GROUPS = 8;
    uint8_t q[8][W * 4];  // q + 128
    half d[W];
};

inline void pack_column(Packed4& to, int column, const Q4_1& from) {
    to.d[column] = from.d, to.m[column] = from.m;
    const auto element = [&](int k) { return k < 16 ? from.q[k] & 15 : from.q[k - 16] >> 4; };
    for (int group = 0; group < 4; group++)
        for (int i = 0; i < 4; i++) {
            const int low = element(4 * group + i), high = element(4 * group + 16 + i);
            to.q[group][4 * column + i] = static_cast<uint8_t>(low | high << 4);
        }
}

inline void pack_column(Packed8& to, int column, const Q8_0& from) {
    to.d[column] = from.d;
    for (int k = 0; k < BLOCK; k++)
        to.q[k / 4][4 * column + k % 4] = static_cast<uint8_t>(from.q[k] + 128);
}

// One block of one row of activations.
struct Activations {
    int8_t a[BLOCK];
    float scale;
    float scaled_sum;  // scale * sum
    int32_t sum;       // of a
};

inline void quantize(const float* x, Activations& to) {
    vf most = {};
    for (int i = 0; i < BLOCK; i += W) most = larger(most, absolute(load(x + i)));
    to.scale = max_of(most) / 127.0f;
    const vf divisor = splat(to.scale > 0.0f ? to.scale : 1.0f);
    const vf end = splat(127.0f);
    to.sum = 0;
    for (int i = 0; i < BLOCK; i += W) {
        vf value = rounded(load(x + i) / divisor);
        value = value > end ? end : value;
        value = value < -end ? -end : value;
        const vi whole = __builtin_convertvector(value, vi);
        for (int j = 0; j < W; j++) {
            to.a[i + j] = static_cast<int8_t>(whole[j]);
            to.sum += whole[j];
        }
    }
    to.scaled_sum = to.scale * static_cast<float>(to.sum);
}

// Four bytes in each of W lanes.
#if defined(RG_AVX512)
using vb = __m512i;
inline vb load_bytes(const uint8_t* from) { return _mm512_loadu_si512(from); }
inline vb low_bits(vb x) { return _mm512_and_si512(x, _mm512_set1_epi8(15)); }
inline vb high_bits(vb x) { return low_bits(_mm512_srli_epi16(x, 4)); }
inline vb four_bytes(const int8_t* from) {
    int32_t x;
    std::memcpy(&x, from, 4);
    return _mm512_set1_epi32(x);
}
#elif defined(RG_AVX2)
using vb = __m256i;
inline vb load_bytes(const uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
inline vb low_bits(vb x) { return _mm256_and_si256(x, _mm256_set1_epi8(15)); }
inline vb high_bits(vb x) { return low_bits(_mm256_srli_epi16(x, 4)); }
inline vb four_bytes(const int8_t* from) {
    int32_t x;
    std::memcpy(&x, from, 4);
    return _mm256_set1_epi32(x);
}
#else
typedef uint8_t vb __attribute__((vector_size(W * 4)));
inline vb load_bytes(const uint8_t* from) {
    vb x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
inline vb low_bits(vb x) { return x & 15; }
inline vb high_bits(vb x) { return x >> 4; }
inline vb four_bytes(const int8_t* from) {
    vb x;
    for (int i = 0; i < W * 4; i++) x[i] = static_cast<uint8_t>(from[i % 4]);
    return x;
}
#endif

// Sums per lane of up to eight products of four bytes each, x below 16 and y signed.
class SmallSums {
public:
#if defined(RG_AVX512) && defined(__AVX512VNNI__)
    void add(vb x, vb y) { sums_ = _mm512_dpbusd_epi32(sums_, x, y); }
    vi take() const { return (vi)sums_; }

private:
    __m512i sums_ = _mm512_setzero_si512();
#elif defined(RG_AVX512)
    // Eight sums of two products up to 15 * 127 stay below 32,768.
    void add(vb x, vb y) { sums_ = _mm512_add_epi16(sums_, _mm512_maddubs_epi16(x, y)); }
    vi take() const { return (vi)_mm512_madd_epi16(sums_, _mm512_set1_epi16(1)); }

private:
    __m512i sums_ = _mm512_setzero_si512();
#elif defined(RG_AVX2)
    void add(vb x, vb y) { sums_ = _mm256_add_epi16(sums_, _mm256_maddubs_epi16(x, y)); }
    vi take() const { return (vi)_mm256_madd_epi16(sums_, _mm256_set1_epi16(1)); }

private:
    __m256i sums_ = _mm256_setzero_si256();
#else
    void add(vb x, vb y) {
        for (int i = 0; i < W * 4; i++) sums_[i / 4] += x[i] * static_cast<int8_t>(y[i]);
    }
    vi take() const { return sums_; }

private:
    vi sums_ = {};
#endif
};

// The same for x up to 255.
#if defined(__AVX512VNNI__) && defined(RG_AVX512)
using WideSums = SmallSums;
#else
class WideSums {
public:
    void add(vb x, vb y) { low_.add(low_bits(x), y), high_.add(high_bits(x), y); }
    vi take() const { return low_.take() + high_.take() * 16; }

private:
    SmallSums low_, high_;
};
#endif

}  // namespace rg

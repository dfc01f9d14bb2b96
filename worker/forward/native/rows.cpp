// What is done to each row by itself between products: norms and rotations.
#include <omp.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "simd.h"

namespace rg {
namespace {

// Floats below which one thread is faster than waking another.
constexpr int64_t ALONE = 65536;

float inverse_root_mean_square(const float* x, int size, float eps) {
    vf sums = {};
    int i = 0;
    for (; i + W <= size; i += W) sums = fma(load(x + i), load(x + i), sums);
    float sum = sum_of(sums);
    for (; i < size; i++) sum += x[i] * x[i];
    return 1.0f / std::sqrt(sum / static_cast<float>(size) + eps);
}

void scale_row(const float* x, const float* weight, float by, int size, float* out) {
    for (int i = 0; i < size; i++) out[i] = x[i] * by * weight[i];
}

void turn(float* x, const float* cos, const float* sin, int half_size) {
    for (int i = 0; i < half_size; i++) {
        const float first = x[i], second = x[i + half_size];
        x[i] = first * cos[i] - second * sin[i];
        x[i + half_size] = second * cos[i] + first * sin[i];
    }
}

}  // namespace
}  // namespace rg

extern "C" {

// Asks for large pages for memory that was not touched yet: what is read from end to end in each
// step then costs fewer walks through the page tables. Where there are none, nothing happens.
void rg_use_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] int64_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr uintptr_t PAGE = 4096;
    const uintptr_t start = (reinterpret_cast<uintptr_t>(memory) + PAGE - 1) / PAGE * PAGE;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(memory) + bytes) / PAGE * PAGE;
    if (end > start) madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
#endif
}

// RMSNorm of each row, to `out` with rows end to end.
void rg_norm(const float* x, int64_t stride, int64_t rows, int64_t size, const float* weight,
             float eps, float* out) {
#pragma omp parallel for schedule(static) if (rows * size > rg::ALONE)
    for (int64_t row = 0; row < rows; row++) {
        const float* from = x + row * stride;
        rg::scale_row(from, weight, rg::inverse_root_mean_square(from, size, eps), size,
                      out + row * size);
    }
}

// Turns the first `heads` vectors of each row in place, all by the row's angles: row r has its dim
// / 2 cosines at cos + r * angle_stride. With `weight` [heads][dim] the vectors are normed before.
void rg_rotate(float* x, int64_t stride, int64_t rows, int64_t heads, int64_t dim, const float* cos,
               const float* sin, int64_t angle_stride, const float* weight, float eps) {
#pragma omp parallel for schedule(static) if (rows * heads * dim > rg::ALONE)
    for (int64_t row = 0; row < rows; row++) {
        const int64_t angles = row * angle_stride;
        for (int64_t head = 0; head < heads; head++) {
            float* vector = x + row * stride + head * dim;
            if (weight)
                rg::scale_row(vector, weight + head * dim,
                              rg::inverse_root_mean_square(vector, dim, eps), dim, vector);
            rg::turn(vector, cos + angles, sin + angles, dim / 2);
        }
    }
}

}  // extern "C"

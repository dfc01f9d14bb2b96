// All layers of a model in one call: between two kernels nothing waits for the interpreter.
#include "simd.h"

extern "C" {
void rg_norm(const float*, int64_t, int64_t, int64_t, const float*, float, float*);
void rg_rotate(float*, int64_t, int64_t, int64_t, int64_t, const float*, const float*, int64_t,
               const float*, float);
void rg_linear_f32(const float*, int64_t, int64_t, int64_t, const float*, float*, int64_t, int64_t,
                   const float*, int);
int rg_linear_quant(int, const float*, int64_t, int64_t, int64_t, const void*, float*, int64_t,
                    int64_t, const float*, int);
int rg_attention_run(void*, int, int, int, void*, void*, float*, float*, const float*, int64_t,
                     const float*, int64_t, const float*, int64_t, float*);
}

namespace rg {
namespace {

// Every member of these is 8 bytes wide; layers_cpu.py has them in the same order.
struct Product {
    int64_t bits;  // of a stored weight; 32: float
    const void* packed;
    int64_t depth;
    int64_t columns;
    const float* bias;  // or null
};

struct Layer {
    Product qkv, output, gate_up, down;
    const float* attention_norm;
    const float* qk_norm;  // or null
    const float* mlp_norm;
    void* keys;
    void* values;
    float* key_scales;    // or null
    float* value_scales;  // or null
};

struct Shape {
    int64_t size;  // of a row of hidden state
    int64_t heads;
    int64_t kv_heads;
    int64_t dim;
    int64_t kind;  // of the pool, as rg_attention_run has it
    double eps;
};

// Rows of this pass, and room for what is worked out on the way.
struct Rows {
    int64_t count;
    float* hidden;
    const float* cos;
    const float* sin;
    int64_t angle_stride;
    float* normed;
    float* qkv;
    float* mixed;
    float* gated;
};

// 0, or 1 if there is not enough memory.
int multiply(const Product& by, const float* x, int64_t rows, float* out, int finish) {
    if (by.bits == 32) {
        rg_linear_f32(x, by.depth, rows, by.depth, static_cast<const float*>(by.packed), out,
                      by.columns, by.columns, by.bias, finish);
        return 0;
    }
    return rg_linear_quant(static_cast<int>(by.bits), x, by.depth, rows, by.depth, by.packed, out,
                           by.columns, by.columns, by.bias, finish);
}

int attend(const Layer& layer, const Shape& shape, const Rows& rows, void* attention) {
    const float eps = static_cast<float>(shape.eps);
    const int64_t stride = layer.qkv.columns, turned = shape.heads + shape.kv_heads;
    rg_norm(rows.hidden, shape.size, rows.count, shape.size, layer.attention_norm, eps,
            rows.normed);
    if (multiply(layer.qkv, rows.normed, rows.count, rows.qkv, 0)) return 1;
    rg_rotate(rows.qkv, stride, rows.count, turned, shape.dim, rows.cos, rows.sin,
              rows.angle_stride, layer.qk_norm, layer.qk_norm ? eps : 0.0f);
    const float* k = rows.qkv + shape.heads * shape.dim;
    const float* v = rows.qkv + turned * shape.dim;
    return rg_attention_run(attention, static_cast<int>(shape.kind),
                            static_cast<int>(shape.kv_heads), static_cast<int>(shape.dim),
                            layer.keys, layer.values, layer.key_scales, layer.value_scales,
                            rows.qkv, stride, k, stride, v, stride, rows.mixed);
}

int add_up(const Layer& layer, const Shape& shape, const Rows& rows) {
    if (multiply(layer.output, rows.mixed, rows.count, rows.hidden, 1)) return 1;
    rg_norm(rows.hidden, shape.size, rows.count, shape.size, layer.mlp_norm,
            static_cast<float>(shape.eps), rows.normed);
    if (multiply(layer.gate_up, rows.normed, rows.count, rows.gated, 2)) return 1;
    return multiply(layer.down, rows.gated, rows.count, rows.hidden, 1);
}

}  // namespace
}  // namespace rg

extern "C" {

// From the embedded rows to what the last layer's attention mixes; `hidden` is then the state before
// that is added. 0, or 1 if there is not enough memory.
int rg_layers(const void* layers, int64_t count, const void* shape, const void* rows,
              void* attention) {
    const auto* each = static_cast<const rg::Layer*>(layers);
    const auto& shaped = *static_cast<const rg::Shape*>(shape);
    const auto& these = *static_cast<const rg::Rows*>(rows);
    for (int64_t i = 0; i < count; i++) {
        if (i > 0 && rg::add_up(each[i - 1], shaped, these)) return 1;
        if (rg::attend(each[i], shaped, these, attention)) return 1;
    }
    return 0;
}

}  // extern "C"

/* The chain of block ids (proto/chained.py) in one call.
 *
 * XXH3_64 with seed 0, as published: an id is 64 bits of its parent's id, eight little-endian bytes,
 * and the block's content. That is nine bytes at least, so that the shorter forms are left out. Tests
 * compare every length with the package xxhash. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numbers are read as they lie; elsewhere the chain in Python is taken"
#endif

enum { LONG = 64 - 8 + 1 }; /* nothing but the first sixteen bytes of a message has the parent */
static const uint64_t P32_1 = 0x9E3779B1U, P32_2 = 0x85EBCA77U, P32_3 = 0xC2B2AE3DU;
static const uint64_t P64_1 = 0x9E3779B185EBCA87ULL, P64_2 = 0xC2B2AE3D27D4EB4FULL,
                      P64_3 = 0x165667B19E3779F9ULL, P64_4 = 0x85EBCA77C2B2AE63ULL,
                      P64_5 = 0x27D4EB2F165667C5ULL;

static const uint8_t SECRET[192] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c,
    0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f,
    0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21,
    0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c,
    0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3,
    0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8,
    0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b, 0x4f, 0x1d,
    0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64,
    0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e,
    0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
    0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};

static inline uint64_t read64(const uint8_t *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return value;
}

static inline uint64_t folded(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t avalanche(uint64_t hash) {
    hash ^= hash >> 37;
    hash *= 0x165667919E3779F9ULL;
    return hash ^ hash >> 32;
}

static inline uint64_t mix16(const uint8_t *at, const uint8_t *secret) {
    return folded(read64(at) ^ read64(secret), read64(at + 8) ^ read64(secret + 8));
}

#ifdef __SSE2__
/* Two lanes at a time, which the compiler does not find: it has no product of halves. */
static inline void accumulate(uint64_t *acc, const uint8_t *at, const uint8_t *secret) {
    for (int pair = 0; pair < 4; pair++) {
        __m128i *sum = (__m128i *)acc + pair;
        __m128i value = _mm_loadu_si128((const __m128i *)at + pair);
        __m128i keyed = _mm_xor_si128(value, _mm_loadu_si128((const __m128i *)secret + pair));
        __m128i product = _mm_mul_epu32(keyed, _mm_srli_epi64(keyed, 32));
        __m128i crossed = _mm_shuffle_epi32(value, _MM_SHUFFLE(1, 0, 3, 2));
        _mm_storeu_si128(sum, _mm_add_epi64(_mm_loadu_si128(sum), _mm_add_epi64(product, crossed)));
    }
}
#else
static inline void accumulate(uint64_t *acc, const uint8_t *at, const uint8_t *secret) {
    for (int lane = 0; lane < 8; lane++) {
        uint64_t value = read64(at + 8 * lane), keyed = value ^ read64(secret + 8 * lane);
        acc[lane ^ 1] += value;
        acc[lane] += (keyed & 0xFFFFFFFFU) * (keyed >> 32);
    }
}
#endif

static inline uint64_t keyed_product(uint64_t value) {
    uint64_t keyed = value ^ read64(SECRET);
    return (keyed & 0xFFFFFFFFU) * (keyed >> 32);
}

/* Puts the parent in the place of the first eight bytes. These were only added, so that all else of
 * the first sixteen stripes is done before the parent is known: it waits for the block before. */
static inline void enter_parent(uint64_t *acc, uint64_t parent, uint64_t placeholder) {
    acc[0] += keyed_product(parent) - keyed_product(placeholder);
    acc[1] += parent - placeholder;
}

static uint64_t hash_long(uint64_t parent, const uint8_t *at, size_t size) {
    uint64_t acc[8] = {P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1};
    const uint8_t *last = at + size - 64;
    size_t stripes = (size - 1) / 64;
    for (size_t stripe = 0; stripe < stripes; stripe++) {
        accumulate(acc, at + 64 * stripe, SECRET + 8 * (stripe % 16));
        if (stripe == 15) enter_parent(acc, parent, read64(at));
        if (stripe % 16 == 15)
            for (int lane = 0; lane < 8; lane++) {
                acc[lane] ^= acc[lane] >> 47;
                acc[lane] = (acc[lane] ^ read64(SECRET + 128 + 8 * lane)) * P32_1;
            }
    }
    accumulate(acc, last, SECRET + 121);
    if (stripes < 16) enter_parent(acc, parent, read64(at));
    uint64_t hash = size * P64_1;
    for (int pair = 0; pair < 4; pair++)
        hash += folded(acc[2 * pair] ^ read64(SECRET + 11 + 16 * pair),
                       acc[2 * pair + 1] ^ read64(SECRET + 19 + 16 * pair));
    return avalanche(hash);
}

/* The first sixteen bytes, of which half are the parent. */
static inline uint64_t mix_first(uint64_t parent, const uint8_t *at) {
    return folded(parent ^ read64(SECRET), read64(at + 8) ^ read64(SECRET + 8));
}

static uint64_t hash_middle(uint64_t parent, const uint8_t *at, size_t size) { /* 129 to 240 */
    uint64_t hash = size * P64_1 + mix_first(parent, at);
    size_t rounds = size / 16;
    for (size_t n = 1; n < 8; n++) hash += mix16(at + 16 * n, SECRET + 16 * n);
    hash = avalanche(hash);
    for (size_t n = 8; n < rounds; n++) hash += mix16(at + 16 * n, SECRET + 16 * (n - 8) + 3);
    return avalanche(hash + mix16(at + size - 16, SECRET + 119));
}

static uint64_t hash_short(uint64_t parent, const uint8_t *at, size_t size) { /* 17 to 128 */
    uint64_t hash = size * P64_1 + mix16(at + size - 16, SECRET + 16);
    for (size_t n = (size - 1) / 32; n > 0; n--) {
        hash += mix16(at + 16 * n, SECRET + 32 * n);
        hash += mix16(at + size - 16 * (n + 1), SECRET + 32 * n + 16);
    }
    return avalanche(hash + mix_first(parent, at));
}

static uint64_t hash_shortest(const uint8_t *at, size_t size) { /* 9 to 16 */
    uint64_t low = read64(at) ^ read64(SECRET + 24) ^ read64(SECRET + 32);
    uint64_t high = read64(at + size - 8) ^ read64(SECRET + 40) ^ read64(SECRET + 48);
    return avalanche(size + __builtin_bswap64(low) + high + folded(low, high));
}

/* Of the parent and, from the eighth byte on, a block. What stands before it is not the parent where
 * the block is LONG enough: it is not looked at, and the blocks need not be put behind it one by one. */
static inline uint64_t hashed(uint64_t parent, const uint8_t *at, size_t size) {
    if (size > 240) return hash_long(parent, at, size);
    if (size > 128) return hash_middle(parent, at, size);
    if (size > 16) return hash_short(parent, at, size);
    return hash_shortest(at, size);
}

static inline __attribute__((always_inline)) void hash_all(uint8_t *id, uint64_t parent,
                                                           const uint8_t *block, size_t size,
                                                           Py_ssize_t blocks, uint8_t *message) {
    for (Py_ssize_t n = 0; n < blocks; n++, block += size, id += 8) {
        const uint8_t *at = message;
        if (n && size >= LONG)
            at = block - 8; /* the end of the block before */
        else {
            memcpy(message, &parent, 8);
            memcpy(message + 8, block, size);
        }
        parent = hashed(parent, at, 8 + size);
        memcpy(id, &parent, 8);
    }
}

static PyObject *chained(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (count != 3) {
        PyErr_SetString(PyExc_TypeError, "chained(parent, content, block_bytes)");
        return NULL;
    }
    uint64_t parent = PyLong_AsUnsignedLongLong(args[0]);
    if (PyErr_Occurred()) return NULL;
    Py_ssize_t size = PyLong_AsSsize_t(args[2]);
    if (PyErr_Occurred()) return NULL;
    if (size < 1) {
        PyErr_SetString(PyExc_ValueError, "a block has one byte at least");
        return NULL;
    }
    Py_buffer content;
    if (PyObject_GetBuffer(args[1], &content, PyBUF_SIMPLE)) return NULL;
    Py_ssize_t blocks = content.len / size;
    PyObject *ids = PyBytes_FromStringAndSize(NULL, 8 * blocks);
    uint8_t *message = ids && blocks ? PyMem_Malloc(8 + (size_t)size) : NULL;
    if (!ids || (blocks && !message)) {
        PyBuffer_Release(&content);
        Py_XDECREF(ids);
        return PyErr_NoMemory();
    }
    uint8_t *id = (uint8_t *)PyBytes_AsString(ids);
    /* The size of most blocks, 16 tokens, is written down: all that depends on it is then known. */
    if (size == 64)
        hash_all(id, parent, content.buf, 64, blocks, message);
    else
        hash_all(id, parent, content.buf, (size_t)size, blocks, message);
    PyMem_Free(message);
    PyBuffer_Release(&content);
    return ids;
}

static PyMethodDef functions[] = {
    {"chained", (PyCFunction)(void (*)(void))chained, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "chained_compiled",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_chained_compiled(void) { return PyModule_Create(&definition); }

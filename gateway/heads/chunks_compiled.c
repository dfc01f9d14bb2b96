/* Whole chunks of a body taken out of their frames (gateway/heads/chunks.py) in one call. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#define MOST_DIGITS 8

static int digit_of(unsigned char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The chunk at `at`: its data, its size, and what stands behind it; NULL: it is none, or not whole.
 * Of the last one the size is 0, and there is nothing behind it: neither trailers nor more bytes. */
static const char *chunk_at(const char *at, const char *end, const char **data, size_t *size) {
    const char *digits = at;
    *size = 0;
    for (int digit; at < end && (digit = digit_of((unsigned char)*at)) >= 0; at++)
        *size = *size << 4 | (size_t)digit;
    if (at == digits || at - digits > MOST_DIGITS) return NULL;
    if (end - at < 4 || at[0] != '\r' || at[1] != '\n') return NULL;
    *data = at + 2;
    if (*size > (size_t)(end - at) - 4) return NULL;
    at = *data + *size;
    if (at[0] != '\r' || at[1] != '\n') return NULL;
    return *size || at + 2 == end ? at + 2 : NULL;
}

static PyObject *whole_chunks(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    char *piece;
    Py_ssize_t length;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "whole_chunks(piece, begin)");
        return NULL;
    }
    if (PyBytes_AsStringAndSize(args[0], &piece, &length)) return NULL;
    Py_ssize_t begin = PyLong_AsSsize_t(args[1]);
    if (PyErr_Occurred()) return NULL;
    if (begin < 0 || begin > length) {
        PyErr_SetString(PyExc_ValueError, "they begin in the piece, or at its end");
        return NULL;
    }
    const char *end = piece + length, *data = NULL;
    size_t size = 1, total = 0;
    for (const char *at = piece + begin; at < end;) {
        if (!size || !(at = chunk_at(at, end, &data, &size))) Py_RETURN_NONE;
        total += size;
    }
    PyObject *body = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)total);
    if (!body) return NULL;
    char *to = PyBytes_AsString(body);
    for (const char *at = piece + begin; at < end; to += size) {
        at = chunk_at(at, end, &data, &size);
        memcpy(to, data, size);
    }
    PyObject *result = PyTuple_Pack(2, body, size ? Py_False : Py_True);
    Py_DECREF(body);
    return result;
}

static PyMethodDef functions[] = {
    {"whole_chunks", (PyCFunction)(void (*)(void))whole_chunks, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "chunks_compiled",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_chunks_compiled(void) { return PyModule_Create(&definition); }

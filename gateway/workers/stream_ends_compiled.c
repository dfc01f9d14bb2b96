/* How a stream of events ends, and how many it has, in one call each
 * (gateway/workers/stream_ends.py). */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>

#define LENGTH(text) ((Py_ssize_t)sizeof(text) - 1)
#define BEGINS(at, end, text) ((end) - (at) >= LENGTH(text) && !memcmp(at, text, sizeof(text) - 1))
#define DATA "data: "
#define DONE "\n\ndata: [DONE]\n\n"
#define LOOKED_AT 5 /* ends of events, from the last one on */

/* Of all that ends before `end`, the last end of an event; NULL: there is none. */
static const char *last_blank_line(const char *begin, const char *end) {
    for (const char *at = end - 1; at > begin; at--)
        if (*at == '\n' && at[-1] == '\n') return at - 1;
    return NULL;
}

/* What may say more of an answer than that it is over. */
static int says_more(const char *at, const char *end) {
    if (memchr(at, '\r', (size_t)(end - at))) return 1;
    while ((at = memchr(at, '"', (size_t)(end - at)))) {
        at++;
        if (BEGINS(at, end, "error\"") || BEGINS(at, end, "usage\"")) return 1;
        if (BEGINS(at, end, "meta_info\"") || BEGINS(at, end, "response")) return 1;
    }
    return 0;
}

static PyObject *plain_finish(PyObject *module, PyObject *stream) {
    (void)module;
    char *text;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(stream, &text, &size)) return NULL;
    const char *end = text + size, *ends[LOOKED_AT], *before = end;
    if (size < LENGTH(DONE) || memcmp(end - LENGTH(DONE), DONE, sizeof(DONE) - 1)) Py_RETURN_NONE;
    int found = 0;
    while (found < LOOKED_AT && (before = last_blank_line(text, before))) ends[found++] = before;
    if (says_more(found == LOOKED_AT ? ends[LOOKED_AT - 1] : text, end)) Py_RETURN_NONE;
    const char *finish = found > 2 ? ends[2] + 2 : text;
    if (!BEGINS(finish, ends[1], DATA)) Py_RETURN_NONE;
    finish += LENGTH(DATA);
    return PyBytes_FromStringAndSize(finish, ends[1] - finish);
}

static PyObject *data_lines(PyObject *module, PyObject *stream) {
    (void)module;
    char *text;
    Py_ssize_t size, lines = 0;
    if (PyBytes_AsStringAndSize(stream, &text, &size)) return NULL;
    const char *end = text + size;
    for (const char *at = text; at; at = memchr(at, '\n', (size_t)(end - at))) {
        if (at != text || *at == '\n') at++;
        lines += BEGINS(at, end, "data:");
    }
    return PyLong_FromSsize_t(lines);
}

static PyMethodDef functions[] = {
    {"plain_finish", plain_finish, METH_O, NULL},
    {"data_lines", data_lines, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "stream_ends_compiled",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_stream_ends_compiled(void) { return PyModule_Create(&definition); }

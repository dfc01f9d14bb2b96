/* The walk along a prompt's blocks (radix_mirror/walk.py) in one call, for as many workers as a word
 * has bits. Tests compare it with the walk in Python. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* The workers for which a table has the block; *failed: it raised, or told no mask. */
static uint64_t ask(PyObject *table, PyObject *block, PyObject *nobody, int *failed) {
    PyObject *told = PyObject_CallFunctionObjArgs(table, block, nobody, NULL);
    uint64_t mask = told ? PyLong_AsUnsignedLongLongMask(told) : 0;
    *failed |= !told || (mask == UINT64_MAX && PyErr_Occurred());
    Py_XDECREF(told);
    return mask;
}

/* All workers of the mask hold so many blocks; 0: the list is too short for one. */
static int enter(PyObject *depths, uint64_t mask, Py_ssize_t depth) {
    for (; mask; mask &= mask - 1) {
        PyObject *held = PyLong_FromSsize_t(depth);
        if (!held || PyList_SetItem(depths, __builtin_ctzll(mask), held)) return 0;
    }
    return 1;
}

/* Who leans on another table than the first; *failed: something raised. */
static uint64_t walk(PyObject *depths, PyObject *tables, uint64_t alive, PyObject *ids, int *failed) {
    Py_ssize_t end = PySequence_Size(ids), count = PyTuple_Size(tables), depth = 0;
    PyObject *nobody = PyLong_FromLong(0);
    uint64_t leaning = 0;
    *failed = end < 0 || !nobody;
    for (; !*failed && alive && depth < end; depth++) {
        PyObject *block = PySequence_GetItem(ids, depth);
        if (!block) {
            *failed = 1;
            break;
        }
        uint64_t here = ask(PyTuple_GetItem(tables, 0), block, nobody, failed) & alive, left = here;
        if (here != alive)
            for (Py_ssize_t n = 1; n < count && !*failed; n++)
                left |= ask(PyTuple_GetItem(tables, n), block, nobody, failed) & alive;
        Py_DECREF(block);
        leaning |= left ^ here;
        if (!*failed && left != alive) *failed = !enter(depths, alive ^ left, depth);
        alive = left;
    }
    if (!*failed) *failed = !enter(depths, alive, end);
    Py_XDECREF(nobody);
    return leaning;
}

static PyObject *fill(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != 4 || !PyList_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "fill(depths, tables, alive, ids)");
        return NULL;
    }
    uint64_t alive = PyLong_AsUnsignedLongLong(args[2]);
    if (PyErr_Occurred()) return NULL;
    PyObject *tables = PySequence_Tuple(args[1]);
    if (!tables) return NULL;
    int failed = PyTuple_Size(tables) < 1;
    if (failed) PyErr_SetString(PyExc_ValueError, "there is no table");
    uint64_t leaning = failed ? 0 : walk(args[0], tables, alive, args[3], &failed);
    Py_DECREF(tables);
    return failed ? NULL : PyLong_FromUnsignedLongLong(leaning);
}

static PyMethodDef functions[] = {
    {"fill", (PyCFunction)(void (*)(void))fill, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "walk_compiled",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_walk_compiled(void) { return PyModule_Create(&definition); }

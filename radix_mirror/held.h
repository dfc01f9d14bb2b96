/* Who holds a block, as tables tell: masks of workers, and the same as words of 64 workers each. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* A table that is asked by a dictionary's `get` is looked at without a call. */
typedef struct {
    PyObject *lookup, *held; /* NULL: what it is asked by is another one's */
} Table;

static PyCFunction dictionary_get;
static PyObject *nobody, *a_word; /* 0, and 64 bits */

static Table table_of(PyObject *lookup) {
    Table table = {lookup, NULL};
    if (PyCFunction_CheckExact(lookup) && PyCFunction_GetFunction(lookup) == dictionary_get)
        table.held = PyCFunction_GetSelf(lookup);
    return table;
}

/* The mask of workers for which a table has the block, a reference of the caller's; NULL: it raised,
 * or told no mask. */
static PyObject *ask(Table table, PyObject *block) {
    PyObject *told;
    if (table.held) {
        told = PyDict_GetItemWithError(table.held, block);
        if (!told && !PyErr_Occurred()) told = nobody;
        Py_XINCREF(told);
    } else
        told = PyObject_CallFunctionObjArgs(table.lookup, block, nobody, NULL);
    if (told && !PyLong_Check(told)) {
        PyErr_SetString(PyExc_TypeError, "a mask of workers is an int");
        Py_CLEAR(told);
    }
    return told;
}

/* The tables as a tuple, of which there is one at least; NULL: there is none. */
static PyObject *some_tables(PyObject *given) {
    PyObject *tables = PySequence_Tuple(given);
    if (tables && !PyTuple_Size(tables)) {
        PyErr_SetString(PyExc_ValueError, "there is no table");
        Py_CLEAR(tables);
    }
    return tables;
}

/* Puts another mask, of which it takes the reference, in the place of one; 0: there is none. */
static int become(PyObject **mask, PyObject *other) {
    PyObject *before = *mask;
    if (!other) return 0;
    *mask = other;
    Py_DECREF(before);
    return 1;
}

/* A mask as words of 64 workers each, the lowest first. What is beyond them is left out, or, if all is
 * to be there, an error; 0: it failed. */
static int read_words(uint64_t *words, Py_ssize_t count, PyObject *mask, int all) {
    if (count == 1 && all) {
        words[0] = PyLong_AsUnsignedLongLong(mask);
        return !PyErr_Occurred();
    }
    PyObject *rest = Py_NewRef(mask);
    int going = 1;
    for (Py_ssize_t n = 0; going && n < count; n++) {
        words[n] = PyLong_AsUnsignedLongLongMask(rest);
        going = n + 1 == count && !all ? 1 : become(&rest, PyNumber_Rshift(rest, a_word));
    }
    if (going && all && PyObject_IsTrue(rest)) {
        PyErr_SetString(PyExc_OverflowError, "a worker is beyond all places, or the mask below zero");
        going = 0;
    }
    Py_DECREF(rest);
    return going;
}

/* All workers of the words hold so many blocks; 0: it failed. */
static int enter_words(PyObject *depths, const uint64_t *words, Py_ssize_t count, PyObject *depth) {
    for (Py_ssize_t n = 0; n < count; n++)
        for (uint64_t word = words[n]; word; word &= word - 1)
            if (PyList_SetItem(depths, 64 * n + __builtin_ctzll(word), Py_NewRef(depth))) return 0;
    return 1;
}

static Py_ssize_t words_for(PyObject *depths) { return (PyList_Size(depths) + 63) / 64; }

static PyObject *number_of(const uint64_t *words, Py_ssize_t count) {
    PyObject *number = Py_NewRef(nobody);
    for (Py_ssize_t n = count - 1; number && n >= 0; n--) {
        PyObject *word = words[n] ? PyLong_FromUnsignedLongLong(words[n]) : Py_NewRef(nobody);
        if (!word || !become(&number, PyNumber_Lshift(number, a_word)) ||
            !become(&number, PyNumber_Or(number, word)))
            Py_CLEAR(number);
        Py_XDECREF(word);
    }
    return number;
}

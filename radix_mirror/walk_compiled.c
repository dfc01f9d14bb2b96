/* The walk along a prompt's blocks (radix_mirror/walk.py), and what it finds.
 * Tests compare each function with the same in Python. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* A table that is asked by a dictionary's `get` is looked at without a call. */
typedef struct {
    PyObject *lookup, *held; /* NULL: what it is asked by is another one's */
} Table;

static PyCFunction dictionary_get;
static PyObject *nobody, *to_bytes, *little; /* 0, and names */

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

/* Adds of `some` those that are in `all`; 0: it failed. */
static int unite(PyObject **mask, PyObject *some, PyObject *all) {
    PyObject *more = PyNumber_And(some, all);
    int united = more && become(mask, PyNumber_Or(*mask, more));
    Py_XDECREF(more);
    return united;
}

/* All workers of a byte of a mask, which begins at a place, hold so many blocks; 0: it failed. */
static int enter_byte(PyObject *depths, unsigned byte, Py_ssize_t place, PyObject *depth) {
    for (; byte; byte &= byte - 1)
        if (PyList_SetItem(depths, place + __builtin_ctz(byte), Py_NewRef(depth))) return 0;
    return 1;
}

static int enter(PyObject *depths, PyObject *mask, PyObject *depth) {
    Py_ssize_t workers = PyList_Size(depths);
    int entered = 1;
    if (!PyObject_IsTrue(mask)) return 1;
    if (workers <= 64) { /* without a call */
        uint64_t word = PyLong_AsUnsignedLongLong(mask);
        if (PyErr_Occurred()) return 0;
        for (Py_ssize_t at = 0; word && entered; word >>= 8, at += 8)
            entered = enter_byte(depths, word & 0xff, at, depth);
        return entered;
    }
    PyObject *size = PyLong_FromSsize_t(workers / 8 + 1);
    PyObject *bits = size ? PyObject_CallMethodObjArgs(mask, to_bytes, size, little, NULL) : NULL;
    const char *raw = bits ? PyBytes_AsString(bits) : NULL;
    entered = raw != NULL;
    for (Py_ssize_t at = 0; entered && at < PyBytes_Size(bits); at++)
        entered = enter_byte(depths, (unsigned char)raw[at], 8 * at, depth);
    Py_XDECREF(bits);
    Py_XDECREF(size);
    return entered;
}

/* What a walk knows. Who falls is entered in the depths, or else in the list of falls. */
typedef struct {
    PyObject *tables, *depths, *falls, *alive, *leaning;
    PyObject *covering; /* the last mask that covered all that were alive; only compared */
} Walk;

/* All but those left fall at a depth; 0: it failed. */
static int fell(Walk *walk, PyObject *left, Py_ssize_t depth) {
    PyObject *gone = PyNumber_Xor(walk->alive, left), *where = PyLong_FromSsize_t(depth);
    PyObject *fall = gone && where && !walk->depths ? PyTuple_Pack(2, gone, where) : NULL;
    int entered = fall ? !PyList_Append(walk->falls, fall)
                       : gone && where && walk->depths && enter(walk->depths, gone, where);
    Py_XDECREF(fall);
    Py_XDECREF(where);
    Py_XDECREF(gone);
    return entered && become(&walk->alive, Py_NewRef(left));
}

/* One block, which those in `mask` have according to the first table; 0: it failed. */
static int step(Walk *walk, PyObject *mask, PyObject *block, Py_ssize_t depth) {
    PyObject *here = PyNumber_And(mask, walk->alive), *left = Py_XNewRef(here);
    int same = here ? PyObject_RichCompareBool(here, walk->alive, Py_EQ) : -1, direct = 1;
    Py_ssize_t count = PyTuple_Size(walk->tables);
    for (Py_ssize_t n = 1; !same && n < count; n++) {
        PyObject *told = ask(table_of(PyTuple_GetItem(walk->tables, n)), block);
        if (!told || !unite(&left, told, walk->alive)) same = -1;
        Py_XDECREF(told);
    }
    if (!same && count > 1) {
        PyObject *leant = PyNumber_Xor(left, here);
        direct = leant ? !PyObject_IsTrue(leant) : 0;
        if (!leant || !unite(&walk->leaning, leant, leant)) same = -1;
        Py_XDECREF(leant);
    }
    if (!same) same = PyObject_RichCompareBool(left, walk->alive, Py_EQ);
    if (!same && !fell(walk, left, depth)) same = -1;
    Py_XDECREF(here);
    Py_XDECREF(left);
    return same >= 0 && (!direct || become(&walk->covering, Py_NewRef(mask)));
}

static int walk_along(Walk *walk, PyObject *ids, Py_ssize_t start) {
    Py_ssize_t end = PySequence_Size(ids);
    Table first = table_of(PyTuple_GetItem(walk->tables, 0));
    int going = end >= 0;
    for (Py_ssize_t at = 0; going && at < end && PyObject_IsTrue(walk->alive); at++) {
        PyObject *block = PySequence_GetItem(ids, at), *mask = block ? ask(first, block) : NULL;
        going = mask && (mask == walk->covering || step(walk, mask, block, start + at));
        Py_XDECREF(block);
        Py_XDECREF(mask);
    }
    return going;
}

/* A fall is a tuple, which holds on to what it is read of; 0: it is none, or it failed. */
static int enter_fall(PyObject *depths, PyObject *fall) {
    int is_pair = PyTuple_Check(fall) && PyTuple_Size(fall) == 2;
    PyObject *mask = is_pair ? PyTuple_GetItem(fall, 0) : NULL;
    PyObject *depth = is_pair ? PyTuple_GetItem(fall, 1) : NULL;
    if (is_pair && PyLong_Check(mask) && PyLong_Check(depth)) return enter(depths, mask, depth);
    PyErr_SetString(PyExc_TypeError, "a fall is a tuple of two ints, (mask, depth)");
    return 0;
}

static int enter_falls(PyObject *depths, PyObject *falls, PyObject *left, PyObject *end) {
    PyObject *all = PySequence_Fast(falls, "falls are a sequence");
    int entered = all != NULL;
    for (Py_ssize_t at = 0; entered && at < PySequence_Size(all); at++) {
        PyObject *fall = PySequence_GetItem(all, at);
        entered = fall && enter_fall(depths, fall);
        Py_XDECREF(fall);
    }
    Py_XDECREF(all);
    return entered && enter(depths, left, end);
}

static PyObject *enter_all(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != 4 || !PyList_Check(args[0]) || !PyLong_Check(args[2]) || !PyLong_Check(args[3]))
        return PyErr_Format(PyExc_TypeError, "enter_all(depths, falls, left, end)");
    return enter_falls(args[0], args[1], args[2], args[3]) ? Py_NewRef(Py_None) : NULL;
}

/* Of the workers `alive`; NULL: it failed. Otherwise (the falls, who did not fall, who leans on
 * another table than the first); with depths these are entered, and there are no falls. */
static PyObject *found_along(PyObject *given, PyObject *depths, PyObject *alive, PyObject *ids,
                             Py_ssize_t start) {
    PyObject *tables = some_tables(given), *falls = tables ? PyList_New(0) : NULL, *found = NULL;
    if (falls) {
        Walk walk = {tables, depths, falls, Py_NewRef(alive), Py_NewRef(nobody), Py_NewRef(Py_None)};
        if (walk_along(&walk, ids, start)) found = PyTuple_Pack(3, falls, walk.alive, walk.leaning);
        Py_DECREF(walk.alive);
        Py_DECREF(walk.leaning);
        Py_DECREF(walk.covering);
    }
    Py_XDECREF(falls);
    Py_XDECREF(tables);
    return found;
}

static PyObject *fall_offs(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != 4 || !PyLong_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "fall_offs(tables, alive, ids, start)");
    Py_ssize_t start = PyLong_AsSsize_t(args[3]);
    return PyErr_Occurred() ? NULL : found_along(args[0], NULL, args[1], args[2], start);
}

static PyObject *fill(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != 4 || !PyList_Check(args[0]) || !PyLong_Check(args[2]))
        return PyErr_Format(PyExc_TypeError, "fill(depths, tables, alive, ids)");
    PyObject *found = found_along(args[1], args[0], args[2], args[3], 0), *leaning = NULL;
    PyObject *end = found ? PyLong_FromSsize_t(PySequence_Size(args[3])) : NULL;
    if (end && enter(args[0], PyTuple_GetItem(found, 1), end))
        leaning = Py_NewRef(PyTuple_GetItem(found, 2));
    Py_XDECREF(end);
    Py_XDECREF(found);
    return leaning;
}

/* Adds to a list what of the blocks a table does not have for the worker; 0: it failed. */
static int add_lacking(PyObject *lacking, Table table, PyObject *bit, PyObject *ids) {
    Py_ssize_t end = PySequence_Size(ids);
    PyObject *before = Py_NewRef(Py_None); /* the last mask: often it is of several blocks */
    int going = end >= 0, lacks = 0;
    for (Py_ssize_t at = 0; going && at < end; at++) {
        PyObject *block = PySequence_GetItem(ids, at), *mask = block ? ask(table, block) : NULL;
        going = mask != NULL;
        if (going && mask != before) {
            PyObject *held = PyNumber_And(mask, bit);
            going = held && become(&before, Py_NewRef(mask));
            lacks = held ? !PyObject_IsTrue(held) : 0;
            Py_XDECREF(held);
        }
        if (going && lacks) going = !PyList_Append(lacking, block);
        Py_XDECREF(block);
        Py_XDECREF(mask);
    }
    Py_DECREF(before);
    return going;
}

static PyObject *without(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != 3 || !PyLong_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "without(lookup, bit, ids)");
    PyObject *lacking = PyList_New(0);
    if (lacking && !add_lacking(lacking, table_of(args[0]), args[1], args[2])) Py_CLEAR(lacking);
    if (lacking && PyList_Size(lacking) == PySequence_Size(args[2])) {
        Py_DECREF(lacking);
        return Py_NewRef(args[2]);
    }
    return lacking;
}

static PyMethodDef functions[] = {
    {"fill", (PyCFunction)(void (*)(void))fill, METH_FASTCALL, NULL},
    {"enter_all", (PyCFunction)(void (*)(void))enter_all, METH_FASTCALL, NULL},
    {"fall_offs", (PyCFunction)(void (*)(void))fall_offs, METH_FASTCALL, NULL},
    {"without", (PyCFunction)(void (*)(void))without, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "walk_compiled",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_walk_compiled(void) {
    PyObject *empty = PyDict_New(), *get = empty ? PyObject_GetAttrString(empty, "get") : NULL;
    if (get && PyCFunction_CheckExact(get)) dictionary_get = PyCFunction_GetFunction(get);
    Py_XDECREF(get);
    Py_XDECREF(empty);
    nobody = PyLong_FromLong(0);
    to_bytes = PyUnicode_InternFromString("to_bytes");
    little = PyUnicode_InternFromString("little");
    return get && nobody && to_bytes && little ? PyModule_Create(&definition) : NULL;
}

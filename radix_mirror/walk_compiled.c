/* The walk along a prompt's blocks (radix_mirror/walk.py): `fill` for as many workers as a word has
 * bits, `fall_offs` for any, `without` for one. Tests compare each with the same in Python. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>

/* A table that is asked by a dictionary's `get` is looked at without a call. */
typedef struct {
    PyObject *lookup, *held; /* NULL: what it is asked by is another one's */
} Table;

static PyCFunction dictionary_get;
static PyObject *nobody; /* 0 */

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

/* The same as a word, of the workers that have a bit there. */
static uint64_t ask_word(Table table, PyObject *block, int *failed) {
    PyObject *told = ask(table, block);
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
    Table first = table_of(PyTuple_GetItem(tables, 0));
    uint64_t leaning = 0;
    *failed = end < 0;
    for (; !*failed && alive && depth < end; depth++) {
        PyObject *block = PySequence_GetItem(ids, depth);
        if (!block) {
            *failed = 1;
            break;
        }
        uint64_t here = ask_word(first, block, failed) & alive, left = here;
        if (here != alive)
            for (Py_ssize_t n = 1; n < count && !*failed; n++)
                left |= ask_word(table_of(PyTuple_GetItem(tables, n)), block, failed) & alive;
        Py_DECREF(block);
        leaning |= left ^ here;
        if (!*failed && left != alive) *failed = !enter(depths, alive ^ left, depth);
        alive = left;
    }
    if (!*failed) *failed = !enter(depths, alive, end);
    return leaning;
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

static PyObject *fill(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != 4 || !PyList_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "fill(depths, tables, alive, ids)");
        return NULL;
    }
    uint64_t alive = PyLong_AsUnsignedLongLong(args[2]);
    if (PyErr_Occurred()) return NULL;
    PyObject *tables = some_tables(args[1]);
    if (!tables) return NULL;
    int failed;
    uint64_t leaning = walk(args[0], tables, alive, args[3], &failed);
    Py_DECREF(tables);
    return failed ? NULL : PyLong_FromUnsignedLongLong(leaning);
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

/* What a walk with masks of any size knows. */
typedef struct {
    PyObject *tables, *falls, *alive, *leaning;
    PyObject *covering; /* the last mask that covered all that were alive; only compared */
} Walk;

/* They fall at a depth; 0: it failed. */
static int fell(Walk *walk, PyObject *left, Py_ssize_t depth) {
    PyObject *gone = PyNumber_Xor(walk->alive, left);
    PyObject *fall = gone ? Py_BuildValue("(Nn)", gone, depth) : NULL;
    int entered = fall && !PyList_Append(walk->falls, fall);
    Py_XDECREF(fall);
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

/* (where workers fell, who did not, who leans on another table than the first) */
static PyObject *fall_offs(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != 4 || !PyLong_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "fall_offs(tables, alive, ids, start)");
        return NULL;
    }
    Py_ssize_t start = PyLong_AsSsize_t(args[3]);
    if (start == -1 && PyErr_Occurred()) return NULL;
    PyObject *tables = some_tables(args[0]), *falls = tables ? PyList_New(0) : NULL, *found = NULL;
    if (falls) {
        Walk walk = {tables, falls, Py_NewRef(args[1]), Py_NewRef(nobody), Py_NewRef(Py_None)};
        if (walk_along(&walk, args[2], start))
            found = PyTuple_Pack(3, falls, walk.alive, walk.leaning);
        Py_DECREF(walk.alive);
        Py_DECREF(walk.leaning);
        Py_DECREF(walk.covering);
    }
    Py_XDECREF(falls);
    Py_XDECREF(tables);
    return found;
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
    if (given != 3 || !PyLong_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "without(lookup, bit, ids)");
        return NULL;
    }
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
    return get && nobody ? PyModule_Create(&definition) : NULL;
}

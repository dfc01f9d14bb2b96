/* The walk along a prompt's blocks (radix_mirror/walk.py), and what it finds.
 * Tests compare each function with the same in Python. */
#include "held.h"

/* Adds of `some` those that are in `all`; 0: it failed. */
static int unite(PyObject **mask, PyObject *some, PyObject *all) {
    PyObject *more = PyNumber_And(some, all);
    int united = more && become(mask, PyNumber_Or(*mask, more));
    Py_XDECREF(more);
    return united;
}

/* All workers of a mask hold so many blocks; 0: it failed. */
static int enter(PyObject *depths, PyObject *mask, PyObject *depth) {
    Py_ssize_t count = words_for(depths);
    uint64_t few[8], *words = count > 8 ? PyMem_Calloc((size_t)count, sizeof *words) : few;
    if (!words) return PyErr_NoMemory() != NULL;
    int entered = read_words(words, count, mask, 1) && enter_words(depths, words, count, depth);
    if (words != few) PyMem_Free(words);
    return entered;
}

/* What a walk knows. */
typedef struct {
    PyObject *tables, *falls, *alive, *leaning;
    PyObject *covering; /* the last mask that covered all that were alive; only compared */
} Walk;

/* All but those left fall at a depth; 0: it failed. */
static int fell(Walk *walk, PyObject *left, Py_ssize_t depth) {
    PyObject *gone = PyNumber_Xor(walk->alive, left), *where = PyLong_FromSsize_t(depth);
    PyObject *fall = gone && where ? PyTuple_Pack(2, gone, where) : NULL;
    int entered = fall && !PyList_Append(walk->falls, fall);
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
    if (!same && count > 1) same = PyObject_RichCompareBool(left, walk->alive, Py_EQ);
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

static PyObject *fall_offs(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != 4 || !PyLong_Check(args[1]))
        return PyErr_Format(PyExc_TypeError, "fall_offs(tables, alive, ids, start)");
    Py_ssize_t start = PyLong_AsSsize_t(args[3]);
    if (PyErr_Occurred()) return NULL;
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

/* The same walk in words, where nobody is told of the falls: no number is made on the way. */
typedef struct {
    Py_ssize_t count;
    uint64_t *alive, *left, *leaning, *told;
} Words;

/* Finds who is left at a block, and tells whether each of them has it by the mask of the first table;
 * -1: it failed. */
static int left_at(Words *walk, PyObject *tables, PyObject *mask, PyObject *block) {
    int fell = 0, direct = read_words(walk->told, walk->count, mask, 0) ? 1 : -1;
    for (Py_ssize_t n = 0; n < walk->count; n++) {
        walk->left[n] = walk->told[n] & walk->alive[n];
        fell |= walk->left[n] != walk->alive[n];
    }
    for (Py_ssize_t t = 1; fell && direct >= 0 && t < PyTuple_Size(tables); t++) {
        PyObject *told = ask(table_of(PyTuple_GetItem(tables, t)), block);
        if (!told || !read_words(walk->told, walk->count, told, 0)) direct = -1;
        for (Py_ssize_t n = 0; direct >= 0 && n < walk->count; n++) {
            uint64_t more = walk->told[n] & walk->alive[n] & ~walk->left[n];
            walk->left[n] |= more;
            walk->leaning[n] |= more;
            if (more) direct = 0;
        }
        Py_XDECREF(told);
    }
    return direct;
}

/* Enters who is no longer left, which then are those alive: 1 if there are any, -1: it failed. */
static int enter_fallen(PyObject *depths, Words *walk, Py_ssize_t at) {
    int fell = 0, any = 0;
    for (Py_ssize_t n = 0; n < walk->count; n++) {
        walk->told[n] = walk->alive[n] ^ walk->left[n];
        walk->alive[n] = walk->left[n];
        fell |= walk->told[n] != 0;
        any |= walk->alive[n] != 0;
    }
    PyObject *depth = fell ? PyLong_FromSsize_t(at) : NULL;
    if (fell && (!depth || !enter_words(depths, walk->told, walk->count, depth))) any = -1;
    Py_XDECREF(depth);
    return any;
}

static PyObject *fill_along(PyObject *depths, PyObject *tables, Words *walk, PyObject *ids) {
    Py_ssize_t end = PySequence_Size(ids), at = 0;
    Table first = table_of(PyTuple_GetItem(tables, 0));
    PyObject *covering = Py_NewRef(Py_None);
    int going = end < 0 ? -1 : 0;
    for (Py_ssize_t n = 0; n < walk->count && !going; n++) going = walk->alive[n] != 0;
    for (; going > 0 && at < end; at++) {
        PyObject *block = PySequence_GetItem(ids, at), *mask = block ? ask(first, block) : NULL;
        if (mask != covering) {
            int direct = mask ? left_at(walk, tables, mask, block) : -1;
            going = direct < 0 ? -1 : enter_fallen(depths, walk, at);
            if (direct > 0) become(&covering, Py_NewRef(mask));
        }
        Py_XDECREF(block);
        Py_XDECREF(mask);
    }
    for (Py_ssize_t n = 0; n < walk->count; n++) walk->left[n] = 0;
    if (going > 0) going = enter_fallen(depths, walk, end);
    Py_DECREF(covering);
    return going < 0 ? NULL : number_of(walk->leaning, walk->count);
}

static PyObject *fill(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != 4 || !PyList_Check(args[0]) || !PyLong_Check(args[2]))
        return PyErr_Format(PyExc_TypeError, "fill(depths, tables, alive, ids)");
    Py_ssize_t count = words_for(args[0]);
    PyObject *tables = some_tables(args[1]), *leaning = NULL;
    uint64_t *words = tables ? PyMem_Calloc(4 * (size_t)count, sizeof *words) : NULL;
    if (words) {
        Words walk = {count, words, words + count, words + 2 * count, words + 3 * count};
        if (read_words(walk.alive, count, args[2], 1))
            leaning = fill_along(args[0], tables, &walk, args[3]);
        PyMem_Free(words);
    } else if (tables)
        PyErr_NoMemory();
    Py_XDECREF(tables);
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
    a_word = PyLong_FromLong(64);
    return get && nobody && a_word ? PyModule_Create(&definition) : NULL;
}

/* What is asked of columns of workers: who has least (policies/fewest.py), and what the depths to
 * which they hold a prompt are worth (policies/in_tokens.py).
 * Tests compare each function with the same in Python. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <limits.h>

#define MORE LLONG_MAX /* than is counted */

/* The value of a column at the n-th of some indices, a reference of the caller's. */
static PyObject *value_at(PyObject *column, PyObject *among, Py_ssize_t n, int is_everyone) {
    if (is_everyone) return PySequence_GetItem(column, n);
    PyObject *index = PySequence_GetItem(among, n);
    PyObject *value = index ? PyObject_GetItem(column, index) : NULL;
    Py_XDECREF(index);
    return value;
}

/* How many of them have the least value; *least: it, NULL if there is none. -1: it failed. */
static Py_ssize_t with_least(PyObject *column, PyObject *among, Py_ssize_t count, int is_everyone,
                             PyObject **least) {
    Py_ssize_t equals = 0;
    int is_whole = 0; /* the least; of others the same one need not compare with itself */
    *least = NULL;
    for (Py_ssize_t n = 0; n < count; n++) {
        PyObject *value = value_at(column, among, n, is_everyone);
        int is_same = is_whole && value == *least; /* as mostly: few requests, no queue */
        int is_less = !value ? -1 : !*least ? 1 : 0, is_equal = 1;
        if (!is_less && !is_same) is_less = PyObject_RichCompareBool(value, *least, Py_LT);
        if (!is_less && !is_same) is_equal = PyObject_RichCompareBool(value, *least, Py_EQ);
        if (is_less > 0) {
            Py_XDECREF(*least);
            *least = Py_NewRef(value);
            is_whole = PyLong_Check(value);
            equals = 0;
        }
        Py_XDECREF(value);
        if (is_less < 0 || is_equal < 0) return -1;
        equals += is_equal;
    }
    return equals;
}

/* As `==` has it, for which the same need not be equal. -1: it failed. */
static int is_equal_to(PyObject *value, PyObject *least) {
    if (PyLong_Check(value)) return PyObject_RichCompareBool(value, least, Py_EQ);
    PyObject *said = PyObject_RichCompare(value, least, Py_EQ);
    int is_equal = said ? PyObject_IsTrue(said) : -1;
    Py_XDECREF(said);
    return is_equal;
}

static PyObject *fewest(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != 2) return PyErr_Format(PyExc_TypeError, "fewest(column, among)");
    Py_ssize_t count = PySequence_Size(args[1]);
    if (count < 0) return NULL;
    if (count == 1) return Py_NewRef(args[1]);
    Py_ssize_t size = PySequence_Size(args[0]);
    if (size < 0) return NULL;
    if (!count) return PyErr_Format(PyExc_ValueError, "nobody has the fewest of none");
    PyObject *least, *found = NULL;
    Py_ssize_t equals = with_least(args[0], args[1], count, count == size, &least);
    if (equals == count)
        found = Py_NewRef(args[1]);
    else if (equals > 0)
        found = PyList_New(0);
    for (Py_ssize_t n = 0; found && equals < count && n < count; n++) {
        PyObject *value = value_at(args[0], args[1], n, count == size);
        PyObject *index = value ? PySequence_GetItem(args[1], n) : NULL;
        int is_equal = index ? is_equal_to(value, least) : -1;
        if (is_equal < 0 || (is_equal && PyList_Append(found, index))) Py_CLEAR(found);
        Py_XDECREF(index);
        Py_XDECREF(value);
    }
    Py_XDECREF(least);
    return found;
}

/* An int that is not below zero, MORE if it is as much or beyond; -1: it is none. No error is set. */
static long long whole(PyObject *number) {
    int beyond = 0;
    long long value = PyLong_AsLongLongAndOverflow(number, &beyond);
    if (value == -1) PyErr_Clear();
    return beyond > 0 ? MORE : value < 0 ? -1 : value;
}

/* The least (Py_LT) or most (Py_GT) of a tuple of some, as min and max find it; NULL: it failed. */
static PyObject *first_of(PyObject *numbers, int so) {
    PyObject *found = numbers ? PyTuple_GetItem(numbers, 0) : NULL;
    for (Py_ssize_t at = 1; found && at < PyTuple_Size(numbers); at++) {
        PyObject *number = PyTuple_GetItem(numbers, at);
        int is_so = PyObject_RichCompareBool(number, found, so);
        found = is_so < 0 ? NULL : is_so ? number : found;
    }
    return found;
}

/* Raises what in_tokens_in_python would; -1 if it has. */
static int check(PyObject *depths, PyObject *block, PyObject *most) {
    PyObject *zero = PyLong_FromLong(0), *end = PyLong_FromSsize_t(PY_SSIZE_T_MAX);
    PyObject *low = PyTuple_Size(depths) ? first_of(depths, Py_LT) : zero, *all = NULL;
    PyObject *lows = low ? PyTuple_Pack(3, block, most, low) : NULL, *highs = NULL;
    PyObject *least = first_of(lows, Py_LT), *greatest = NULL;
    int is_wrong = least && zero ? PyObject_RichCompareBool(least, zero, Py_LT) : -1;
    if (is_wrong > 0) PyErr_SetString(PyExc_ValueError, "depths and blocks are not below zero");
    if (!is_wrong) {
        all = PyNumber_Multiply(block, most);
        highs = all ? PyTuple_Pack(3, block, most, all) : NULL;
        greatest = first_of(highs, Py_GT);
        is_wrong = greatest && end ? PyObject_RichCompareBool(greatest, end, Py_GE) : -1;
        if (is_wrong > 0) PyErr_SetString(PyExc_OverflowError, "no prompt has so many tokens");
    }
    Py_XDECREF(highs);
    Py_XDECREF(all);
    Py_XDECREF(lows);
    Py_XDECREF(end);
    Py_XDECREF(zero);
    return is_wrong ? -1 : 0;
}

/* What is not of ints alone, or is to be refused: line by line as in Python. */
static PyObject *of_any(PyObject *depths, PyObject *block, PyObject *most) {
    if (check(depths, block, most)) return NULL;
    PyObject *tokens = PyList_New(PyTuple_Size(depths));
    for (Py_ssize_t at = 0; tokens && at < PyTuple_Size(depths); at++) {
        PyObject *depth = PyTuple_GetItem(depths, at), *worth = NULL;
        int is_less = PyObject_RichCompareBool(depth, most, Py_LT);
        if (is_less >= 0) worth = PyNumber_Multiply(is_less ? depth : most, block);
        if (!worth || PyList_SetItem(tokens, at, worth)) Py_CLEAR(tokens);
    }
    return tokens;
}

static PyObject *in_tokens(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != 3) return PyErr_Format(PyExc_TypeError, "in_tokens(depths, block_tokens, most)");
    long long block = whole(args[1]), most = whole(args[2]), all = 0;
    int is_plain = block >= 0 && most >= 0 && block != MORE && most != MORE &&
                   !__builtin_mul_overflow(block, most, &all) && all != MORE;
    PyObject *depths = PySequence_Tuple(args[0]), *before = NULL, *worth = NULL;
    PyObject *tokens = depths ? PyList_New(PyTuple_Size(depths)) : NULL;
    for (Py_ssize_t at = 0; is_plain && tokens && at < PyTuple_Size(depths); at++) {
        PyObject *depth = PyTuple_GetItem(depths, at);
        if (depth != before) { /* many end where the one before them does */
            long long held = whole(depth), counted = held < most ? held : most;
            is_plain = held >= 0;
            if (!is_plain) break;
            worth = PyLong_FromLongLong(counted * block);
        } else
            Py_INCREF(worth);
        before = depth;
        if (!worth || PyList_SetItem(tokens, at, worth)) Py_CLEAR(tokens);
    }
    if (!is_plain && tokens) {
        Py_DECREF(tokens);
        tokens = of_any(depths, args[1], args[2]);
    }
    Py_XDECREF(depths);
    return tokens;
}

static PyMethodDef functions[] = {
    {"fewest", (PyCFunction)(void (*)(void))fewest, METH_FASTCALL, NULL},
    {"in_tokens", (PyCFunction)(void (*)(void))in_tokens, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "columns_compiled",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_columns_compiled(void) { return PyModule_Create(&definition); }

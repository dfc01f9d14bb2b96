/* What each candidate costs, and which are the cheapest (policies/cheapest.py), in one call.
 *
 * The same operations on the same doubles in the same order as in Python, so that the results are
 * the same to the bit; tests compare them. Compiled with -ffp-contract=off for that. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <float.h>
#include <math.h>

/* The fields of `Weights`, in their order. */
enum { STALL, CROWD, IDLE, FEW, CROWD_LEAD, CROWD_DEVIATIONS, CROWDED_TOKENS, EQUAL_SHARE, EQUAL_S,
       FIELDS };
/* And the arguments: the prompt's tokens, columns, and seconds by index. */
enum { RULE, PROMPT, WAITING, CACHED, REQUESTS, SPEEDS, PRESSURE, ARGUMENTS };

static const char UNEQUAL[] = "the columns are of unequal lengths";

static int refuse(const char *why) {
    PyErr_SetString(PyExc_ValueError, why);
    return 0;
}

/* An int or a float, of whatever subclass: nobody's code runs for it, and nothing can change. */
static inline int read_number(PyObject *value, double *into) {
    if (PyLong_CheckExact(value) || PyLong_Check(value))
        *into = PyLong_AsDouble(value);
    else if (PyFloat_CheckExact(value) || PyFloat_Check(value))
        *into = PyFloat_AsDouble(value);
    else {
        PyErr_SetString(PyExc_TypeError, "what costs is told in ints and floats");
        return 0;
    }
    return *into != -1.0 || !PyErr_Occurred();
}

static int read_column(PyObject *column, Py_ssize_t count, double *into) {
    PyObject *values = PySequence_Fast(column, "a column is a sequence");
    if (!values) return 0;
    int is_list = PyList_Check(values);
    int read = PyObject_Size(values) == count || refuse(UNEQUAL);
    PyObject *before = NULL; /* mostly the same: few requests, no queue, one speed */
    for (Py_ssize_t at = 0; read && at < count; at++) {
        PyObject *value = is_list ? PyList_GetItem(values, at) : PyTuple_GetItem(values, at);
        if (value == before)
            into[at] = into[at - 1];
        else
            read = read_number(value, &into[at]);
        before = value;
    }
    Py_DECREF(values);
    return read;
}

static int add_pressure(PyObject *pressure, Py_ssize_t count, double *costs) {
    PyObject *index, *seconds;
    for (Py_ssize_t at = 0; PyDict_Next(pressure, &at, &index, &seconds);) {
        Py_ssize_t candidate = PyLong_AsSsize_t(index);
        double more;
        if ((candidate == -1 && PyErr_Occurred()) || !read_number(seconds, &more)) return 0;
        if (candidate < 0 || candidate >= count) return refuse("pressure is on none of them");
        costs[candidate] += more;
    }
    return 1;
}

/* Finite, and not below. Counted, not left at the first, so that it is done many at a time. */
static int all_within(const double *values, Py_ssize_t count, double least) {
    Py_ssize_t within = 0;
    for (Py_ssize_t at = 0; at < count; at++)
        within += (values[at] >= least) & (values[at] <= DBL_MAX);
    return within == count;
}

/* From the waiting tokens to the costs, in place. */
static int price(const double *rule, double prompt, Py_ssize_t count, double *costs,
                 const double *cached, const double *requests, const double *speeds) {
    if (!all_within(rule, FIELDS, 0.0)) return refuse("weights are finite and not below zero");
    if (!(rule[FEW] > 0.0)) return refuse("few is over zero");
    double mean = 0.0;
    for (Py_ssize_t at = 0; at < count; at++) mean += requests[at];
    mean /= (double)count;
    if (!(mean >= 0.0 && isfinite(mean))) return refuse("requests are finite and not below zero");
    double crowd = rule[CROWD] / (mean + rule[FEW]);
    double deviations = rule[CROWD_DEVIATIONS] * sqrt(mean);
    double full = mean + (deviations > rule[CROWD_LEAD] ? deviations : rule[CROWD_LEAD]);
    for (Py_ssize_t at = 0; at < count; at++) {
        double busy = rule[IDLE] * requests[at];
        double weight = 1.0 + rule[STALL] * (busy < mean ? busy : mean);
        if (requests[at] > mean) weight += crowd * (requests[at] - mean);
        if (requests[at] > full) costs[at] += rule[CROWDED_TOKENS] * (requests[at] - full);
        double own = prompt - cached[at];
        costs[at] = (costs[at] + (own < 1.0 ? 1.0 : own) * weight) / speeds[at];
    }
    if (!all_within(cached, count, -DBL_MAX)) return refuse("what is cached is finite");
    if (!all_within(speeds, count, DBL_TRUE_MIN)) return refuse("speeds are finite and over zero");
    return 1;
}

/* (costs, the least of them, the equals' indices, the first of these with most cached, holders) */
static PyObject *found(const double *rule, Py_ssize_t count, const double *costs,
                       const double *cached) {
    double least = costs[0];
    if (!all_within(costs, count, 0.0)) {
        refuse("costs are finite and not below zero");
        return NULL;
    }
    for (Py_ssize_t at = 1; at < count; at++)
        if (costs[at] < least) least = costs[at];
    double limit = least * (1.0 + rule[EQUAL_SHARE]) + rule[EQUAL_S];
    PyObject *equals = PyList_New(0);
    if (!equals) return NULL;
    Py_ssize_t warmest = -1, holders = 0; /* the least is among the equals: there is one */
    for (Py_ssize_t at = 0; at < count; at++) {
        if (!(costs[at] <= limit)) continue;
        PyObject *index = PyLong_FromSsize_t(at);
        int failed = !index || PyList_Append(equals, index);
        Py_XDECREF(index);
        if (failed) {
            Py_DECREF(equals);
            return NULL;
        }
        if (warmest < 0 || cached[at] > cached[warmest]) warmest = at;
    }
    for (Py_ssize_t at = 0; at < count; at++) holders += cached[at] >= cached[warmest];
    return Py_BuildValue("y#dNnn", (const char *)costs, 8 * count, least, equals, warmest, holders);
}

static PyObject *cheapest(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != ARGUMENTS || !PyTuple_Check(args[RULE]) || PyTuple_Size(args[RULE]) != FIELDS ||
        !PyDict_Check(args[PRESSURE])) {
        PyErr_SetString(PyExc_TypeError, "cheapest(weights, prompt_tokens, waiting, cached, requests,"
                                         " speeds, pressure_s)");
        return NULL;
    }
    Py_ssize_t count = PyObject_Size(args[CACHED]);
    if (count < 0) return NULL;
    if (!count) {
        refuse("nobody is the cheapest of none");
        return NULL;
    }
    /* Before anything is made of them: a range is as long as one likes. */
    for (int column = WAITING; column <= SPEEDS; column++) {
        Py_ssize_t size = PyObject_Size(args[column]);
        if (size != count) {
            if (size >= 0) refuse(UNEQUAL);
            return NULL;
        }
    }
    if (count > PY_SSIZE_T_MAX / (Py_ssize_t)(4 * sizeof(double))) return PyErr_NoMemory();
    double rule[FIELDS], prompt;
    if (!read_number(args[PROMPT], &prompt) || !read_column(args[RULE], FIELDS, rule)) return NULL;
    double *costs = PyMem_Malloc(4 * (size_t)count * sizeof(double));
    if (!costs) return PyErr_NoMemory();
    double *cached = costs + count, *requests = cached + count, *speeds = requests + count;
    PyObject *result = NULL;
    if (read_column(args[WAITING], count, costs) && read_column(args[CACHED], count, cached) &&
        read_column(args[REQUESTS], count, requests) && read_column(args[SPEEDS], count, speeds) &&
        price(rule, prompt, count, costs, cached, requests, speeds) &&
        add_pressure(args[PRESSURE], count, costs))
        result = found(rule, count, costs, cached);
    PyMem_Free(costs);
    return result;
}

static PyMethodDef functions[] = {
    {"cheapest", (PyCFunction)(void (*)(void))cheapest, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "cheapest_compiled",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_cheapest_compiled(void) { return PyModule_Create(&definition); }

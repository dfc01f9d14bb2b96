/* What each candidate costs, and which are the cheapest (policies/cheapest.py), in one call.
 *
 * The same operations on the same doubles in the same order as in Python, so that the results are
 * the same to the bit; tests compare them. Compiled with -ffp-contract=off for that. */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>

/* The fields of `Weights`, in their order. */
enum { STALL, CROWD, IDLE, FEW, CROWD_LEAD, CROWD_DEVIATIONS, CROWDED_TOKENS, EQUAL_SHARE, EQUAL_S,
       FIELDS };
/* And the arguments: the prompt's tokens, columns, and seconds by index. */
enum { RULE, PROMPT, WAITING, CACHED, REQUESTS, SPEEDS, PRESSURE, ARGUMENTS };

/* A column of whole numbers, or of floats; 0: it is none, or shorter. */
static int read_column(PyObject *column, Py_ssize_t count, int whole, double *into) {
    PyObject *values = PySequence_Fast(column, "a column is a sequence");
    if (!values) return 0;
    int is_list = PyList_Check(values), read = 1;
    PyObject *before = NULL; /* mostly the same: few requests, no queue, one speed */
    for (Py_ssize_t at = 0; read && at < count; at++) {
        PyObject *value = is_list ? PyList_GetItem(values, at) : PyTuple_GetItem(values, at);
        if (value && value == before)
            into[at] = into[at - 1];
        else if (value)
            into[at] = whole ? PyLong_AsDouble(value) : PyFloat_AsDouble(value);
        read = value && (into[at] != -1.0 || !PyErr_Occurred());
        before = value;
    }
    Py_DECREF(values);
    return read;
}

static int add_pressure(PyObject *pressure, Py_ssize_t count, double *costs) {
    PyObject *index, *seconds;
    for (Py_ssize_t at = 0; PyDict_Next(pressure, &at, &index, &seconds);) {
        Py_ssize_t candidate = PyLong_AsSsize_t(index);
        double more = PyFloat_AsDouble(seconds);
        if (PyErr_Occurred()) return 0;
        if (candidate >= 0 && candidate < count) costs[candidate] += more;
    }
    return 1;
}

/* From the waiting tokens to the costs, in place. */
static void price(const double *rule, double prompt, Py_ssize_t count, double *costs,
                  const double *cached, const double *requests, const double *speeds) {
    double mean = 0.0;
    for (Py_ssize_t at = 0; at < count; at++) mean += requests[at];
    mean /= (double)count;
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
}

/* (costs, the least of them, the equals' indices, the first of these with most cached, holders) */
static PyObject *found(const double *rule, Py_ssize_t count, const double *costs,
                       const double *cached) {
    double least = costs[0];
    for (Py_ssize_t at = 1; at < count; at++)
        if (costs[at] < least) least = costs[at];
    double limit = least * (1.0 + rule[EQUAL_SHARE]) + rule[EQUAL_S];
    PyObject *equals = PyList_New(0);
    if (!equals) return NULL;
    Py_ssize_t warmest = -1, holders = 0;
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
    for (Py_ssize_t at = 0; warmest >= 0 && at < count; at++) holders += cached[at] >= cached[warmest];
    return Py_BuildValue("y#dNnn", (const char *)costs, 8 * count, least, equals, warmest, holders);
}

static PyObject *cheapest(PyObject *module, PyObject *const *args, Py_ssize_t given) {
    (void)module;
    if (given != ARGUMENTS || !PyTuple_Check(args[RULE]) || !PyDict_Check(args[PRESSURE])) {
        PyErr_SetString(PyExc_TypeError, "cheapest(weights, prompt_tokens, waiting, cached, requests,"
                                         " speeds, pressure_s)");
        return NULL;
    }
    Py_ssize_t count = PyObject_Size(args[CACHED]);
    if (count < 0) return NULL;
    if (!count) {
        PyErr_SetString(PyExc_ValueError, "nobody is the cheapest of none");
        return NULL;
    }
    double rule[FIELDS], prompt = PyLong_AsDouble(args[PROMPT]);
    if (PyErr_Occurred() || !read_column(args[RULE], FIELDS, 0, rule)) return NULL;
    double *costs = PyMem_Malloc(4 * (size_t)count * sizeof(double));
    if (!costs) return PyErr_NoMemory();
    double *cached = costs + count, *requests = cached + count, *speeds = requests + count;
    PyObject *result = NULL;
    if (read_column(args[WAITING], count, 1, costs) && read_column(args[CACHED], count, 1, cached) &&
        read_column(args[REQUESTS], count, 1, requests) &&
        read_column(args[SPEEDS], count, 0, speeds)) {
        price(rule, prompt, count, costs, cached, requests, speeds);
        if (add_pressure(args[PRESSURE], count, costs)) result = found(rule, count, costs, cached);
    }
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

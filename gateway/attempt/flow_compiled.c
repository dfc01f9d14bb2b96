/* A step's single tokens made chunks of their clients, in one pass (gateway/attempt/flow.py). */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

/* When a lane was sent to last: what a lane in Python begins with. */
typedef struct {
    PyObject_HEAD
    double sent_at;
} SentAt;

/* Hundreds of streams take turns, so that what one needs is not in the processor's caches: it lies
 * together here, and no more of it is looked at than has to be. */
typedef struct {
    PyObject_HEAD
    PyObject *lane, *to, *ids, *append; /* `to` and `append` are its lane's and its ids' */
    char *frame;                        /* of an event: what stands before its text, then after */
    size_t before, after;               /* bytes of it */
    int untaken;
} Flow;

static PyObject *flow_type, *sent_at_type;

static int flow_traverse(PyObject *self, visitproc visit, void *arg) {
    Flow *flow = (Flow *)self;
    Py_VISIT(flow->lane);
    Py_VISIT(flow->to);
    Py_VISIT(flow->ids);
    Py_VISIT(flow->append);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int flow_clear(PyObject *self) {
    Flow *flow = (Flow *)self;
    Py_CLEAR(flow->lane);
    Py_CLEAR(flow->to);
    Py_CLEAR(flow->ids);
    Py_CLEAR(flow->append);
    return 0;
}

static void flow_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    flow_clear(self);
    PyMem_Free(((Flow *)self)->frame);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *flow_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    PyObject *lane, *ids;
    const char *before, *after;
    Py_ssize_t before_bytes, after_bytes;
    if (kwargs && PyDict_Size(kwargs))
        return PyErr_Format(PyExc_TypeError, "Flow() takes no names");
    if (!PyArg_ParseTuple(args, "O!Oy#y#", sent_at_type, &lane, &ids, &before, &before_bytes,
                          &after, &after_bytes))
        return NULL;
    Flow *flow = (Flow *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!flow) return NULL;
    flow->lane = Py_NewRef(lane);
    flow->ids = Py_NewRef(ids);
    flow->to = PyObject_GetAttrString(lane, "to");
    flow->append = flow->to ? PyObject_GetAttrString(ids, "append") : NULL;
    flow->frame = flow->append ? PyMem_Malloc((size_t)(before_bytes + after_bytes) + 1) : NULL;
    if (!flow->frame) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        Py_DECREF(flow);
        return NULL;
    }
    memcpy(flow->frame, before, flow->before = (size_t)before_bytes);
    memcpy(flow->frame + before_bytes, after, flow->after = (size_t)after_bytes);
    return (PyObject *)flow;
}

/* How JSON has this byte of UTF-8, and in how many bytes: nearly each is itself. */
static int escaped(unsigned char byte, char shape[6]) {
    static const char letters[] = "\"\"\\\\\bb\tt\nn\ff\rr", digits[] = "0123456789abcdef";
    shape[0] = (char)byte;
    if (byte >= ' ' && byte != '"' && byte != '\\') return 1;
    shape[0] = '\\';
    for (const char *one = letters; *one; one += 2)
        if ((unsigned char)*one == byte) {
            shape[1] = one[1];
            return 2;
        }
    memcpy(shape + 1, "u00", 3);
    shape[4] = digits[byte >> 4];
    shape[5] = digits[byte & 15];
    return 6;
}

/* The line before a chunk of so many bytes; its length. */
static int size_line(size_t size, char line[20]) {
    char digits[16];
    int count = 0, length = 0;
    for (; size; size >>= 4) digits[count++] = "0123456789abcdef"[size & 15];
    while (count) line[length++] = digits[--count];
    line[length++] = '\r';
    line[length++] = '\n';
    return length;
}

static char *put(char *at, const char *from, size_t bytes) {
    memcpy(at, from, bytes);
    return at + bytes;
}

/* An event with this text, as a chunk. */
static PyObject *chunk(const Flow *flow, PyObject *text) {
    Py_ssize_t count;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &count);
    if (!utf8) return NULL;
    char shape[6], line[20];
    size_t size = flow->before + flow->after + 2;
    for (Py_ssize_t i = 0; i < count; i++) size += escaped((unsigned char)utf8[i], shape);
    size_t line_bytes = size_line(size, line);
    PyObject *made = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(line_bytes + size + 2));
    if (!made) return NULL;
    char *at = put(PyBytes_AsString(made), line, line_bytes);
    at = put(at, flow->frame, flow->before);
    *at++ = '"';
    for (Py_ssize_t i = 0; i < count; i++) {
        int bytes = escaped((unsigned char)utf8[i], shape);
        at = put(at, shape, bytes);
    }
    *at++ = '"';
    at = put(at, flow->frame + flow->before, flow->after);
    put(at, "\r\n", 2);
    return made;
}

/* What a step comes to; see flow.py. */
typedef struct {
    PyObject *row, *rest, *owing, *late;
    Py_ssize_t together;
    double now, stepped_at;
    int noted;
} Step;

static int put_list(PyObject *list, PyObject *item) {
    int failed = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return failed;
}

/* Behind what the step already has for that client. */
static int put_row(PyObject *row, PyObject *to, PyObject *piece) {
    PyObject *there = PyDict_GetItemWithError(row, to);
    if (!there && PyErr_Occurred()) return -1;
    PyObject *all = there ? PySequence_Concat(there, piece) : Py_NewRef(piece);
    int failed = all ? PyDict_SetItem(row, to, all) : -1;
    Py_XDECREF(all);
    return failed;
}

/* Who was in the last step waits as long as all others who were. */
static int note_gap(Step *step, PyObject *lane) {
    SentAt *sent = (SentAt *)lane;
    int failed = 0;
    if (sent->sent_at == step->stepped_at)
        step->together++;
    else
        failed = put_list(step->late, Py_BuildValue("(Od)", lane, sent->sent_at));
    sent->sent_at = step->now;
    return failed;
}

static int take_token(Step *step, Flow *flow, PyObject *handle, PyObject *id, PyObject *text) {
    PyObject *none = PyObject_CallFunctionObjArgs(flow->append, id, NULL);
    if (!none) return -1;
    Py_DECREF(none);
    if (++flow->untaken >= step->noted && PyList_Append(step->owing, handle)) return -1;
    if (!PyUnicode_GetLength(text)) return 0;
    PyObject *piece = chunk(flow, text);
    int failed = piece ? put_row(step->row, flow->to, piece) : -1;
    Py_XDECREF(piece);
    return failed || note_gap(step, flow->lane) ? -1 : 0;
}

static PyObject *take_step(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *flows, *handles, *ids, *texts;
    Step step = {0};
    if (!PyArg_ParseTuple(args, "O!(O!O!O!)ddi", &PyDict_Type, &flows, &PyList_Type, &handles,
                          &PyList_Type, &ids, &PyList_Type, &texts, &step.now, &step.stepped_at,
                          &step.noted))
        return NULL;
    Py_ssize_t count = PyList_Size(handles);
    if (PyList_Size(ids) != count || PyList_Size(texts) != count) {
        PyErr_SetString(PyExc_ValueError, "a token of each handle, with its text");
        return NULL;
    }
    step.row = PyDict_New();
    step.rest = PyList_New(0);
    step.owing = PyList_New(0);
    step.late = PyList_New(0);
    PyObject *result = NULL;
    if (!step.row || !step.rest || !step.owing || !step.late) goto end;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *handle = PyList_GetItem(handles, i), *id = PyList_GetItem(ids, i);
        PyObject *text = PyList_GetItem(texts, i);
        PyObject *flow = PyDict_GetItemWithError(flows, handle);
        if (!flow) {
            if (PyErr_Occurred() || put_list(step.rest, PyTuple_Pack(3, handle, id, text)))
                goto end;
            continue;
        }
        if ((PyObject *)Py_TYPE(flow) != flow_type) {
            PyErr_SetString(PyExc_TypeError, "only a Flow flows");
            goto end;
        }
        if (take_token(&step, (Flow *)flow, handle, id, text)) goto end;
    }
    result = Py_BuildValue("(OOOOn)", step.row, step.rest, step.owing, step.late, step.together);
end:
    Py_XDECREF(step.row);
    Py_XDECREF(step.rest);
    Py_XDECREF(step.owing);
    Py_XDECREF(step.late);
    return result;
}

static PyMemberDef flow_members[] = {
    {"lane", T_OBJECT_EX, offsetof(Flow, lane), READONLY, NULL},
    {"ids", T_OBJECT_EX, offsetof(Flow, ids), READONLY, NULL},
    {"untaken", T_INT, offsetof(Flow, untaken), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot flow_slots[] = {
    {Py_tp_new, flow_new},
    {Py_tp_dealloc, flow_dealloc},
    {Py_tp_traverse, flow_traverse},
    {Py_tp_clear, flow_clear},
    {Py_tp_members, flow_members},
    {0, NULL},
};

static PyType_Spec flow_spec = {
    .name = "radixgate.gateway.attempt.flow_compiled.Flow",
    .basicsize = sizeof(Flow),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = flow_slots,
};

static PyMemberDef sent_at_members[] = {
    {"sent_at", T_DOUBLE, offsetof(SentAt, sent_at), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot sent_at_slots[] = {
    {Py_tp_members, sent_at_members},
    {0, NULL},
};

static PyType_Spec sent_at_spec = {
    .name = "radixgate.gateway.attempt.flow_compiled.SentAt",
    .basicsize = sizeof(SentAt),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = sent_at_slots,
};

static PyMethodDef functions[] = {
    {"take_step", take_step, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "flow_compiled",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit_flow_compiled(void) {
    PyObject *module = PyModule_Create(&definition);
    flow_type = PyType_FromSpec(&flow_spec);
    sent_at_type = PyType_FromSpec(&sent_at_spec);
    if (module
        && (!flow_type || !sent_at_type || PyModule_AddObjectRef(module, "Flow", flow_type)
            || PyModule_AddObjectRef(module, "SentAt", sent_at_type)))
        Py_CLEAR(module);
    return module;
}

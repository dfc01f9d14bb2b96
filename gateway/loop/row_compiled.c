/* Pieces for many sockets handed to the kernel in one call (gateway/loop/row_writes.py). */
#if !__has_include(<linux/io_uring.h>)
#error "there is no linux/io_uring.h: without this module each connection is written to by itself"
#else /* to the end: a compiler goes on after #error */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRIES 256u

typedef struct {
    PyObject_HEAD
    int fd;
    char *map;
    size_t map_bytes;
    struct io_uring_sqe *sqes;
    unsigned *sq_head, *sq_tail, *sq_array, sq_mask;
    unsigned *cq_head, *cq_tail, cq_mask;
    struct io_uring_cqe *cqes;
} Ring;

static void ring_dealloc(PyObject *self) {
    Ring *ring = (Ring *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (ring->map) munmap(ring->map, ring->map_bytes);
    if (ring->sqes) munmap(ring->sqes, ENTRIES * sizeof *ring->sqes);
    if (ring->fd >= 0) close(ring->fd);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static int ring_open(Ring *ring) {
    struct io_uring_params told;
    memset(&told, 0, sizeof told);
    ring->fd = (int)syscall(SYS_io_uring_setup, ENTRIES, &told);
    if (ring->fd < 0) return -1;
    if (!(told.features & IORING_FEAT_SINGLE_MMAP) || !(told.features & IORING_FEAT_NODROP)) {
        errno = ENOSYS; /* older than 5.5 */
        return -1;
    }
    size_t asked = told.sq_off.array + told.sq_entries * sizeof(unsigned);
    size_t answered = told.cq_off.cqes + told.cq_entries * sizeof(struct io_uring_cqe);
    ring->map_bytes = asked > answered ? asked : answered;
    int access = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    char *map = mmap(NULL, ring->map_bytes, access, flags, ring->fd, IORING_OFF_SQ_RING);
    if (map == MAP_FAILED) return -1;
    ring->map = map;
    size_t sqes_bytes = ENTRIES * sizeof *ring->sqes;
    void *sqes = mmap(NULL, sqes_bytes, access, flags, ring->fd, IORING_OFF_SQES);
    if (sqes == MAP_FAILED) return -1;
    ring->sqes = sqes;
    ring->sq_head = (unsigned *)(map + told.sq_off.head);
    ring->sq_tail = (unsigned *)(map + told.sq_off.tail);
    ring->sq_array = (unsigned *)(map + told.sq_off.array);
    ring->sq_mask = told.sq_entries - 1;
    ring->cq_head = (unsigned *)(map + told.cq_off.head);
    ring->cq_tail = (unsigned *)(map + told.cq_off.tail);
    ring->cq_mask = told.cq_entries - 1;
    ring->cqes = (struct io_uring_cqe *)(map + told.cq_off.cqes);
    return 0;
}

static PyObject *ring_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    if (kwargs && PyDict_Size(kwargs)) return PyErr_Format(PyExc_TypeError, "Ring()");
    if (!PyArg_ParseTuple(args, "")) return NULL;
    Ring *ring = (Ring *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!ring) return NULL;
    ring->fd = -1;
    if (ring_open(ring)) {
        PyErr_SetFromErrno(PyExc_OSError);
        Py_DECREF(ring);
        return NULL;
    }
    return (PyObject *)ring;
}

/* What has come back is noted by its number; how many have. */
static unsigned reap(Ring *ring, int *took) {
    unsigned head = *ring->cq_head, tail = __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE);
    unsigned count = tail - head;
    for (; head != tail; head++) {
        struct io_uring_cqe *done = &ring->cqes[head & ring->cq_mask];
        took[done->user_data] = done->res;
    }
    __atomic_store_n(ring->cq_head, head, __ATOMIC_RELEASE);
    return count;
}

/* Send `count` prepared pieces. What the kernel did not accept, for whatever reason, is noted as
 * EAGAIN: nothing of it went out, and its transport writes it. -1: the kernel keeps some, and
 * nobody knows which. */
static int submit(Ring *ring, unsigned count, int *took) {
    for (unsigned i = 0; i < count; i++) took[i] = -EAGAIN;
    long taken = syscall(SYS_io_uring_enter, ring->fd, count, 0, 0, NULL, 0);
    unsigned head = __atomic_load_n(ring->sq_head, __ATOMIC_ACQUIRE);
    unsigned accepted = count - (*ring->sq_tail - head);
    __atomic_store_n(ring->sq_tail, head, __ATOMIC_RELEASE);
    if (taken < 0 && accepted) return -1;
    /* None waits for its socket, so that all are back by now, or at once. */
    for (unsigned back = reap(ring, took); back < accepted; back += reap(ring, took)) {
        unsigned flags = IORING_ENTER_GETEVENTS;
        if (syscall(SYS_io_uring_enter, ring->fd, 0, accepted - back, flags, NULL, 0) < 0
            && errno != EINTR)
            return -1;
    }
    return 0;
}

/* One that goes out in the row. What it points to is kept by the list of all that wait. */
typedef struct {
    PyObject *transport, *piece;
    int fd;
} Entry;

static PyObject *str_is_closing, *str_buffered;

/* 1: its socket, of the number `fd`, may be given the piece past its transport; -1: it raised. */
static int fits(PyObject *fds, PyObject *transport, PyObject *piece, int *fd) {
    PyObject *number = PyDict_GetItemWithError(fds, transport);
    if (!number) return PyErr_Occurred() ? -1 : 0;
    if (!PyBytes_Check(piece)) return 0;
    long told = PyLong_AsLong(number);
    if (told == -1 && PyErr_Occurred()) return -1;
    if (told != (int)told) return 0;
    *fd = (int)told;
    PyObject *closing = PyObject_CallMethodObjArgs(transport, str_is_closing, NULL);
    if (!closing) return -1;
    int closes = PyObject_IsTrue(closing);
    Py_DECREF(closing);
    if (closes) return closes < 0 ? -1 : 0;
    PyObject *buffered = PyObject_CallMethodObjArgs(transport, str_buffered, NULL);
    if (!buffered) return -1;
    int waits = PyObject_IsTrue(buffered);
    Py_DECREF(buffered);
    return waits < 0 ? -1 : !waits;
}

static void prepare(Ring *ring, unsigned number, const Entry *from) {
    unsigned at = (*ring->sq_tail + number) & ring->sq_mask;
    struct io_uring_sqe *entry = &ring->sqes[at];
    memset(entry, 0, sizeof *entry);
    entry->opcode = IORING_OP_SEND;
    entry->fd = from->fd;
    entry->addr = (unsigned long)PyBytes_AsString(from->piece);
    entry->len = (unsigned)PyBytes_Size(from->piece);
    entry->msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    entry->user_data = number;
    ring->sq_array[at] = at;
}

static int leave(PyObject *left, PyObject *transport, PyObject *piece) {
    PyObject *pair = PyTuple_Pack(2, transport, piece);
    int failed = pair ? PyList_Append(left, pair) : -1;
    Py_XDECREF(pair);
    return failed;
}

/* What did not go out of it: all, after an error. */
static int leave_unsent(PyObject *left, const Entry *of, int took) {
    Py_ssize_t size = PyBytes_Size(of->piece), sent = took < 0 ? 0 : took;
    if (sent == size) return 0;
    PyObject *rest = PyBytes_FromStringAndSize(PyBytes_AsString(of->piece) + sent, size - sent);
    int failed = rest ? leave(left, of->transport, rest) : -1;
    Py_XDECREF(rest);
    return failed;
}

/* Up to ENTRIES of them. */
static int send_row(Ring *ring, const Entry *row, unsigned count, PyObject *left) {
    int took[ENTRIES];
    for (unsigned i = 0; i < count; i++) prepare(ring, i, &row[i]);
    __atomic_store_n(ring->sq_tail, *ring->sq_tail + count, __ATOMIC_RELEASE);
    if (submit(ring, count, took)) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    for (unsigned i = 0; i < count; i++)
        if (leave_unsent(left, &row[i], took[i])) return -1;
    return 0;
}

static PyObject *ring_send(PyObject *self, PyObject *args) {
    PyObject *waiting, *fds;
    Py_ssize_t least, count = 0;
    if (!PyArg_ParseTuple(args, "O!O!n", &PyDict_Type, &waiting, &PyDict_Type, &fds, &least))
        return NULL;
    /* A list, which no transport that is asked something can change. */
    PyObject *left = PyList_New(0), *all = PyDict_Items(waiting);
    Py_ssize_t most = all ? PyList_Size(all) : 0;
    Entry *row = PyMem_Malloc(((size_t)most + 1) * sizeof *row);
    int failed = !left || !all || !row;
    for (Py_ssize_t at = 0; !failed && at < most; at++) {
        Entry *entry = &row[count];
        PyObject *pair = PyList_GetItem(all, at);
        entry->transport = PyTuple_GetItem(pair, 0);
        entry->piece = PyTuple_GetItem(pair, 1);
        int in_row = fits(fds, entry->transport, entry->piece, &entry->fd);
        if (in_row < 0) PyErr_Clear(); /* its transport meets the same, and nobody else does */
        if (in_row > 0) count++;
        else failed = leave(left, entry->transport, entry->piece);
    }
    if (count < least) {
        for (Py_ssize_t i = 0; !failed && i < count; i++)
            failed = leave(left, row[i].transport, row[i].piece);
        count = 0;
    }
    for (Py_ssize_t from = 0; !failed && from < count; from += ENTRIES) {
        Py_ssize_t rest = count - from;
        unsigned next = rest < ENTRIES ? (unsigned)rest : ENTRIES;
        failed = send_row((Ring *)self, row + from, next, left);
    }
    if (failed && !PyErr_Occurred()) PyErr_NoMemory();
    PyMem_Free(row);
    Py_XDECREF(all);
    if (failed) Py_CLEAR(left);
    return left;
}

static PyMethodDef methods[] = {
    {"send", ring_send, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, ring_new},
    {Py_tp_dealloc, ring_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "radixgate.gateway.loop.row_compiled.Ring",
    .basicsize = sizeof(Ring),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "row_compiled",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit_row_compiled(void) {
    PyObject *module = PyModule_Create(&definition);
    PyObject *type = module ? PyType_FromSpec(&spec) : NULL;
    str_is_closing = PyUnicode_InternFromString("is_closing");
    str_buffered = PyUnicode_InternFromString("get_write_buffer_size");
    if (!type || !str_is_closing || !str_buffered || PyModule_AddObjectRef(module, "Ring", type))
        Py_CLEAR(module);
    Py_XDECREF(type);
    return module;
}
#endif

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
        errno = ENOSYS;  /* older than 5.5 */
        return -1;
    }
    size_t asked = told.sq_off.array + told.sq_entries * sizeof(unsigned);
    size_t answered = told.cq_off.cqes + told.cq_entries * sizeof(struct io_uring_cqe);
    ring->map_bytes = asked > answered ? asked : answered;
    int access = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    char *map = mmap(NULL, ring->map_bytes, access, flags, ring->fd, IORING_OFF_SQ_RING);
    if (map == MAP_FAILED) return -1;
    ring->map = map;
    void *sqes = mmap(NULL, ENTRIES * sizeof *ring->sqes, access, flags, ring->fd, IORING_OFF_SQES);
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
 * EAGAIN: nothing of it went out, and its transport writes it. -1: the kernel keeps some, and nobody
 * knows which. */
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

/* All of them before any goes out, so that a TypeError means that none has. */
static int check(PyObject *fds, PyObject *pieces, Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *fd = PyList_GetItem(fds, i);
        if (!PyLong_Check(fd) || !PyBytes_Check(PyList_GetItem(pieces, i))) {
            PyErr_Format(PyExc_TypeError, "number %zd is no socket's number with its bytes", i);
            return -1;
        }
        long socket = PyLong_AsLong(fd);
        if ((socket == -1 && PyErr_Occurred()) || socket != (int)socket) {
            PyErr_Format(PyExc_TypeError, "number %zd is no socket's number", i);
            return -1;
        }
    }
    return 0;
}

/* Of a socket and a piece that `check` has seen. */
static Py_ssize_t prepare(Ring *ring, unsigned number, PyObject *fd, PyObject *piece) {
    Py_ssize_t size = PyBytes_Size(piece);
    unsigned tail = *ring->sq_tail + number, at = tail & ring->sq_mask;
    struct io_uring_sqe *entry = &ring->sqes[at];
    memset(entry, 0, sizeof *entry);
    entry->opcode = IORING_OP_SEND;
    entry->fd = (int)PyLong_AsLong(fd);
    entry->addr = (unsigned long)PyBytes_AsString(piece);
    entry->len = (unsigned)size;
    entry->msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    entry->user_data = number;
    ring->sq_array[at] = at;
    return size;
}

static int note(PyObject *unsent, Py_ssize_t index, int took) {
    PyObject *pair = Py_BuildValue("(ni)", index, took);
    if (!pair) return -1;
    int failed = PyList_Append(unsent, pair);
    Py_DECREF(pair);
    return failed;
}

static PyObject *ring_send(PyObject *self, PyObject *args) {
    Ring *ring = (Ring *)self;
    PyObject *fds, *pieces;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &fds, &PyList_Type, &pieces)) return NULL;
    Py_ssize_t count = PyList_Size(fds);
    if (PyList_Size(pieces) != count) {
        PyErr_SetString(PyExc_ValueError, "a piece for each socket");
        return NULL;
    }
    if (check(fds, pieces, count)) return NULL;
    PyObject *unsent = PyList_New(0);
    if (!unsent) return NULL;
    int took[ENTRIES];
    Py_ssize_t sizes[ENTRIES];
    for (Py_ssize_t from = 0; from < count; from += ENTRIES) {
        unsigned row = count - from < ENTRIES ? (unsigned)(count - from) : ENTRIES;
        for (unsigned i = 0; i < row; i++)
            sizes[i] = prepare(ring, i, PyList_GetItem(fds, from + i),
                               PyList_GetItem(pieces, from + i));
        __atomic_store_n(ring->sq_tail, *ring->sq_tail + row, __ATOMIC_RELEASE);
        if (submit(ring, row, took)) {
            PyErr_SetFromErrno(PyExc_OSError);
            goto failed;
        }
        for (unsigned i = 0; i < row; i++)
            if (took[i] != sizes[i] && note(unsent, from + i, took[i])) goto failed;
    }
    return unsent;
failed:
    Py_DECREF(unsent);
    return NULL;
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
    if (!type || PyModule_AddObjectRef(module, "Ring", type)) Py_CLEAR(module);
    Py_XDECREF(type);
    return module;
}
#endif

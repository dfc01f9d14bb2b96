"""A row of writes goes out by one call, and each connection gets what its transport would send."""

import asyncio
import errno
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import cast

import pytest

from radixgate.gateway.loop import row_writes
from radixgate.gateway.loop.row_writes import WORTH_A_ROW, Ring, RowWrites, open_ring
from until import until

needs_a_ring = pytest.mark.skipif(
    open_ring() is None, reason="no compiler, or a kernel that has no io_uring for us"
)
LARGE = bytes(range(256)) * 16_384  # more than a socket holds


class Wire:
    """A transport of socket `fd` that notes what it is given to write."""

    def __init__(self, fd: int) -> None:
        self.fd, self.tls = fd, False
        self.written: list[bytes] = []
        self.buffered = 0
        self.closed = self.aborted = False

    @property
    def transport(self) -> asyncio.Transport:
        return cast(asyncio.Transport, self)

    def fileno(self) -> int:
        return self.fd

    def get_extra_info(self, name: str) -> object:
        return {"socket": self, "sslcontext": self if self.tls else None}[name]

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.aborted = True


class ScriptedRing:
    """Takes all, or nothing."""

    def __init__(self, *, takes: bool = True, broken: Exception | None = None) -> None:
        self.rows: list[dict[asyncio.Transport, bytes]] = []
        self._takes, self._broken = takes, broken

    def send(
        self,
        waiting: dict[asyncio.Transport, bytes],
        fds: dict[asyncio.Transport, int],
        least: int,
        /,
    ) -> list[tuple[asyncio.Transport, bytes]]:
        self.rows.append(waiting)
        if self._broken is not None:
            raise self._broken
        return [] if self._takes else list(waiting.items())


def joined(ring: Ring | None, wires: list[Wire]) -> RowWrites:
    writes = RowWrites(ring)
    for wire in wires:
        writes.join(wire.transport)
    return writes


def row(wires: list[Wire]) -> dict[asyncio.Transport, bytes]:
    return {wire.transport: b"for %d" % number for number, wire in enumerate(wires)}


def test_a_row_is_one_call_and_a_few_are_each_their_transports() -> None:
    ring, wires = ScriptedRing(), [Wire(fd) for fd in range(WORTH_A_ROW)]
    writes = joined(ring, wires)
    writes.write(row(wires))
    assert ring.rows == [row(wires)]
    assert [wire.written for wire in wires] == [[]] * WORTH_A_ROW
    writes.write(row(wires[1:]))
    assert len(ring.rows) == 1
    assert [wire.written for wire in wires[:2]] == [[], [b"for 0"]]


def test_what_the_queue_leaves_is_its_transports_unless_that_closes() -> None:
    ring, wires = ScriptedRing(takes=False), [Wire(fd) for fd in range(WORTH_A_ROW)]
    wires[1].closed = True
    joined(ring, wires).write(row(wires))
    assert [wire.written for wire in wires[:3]] == [[b"for 0"], [], [b"for 2"]]


@pytest.mark.parametrize("broken", [OSError(errno.EFAULT, "broken"), MemoryError()])
def test_when_nobody_knows_what_went_out_these_end_and_later_rows_are_written_one_by_one(
    broken: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    ring, wires = ScriptedRing(broken=broken), [Wire(fd) for fd in range(WORTH_A_ROW)]
    writes = joined(ring, wires)
    writes.write(row(wires))
    assert all(wire.aborted and not wire.written for wire in wires)
    later = [Wire(100 + fd) for fd in range(WORTH_A_ROW)]
    for wire in later:
        writes.join(wire.transport)
    writes.write(row(later))
    assert [wire.written[0] for wire in later] == list(row(later).values())
    assert "a row of writes failed" in caplog.text


@contextmanager
def pairs(count: int) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    with ExitStack() as stack:
        made = [socket.socketpair() for _ in range(count)]
        for one, other in made:
            stack.enter_context(one)
            stack.enter_context(other)
            one.setblocking(False)
        yield made


@contextmanager
def wired(count: int) -> Iterator[tuple[list[Wire], list[socket.socket]]]:
    """Wires of real sockets, and the other ends."""
    with pairs(count) as made:
        for _, other in made:
            other.setblocking(False)
        yield [Wire(one.fileno()) for one, _ in made], [other for _, other in made]


def heard(other: socket.socket) -> bytes:
    try:
        return other.recv(100)
    except BlockingIOError:
        return b""


@needs_a_ring
@pytest.mark.parametrize("count", [WORTH_A_ROW, 256, 300])
def test_the_kernels_queue_takes_rows_of_any_length(count: int) -> None:
    with wired(count) as (wires, others):
        writes = joined(open_ring(), wires)
        for _ in range(2):
            writes.write(row(wires))
            assert [heard(other) for other in others] == list(row(wires).values())
        assert not any(wire.written for wire in wires)


@needs_a_ring
@pytest.mark.parametrize("fit", [WORTH_A_ROW, WORTH_A_ROW - 1])
def test_those_that_cannot_be_in_a_row_do_not_make_one(fit: int) -> None:
    with wired(WORTH_A_ROW + 5) as (wires, others):
        writes = joined(open_ring(), wires[:fit])
        writes.write(row(wires))
        in_row = fit if fit == WORTH_A_ROW else 0
        assert [heard(other) for other in others[:in_row]] == list(row(wires).values())[:in_row]
        assert [wire.written for wire in wires[in_row:]] == [
            [piece] for piece in list(row(wires).values())[in_row:]
        ]


@needs_a_ring
def test_who_may_not_be_passed_is_written_to_by_its_transport() -> None:
    with wired(WORTH_A_ROW + 6) as (wires, others):
        closing, buffered, left, stranger = wires[:4]
        wires[4].tls = True
        writes = joined(open_ring(), [wire for wire in wires if wire is not stranger])
        closing.closed, buffered.buffered = True, 7
        writes.leave(left.transport)
        waiting: dict[asyncio.Transport, bytes] = row(wires)
        no_bytes = waiting[wires[5].transport] = cast(bytes, bytearray(b"no bytes"))
        writes.write(waiting)
        written = {number: wire.written for number, wire in enumerate(wires) if wire.written}
        by_itself = {number: [b"for %d" % number] for number in range(1, 5)}
        assert written == by_itself | {5: [no_bytes]}
        assert [heard(other) for other in others[6:]] == list(row(wires).values())[6:]


@needs_a_ring
def test_what_a_socket_does_not_take_is_its_transports() -> None:
    with wired(8) as (wires, others):
        writes = joined(open_ring(), wires)
        others[2].close()
        wires[3].fd = -1
        writes.join(wires[3].transport)
        writes.write(row(wires) | {wires[1].transport: LARGE})
        ((rest,), *full) = (wire.written for wire in wires[1:])
        assert 0 < len(rest) < len(LARGE)
        assert LARGE.endswith(rest)
        assert full[:3] == [[b"for 2"], [b"for 3"], []]
        writes.write(row(wires) | {wires[1].transport: b"more"})
        assert wires[1].written == [rest, b"more"]
        assert heard(others[0]) == b"for 0" * 2


@needs_a_ring
@pytest.mark.parametrize("args", [([], {}, 8), ({}, [], 8), ({}, {}), ({}, {}, "8")])
def test_what_is_no_row_is_refused(args: tuple[object, ...]) -> None:
    ring = open_ring()
    assert ring is not None
    with pytest.raises(TypeError):
        ring.send(*args)  # type: ignore[arg-type]


def not_allowed() -> Ring:
    raise OSError(errno.EPERM, "not allowed")


@pytest.mark.parametrize(
    ("opened", "said"),
    [
        pytest.param(None, "", id="no compiler"),
        pytest.param(not_allowed, "not allowed", id="none opens"),
        pytest.param(lambda: ScriptedRing(takes=False), "sends nothing", id="takes nothing"),
        pytest.param(ScriptedRing, "temporarily unavailable", id="takes it and sends nothing"),
        pytest.param(
            lambda: ScriptedRing(broken=OSError(errno.EIO, "broken")), "broken", id="breaks"
        ),
    ],
)
async def test_without_the_kernels_queue_each_gets_its_bytes_by_its_transport(
    opened: Callable[[], Ring] | None,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(row_writes, "_open_ring", opened)
    with caplog.at_level("INFO", logger="radixgate"):
        ring = open_ring()
    assert ring is None
    notes = [record.getMessage() for record in caplog.records if "io_uring" in record.getMessage()]
    assert len(notes) == (1 if said else 0)
    assert said in "".join(notes)
    loop, writes = asyncio.get_running_loop(), RowWrites(ring)
    with pairs(WORTH_A_ROW) as made:
        waiting: dict[asyncio.Transport, bytes] = {}
        for number, (one, _) in enumerate(made):
            writer, _ = await loop.create_connection(asyncio.Protocol, sock=one)
            writes.join(writer)
            waiting[writer] = b"for %d" % number
        writes.write(waiting)
        got = [other.recv(100) for _, other in made]
        assert got == [b"for %d" % number for number in range(WORTH_A_ROW)]
        for writer in waiting:
            writer.close()


class Reader(asyncio.Protocol):
    """Keeps what it reads, once it may."""

    def __init__(self) -> None:
        self.got = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.got += data

    def has(self, size: int) -> Callable[[], bool]:
        return lambda: len(self.got) == size


@needs_a_ring
async def test_a_reader_that_stops_and_goes_on_gets_all_in_order_and_keeps_nobody_waiting() -> None:
    loop, writes = asyncio.get_running_loop(), RowWrites(open_ring())
    with pairs(WORTH_A_ROW) as made:
        writers, readers = [], []
        for one, other in made:
            writer, _ = await loop.create_connection(asyncio.Protocol, sock=one)
            writes.join(writer)
            _, reader = await loop.create_connection(Reader, sock=other)
            writers.append(writer)
            readers.append(reader)
        slow = readers[0]
        slow.transport.pause_reading()
        part = LARGE[: len(LARGE) // 32]
        said = bytearray()
        for turn in range(10):
            piece = b"%d" % turn + part
            said += piece
            writes.write(dict.fromkeys(writers, piece))
            await until(readers[-1].has(len(said)))
        assert writers[0].get_write_buffer_size() > 0
        slow.transport.resume_reading()
        await until(slow.has(len(said)))
        assert all(reader.got == said for reader in readers)
        for writer in writers:
            writer.close()

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

    def __init__(self, fd: int, *, tls: bool = False) -> None:
        self.fd, self._tls = fd, tls
        self.written: list[bytes] = []
        self.buffered = 0
        self.closed = self.aborted = False

    @property
    def transport(self) -> asyncio.Transport:
        return cast(asyncio.Transport, self)

    def fileno(self) -> int:
        return self.fd

    def get_extra_info(self, name: str) -> object:
        return {"socket": self, "sslcontext": self if self._tls else None}[name]

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.aborted = True


class ScriptedRing:
    """Takes all but what it is told to leave."""

    def __init__(self, *unsent: tuple[int, int], broken: Exception | None = None) -> None:
        self.rows: list[list[tuple[int, bytes]]] = []
        self._unsent, self._broken = list(unsent), broken

    def send(self, fds: list[int], pieces: list[bytes], /) -> list[tuple[int, int]]:
        self.rows.append(list(zip(fds, pieces, strict=True)))
        if self._broken is not None:
            raise self._broken
        return self._unsent


def joined(ring: Ring, *wires: Wire) -> RowWrites:
    writes = RowWrites(ring)
    for wire in wires:
        writes.join(wire.transport)
    return writes


def row(wires: list[Wire]) -> dict[asyncio.Transport, bytes]:
    return {wire.transport: b"for %d" % wire.fd for wire in wires}


def test_a_row_is_one_call_and_a_few_are_each_their_transports() -> None:
    ring, wires = ScriptedRing(), [Wire(fd) for fd in range(WORTH_A_ROW)]
    writes = joined(ring, *wires)
    writes.write(row(wires))
    assert ring.rows == [[(fd, b"for %d" % fd) for fd in range(WORTH_A_ROW)]]
    assert [wire.written for wire in wires] == [[]] * WORTH_A_ROW
    writes.write(row(wires[1:]))
    assert len(ring.rows) == 1
    assert [wire.written for wire in wires[:2]] == [[], [b"for 1"]]


def test_those_that_cannot_be_in_a_row_do_not_make_one() -> None:
    ring, few = ScriptedRing(), [Wire(fd) for fd in range(WORTH_A_ROW - 1)]
    strangers = [Wire(100 + fd) for fd in range(WORTH_A_ROW)]
    writes = joined(ring, *few)
    writes.write(row(strangers))
    writes.write(row([*strangers, *few]))
    assert ring.rows == []
    assert [wire.written for wire in few] == [[b"for %d" % wire.fd] for wire in few]
    assert [wire.written for wire in strangers] == [[b"for %d" % wire.fd] * 2 for wire in strangers]


def test_who_is_closing_gets_nothing_and_who_may_not_be_passed_is_written_to_by_its_transport() -> (
    None
):
    wires = [Wire(fd, tls=fd == 3) for fd in range(WORTH_A_ROW + 5)]
    closing, buffered, _, left, stranger = wires[1:6]
    ring = ScriptedRing()
    writes = joined(ring, *(wire for wire in wires if wire is not stranger))
    closing.closed, buffered.buffered = True, 7
    writes.leave(left.transport)
    writes.write(row(wires))
    assert [fd for fd, _ in ring.rows[0]] == [0, *range(6, WORTH_A_ROW + 5)]
    written = {wire.fd: wire.written for wire in wires if wire.written}
    assert written == {fd: [b"for %d" % fd] for fd in (2, 3, 4, 5)}


def test_what_a_socket_does_not_take_is_its_transports() -> None:
    wires = [Wire(fd) for fd in range(WORTH_A_ROW)]
    ring = ScriptedRing((0, 4), (2, -errno.EAGAIN), (5, -errno.EPIPE))
    joined(ring, *wires).write(row(wires))
    written = {wire.fd: wire.written for wire in wires if wire.written}
    assert written == {0: [b"0"], 2: [b"for 2"], 5: [b"for 5"]}


@pytest.mark.parametrize("broken", [OSError(errno.EFAULT, "broken"), MemoryError()])
def test_when_nobody_knows_what_went_out_these_end_and_later_rows_are_written_one_by_one(
    broken: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    ring, wires = ScriptedRing(broken=broken), [Wire(fd) for fd in range(WORTH_A_ROW)]
    writes = joined(ring, *wires)
    writes.write(row(wires))
    assert all(wire.aborted and not wire.written for wire in wires)
    later = [Wire(100 + fd) for fd in range(WORTH_A_ROW)]
    for wire in later:
        writes.join(wire.transport)
    writes.write(row(later))
    assert [wire.written for wire in later] == [[b"for %d" % wire.fd] for wire in later]
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


@needs_a_ring
@pytest.mark.parametrize("count", [0, 1, 256, 300])
def test_the_kernels_queue_takes_rows_of_any_length(count: int) -> None:
    ring = open_ring()
    assert ring is not None
    with pairs(count) as made:
        for turn in range(2):
            pieces = [b"%d of %d" % (turn, number) for number in range(count)]
            assert ring.send([one.fileno() for one, _ in made], pieces) == []
            assert [other.recv(100) for _, other in made] == pieces


@needs_a_ring
def test_the_kernels_queue_says_what_did_not_go_out() -> None:
    ring = open_ring()
    assert ring is not None
    with pairs(4) as made:
        made[2][1].close()
        fds = [one.fileno() for one, _ in made]
        ((number, sent), gone) = ring.send(fds, [b"a", LARGE, b"b", b"c"])
        assert (number, gone) == (1, (2, -errno.EPIPE))
        assert 0 < sent < len(LARGE)
        assert ring.send(fds[1:2], [b"more"]) == [(0, -errno.EAGAIN)]
        assert [made[number][1].recv(10) for number in (0, 3)] == [b"a", b"c"]
    with pytest.raises(ValueError, match="a piece for each socket"):
        ring.send([1], [])
    assert ring.send([-1], [b"a"]) == [(0, -errno.EBADF)]


@needs_a_ring
@pytest.mark.parametrize("last", [(0, "no bytes"), ("no number", b"a"), (1 << 40, b"a")])
def test_of_a_row_with_one_that_is_no_piece_none_goes_out(last: tuple[object, object]) -> None:
    ring = open_ring()
    assert ring is not None
    with pairs(300) as made:  # more than go out at once
        fds: list[int] = [one.fileno() for one, _ in made[1:]]
        fd, piece = last
        with pytest.raises(TypeError, match="number 299"):
            ring.send([*fds, cast(int, fd)], [*[b"a"] * 299, cast(bytes, piece)])
        assert ring.send(fds, [b"b"] * 299) == []
        assert [other.recv(10) for _, other in made[1:]] == [b"b"] * 299


def test_one_that_is_no_bytes_costs_no_connection_but_its_own() -> None:
    ring = ScriptedRing(broken=TypeError("number 1 is no piece"))
    wires = [Wire(fd) for fd in range(WORTH_A_ROW)]
    writes = joined(ring, *wires)
    writes.write(row(wires))
    assert [wire.written for wire in wires] == [[b"for %d" % wire.fd] for wire in wires]
    writes.write(row(wires))
    assert len(ring.rows) == 2


def not_allowed() -> Ring:
    raise OSError(errno.EPERM, "not allowed")


@pytest.mark.parametrize(
    ("opened", "said"),
    [
        pytest.param(None, "", id="no compiler"),
        pytest.param(not_allowed, "not allowed", id="none opens"),
        pytest.param(lambda: ScriptedRing((0, -errno.EAGAIN)), "sends nothing", id="takes nothing"),
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

"""A transport that fails, or does odd things when it is asked, costs nobody else in its row."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import cast

import pytest

from radixgate.gateway.loop.row_writes import WORTH_A_ROW, RowWrites, open_ring

pytestmark = pytest.mark.skipif(
    open_ring() is None, reason="no compiler, or a kernel that has no io_uring for us"
)


class Wire:
    """The transport of one end of a pair of sockets; `asked` is called when it is asked."""

    def __init__(self, asked: Callable[[], None] = lambda: None) -> None:
        self._end, self.other = socket.socketpair()
        self.other.setblocking(False)
        self.asked = asked
        self.fd: int | str = self._end.fileno()
        self.written: list[bytes] = []
        self.aborted = False

    @property
    def transport(self) -> asyncio.Transport:
        return cast(asyncio.Transport, self)

    def fileno(self) -> int | str:
        return self.fd

    def get_extra_info(self, name: str) -> object:
        return self if name == "socket" else None

    def is_closing(self) -> bool:
        self.asked()
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def abort(self) -> None:
        self.aborted = True

    def heard(self) -> bytes:
        return self.other.recv(100)

    def close(self) -> None:
        self._end.close()
        self.other.close()


@pytest.fixture(name="wires")
def make_wires() -> Iterator[list[Wire]]:
    with ExitStack() as stack:
        wires = [Wire() for _ in range(WORTH_A_ROW + 2)]
        for wire in wires:
            stack.callback(wire.close)
        yield wires


def rows_of(wires: list[Wire]) -> tuple[RowWrites, dict[asyncio.Transport, bytes]]:
    rows = RowWrites(open_ring())
    for wire in wires:
        rows.join(wire.transport)
    return rows, {wire.transport: b"%d" % at for at, wire in enumerate(wires)}


def test_one_that_fails_when_it_is_asked_is_given_up_alone(wires: list[Wire]) -> None:
    def fail() -> None:
        raise RuntimeError("whether it closes?")

    wires[1].asked = fail
    rows, waiting = rows_of(wires)
    rows.write(waiting)
    assert [wire.aborted for wire in wires] == [at == 1 for at in range(len(wires))]
    assert [wire.heard() for wire in wires if not wire.aborted] == [
        b"%d" % at for at in range(len(wires)) if at != 1
    ]


@pytest.mark.parametrize("fd", [1 << 40, 1 << 80, "one"])
def test_a_socket_without_a_right_number_is_its_transports(
    wires: list[Wire], fd: int | str
) -> None:
    wires[0].fd = fd
    rows, waiting = rows_of(wires)
    rows.write(waiting)
    assert wires[0].written == [b"0"]
    assert [wire.heard() for wire in wires[1:]] == [b"%d" % at for at in range(1, len(wires))]
    assert not any(wire.aborted for wire in wires)


def test_one_that_changes_what_waits_when_it_is_asked_changes_no_row(wires: list[Wire]) -> None:
    rows, waiting = rows_of(wires)
    more = [Wire() for _ in range(400)]

    def fill_and_empty() -> None:
        waiting.update((wire.transport, b"more") for wire in more)
        for wire in wires:
            waiting.pop(wire.transport, None)

    wires[0].asked = fill_and_empty
    rows.write(waiting)
    assert [wire.heard() for wire in wires] == [b"%d" % at for at in range(len(wires))]
    assert not any(wire.written for wire in more)
    for wire in more:
        wire.close()

"""Small writes wait for the end of the loop's turn, and lose nothing by it."""

import asyncio
from typing import cast

import pytest

from radixgate.gateway.outbox import (
    AT_ONCE_BYTES,
    AT_ONCE_WRITES,
    LOOKED_AT_TURNS,
    WORTH_IT_WRITES,
    Outbox,
)


class Wire:
    """A transport that notes what is done to it in a log that several may share."""

    def __init__(self, name: str, log: list[tuple[str, bytes]], *, broken: bool = False) -> None:
        self.name = name
        self.closed = self.aborted = False
        self._log = log
        self._broken = broken

    @property
    def transport(self) -> asyncio.Transport:
        return cast(asyncio.Transport, self)

    def write(self, data: bytes) -> None:
        if self._broken:
            raise RuntimeError("cannot be written to")
        self._log.append((self.name, data))

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.aborted = True


async def test_writes_of_a_turn_are_made_at_its_end_and_one_a_connection() -> None:
    log: list[tuple[str, bytes]] = []
    one, two, outbox = Wire("one", log), Wire("two", log), Outbox()
    outbox.put(one.transport, b"a")
    outbox.put(two.transport, b"x")
    outbox.put(one.transport, b"b")
    assert log == []
    await asyncio.sleep(0)
    assert sorted(log) == [("one", b"ab"), ("two", b"x")]
    await asyncio.sleep(0)
    assert len(log) == 2


async def test_the_next_turn_has_its_own_writes() -> None:
    log: list[tuple[str, bytes]] = []
    one, outbox = Wire("one", log), Outbox()
    for piece in (b"a", b"b"):
        outbox.put(one.transport, piece)
        await asyncio.sleep(0)
    assert log == [("one", b"a"), ("one", b"b")]


async def test_what_is_large_or_has_grown_large_is_written_at_once_behind_what_waits() -> None:
    log: list[tuple[str, bytes]] = []
    one, outbox = Wire("one", log), Outbox()
    outbox.put(one.transport, b"a")
    large = b"b" * AT_ONCE_BYTES
    outbox.put(one.transport, large)
    assert log == [("one", b"a" + large)]
    half = b"c" * (AT_ONCE_BYTES // 2)
    outbox.put(one.transport, half)
    outbox.put(one.transport, half)
    assert log[1:] == [("one", half + half)]
    await asyncio.sleep(0)
    assert len(log) == 2


async def test_what_waits_can_be_sent_before_something_else_is_done() -> None:
    log: list[tuple[str, bytes]] = []
    one, two, outbox = Wire("one", log), Wire("two", log), Outbox()
    outbox.put(one.transport, b"last words")
    outbox.put(two.transport, b"x")
    outbox.send(one.transport)
    outbox.send(one.transport)
    assert log == [("one", b"last words")]
    await asyncio.sleep(0)
    assert log[1:] == [("two", b"x")]


async def test_a_connection_that_is_gone_gets_nothing_and_keeps_nothing_from_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log: list[tuple[str, bytes]] = []
    gone, broken, other = Wire("gone", log), Wire("broken", log, broken=True), Wire("other", log)
    outbox = Outbox()
    for wire in (gone, broken, other):
        outbox.put(wire.transport, b"x")
    gone.closed = True
    await asyncio.sleep(0)
    assert log == [("other", b"x")]
    assert (gone.aborted, broken.aborted) == (False, True)
    assert "could not be written to" in caplog.text


async def turns(outbox: Outbox, wires: list[Wire], count: int) -> None:
    for _ in range(count):
        for wire in wires:
            outbox.put(wire.transport, b"x")
        await asyncio.sleep(0)


async def test_where_turns_have_one_write_each_they_are_made_at_once_for_a_while() -> None:
    log: list[tuple[str, bytes]] = []
    one, outbox = Wire("one", log), Outbox()
    await turns(outbox, [one], LOOKED_AT_TURNS)
    log.clear()
    for count in range(AT_ONCE_WRITES):
        assert len(log) == count
        outbox.put(one.transport, b"x")
    outbox.put(one.transport, b"x")
    assert len(log) == AT_ONCE_WRITES  # now turns are looked at again
    await asyncio.sleep(0)
    assert len(log) == AT_ONCE_WRITES + 1


async def test_where_turns_have_many_they_go_on_waiting_for_the_end() -> None:
    log: list[tuple[str, bytes]] = []
    wires = [Wire(str(number), log) for number in range(WORTH_IT_WRITES // LOOKED_AT_TURNS + 1)]
    outbox = Outbox()
    await turns(outbox, wires, 3 * LOOKED_AT_TURNS)
    log.clear()
    outbox.put(wires[0].transport, b"x")
    assert log == []

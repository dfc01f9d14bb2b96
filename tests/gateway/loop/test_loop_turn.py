"""What is small waits for the end of the loop's turn, read or written, and loses nothing by it."""

import asyncio
from typing import cast

import pytest

from radixgate.gateway.loop.loop_turn import (
    AT_ONCE_BYTES,
    AT_ONCE_WRITES,
    LOOKED_AT_TURNS,
    MOST_PIECES,
    WORTH_IT_WRITES,
    LoopTurn,
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
    one, two, turn = Wire("one", log), Wire("two", log), LoopTurn()
    turn.put(one.transport, b"a")
    turn.put(two.transport, b"x")
    turn.put(one.transport, b"b")
    assert log == []
    await asyncio.sleep(0)
    assert sorted(log) == [("one", b"ab"), ("two", b"x")]
    await asyncio.sleep(0)
    assert len(log) == 2


async def test_a_row_is_put_as_each_of_it_would_be() -> None:
    log: list[tuple[str, bytes]] = []
    one, two, turn = Wire("one", log), Wire("two", log), LoopTurn()
    turn.put_row({two.transport: b"x"})
    turn.put_row({one.transport: b"a"})
    turn.put(two.transport, b"y")
    turn.put_row({one.transport: b"b", two.transport: b"z"})
    assert log == []
    long = b"l" * AT_ONCE_BYTES
    turn.put_row({one.transport: long})
    assert log == [("one", b"ab" + long)]
    await asyncio.sleep(0)
    assert log[1:] == [("two", b"xyz")]


async def test_a_row_in_which_there_is_nothing_does_not_wait() -> None:
    log: list[tuple[str, bytes]] = []
    turn = LoopTurn()
    turn.put_row({})
    turn.put_row({Wire("one", log).transport: b"a"})
    await asyncio.sleep(0)
    assert log == [("one", b"a")]


async def test_who_cannot_be_written_to_takes_nothing_from_the_rest_of_its_row() -> None:
    log: list[tuple[str, bytes]] = []
    broken, other, turn = Wire("broken", log, broken=True), Wire("other", log), LoopTurn()
    turn.at_once = 2
    turn.put_row({broken.transport: b"a", other.transport: b"b"})
    assert (broken.aborted, log) == (True, [("other", b"b")])
    turn.put_row({other.transport: b"c"})
    await asyncio.sleep(0)
    assert log == [("other", b"b"), ("other", b"c")]


async def test_the_next_turn_has_its_own_writes() -> None:
    log: list[tuple[str, bytes]] = []
    one, turn = Wire("one", log), LoopTurn()
    for piece in (b"a", b"b"):
        turn.put(one.transport, piece)
        await asyncio.sleep(0)
    assert log == [("one", b"a"), ("one", b"b")]


async def test_what_is_large_or_has_grown_large_is_written_at_once_behind_what_waits() -> None:
    log: list[tuple[str, bytes]] = []
    one, turn = Wire("one", log), LoopTurn()
    turn.put(one.transport, b"a")
    large = b"b" * AT_ONCE_BYTES
    turn.put(one.transport, large)
    assert log == [("one", b"a" + large)]
    half = b"c" * (AT_ONCE_BYTES // 2)
    turn.put(one.transport, half)
    turn.put(one.transport, half)
    assert log[1:] == [("one", half + half)]
    await asyncio.sleep(0)
    assert len(log) == 2


async def test_what_waits_can_be_sent_before_something_else_is_done() -> None:
    log: list[tuple[str, bytes]] = []
    one, two, turn = Wire("one", log), Wire("two", log), LoopTurn()
    turn.put(one.transport, b"last words")
    turn.put(two.transport, b"x")
    turn.send(one.transport)
    turn.send(one.transport)
    assert log == [("one", b"last words")]
    await asyncio.sleep(0)
    assert log[1:] == [("two", b"x")]


async def test_a_connection_that_is_gone_gets_nothing_and_keeps_nothing_from_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log: list[tuple[str, bytes]] = []
    gone, broken, other = Wire("gone", log), Wire("broken", log, broken=True), Wire("other", log)
    turn = LoopTurn()
    for wire in (gone, broken, other):
        turn.put(wire.transport, b"x")
    gone.closed = True
    await asyncio.sleep(0)
    assert log == [("other", b"x")]
    assert (gone.aborted, broken.aborted) == (False, True)
    assert "could not be written to" in caplog.text


async def turns(turn: LoopTurn, wires: list[Wire], count: int) -> None:
    for _ in range(count):
        for wire in wires:
            turn.put(wire.transport, b"x")
        await asyncio.sleep(0)


async def test_where_turns_have_one_write_each_they_are_made_at_once_for_a_while() -> None:
    log: list[tuple[str, bytes]] = []
    one, turn = Wire("one", log), LoopTurn()
    await turns(turn, [one], LOOKED_AT_TURNS)
    log.clear()
    for count in range(AT_ONCE_WRITES):
        assert len(log) == count
        turn.put(one.transport, b"x")
    turn.put(one.transport, b"x")
    assert len(log) == AT_ONCE_WRITES  # now turns are looked at again
    await asyncio.sleep(0)
    assert len(log) == AT_ONCE_WRITES + 1


async def test_where_turns_have_many_they_go_on_waiting_for_the_end() -> None:
    log: list[tuple[str, bytes]] = []
    wires = [Wire(str(number), log) for number in range(WORTH_IT_WRITES // LOOKED_AT_TURNS + 1)]
    turn = LoopTurn()
    await turns(turn, wires, 3 * LOOKED_AT_TURNS)
    log.clear()
    turn.put(wires[0].transport, b"x")
    assert log == []


class Reader:
    """A connection that notes what it gets, and answers each piece on its wire, in capitals."""

    def __init__(self, name: str, log: list[tuple[str, bytes]], turn: LoopTurn) -> None:
        self.name = name
        self.wire = Wire(f"to {name}", log)
        self.broken_by = ""
        self._log = log
        self._turn = turn

    def received(self, data: bytes) -> None:
        self._log.append((self.name, data))
        if data == b"nonsense":
            raise ValueError("cannot be worked off")
        self._turn.put(self.wire.transport, data.upper())

    def broke(self, exc: Exception) -> None:
        self.broken_by = str(exc)
        if self.name == "stubborn":
            raise ValueError("cannot be ended either")


async def test_answers_of_a_turn_are_worked_off_then_requests_and_then_all_is_written() -> None:
    log: list[tuple[str, bytes]] = []
    turn = LoopTurn()
    client, worker = Reader("client", log, turn), Reader("worker", log, turn)
    turn.requests.take(client, b"a")
    turn.answers.take(worker, b"x")
    turn.requests.take(client, b"b")
    assert log == []
    await asyncio.sleep(0)
    assert log == [
        ("worker", b"x"),
        ("client", b"a"),
        ("client", b"b"),
        ("to worker", b"X"),
        ("to client", b"AB"),
    ]
    await asyncio.sleep(0)
    assert len(log) == 5


async def test_next_steps_are_taken_behind_all_that_was_read() -> None:
    log: list[tuple[str, bytes]] = []
    turn = LoopTurn()
    client, worker = Reader("client", log, turn), Reader("worker", log, turn)
    turn.then(lambda: log.append(("step", b"1")))
    turn.requests.take(client, b"a")
    turn.answers.take(worker, b"x")
    turn.then(lambda: log.append(("step", b"2")))
    await asyncio.sleep(0)
    assert log == [
        ("worker", b"x"),
        ("client", b"a"),
        ("step", b"1"),
        ("step", b"2"),
        ("to worker", b"X"),
        ("to client", b"A"),
    ]


async def test_what_is_large_is_worked_off_at_once_behind_what_was_read_before() -> None:
    log: list[tuple[str, bytes]] = []
    turn = LoopTurn()
    client = Reader("client", log, turn)
    large = b"l" * AT_ONCE_BYTES
    turn.requests.take(client, b"a")
    turn.requests.take(client, large)
    assert [data for name, data in log if name == "client"] == [b"a", large]


async def test_so_many_pieces_do_not_wait_for_one_more() -> None:
    log: list[tuple[str, bytes]] = []
    turn = LoopTurn()
    client = Reader("client", log, turn)
    for count in range(MOST_PIECES):
        assert log == []
        turn.requests.take(client, b"%d" % count)
    assert [data for _, data in log] == [b"%d" % count for count in range(MOST_PIECES)]


@pytest.mark.parametrize("at_once", [0, 100])
async def test_what_cannot_be_worked_off_costs_nobody_else_his_piece(
    at_once: int, caplog: pytest.LogCaptureFixture
) -> None:
    log: list[tuple[str, bytes]] = []
    turn = LoopTurn()
    turn.at_once = at_once
    one, other = Reader("one", log, turn), Reader("other", log, turn)
    stubborn = Reader("stubborn", log, turn)
    turn.requests.take(one, b"nonsense")
    turn.requests.take(stubborn, b"nonsense")
    turn.requests.take(other, b"a")
    await asyncio.sleep(0)
    assert log[2:] == [("other", b"a"), ("to other", b"A")]
    fault = "cannot be worked off"
    assert [reader.broken_by for reader in (one, stubborn, other)] == [fault, fault, ""]
    assert "could not be worked off" in caplog.text
    log.clear()
    turn.requests.take(other, b"b")  # the turns go on
    await asyncio.sleep(0)
    assert log == [("other", b"b"), ("to other", b"B")]


async def test_where_writes_are_made_at_once_pieces_are_worked_off_at_once() -> None:
    log: list[tuple[str, bytes]] = []
    turn = LoopTurn()
    client = Reader("client", log, turn)
    for _ in range(LOOKED_AT_TURNS):
        turn.requests.take(client, b"a")
        await asyncio.sleep(0)
    log.clear()
    turn.requests.take(client, b"b")
    turn.then(lambda: log.append(("step", b"1")))
    assert log == [("client", b"b"), ("to client", b"B"), ("step", b"1")]

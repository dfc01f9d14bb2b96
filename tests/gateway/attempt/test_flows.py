"""A step's single tokens go to their clients in one pass, and nothing is lost on the way."""

import asyncio
from array import array
from typing import cast

import pytest

from clocks import FakeClock
from radixgate.gateway.attempt.flow import NOTED_TOKENS, Flow, Flows
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.gateway.loop.loop_turn import LoopTurn
from radixgate.gateway.observe.metrics import Buckets

BEFORE, AFTER = b'data: {"text":', b"}\n\n"


class Client:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.got = b""

    def write(self, data: bytes) -> None:
        self.got += data

    def is_closing(self) -> bool:
        return False


class Metrics:
    def __init__(self) -> None:
        self.itl = Buckets((0.25, 1.0))


class Fleet:
    """Flows by handle, each of a client of its own, last sent to at 1000."""

    def __init__(self, *handles: int) -> None:
        self.clock, self.metrics, self.turn = FakeClock(1_000.0), Metrics(), LoopTurn()
        self.flows = Flows()
        self.clients = {handle: Client() for handle in handles}
        self.by_handle: dict[int, Flow] = {}
        for handle, client in self.clients.items():
            lane = ChunkLane(self.turn, cast(asyncio.Transport, client))
            lane.begin(self.clock.now, self.metrics, self.clock.now(), b"")
            self.by_handle[handle] = Flow(lane, array("I"), BEFORE, AFTER)
            self.flows.begin(handle, self.by_handle[handle])

    def step(self, *tokens: tuple[int, int, str]) -> tuple[list[tuple[int, int, str]], list[int]]:
        handles, ids, texts = zip(*tokens, strict=True)
        result = self.flows.take((list(handles), list(ids), list(texts)))
        self.turn.end()
        return result


def chunk(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


async def test_each_client_gets_its_own_text_as_one_chunk() -> None:
    fleet = Fleet(1, 2)
    assert fleet.step((1, 7, "a"), (2, 8, 'ü"')) == ([], [])
    assert fleet.clients[1].got == chunk(b'data: {"text":"a"}\n\n')
    assert fleet.clients[2].got == chunk('data: {"text":"ü\\""}\n\n'.encode())
    assert fleet.by_handle[2].ids == array("I", [8])


@pytest.mark.parametrize("letters", [980, 1_100], ids=["known-size-line", "longer"])
async def test_a_chunk_says_its_length_however_long(letters: int) -> None:
    fleet = Fleet(1)
    fleet.step((1, 7, "x" * letters))
    assert fleet.clients[1].got == chunk(b'data: {"text":"%b"}\n\n' % (b"x" * letters))


async def test_a_token_without_text_counts_and_sends_nothing() -> None:
    fleet = Fleet(1)
    fleet.step((1, 7, ""))
    assert (fleet.clients[1].got, fleet.by_handle[1].untaken) == (b"", 1)
    assert fleet.by_handle[1].ids == array("I", [7])
    assert fleet.metrics.itl.count == 0


async def test_two_tokens_of_one_handle_go_in_their_order_in_one_write() -> None:
    fleet = Fleet(1)
    fleet.step((1, 7, "a"), (1, 8, "b"))
    assert fleet.clients[1].got == b"".join(chunk(BEFORE + t + AFTER) for t in (b'"a"', b'"b"'))


async def test_what_does_not_flow_comes_back_in_its_order() -> None:
    fleet = Fleet(1)
    assert fleet.step((5, 1, "a"), (1, 2, "b"), (5, 3, "c"))[0] == [(5, 1, "a"), (5, 3, "c")]
    fleet.flows.end(1)
    assert fleet.step((1, 4, "d"))[0] == [(1, 4, "d")]
    assert fleet.clients[1].got == chunk(BEFORE + b'"b"' + AFTER)


async def test_who_owes_credit_is_named_from_the_noted_number_on() -> None:
    fleet = Fleet(1, 2)
    for _ in range(NOTED_TOKENS - 1):
        assert fleet.step((1, 7, "a")) == ([], [])
    assert fleet.step((1, 7, "a"), (2, 7, "b")) == ([], [1])
    fleet.by_handle[1].untaken = 0
    assert fleet.step((1, 7, "a")) == ([], [])


async def test_gaps_are_counted_for_each_stream_by_its_own_last_event() -> None:
    fleet = Fleet(1, 2, 3)
    itl = fleet.metrics.itl
    fleet.clock.advance(0.125)
    fleet.step((1, 7, "a"), (2, 7, "b"))  # two gaps of 0.125 s
    fleet.clock.advance(0.5)
    fleet.step((1, 7, "a"), (2, 7, "b"), (3, 7, "c"))  # two of 0.5 s, and one of 0.625
    fleet.clock.advance(2.0)
    fleet.step((3, 7, "c"))
    assert [sample.value for sample in itl.family("itl", "").samples][:3] == [2.0, 5.0, 6.0]
    assert itl._sum == 0.125 * 2 + 0.5 * 2 + 0.625 + 2.0

"""What is compiled of a step does the same as its twin in Python."""

import asyncio
import gc
import weakref
from array import array
from typing import Protocol, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.gateway.attempt import flow_in_python
from radixgate.gateway.attempt.flow import COMPILED, Flow, take_step
from radixgate.gateway.attempt.flow_in_python import Columns, Step
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.gateway.loop.loop_turn import LoopTurn

compiled = pytest.mark.skipif(not COMPILED, reason="it was installed without a compiler")
# Of handles 0 to 3, the first two of one client.
TOKENS = st.tuples(
    st.integers(0, 5),
    st.integers(0, 2**32 - 1),
    st.one_of(st.sampled_from(["", '\x00\x1f\x7f"\\/\b\t\n\f\r', "ü𝄞\u2028"]), st.text()),
)


class Flowing(Protocol):
    ids: "array[int]"
    untaken: int


class Client:
    """A transport that is known by itself alone."""


class Side:
    """Steps taken by one of the two, by clients of its own."""

    def __init__(self, *, python: bool) -> None:
        make = flow_in_python.Flow if python else Flow
        self.take = flow_in_python.take_step if python else take_step
        self.clients = [cast(asyncio.Transport, Client()) for _ in range(3)]
        self.lanes = [ChunkLane(LoopTurn(), client) for client in self.clients]
        for number, lane in enumerate(self.lanes):
            lane.sent_at = float(number)
        self.flows = {
            handle: make(
                self.lanes[max(0, handle - 1)], array("I"), b"<%d" % handle * 50 * handle, b">\n\n"
            )
            for handle in range(4)
        }

    def step(self, columns: Columns, now: float, stepped_at: float) -> object:
        step: Step = self.take(self.flows, columns, now, stepped_at, 3)  # type: ignore[arg-type]
        row, rest, owing, late, together = step
        return (
            {self.clients.index(client): data for client, data in row.items()},
            rest,
            owing,
            [(self.lanes.index(lane), sent_at) for lane, sent_at in late],
            together,
        )

    def state(self) -> object:
        flows: list[Flowing] = list(self.flows.values())
        return [(f.ids, f.untaken) for f in flows], [lane.sent_at for lane in self.lanes]


@compiled
@given(steps=st.lists(st.lists(TOKENS), max_size=4))
def test_compiled_a_step_comes_to_the_same(steps: list[list[tuple[int, int, str]]]) -> None:
    ours, theirs = Side(python=False), Side(python=True)
    stepped_at = 0.0
    for number, tokens in enumerate(steps):
        columns: Columns = ([], [], [])
        for handle, token_id, text in tokens:
            columns[0].append(handle)
            columns[1].append(token_id)
            columns[2].append(text)
        now = 10.0 + number / 8
        assert ours.step(columns, now, stepped_at) == theirs.step(columns, now, stepped_at)
        assert ours.state() == theirs.state()
        stepped_at = now


def columns_of(*lengths: int) -> Columns:
    handles, ids, texts = lengths
    return [0] * handles, [7] * ids, ["a"] * texts


@pytest.mark.parametrize("python", [False, True])
@pytest.mark.parametrize("lengths", [(2, 1, 2), (2, 2, 1), (1, 2, 2)])
def test_columns_that_do_not_match_are_no_step(python: bool, lengths: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"a token of each|is (short|long)er than"):
        Side(python=python).step(columns_of(*lengths), 1.0, 0.0)


@compiled
@pytest.mark.parametrize(
    ("flows", "columns"),
    [
        pytest.param([], ([], [], []), id="no-table"),
        pytest.param({}, ([], [], ()), id="no-list"),
        pytest.param({0: "a"}, ([0], [1], ["a"]), id="no-flow"),
        pytest.param({}, ([[]], [1], ["a"]), id="no-handle"),
        pytest.param({}, ([0], [1]), id="no-texts"),
    ],
)
def test_what_is_no_step_is_refused(flows: object, columns: object) -> None:
    with pytest.raises(TypeError):
        take_step(flows, columns, 1.0, 0.0, 3)  # type: ignore[arg-type]


@compiled
@pytest.mark.parametrize("token", [(0, "a", "a"), (0, 1, b"a"), (0, -1, "a"), (0, 1, "\ud800")])
def test_what_is_no_token_is_refused(token: tuple[object, object, object]) -> None:
    handle, token_id, text = token
    with pytest.raises((TypeError, OverflowError, UnicodeEncodeError)):
        Side(python=False).step(([handle], [token_id], [text]), 1.0, 0.0)  # type: ignore[list-item]


@compiled
def test_a_flow_that_nobody_holds_is_gone_with_all_that_holds_it() -> None:
    class Looped(ChunkLane):
        """A lane that leads back to its flow."""

        __slots__ = ("__weakref__", "flow")
        flow: Flow

    lane = Looped(LoopTurn(), cast(asyncio.Transport, Client()))
    lane.flow = Flow(lane, array("I"), b"<", b">")
    watched = weakref.ref(lane)
    del lane
    gc.collect()
    assert watched() is None


@compiled
@pytest.mark.parametrize("args", [(), ("a lane", array("I"), b"", b"")])
def test_what_makes_no_flow_is_refused(args: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        Flow(*args)  # type: ignore[arg-type]

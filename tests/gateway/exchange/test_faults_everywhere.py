"""A fault of ours at each call on a request's way: one end, one count, one log, nothing kept."""

from collections.abc import Iterator

import pytest

from fault_cases import Strike, struck_gateway
from own_faults import INTERNAL, Faults, messages, one_at_a_time
from radixgate.fleet.lease import Lease
from radixgate.gateway.entry.http_front import FrontConnection
from radixgate.gateway.exchange.client_answer import ClientAnswer
from radixgate.gateway.exchange.exchange import Exchange
from radixgate.gateway.exchange.held_answer import HeldAnswer
from radixgate.gateway.settings.rules import NO_RULES, GatewayRules
from radixgate.proto import openai_answer
from raw_client import Answer
from until import until

# What is called, and how often at most of one request.
WAYS: list[tuple[type, dict[str, int]]] = [
    (ClientAnswer, {"hold": 1, "begin": 1, "add": 3, "lane": 2, "end": 1, "end_at_once": 1}),
    (ClientAnswer, {"_time_piece": 2, "_time_first_token": 1, "_own_lines": 1, "_own_headers": 1}),
    (HeldAnswer, {"add": 1, "send": 1, "send_whole": 1}),
    (FrontConnection, {"on_head": 1, "on_begin": 1, "on_body": 3, "on_end": 1, "on_answer": 1}),
    (Lease, {"first_output": 1}),
    (Exchange, {"begin": 1, "_read": 1, "_ask": 1, "_dispatch": 1, "_start": 1}),
    (
        Exchange,
        {"_began": 1, "_over": 1, "_end_attempt": 1, "_brought": 3, "_came_whole": 1, "_ended": 1},
    ),
    (openai_answer._Stream, {"item": 3, "end": 1}),
    (openai_answer._Whole, {"item": 3, "end": 1}),
]


def strikes() -> Iterator[Strike]:
    for owner, names in WAYS:
        for name, calls in names.items():
            for call in range(1, calls + 1):
                for after in (False, True):
                    yield Strike(owner, name, call, after)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


@pytest.mark.slow  # 500 requests, each at a gateway of its own
@pytest.mark.parametrize("rules", [NO_RULES, one_at_a_time()], ids=["open", "limited"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("own", [False, True], ids=["foreign", "own"])
@pytest.mark.parametrize("strike", list(strikes()), ids=str)
async def test_it_ends_once_and_is_counted_once_and_logged_once(
    faults: Faults,
    caplog: pytest.LogCaptureFixture,
    strike: Strike,
    own: bool,
    stream: bool,
    rules: GatewayRules,
) -> None:
    async with struck_gateway(faults, strike, rules, own=own, stream=stream) as (gateway, seen):
        path = gateway.gateway.headquarters.path
        await until(lambda: path.metrics.in_flight == 0)
        assert sum(path.metrics.requests.values()) == 1
        assert gateway.in_flight() == 0
        assert set(faults.closed.values()) <= {1}
        assert len(path.held) == 0
        if path.limits.line is not None:
            assert path.limits.line.running == 0
        assert seen.raw_heads == (0 if seen.answer is None else 1)
        assert len(messages(caplog)) == faults.struck
        if seen.answer is None or seen.cut:
            assert faults.struck
            return
        told = seen.answer.body.count(INTERNAL.encode())
        assert told == (1 if faults.struck and not good(seen.answer) else 0)


def good(answer: Answer) -> bool:
    """It was whole already when the fault struck: nothing is left to be told."""
    return answer.status == 200 and b'"stop"' in answer.body and b'"error"' not in answer.body

"""Faults of the gateway's own, made to strike where a test wants, and what must be left of it."""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

import pytest

from radixgate.fleet.lease import Lease, Outcome
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.rules import GatewayRules
from raw_client import Answer, RawClient, request
from scripted_worker import (
    Recorded,
    ScriptedWorker,
    Step,
    events,
    good_answer,
    sse_end,
    sse_head,
)
from small_gateway import CHAT, SmallGateway, chat_body
from until import PATIENCE_S, until

INTERNAL = "internal error; the log has the details"


# By who has caught it.
LOGGED = {
    "a request failed",
    "an attempt failed",
    "what a connection brought could not be worked off",
}


class Faults:
    """Functions that fail, and how often each lease was closed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.struck = 0
        self.closed: Counter[int] = Counter()
        close = Lease.close

        def counted(lease: Lease, outcome: Outcome, cached_tokens: int | None = None) -> None:
            self.closed[lease.number] += 1
            close(lease, outcome, cached_tokens)

        monkeypatch.setattr(Lease, "close", counted)

    def strike(self, owner: type, name: str, *, call: int = 1, after: bool = False) -> None:
        """The `call`th one raises; `after`: when it has done what it does."""
        real: Callable[..., object] = getattr(owner, name)
        calls = 0

        def faulty(*args: object, **named: object) -> object:
            nonlocal calls
            calls += 1
            if calls != call:
                return real(*args, **named)
            self.struck += 1
            if after:
                real(*args, **named)
            raise ZeroDivisionError("a fault of ours")

        self._monkeypatch.setattr(owner, name, faulty)


def streaming(*texts: str) -> Callable[[Recorded], list[Step]]:
    return lambda request: [*sse_head(), *events(*texts, gap_s=0.005), *sse_end((5, 2))]


def one_at_a_time() -> GatewayRules:
    return GatewayRules(limits=LimitsConfig(max_concurrent_requests=1, queue_size=4))


async def told(gateway: SmallGateway, *, stream: bool) -> Answer:
    """What the client gets, in time."""
    async with asyncio.timeout(PATIENCE_S), RawClient(gateway.port) as client:
        client.send(request(CHAT, chat_body(stream=stream)))
        return await client.answer()


async def check_nothing_is_kept(
    gateway: SmallGateway, worker: ScriptedWorker, faults: Faults, logged: list[str]
) -> None:
    """The place, the lease and the counts are free, and the next request is answered."""
    assert faults.struck == 1, "the fault did not strike"
    assert LOGGED & {*logged}
    assert set(faults.closed.values()) <= {1}
    metrics = gateway.gateway.metrics
    await until(lambda: gateway.in_flight() == 0)
    assert (metrics.in_flight, sum(metrics.requests.values())) == (0, 1)
    assert len(gateway.gateway.headquarters.path.held) == 0
    worker.script = good_answer
    async with asyncio.timeout(PATIENCE_S):
        assert (await gateway.chat()).status == 200
    assert metrics.in_flight == 0


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR]

"""A fault of ours where who waits in the line is refused: its client is cut off, not forgotten."""

import asyncio
import contextlib

import pytest

from own_faults import Faults
from radixgate.clock import SystemClock
from radixgate.gateway.entry.http_front import FrontConnection
from radixgate.gateway.exchange.forwarder import Forwarder
from radixgate.gateway.experiments.lookout import Lookout
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.rules import GatewayRules
from raw_client import RawClient, request
from scripted_worker import Hang, ScriptedWorker, events, sse_head
from small_gateway import CHAT, chat_body, small_gateway
from until import PATIENCE_S, until
from virtual_time import LoopClock, in_virtual_time


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


@pytest.mark.parametrize("by_order", [False, True], ids=["it-waited-too-long", "by-order"])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        pytest.param(FrontConnection, "on_head", id="it-cannot-be-written"),
        pytest.param(FrontConnection, "on_end", id="it-cannot-be-ended"),
        pytest.param(Forwarder, "turned_away", id="it-cannot-be-counted"),
    ],
)
@in_virtual_time
async def test_who_waits_and_cannot_be_answered_is_cut_off(
    faults: Faults, by_order: bool, owner: type, name: str
) -> None:
    limits = LimitsConfig(
        max_concurrent_requests=1, queue_size=1, queue_timeout_secs=60 if by_order else 0.1
    )
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=GatewayRules(limits=limits), clock=LoopClock()) as gateway,
    ):
        worker.script = lambda request: [*sse_head(), *events("a"), Hang()]
        path = gateway.gateway.headquarters.path
        async with RawClient(gateway.port) as first, RawClient(gateway.port) as second:
            first.send(request(CHAT, chat_body(stream=True)))
            await first.reader.readuntil(b"data:")
            faults.strike(owner, name)
            second.send(request(CHAT, chat_body(rid="second")))
            await until(lambda: path.metrics.read_waiting() == 1)
            if by_order:
                await gateway.post("/abort_request", {"rid": "second"})
            async with asyncio.timeout(PATIENCE_S):
                with contextlib.suppress(ConnectionError):
                    await second.reader.read()  # to the end of the connection
        assert faults.struck == 1
        await until(lambda: path.metrics.in_flight == 0)
        assert (path.metrics.read_waiting(), len(path.held)) == (0, 0)
        assert path.limits.line is not None
        assert path.limits.line.running == 0


async def test_who_waits_for_an_experiment_and_cannot_be_answered_is_cut_off(
    faults: Faults,
) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        path = gateway.gateway.headquarters.path
        later = asyncio.get_running_loop().call_soon
        lookout = path.detour.by = Lookout(SystemClock(), later, lambda: None)
        lookout.hold.close()
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body(rid="held")))
            await until(lambda: lookout.hold.waiting == 1)
            faults.strike(FrontConnection, "on_head")
            assert (await gateway.post("/abort_request", {"rid": "held"})).status == 200
            async with asyncio.timeout(PATIENCE_S):
                assert await client.ended()
        assert (faults.struck, lookout.hold.waiting, len(path.held)) == (1, 0, 0)

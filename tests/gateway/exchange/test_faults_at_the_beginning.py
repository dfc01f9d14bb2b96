"""A fault of ours while a request is begun: it is answered, counted once, and its place is free."""

import asyncio

import pytest

from attached_gateway import attached_gateway
from fault_cases import Strike, struck_gateway
from own_faults import INTERNAL, Faults, messages, one_at_a_time
from radixgate.clock import SystemClock
from radixgate.gateway.attempt.request_ids import RequestIds
from radixgate.gateway.entry.http_front import FrontConnection
from radixgate.gateway.exchange import exchange
from radixgate.gateway.exchange.client_answer import ClientAnswer
from radixgate.gateway.exchange.exchange import Exchange
from radixgate.gateway.experiments.lookout import Lookout
from radixgate.gateway.settings.rules import NO_RULES, GatewayRules
from scripted_worker import ScriptedWorker
from small_gateway import small_gateway
from until import PATIENCE_S, until


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> Faults:
    return Faults(monkeypatch)


@pytest.mark.parametrize("rules", [NO_RULES, one_at_a_time()], ids=["open", "limited"])
@pytest.mark.parametrize(
    "strike",
    [
        pytest.param(Strike(RequestIds, "make"), id="it-cannot-be-named"),
        pytest.param(Strike(ClientAnswer, "__init__"), id="nobody-can-answer"),
        pytest.param(Strike(Exchange, "begin"), id="it-cannot-be-begun"),
        pytest.param(Strike(Exchange, "begin", after=True), id="it-has-been-begun"),
    ],
)
async def test_what_cannot_be_begun_is_answered_with_or_without_limits(
    faults: Faults, caplog: pytest.LogCaptureFixture, strike: Strike, rules: GatewayRules
) -> None:
    async with struck_gateway(faults, strike, rules, own=False, stream=False) as (gateway, seen):
        path = gateway.gateway.headquarters.path
        assert seen.answer is not None
        assert (seen.answer.status, seen.answer.json["error"]["message"]) == (500, INTERNAL)
        assert len(messages(caplog)) == 1
        counted = {outcome.value: times for outcome, times in path.metrics.requests.items()}
        assert (counted["upstream_error"], sum(counted.values())) == (1, 1)
        assert path.metrics.in_flight == 0
        if path.limits.line is not None:
            assert path.limits.line.running == 0


async def test_a_prompt_that_was_read_and_cannot_be_asked_for_is_an_error(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with attached_gateway() as (gateway, _):
        monkeypatch.setattr(exchange, "to_workers", lambda *given: 1 / 0)
        async with asyncio.timeout(PATIENCE_S):
            reply = await gateway.chat()
        assert (reply.status, reply.json["error"]["message"]) == (500, INTERNAL)
        assert messages(caplog) == ["a request failed"]
        assert gateway.gateway.metrics.in_flight == 0


async def test_who_waited_for_an_experiment_and_cannot_be_begun_is_answered(
    faults: Faults, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], rules=one_at_a_time()) as gateway,
    ):
        path = gateway.gateway.headquarters.path
        later = asyncio.get_running_loop().call_soon
        lookout = path.detour.by = Lookout(SystemClock(), later, lambda: None)
        lookout.hold.close()
        faults.strike(Lookout, "begin")
        async with asyncio.timeout(PATIENCE_S):
            waiting = asyncio.create_task(gateway.chat())
            await until(lambda: lookout.hold.waiting == 1)
            lookout.hold.open()
            assert (await waiting).status == 500
        assert messages(caplog) == ["a request could not be begun"]
        assert (sum(path.metrics.requests.values()), path.metrics.in_flight) == (1, 0)
        assert path.limits.line is not None
        assert (path.limits.line.running, len(path.held)) == (0, 0)


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        pytest.param("on_begin", True, id="the-head-and-an-event"),
        pytest.param("on_body", False, id="an-event"),
    ],
)
async def test_no_second_head_stands_behind_the_first(faults: Faults, name: str, cut: bool) -> None:
    strike = Strike(FrontConnection, name, after=True)
    async with struck_gateway(faults, strike, NO_RULES, own=False, stream=True) as (gateway, seen):
        assert seen.raw_heads <= 1
        assert seen.cut == cut
        assert seen.answer is None or seen.answer.status == 200
        await until(lambda: gateway.gateway.metrics.in_flight == 0)

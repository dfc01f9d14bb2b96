"""A stream that ends with an error event counts as an answer with the error's status would."""

import json

import pytest

from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.settings.rules import GatewayRules
from raw_client import RawClient, request
from scripted_worker import Raw, ScriptedWorker, Step, chunk, delta, good_answer, sse_head
from small_gateway import CHAT, SmallGateway, chat_body, small_gateway

AFTER = 3
RULES = GatewayRules(
    reliability=ReliabilityConfig(cb_failure_threshold=AFTER, cb_timeout_duration_secs=60.0)
)
DONE = b"data: [DONE]\n\n"


def ending(error: object) -> bytes:
    return delta("a") + b"data: " + json.dumps({"error": error}).encode() + b"\n\n" + DONE


def steps(stream: bytes, pieces: int) -> list[Step]:
    rest = [chunk(stream), Raw(b"0\r\n\r\n")]
    if pieces == 2:
        return [*sse_head(), *rest]
    return [Raw(b"".join(step.data for step in (*sse_head(), *rest) if isinstance(step, Raw)))]


async def breaker(gateway: SmallGateway, worker: ScriptedWorker) -> str:
    return str((await gateway.get(f"/workers/127.0.0.1:{worker.port}")).json["breaker"])


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize(
    ("error", "outcome", "failures", "state"),
    [
        pytest.param({"code": 500}, "upstream_error", AFTER, "open", id="the-workers"),
        pytest.param({"code": 503}, "upstream_error", AFTER, "closed", id="it-is-full"),
        pytest.param({"code": 429}, "client_error", AFTER, "closed", id="too-many"),
        pytest.param({"code": 400}, "client_error", 0, "closed", id="the-clients"),
        pytest.param({"message": "too long"}, "client_error", 0, "closed", id="sglang-native"),
    ],
)
async def test_books_and_breaker_agree(
    error: object, outcome: str, failures: int, state: str, pieces: int
) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker], rules=RULES) as gateway:
        worker.script = lambda request: steps(ending(error), pieces)
        async with RawClient(gateway.port) as client:
            for _ in range(AFTER):
                client.send(request(CHAT, chat_body(stream=True)))
                answer = await client.answer()
                assert (answer.status, answer.body) == (200, ending(error))
        assert await gateway.counter("radixgate_requests_total", outcome=outcome) == AFTER
        name = f"127.0.0.1:{worker.port}"
        assert await gateway.counter("radixgate_worker_failures_total", worker=name) == failures
        assert await gateway.counter("radixgate_retries_total") == 0
        assert await breaker(gateway, worker) == state
        assert gateway.in_flight() == 0
        worker.script = good_answer
        assert (await gateway.chat()).status == (503 if state == "open" else 200)

"""A stream that came whole in one read goes to the client in one write, and is counted as ever."""

import pytest

from radixgate.gateway.settings.access_config import AccessConfig
from radixgate.gateway.settings.limits_config import LimitsConfig
from radixgate.gateway.settings.rules import GatewayRules
from radixgate.gateway.workers.answer_reading import StreamedAnswer
from raw_client import RawClient, request
from scripted_worker import Raw, ScriptedWorker, Step, chunk, delta, events, sse_end, sse_head
from small_gateway import CHAT, chat_body, small_gateway

FINISH, DONE = delta("", "stop"), b"data: [DONE]\n\n"
ERROR = b'data: {"error":{"message":"no","code":500}}\n\n'
STREAM = delta("hel") + delta("lo") + FINISH + DONE


def in_one_piece(*steps: Step) -> list[Step]:
    return [Raw(b"".join(step.data for step in steps if isinstance(step, Raw)))]


WHOLE = in_one_piece(*sse_head(), *events("hel", "lo"), *sse_end())


async def test_the_client_gets_chunks_and_the_connection_goes_on() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: WHOLE
        async with RawClient(gateway.port) as client:
            for _ in range(3):
                client.send(request(CHAT, chat_body(stream=True)))
                answer = await client.answer()
                assert (answer.status, answer.chunked, answer.body) == (200, True, STREAM)
                assert answer.header("x-radixgate-policy") is not None
        assert len({one.connection.number for one in worker.requests}) == 1
        assert await gateway.counter("radixgate_requests_total", outcome="ok") == 3
        assert await gateway.counter("radixgate_ttft_seconds_count") == 3
        assert await gateway.counter("radixgate_ttft_ratio_count") == 3
        assert await gateway.counter("radixgate_itl_seconds_count") == 0


async def test_a_client_of_http_1_0_gets_it_bare_and_then_the_end() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: WHOLE
        async with RawClient(gateway.port) as client:
            client.send(request(CHAT, chat_body(stream=True), version="1.0"))
            came = await client.reader.read()
        head, _, body = came.partition(b"\r\n\r\n")
        assert body == STREAM
        assert b"transfer-encoding" not in head
        assert b"connection: close" in head


RESPONSE = b'data: {"type":"response.completed","response":{"id":"resp_1"}}\n\n'


@pytest.mark.parametrize(
    ("path", "body", "end"),
    [
        pytest.param(CHAT, chat_body(stream=True), sse_end(), id="chat"),
        pytest.param(
            "/v1/responses",
            {"input": "hi", "stream": True},
            [chunk(RESPONSE), Raw(b"0\r\n\r\n")],
            id="response-with-an-id",
        ),
    ],
)
async def test_events_are_counted_for_a_tenant_where_the_worker_tells_no_usage(
    path: str, body: dict[str, object], end: list[Step]
) -> None:
    limits = LimitsConfig(tenant_tokens_per_minute=60.0)
    rules = GatewayRules(access=AccessConfig(api_key="k"), limits=limits)
    key = "Authorization: Bearer k"
    async with ScriptedWorker() as worker, small_gateway([worker], rules=rules) as gateway:
        many = in_one_piece(*sse_head(), *events(*"a" * 70), *end)
        worker.script = lambda request: many
        assert (await gateway.post(path, body, key)).status == 200
        assert (await gateway.post(path, body, key)).status == 429


async def test_without_an_end_it_ends_with_an_error_event() -> None:
    cut = in_one_piece(*sse_head(), *events("hel"), Raw(b"0\r\n\r\n"))
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: cut
        answer = await gateway.chat(stream=True)
        assert answer.events[0] == delta("hel")[6:].strip()
        assert b'"error"' in answer.events[1]
        assert answer.events[2:] == [b"[DONE]"]
        assert await gateway.counter("radixgate_requests_total", outcome="upstream_error") == 1


@pytest.mark.parametrize(
    ("stream", "good"),
    [
        pytest.param(STREAM, True, id="a-finish"),
        pytest.param(delta("a") + FINISH, True, id="without-the-end-marker"),
        pytest.param(delta("a") + DONE, False, id="the-end-marker-alone"),
        pytest.param(delta("a") + ERROR + DONE, False, id="an-error"),
        pytest.param(FINISH + ERROR, False, id="an-error-behind-the-finish"),
        pytest.param(delta("a"), False, id="cut"),
    ],
)
def test_what_is_sent_at_once_has_the_models_own_finish(stream: bytes, good: bool) -> None:
    reader = StreamedAnswer()
    reader.feed(stream)
    assert reader.is_good() is good


FAILED = b'data: {"type":"response.failed","response":{"id":"resp_1"}}\n\n'


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize(
    ("path", "body", "end"),
    [
        pytest.param(CHAT, chat_body(stream=True), delta("a") + ERROR + DONE, id="chat"),
        pytest.param(CHAT, chat_body(stream=True), delta("a") + ERROR, id="without-done"),
        pytest.param("/v1/responses", {"input": "a", "stream": True}, FAILED, id="responses"),
    ],
)
async def test_one_that_ends_with_the_workers_own_error_is_counted_as_that(
    path: str, body: object, end: bytes, pieces: int
) -> None:
    steps = [*sse_head(), chunk(end), Raw(b"0\r\n\r\n")]
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: in_one_piece(*steps) if pieces == 1 else steps
        assert (await gateway.post(path, body)).body == end
        name = "radixgate_requests_total"
        assert await gateway.counter(name, outcome="upstream_error") == 1
        assert await gateway.counter(name, outcome="ok") == 0

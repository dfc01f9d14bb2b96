"""G06, the gateway's part: what is known to be wrong is a 400 in both modes, asked of nobody."""

import gzip
import logging

import pytest

from raw_client import Answer, RawClient, ask, request
from scripted_worker import ScriptedWorker, json_answer
from small_gateway import CHAT, chat_body, small_gateway

BAD_CHATS = [
    pytest.param({"max_tokens": 0}, "max_tokens", id="max-tokens-0"),
    pytest.param({"max_tokens": -1}, "max_tokens", id="max-tokens-minus-1"),
    pytest.param({"temperature": -1}, "temperature", id="temperature-minus-1"),
    pytest.param({"top_p": 0}, "top_p", id="top-p-0"),
    pytest.param({"messages": []}, "messages", id="messages-empty"),
    pytest.param({"messages": "hi"}, "messages", id="messages-no-array"),
    pytest.param({"model": 5}, "model", id="model-no-string"),
]
BAD_BODIES = [
    pytest.param(b'{"model":"toy","messages":[', id="cut"),
    pytest.param(b"", id="empty"),
    pytest.param(b"[]", id="array"),
    pytest.param(b'"text"', id="string"),
    pytest.param(b"\xff\xfe", id="no-utf-8"),
    pytest.param(b'{"a":NaN}', id="nan"),
    pytest.param(b"[" * 100_000, id="deep"),
]


def check_shape(reply: Answer, status: int) -> dict[str, object]:
    assert reply.status == status
    assert reply.header("content-type") == "application/json"
    error: dict[str, object] = reply.json["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["message"]
    assert reply.header("x-request-id")
    assert reply.header("x-radixgate-policy") == "round_robin"
    return error


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("fields", "param"), BAD_CHATS)
async def test_g06_bad_values_are_refused_by_name(
    fields: dict[str, object], param: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        reply = await gateway.post(CHAT, {**chat_body(stream=stream), **fields})
        error = check_shape(reply, 400)
        assert (error["param"], error["type"]) == (param, "invalid_request_error")
        assert (await gateway.get("/health")).status == 200
        assert (await gateway.chat()).status == 200
        assert len(worker.requests) == 1
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("path", [CHAT, "/v1/completions", "/generate"])
@pytest.mark.parametrize("body", BAD_BODIES)
async def test_g06_a_broken_body_is_refused_without_a_traceback(
    path: str, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        error = check_shape(await gateway.post(path, body), 400)
        assert error["param"] == "body"
        assert not worker.requests
    assert not [record for record in caplog.records if record.exc_info]


async def test_an_unknown_model_is_a_404_with_the_list() -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        error = check_shape(await gateway.post(CHAT, chat_body(model="gpt")), 404)
        assert error["code"] == "model_not_found"
        assert "toy" in str(error["message"])
        assert not worker.requests


async def test_without_a_model_the_only_one_answers_and_of_two_one_must_be_named() -> None:
    body = {key: value for key, value in chat_body().items() if key != "model"}
    async with (
        ScriptedWorker() as worker,
        ScriptedWorker(model="other") as other,
        small_gateway([worker]) as gateway,
    ):
        assert (await gateway.post(CHAT, body)).status == 200
        gateway.gateway.workers.add(other.url)
        await gateway.ready(2)
        error = check_shape(await gateway.post(CHAT, body), 400)
        assert error["param"] == "model"
        assert (await gateway.post(CHAT, chat_body(model="other"))).status == 200
        assert len(other.requests) == 1


async def test_a_body_over_the_limit_is_a_413() -> None:
    async with (
        ScriptedWorker() as worker,
        small_gateway([worker], max_payload_size=1000) as gateway,
    ):
        reply = await gateway.chat("x" * 2000)
        assert (reply.status, reply.json["error"]["param"]) == (413, "body")
        assert not worker.requests


@pytest.mark.parametrize("stream", [False, True])
async def test_g06_a_refusal_of_the_worker_keeps_its_status_in_both_modes(stream: bool) -> None:
    refusal = {"error": {"message": "65 tokens are too many", "type": "x", "code": 400}}
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        worker.script = lambda request: json_answer(refusal, 400)
        reply = await gateway.chat(stream=stream)
        assert (reply.status, reply.json) == (400, refusal)
        assert len(worker.requests) == 1


async def test_no_worker_at_all_is_a_503_with_retry_after() -> None:
    async with small_gateway() as gateway:
        reply = await gateway.chat()
        check_shape(reply, 503)
        assert reply.header("retry-after") == "1"
        assert await gateway.counter("radixgate_requests_total", outcome="rejected") == 1


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("GET", "/nowhere", 404, id="unknown-path"),
        pytest.param("POST", "/v1/nowhere", 404, id="unknown-post"),
        pytest.param("GET", CHAT, 405, id="get-of-chat"),
        pytest.param("PUT", "/workers", 405, id="put-workers"),
    ],
)
async def test_errors_of_the_application_have_the_same_shape(
    method: str, path: str, status: int
) -> None:

    async with small_gateway() as gateway:
        reply = await ask(gateway.port, request(path, method=method))
        assert reply.status == status
        assert reply.json["error"].keys() == {"message", "type", "param", "code"}
        assert (reply.header("allow") is not None) is (status == 405)


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "deflate, br", "identity, gzip", "zstd"])
@pytest.mark.parametrize("path", [CHAT, "/generate", "/v1/embeddings", "/v1/responses"])
async def test_a_body_that_is_encoded_is_refused_by_that_and_reaches_no_worker(
    path: str, encoding: str
) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        body = gzip.compress(b'{"model":"toy","messages":[]}')
        async with RawClient(gateway.port) as client:
            refused = await client.ask(
                request(path, body, headers=(f"Content-Encoding: {encoding}",))
            )
            assert refused.status == 415
            assert refused.json["error"]["code"] == "unsupported_content_encoding"
            assert repr(encoding) in refused.json["error"]["message"]
            assert refused.header("accept-encoding") == "identity"
            assert worker.requests == []
            again = await client.ask(request(CHAT, chat_body()))
            assert again.status == 200, "its bytes were read: the connection goes on"


@pytest.mark.parametrize(
    "encoding",
    ["identity", " Identity ", "identity, Identity", "identity\r\nContent-Encoding: identity", ","],
)
async def test_a_body_that_is_said_to_be_as_it_is_goes_on(encoding: str) -> None:
    async with ScriptedWorker() as worker, small_gateway([worker]) as gateway:
        reply = await gateway.post(CHAT, chat_body(), f"Content-Encoding: {encoding}")
        assert reply.status == 200

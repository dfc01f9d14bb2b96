"""No answer of an aiohttp server names what it is made of."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from radixgate.proto.http_banner import Runner, without_versions
from radixgate.proto.http_errors import errors_as_json
from radixgate.proto.http_log import http_log
from raw_client import RawClient, request


async def _streamed(http: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(http)
    await answer.write_eof()
    return answer


@asynccontextmanager
async def served() -> AsyncIterator[RawClient]:
    app = web.Application(middlewares=[errors_as_json])
    app.on_response_prepare.append(without_versions)
    app.router.add_get("/stream", _streamed)
    runner = Runner(app, access_log=None, logger=http_log("test"))
    try:
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with RawClient(runner.addresses[0][1]) as client:
            yield client
    finally:
        await runner.cleanup()


async def test_whole_answers_streams_and_errors_say_nothing_of_the_server() -> None:
    async with served() as client:
        for path, status in (("/stream", 200), ("/nowhere", 404)):
            answer = await client.ask(request(path, method="GET"))
            assert (answer.status, answer.header("server")) == (status, None)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        pytest.param(b"GARBAGE\r\n\r\n", "Invalid method", id="no-http"),
        pytest.param(b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\n\r\n", "8190", id="long-target"),
        pytest.param(
            b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"a" * 9_000 + b"\r\n\r\n",
            "8190",
            id="long-field",
        ),
    ],
)
async def test_what_is_no_http_is_answered_as_any_wrong_request(sent: bytes, why: str) -> None:
    async with served() as client:
        answer = await client.ask(sent)
        assert (answer.status, answer.header("server")) == (400, "radixgate")
        error = json.loads(answer.body)["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", 400)
        assert error["message"].startswith("this is not a request: ")
        assert why in error["message"]

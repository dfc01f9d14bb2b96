"""A body that does not come is refused, and one that comes slowly but steadily is read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from radixgate.proto.http_errors import errors_as_json
from radixgate.worker.serving.request_body import BodyPace, read_body
from raw_client import RawClient, request
from until import PATIENCE_S

HASTY = BodyPace(piece_s=0.02, bytes_per_s=1e9)


@asynccontextmanager
async def served(pace: BodyPace, most_bytes: int = 100) -> AsyncIterator[int]:
    """The port of a server that answers with the body it was sent."""

    async def echo(http: web.Request) -> web.Response:
        return web.Response(body=await read_body(http, pace))

    app = web.Application(middlewares=[errors_as_json], client_max_size=most_bytes)
    app.router.add_post("/echo", echo)
    # What of a refused body still comes is waited for so long.
    runner = web.AppRunner(app, access_log=None, lingering_time=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest.mark.parametrize("body", [b"", b"x" * 100])
async def test_a_whole_body_is_read(body: bytes) -> None:
    async with served(HASTY) as port, RawClient(port) as client:
        answer = await client.ask(request("/echo", body))
        assert (answer.status, answer.body) == (200, body)


async def test_half_a_body_is_refused() -> None:
    async with served(HASTY) as port, RawClient(port) as client:
        client.send(request("/echo", b"half of it")[:-5])
        late = await client.answer()
        assert (late.status, late.json["error"]["code"]) == (408, "timeout")
        assert late.json["error"]["param"] == "body"


async def test_a_body_over_the_limit_is_refused() -> None:
    async with served(HASTY) as port, RawClient(port) as client:
        answer = await client.ask(request("/echo", b"x" * 101))
        assert (answer.status, answer.json["error"]["param"]) == (413, "body")


async def test_a_body_that_is_said_to_be_over_it_is_not_waited_for() -> None:
    async with served(BodyPace(piece_s=600.0)) as port, RawClient(port) as client:
        client.send(b"POST /echo HTTP/1.1\r\nHost: w\r\nContent-Length: 101\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            assert (await client.answer()).status == 413


@pytest.mark.parametrize(
    ("now_s", "size", "by_s"),
    [
        pytest.param(10.0, 0, 40.0, id="the-first-piece"),
        pytest.param(12.0, 5_000, 42.0, id="as-fast-as-it-must"),
        pytest.param(45.0, 1, 40.002, id="single-bytes-win-no-time"),
        pytest.param(60.0, 20_000, 80.0, id="behind-the-pace-but-not-by-30-s"),
    ],
)
def test_when_the_next_piece_must_be_there(now_s: float, size: int, by_s: float) -> None:
    assert BodyPace().next_by(10.0, now_s, size) == pytest.approx(by_s)

"""The client sends at once, reads until the end, and gives every failure its name."""

import asyncio

import pytest

from free_ports import free_port
from radixgate.clock import SystemClock
from radixgate.loadgen.client import StreamClient, headers_of
from timed_server import Script, TimedServer, sse
from virtual_time import in_virtual_time


def client(
    url: str, *, idle_timeout_s: float = 5.0, request_timeout_s: float | None = None
) -> StreamClient:
    return StreamClient(
        url,
        SystemClock(),
        headers={"x-own": "1"},
        idle_timeout_s=idle_timeout_s,
        request_timeout_s=request_timeout_s,
    )


async def test_bytes_are_kept_as_they_came_with_rising_stamps() -> None:
    script = Script(
        writes=((0.0, b"data: 1\n"), (0.02, b"\ndata: 2\n\n")),
        headers=(("x-radixgate-worker", "w7"),),
    )
    async with TimedServer(lambda _: script) as server, client(server.url) as http:
        seen = await http.exchange("/generate", b"{}")
    assert b"".join(piece for _, piece in seen.pieces) == b"data: 1\n\ndata: 2\n\n"
    stamps = [at_s for at_s, _ in seen.pieces]
    assert seen.t_first_byte_s is not None
    assert [seen.t_dispatch_s, seen.t_first_byte_s, *stamps, seen.t_end_s] == sorted(
        [seen.t_dispatch_s, seen.t_first_byte_s, *stamps, seen.t_end_s]
    )
    assert (seen.status, seen.content_type, seen.worker_id) == (200, "text/event-stream", "w7")
    assert seen.broken is None
    (asked,) = server.asked
    assert (asked.path, asked.raw_body, asked.headers["x-own"]) == ("/generate", b"{}", "1")
    assert asked.headers["accept-encoding"] == "identity"


async def test_a_connection_is_used_again() -> None:
    async with (
        TimedServer(lambda _: Script(((0.0, sse("[DONE]")),))) as server,
        client(server.url) as http,
    ):
        for _ in range(3):
            await http.exchange("/generate", b"{}")
    assert [asked.connection for asked in server.asked] == [1, 1, 1]


@pytest.mark.slow
async def test_nothing_caps_how_many_are_in_flight() -> None:
    async with (
        TimedServer(lambda _: Script(((0.5, b"x"),))) as server,
        client(server.url) as http,
    ):
        seen = await asyncio.gather(*(http.exchange("/", b"{}") for _ in range(150)))
    assert server.most_in_flight == 150
    assert all(one.broken is None for one in seen)


@pytest.mark.parametrize(
    ("script", "failure", "status"),
    [
        pytest.param(Script(((0.0, b"abc"),), end="cut"), "cut off", 200, id="reset"),
        pytest.param(Script(((0.0, b"abc"),), end="hang"), "timeout", 200, id="silence"),
        pytest.param(Script(((0.0, b"no"),), status=503), None, 503, id="an-error-status-is-none"),
        pytest.param(Script(((0.0, b"abc"),), end="close"), None, 200, id="end-by-closing"),
    ],
)
@in_virtual_time
async def test_how_an_exchange_ended(script: Script, failure: str | None, status: int) -> None:
    async with (
        TimedServer(lambda _: script) as server,
        client(server.url, idle_timeout_s=0.1) as http,
    ):
        seen = await http.exchange("/", b"{}")
    assert (seen.broken, seen.status) == (failure, status)
    assert b"".join(piece for _, piece in seen.pieces) == script.writes[0][1]


@in_virtual_time
async def test_the_whole_time_can_be_bounded() -> None:
    busy = Script(tuple((0.02 * n, b"x") for n in range(100)))
    async with (
        TimedServer(lambda _: busy) as server,
        client(server.url, request_timeout_s=0.1) as http,
    ):
        seen = await http.exchange("/", b"{}")
    assert seen.broken == "timeout"
    assert len(seen.pieces) >= 1


async def test_nobody_listening_is_connection_refused() -> None:
    async with client(f"http://127.0.0.1:{free_port()}") as http:
        seen = await http.exchange("/", b"{}")
    assert (seen.broken, seen.status) == ("connection refused", None)


async def test_a_server_that_hangs_up_without_a_word_is_disconnected() -> None:
    def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server, client(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as http:
        seen = await http.exchange("/", b"{}")
    assert seen.broken == "disconnected"


def test_headers_are_split_at_the_first_sign() -> None:
    assert headers_of(["Authorization=Bearer a=b", "X=1"]) == {
        "Authorization": "Bearer a=b",
        "X": "1",
    }

"""The stream to gRPC's own server: in the clear, over TLS, and how its calls end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import grpc
import pytest

from authority import Authority, Pair
from radixgate.gateway.processes.reserved_port import reserve
from radixgate.gateway.settings.tls_config import TlsConfig
from radixgate.gateway.upstream import grpc_endpoint
from radixgate.gateway.upstream.grpc_endings import CLOSED_BY_WORKER
from radixgate.gateway.upstream.grpc_endpoint import GrpcEndpoint
from radixgate.gateway.upstream.http2_silence import Pings
from radixgate.gateway.upstream.http2_stream import Http2Stream
from radixgate.gateway.workers.grpc_worker import _GRPC_AUTHORITIES
from radixgate.tls import pem, server_context
from until import PATIENCE_S, until

Context = grpc.aio.ServicerContext[bytes, bytes]
Serve = Callable[[AsyncIterator[bytes], Context], Awaitable[None]]
PATH = "/it/Attach"
OPTIONS = (
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    ("grpc.max_send_message_length", -1),
)


class OneMethod(grpc.GenericRpcHandler):
    def __init__(self, serve: Serve) -> None:
        self._serve = serve

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> "grpc.RpcMethodHandler[bytes, bytes] | None":
        if handler_call_details.method != PATH:
            return None
        return grpc.stream_stream_rpc_method_handler(self._serve)


async def echo(requests: AsyncIterator[bytes], context: Context) -> None:
    async for request in requests:
        if request == b"enough":
            return
        await context.write(request)


@asynccontextmanager
async def served(
    serve: Serve, own: Pair | None = None, client_ca: str | None = None
) -> AsyncIterator[int]:
    """The port of a server with one method."""
    server = grpc.aio.server(options=OPTIONS)
    server.add_generic_rpc_handlers((OneMethod(serve),))
    if own is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        pair = (pem(own.key), pem(own.cert))
        roots = None if client_ca is None else pem(client_ca)
        credentials = grpc.ssl_server_credentials([pair], roots, client_ca is not None)
        port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


@asynccontextmanager
async def attached(
    port: int, tls: TlsConfig | None = None, path: str = PATH
) -> AsyncIterator[tuple[Http2Stream, list[bytes], "asyncio.Task[str]"]]:
    context = None if tls is None else tls.for_grpc_workers().http2("/nowhere.pem")
    endpoint = GrpcEndpoint("127.0.0.1", port, f"127.0.0.1:{port}", context)
    messages: list[bytes] = []
    stream = Http2Stream(endpoint, path, messages.append, Pings())
    running = asyncio.create_task(stream.run())
    yield stream, messages, running
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_messages_go_there_and_come_back_and_the_end_is_told() -> None:
    sent = [b"", b"x", bytes(70_000), b"y" * 3_000_000, b"last"]
    async with served(echo) as port, attached(port) as (stream, messages, running):
        for message in sent:
            stream.send(message)
        await until(lambda: len(messages) == len(sent))
        assert messages == sent
        stream.send(b"enough")
        assert await running == CLOSED_BY_WORKER


@pytest.mark.slow
async def test_as_much_as_many_windows_hold_goes_both_ways_at_once() -> None:
    sent = [bytes([number]) * 1_000_000 for number in range(40)]
    async with served(echo) as port, attached(port) as (stream, messages, _):
        for message in sent:
            stream.send(message)
        await until(lambda: len(messages) == len(sent), within_s=30)
        assert messages == sent


async def abort(requests: AsyncIterator[bytes], context: Context) -> None:
    await anext(requests)
    await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "contract 2: update ü")


async def fail(requests: AsyncIterator[bytes], context: Context) -> None:
    raise ValueError("a fault")


async def test_a_call_that_fails_says_what_the_worker_says() -> None:
    async with served(abort) as port, attached(port) as (stream, _, running):
        stream.send(b"hello")
        assert await running == "contract 2: update ü"
    async with served(fail) as port, attached(port) as (_, _, running):
        assert "a fault" in await running
    async with served(echo) as port, attached(port, path="/it/Unknown") as (_, _, running):
        assert "ethod not found" in await running


async def test_the_worker_sees_when_it_is_left() -> None:
    began, left = asyncio.Event(), asyncio.Event()

    async def wait(requests: AsyncIterator[bytes], context: Context) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()

    async with served(wait) as port, attached(port) as (_, _, running):
        async with asyncio.timeout(PATIENCE_S):
            await began.wait()
            running.cancel()
            await left.wait()


@pytest.mark.slow
async def test_a_server_that_stops_lets_the_stream_go_on_for_its_grace() -> None:
    async def last_words(requests: AsyncIterator[bytes], context: Context) -> None:
        await context.write(b"first")
        async for request in requests:
            await context.write(request)

    server = grpc.aio.server()
    server.add_generic_rpc_handlers((OneMethod(last_words),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with attached(port) as (stream, messages, running):
        await until(lambda: messages == [b"first"])
        stopping = asyncio.create_task(server.stop(3.0))
        for number in range(5):
            stream.send(b"%d" % number)
        await until(lambda: messages[-1] == b"4")
        assert not running.done()
        assert await running
    await stopping


async def test_where_nobody_listens_it_says_so() -> None:
    with reserve("127.0.0.1", 0) as silent:
        async with attached(silent.getsockname()[1]) as (_, _, running):
            assert "refused" in await running


async def test_who_takes_the_connection_and_says_nothing_of_tls_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_endpoint, "CONNECT_S", 0.05)

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read()
        writer.close()

    silent = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    tls = TlsConfig(ca_cert_paths=(Authority(tmp_path).file,))
    async with silent, attached(port, tls) as (_, _, running):
        assert await running == "no connection within 0.05 s"


# ------------------------------------------------------------ TLS


def test_without_authorities_those_of_grpc_are_believed() -> None:
    assert _GRPC_AUTHORITIES.exists()
    certificates = TlsConfig().for_grpc_workers()
    context = certificates.http2(str(_GRPC_AUTHORITIES))
    assert len(context.get_ca_certs()) > 50
    assert certificates.http2(str(_GRPC_AUTHORITIES)) is context


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("theirs"), "theirs")


async def test_over_mutual_tls_both_are_believed(ours: Authority) -> None:
    me = ours.pair("gateway")
    tls = TlsConfig(ca_cert_paths=(ours.file,), client_cert_path=me.cert, client_key_path=me.key)
    async with (
        served(echo, ours.pair(), ours.file) as port,
        attached(port, tls) as (stream, messages, _),
    ):
        stream.send(b"x" * 200_000)
        await until(lambda: messages == [b"x" * 200_000])


async def test_a_worker_of_another_authority_is_not_believed(
    ours: Authority, theirs: Authority
) -> None:
    tls = TlsConfig(ca_cert_paths=(theirs.file,))
    async with served(echo, ours.pair()) as port, attached(port, tls) as (_, messages, running):
        assert "certificate verify failed" in await running
        assert not messages


async def test_without_our_certificate_a_worker_that_asks_for_one_lets_nobody_in(
    ours: Authority,
) -> None:
    tls = TlsConfig(ca_cert_paths=(ours.file,))
    async with (
        served(echo, ours.pair(), ours.file) as port,
        attached(port, tls) as (stream, messages, running),
    ):
        stream.send(b"hello")
        assert await running
        assert not messages


async def test_who_speaks_tls_but_not_http2_is_left(ours: Authority) -> None:
    own = ours.pair()
    secure = server_context(own.cert, own.key, None)
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read())
        writer.close()

    web = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=secure)
    port = cast(int, web.sockets[0].getsockname()[1])
    async with web, attached(port, TlsConfig(ca_cert_paths=(ours.file,))) as (_, _, running):
        assert await running == "what listens there does not speak HTTP/2"
        await until(lambda: heard == [b""])

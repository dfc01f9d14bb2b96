"""A name with several addresses: one where nobody answers does not keep us from the others."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest
import uvloop

from attached_worker import settle
from radixgate.gateway.upstream import dial as dialing
from radixgate.gateway.upstream.dial import Address, dial, first_connected
from radixgate.gateway.upstream.grpc_endpoint import GrpcEndpoint

HOLE, GOOD, CLOSED = "127.0.0.2", "127.0.0.1", "127.0.0.3"


@contextmanager
def listening(where: str, port: int = 0, backlog: int = 8) -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.bind((where, port))
        listener.listen(backlog)
        yield listener


@contextmanager
def a_port() -> Iterator[int]:
    """Open at GOOD; at HOLE what comes in is dropped, as nobody takes what waits there."""
    with ExitStack() as stack:
        port = stack.enter_context(listening(GOOD)).getsockname()[1]
        stack.enter_context(listening(HOLE, port, backlog=0))
        stack.enter_context(socket.create_connection((HOLE, port)))
        yield port


@pytest.mark.parametrize("host", ["a..b", "a" * 64])
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_what_is_no_name_is_an_error_as_any_that_nobody_knows(
    run: Callable[[Awaitable[object]], object], host: str
) -> None:
    with pytest.raises(OSError, match=f"'{host}' is no name of a host: "):
        run(dial(asyncio.Protocol, host, 1, None))


Resolve = Callable[..., Awaitable[list[tuple[object, ...]]]]


def resolver(*addresses: str) -> Resolve:
    async def resolve(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        found = addresses if host == "worker.example" else (host,)  # a loop asks for numbers too
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in found]

    return resolve


@pytest.fixture(autouse=True)
def short_head_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialing, "HEAD_START_S", 0.01)


@pytest.mark.parametrize("addresses", [(HOLE, GOOD), (CLOSED, GOOD), (CLOSED, HOLE, GOOD), (GOOD,)])
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_whoever_answers_is_connected(
    run: Callable[[Awaitable[str]], str], addresses: tuple[str, ...]
) -> None:
    class Told(asyncio.Protocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

    async def peer(port: int) -> str:
        told = Told()
        asyncio.get_running_loop().getaddrinfo = resolver(*addresses)  # type: ignore[assignment,method-assign]
        await GrpcEndpoint("worker.example", port, "worker", None).connect(told)
        sock = told.transport.get_extra_info("socket")
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        where: str = told.transport.get_extra_info("peername")[0]
        told.transport.close()
        await settle()
        return where

    with a_port() as port:
        assert run(peer(port)) == GOOD


async def test_with_nobody_there_each_address_has_its_say() -> None:
    asyncio.get_running_loop().getaddrinfo = resolver(HOLE, CLOSED)  # type: ignore[assignment,method-assign]
    with listening(GOOD) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(OSError, match=r"127\.0\.0\.2.*; .*127\.0\.0\.3"):
            await dial(asyncio.Protocol, "worker.example", port, None)


async def test_who_comes_second_is_closed() -> None:
    both, made = asyncio.Event(), list[socket.socket]()

    async def connect(address: Address) -> socket.socket:
        if address.where == ("second",):
            both.set()
        await both.wait()
        made.append(socket.socket())
        return made[-1]

    taken = await first_connected([Address(2, ("first",)), Address(2, ("second",))], connect)
    await settle()
    assert [one for one in made if one.fileno() >= 0] == [taken]
    taken.close()

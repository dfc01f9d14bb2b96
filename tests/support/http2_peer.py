"""The other end of an `Http2Stream`, in the same process: it speaks HTTP/2, well or badly."""

import asyncio
import struct
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection

from attached_worker import settle
from radixgate.gateway.upstream.grpc_endpoint import GrpcEndpoint
from radixgate.gateway.upstream.grpc_messages import framed
from radixgate.gateway.upstream.http2_silence import Pings
from radixgate.gateway.upstream.http2_stream import Http2Stream
from until import PATIENCE_S

STREAM = 1
HEAD = ((":status", "200"), ("content-type", "application/grpc"))


def data(payload: bytes, *, ends: bool = False, padding: int = 0, stream: int = STREAM) -> bytes:
    """A frame of DATA."""
    body = bytes([padding]) + payload + bytes(padding) if padding else payload
    return frame(0, (0x1 if ends else 0) | (0x8 if padding else 0), stream, body)


def goodbye(last: int, code: int, said: bytes = b"") -> bytes:
    """A frame of GOAWAY."""
    return frame(7, 0, 0, struct.pack(">II", last, code) + said)


def frame(kind: int, flags: int, stream: int, body: bytes) -> bytes:
    return len(body).to_bytes(3, "big") + struct.pack(">BBI", kind, flags, stream) + body


class Http2Peer(asyncio.Transport):
    """What `Http2Stream` takes for its connection. It answers nothing by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        self.protocol: asyncio.Protocol | None = None
        self.heard: list[events.Event] = []
        self.closed = self.aborted = False
        self.buffered = 0  # bytes that the socket has not taken

    # ------------------------------------------------------------ what is said

    def deliver(self, raw: bytes) -> None:
        assert self.protocol is not None
        self.protocol.data_received(raw)

    def settle(self) -> None:
        """The settings it speaks by."""
        self.h2.initiate_connection()
        self.say()

    def say(self) -> None:
        """Whatever `h2` has to say."""
        self.deliver(self.h2.data_to_send())

    def answer(self, *more: tuple[str, str], end: bool = False) -> None:
        """The head of an answer."""
        self.h2.send_headers(STREAM, (*HEAD, *more), end_stream=end)
        self.say()

    def end(self, *trailers: tuple[str, str]) -> None:
        self.h2.send_headers(STREAM, trailers, end_stream=True)
        self.say()

    # ------------------------------------------------------------ what is heard

    @property
    def commands(self) -> bytes:
        """All that came as data."""
        return b"".join(one.data for one in self.heard if isinstance(one, events.DataReceived))

    def count(self, kind: type[events.Event]) -> int:
        return sum(isinstance(one, kind) for one in self.heard)

    # ------------------------------------------------------------ as a transport

    def write(self, raw: bytes | bytearray | memoryview) -> None:
        assert not self.closed
        self.heard += self.h2.receive_data(raw)

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


@dataclass(frozen=True)
class InnerEndpoint(GrpcEndpoint):
    """Connects to a peer without a socket."""

    peer: Http2Peer

    async def connect(self, protocol: asyncio.Protocol) -> None:
        self.peer.protocol = protocol
        protocol.connection_made(self.peer)


@dataclass
class Opened:
    """A stream, its peer, what it has handed on, and how it ends."""

    stream: Http2Stream
    peer: Http2Peer
    messages: list[bytes]
    ending: "asyncio.Task[str]"
    pings: Pings

    @property
    def alive(self) -> bool:
        return not self.ending.done() and not self.peer.closed

    async def why(self) -> str:
        async with asyncio.timeout(PATIENCE_S):
            return await self.ending


@asynccontextmanager
async def opened(
    settled: bool = True,
    answered: bool = True,
    say_first: Iterable[bytes] = (),
    pings: Pings | None = None,
) -> AsyncIterator[Opened]:
    """`settled`: the peer has sent its settings; `answered`: and the head of its answer."""
    peer, pings = Http2Peer(), pings or Pings()
    messages: list[bytes] = []
    endpoint = InnerEndpoint("worker", 1, "worker:1", None, peer)
    stream = Http2Stream(endpoint, "/it/Attach", messages.append, pings)
    for message in say_first:
        stream.send(message)
    ending = asyncio.create_task(stream.run())
    await settle()
    if settled:
        peer.settle()
    if settled and answered:
        peer.answer()
    yield Opened(stream, peer, messages, ending, pings)
    ending.cancel()
    await asyncio.gather(ending, return_exceptions=True)


def messages_of(raw: bytes) -> list[bytes]:
    """What was framed, one after the other."""
    found = []
    while raw:
        length = int.from_bytes(raw[1:5], "big")
        found.append(raw[5 : 5 + length])
        assert framed(found[-1]) == raw[: 5 + length]
        raw = raw[5 + length :]
    return found

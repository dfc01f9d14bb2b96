"""Messages over a Unix socket: each as its length in four bytes, then msgpack."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar, cast

import msgspec

from radixgate.gateway.processes.messages import ToChild, ToParent

# A longer message than this is none of ours. A reader that is so far behind is as good as dead.
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
MAX_UNSENT_BYTES = 64 * 1024 * 1024
# With more than this waiting, news are kept back, where they are bounded.
_HIGH_BYTES = 1024 * 1024
_LENGTH_BYTES = 4

Received = TypeVar("Received")


class Channel(asyncio.Protocol, Generic[Received]):
    """One end. Messages of the other end come in order, on the loop."""

    def __init__(
        self,
        decoder: "msgspec.msgpack.Decoder[Received]",
        on_message: Callable[["Channel[Received]", Received], None],
        on_lost: Callable[["Channel[Received]"], None],
    ) -> None:
        self._decoder = decoder
        self._encoder = msgspec.msgpack.Encoder()
        self._on_message = on_message
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self.flows = True  # the other end reads as fast as we write
        self.on_flow: Callable[[], None] = lambda: None

    def send(self, message: ToChild | ToParent) -> None:
        """Into nothing if the channel is lost."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            transport.abort()
            return
        content = self._encoder.encode(message)
        transport.write(len(content).to_bytes(_LENGTH_BYTES, "big") + content)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # ------------------------------------------------------------ from the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=_HIGH_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._on_lost(self)

    def pause_writing(self) -> None:
        self.flows = False

    def resume_writing(self) -> None:
        self.flows = True
        self.on_flow()

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        at = 0
        while len(buffer) - at >= _LENGTH_BYTES:
            start = at + _LENGTH_BYTES
            end = start + int.from_bytes(buffer[at:start], "big")
            if end - start > MAX_MESSAGE_BYTES:
                raise ValueError(f"a message of {end - start} bytes")
            if len(buffer) < end:
                break
            self._on_message(self, self._decoder.decode(memoryview(buffer)[start:end].tobytes()))
            at = end
        del buffer[:at]


def child_end(
    on_message: Callable[[Channel[ToChild], ToChild], None],
    on_lost: Callable[[Channel[ToChild]], None],
) -> Channel[ToChild]:
    return Channel(msgspec.msgpack.Decoder(ToChild), on_message, on_lost)


def parent_end(
    on_message: Callable[[Channel[ToParent], ToParent], None],
    on_lost: Callable[[Channel[ToParent]], None],
) -> Channel[ToParent]:
    return Channel(msgspec.msgpack.Decoder(ToParent), on_message, on_lost)

"""One gRPC call whose messages go both ways, or back only, alone on a connection of HTTP/2.

All of HTTP/2 is h2's work, but for four kinds of frames. DATA, which comes with every step of a
worker, and with WINDOW_UPDATE and PING for a request: h2 takes as long for one as a dozen rows do.
And GOAWAY, after which h2 takes nothing more, though a worker that says goodbye ends what it has.
"""

import asyncio
import struct
from collections.abc import Callable
from typing import cast

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from radixgate.gateway.upstream import grpc_endings
from radixgate.gateway.upstream.grpc_endpoint import GrpcEndpoint, NotConnected
from radixgate.gateway.upstream.grpc_messages import BrokenStream, MessageReader, framed
from radixgate.gateway.upstream.http2_room import Room, Window
from radixgate.gateway.upstream.http2_silence import Pings, Silence
from radixgate.tls import HTTP2

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
# Bytes of messages that a worker may have on their way to us. They are taken as they come, so it is
# no brake (each request's credit is one), only the most that a full socket holds.
WINDOW_BYTES = 1024 * 1024
# Handed to the socket and not taken by it yet: beyond, messages wait here.
WRITE_HIGH_BYTES = 256 * 1024
MAX_SENT_FRAME_BYTES = 65_536
# Answers to a worker that keeps asking and does not read them.
MAX_REPLIES_BYTES = 1024 * 1024
CLOSE_S = 1.0  # to take our goodbye

_NOT_HTTP2 = "what listens there does not speak HTTP/2"
_STREAM = 1
_HEAD = struct.Struct(">HBBBI")  # of a frame: length in 24 bits, type, flags, stream
_STREAM_BITS = 0x7FFF_FFFF
_MAX_FRAME_BYTES = 16_384  # HTTP/2's own default: we allow no more
_DATA, _HEADERS, _PUSH_PROMISE, _PING, _GOAWAY, _WINDOW = 0, 1, 5, 6, 7, 8
_END_STREAM, _PADDED = 0x1, 0x8
_PONG = _HEAD.pack(0, 8, _PING, 1, 0)
_SETTINGS = {
    SettingCodes.ENABLE_PUSH: 0,
    SettingCodes.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
    SettingCodes.MAX_FRAME_SIZE: _MAX_FRAME_BYTES,
    SettingCodes.MAX_HEADER_LIST_SIZE: 16_384,
}


class Http2Stream(asyncio.Protocol):
    """`run` it; what is sent before it is connected waits. Ends once, and is not used again."""

    def __init__(
        self, endpoint: GrpcEndpoint, path: str, on_message: Callable[[bytes], None], pings: Pings
    ) -> None:
        """`on_message` gets each message that comes; it may raise BrokenStream, which ends it."""
        self._endpoint, self._path, self._pings = endpoint, path, pings
        self._messages = MessageReader(on_message, MAX_MESSAGE_BYTES)
        self._loop = asyncio.get_running_loop()
        self._silence = Silence(pings, self._ping, self._end)
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding=None))
        self._room = Room(self._h2, _STREAM)
        self._transport: asyncio.Transport | None = None  # None: not connected yet, or lost
        self._partial = b""  # of a frame
        self._greeted = False  # the worker's settings have come
        self._flows = False  # the answer's head has come, and no other block of headers has begun
        self._window = Window(WINDOW_BYTES, _STREAM)
        self._status: str | None = None  # what its trailers say
        self._unsent = bytearray()  # messages, framed
        self._says_all = False  # nothing will be sent behind it
        self._flushing = False  # the loop will call `_flush`
        self._paused = False  # the socket is full

    @property
    def unsent_bytes(self) -> int:
        """Of messages that wait for the worker to take others."""
        return len(self._unsent)

    def send(self, message: bytes) -> None:
        """Goes at the end of this turn of the loop, with what else is sent in it."""
        self._unsent += framed(message)
        if self._transport is not None:
            self._flush_soon()

    def send_last(self, message: bytes) -> None:
        """As `send`; nothing is sent behind it, and the worker is told so."""
        self._says_all = True
        self.send(message)

    def close(self, why: str) -> None:
        """Have `run` return this; `on_message` may call it, and gets what came with it."""
        self._end(why)

    async def run(self) -> str:
        """Connect, and stay until it ends; why it did. Cancelled: it is closed."""
        try:
            await self._endpoint.connect(self)
            return await self._ended
        except NotConnected as exc:
            return str(exc)
        finally:
            self._end("closed by the gateway")

    # ------------------------------------------------------------ from the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_BYTES)
        if self._ended.done():
            self._transport.abort()
            return
        tls = transport.get_extra_info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() != HTTP2:
            self._end(_NOT_HTTP2, None)
            return
        self._silence.await_first_word()
        self._ask()
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._end(f"the connection was lost: {exc}" if exc else "the worker closed the connection")

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._flush()

    def data_received(self, data: bytes) -> None:
        self._silence.heard_at = self._loop.time()
        if self._partial:
            data = self._partial + data
        at, size, pongs = 0, len(data), list[bytes]()
        try:
            if self._flows and self._messages.is_alone(data, _STREAM):
                at = size
                self._window.take(size - _HEAD.size, self._write)
                self._messages.take_alone(data)
            while size - at >= _HEAD.size and not self._ended.done():
                high, low, kind, flags, stream = _HEAD.unpack_from(data, at)
                length, begin = high << 8 | low, at + _HEAD.size
                end = begin + length
                if length > _MAX_FRAME_BYTES:
                    if not self._greeted:  # text, or an alert of TLS, read as the head of a frame
                        raise BrokenStream(_NOT_HTTP2)
                    raise BrokenStream(f"a frame of {length} bytes, over {_MAX_FRAME_BYTES}")
                if end > size:
                    break
                if self._flows and kind == _DATA and stream & _STREAM_BITS == _STREAM:
                    self._take_data(data, begin, end, flags)
                elif kind == _GOAWAY:
                    self._take_goodbye(data[begin:end])
                elif kind == _WINDOW and self._flows and self._room.grow(stream, data[begin:end]):
                    self._flush()
                elif kind == _PING and self._flows and (length, flags, stream) == (8, 0, 0):
                    pongs.append(_PONG + data[begin:end])
                else:
                    self._take_other(data[at:end], kind)
                at = end
            if pongs:  # last: a worker's ping comes with the first word of its answer
                self._write(b"".join(pongs))
        except ProtocolError as exc:  # h2 has a goodbye ready
            self._end(f"what came is not HTTP/2: {exc}", None)
        except BrokenStream as exc:
            self._end(str(exc), ErrorCodes.PROTOCOL_ERROR)
        self._partial = data[at:]

    # ------------------------------------------------------------ frames

    def _ask(self) -> None:
        h2, endpoint = self._h2, self._endpoint
        h2.local_settings = Settings(client=True, initial_values=_SETTINGS)
        h2.initiate_connection()
        h2.increment_flow_control_window(WINDOW_BYTES - h2.inbound_flow_control_window)
        h2.send_headers(
            _STREAM,
            (
                (":method", "POST"),
                (":scheme", endpoint.scheme),
                (":path", self._path),
                (":authority", endpoint.authority),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                ("user-agent", "radixgate"),
            ),
        )
        self._write(h2.data_to_send())

    def _take_data(self, data: bytes, at: int, end: int, flags: int) -> None:
        self._window.take(end - at, self._write)
        if flags & _PADDED:
            if at == end or at + 1 + data[at] > end:
                raise BrokenStream("a frame of data with more padding than it is long")
            at, end = at + 1, end - data[at]
        self._messages.feed(data, at, end)
        if flags & _END_STREAM:
            self._end("the stream ended without a status")

    def _take_goodbye(self, body: bytes) -> None:
        goodbye = grpc_endings.Goodbye.read(body)
        if goodbye.finds_pings_too_many:
            self._pings.be_rarer()
        if not goodbye.leaves(_STREAM):
            self._end(goodbye.why)

    def _take_other(self, frame: bytes, kind: int) -> None:
        if kind in (_HEADERS, _PUSH_PROMISE):
            self._flows = False  # until the block is whole, no other frame may come
        for event in self._h2.receive_data(frame):
            self._on_event(event)
        self._write(self._h2.data_to_send())
        self._flush()  # a window may have grown

    def _on_event(self, event: events.Event) -> None:
        match event:
            case events.ResponseReceived():
                wrong = grpc_endings.wrong_head(event.headers)
                if wrong is not None:
                    raise BrokenStream(wrong)
                self._flows = True
                self._status = grpc_endings.status_in(event.headers)
            case events.TrailersReceived():
                self._status = grpc_endings.status_in(event.headers)
            case events.StreamEnded():
                cut = None if self._messages.between else "the stream ended within a message"
                self._end(cut or self._status or "the stream ended without a status")
            case events.StreamReset():
                self._end(grpc_endings.reset(event.error_code))
            case events.RemoteSettingsChanged():
                self._greeted = True
                self._silence.watch()
            case events.DataReceived():
                raise BrokenStream("data before the head of an answer")

    # ------------------------------------------------------------ out

    def _flush(self) -> None:
        """Send as much as the worker's windows and the socket take."""
        self._flushing = False
        unsent, transport = self._unsent, self._transport
        while unsent and not self._paused and transport is not None and not transport.is_closing():
            if transport.get_write_buffer_size() > WRITE_HIGH_BYTES:
                # uvloop gives nothing to the socket, and does not pause us, before the turn ends.
                self._flush_soon()
                return
            room = min(self._room.left(), MAX_SENT_FRAME_BYTES)
            if room <= 0:
                return
            data = bytes(memoryview(unsent)[:room])
            del unsent[:room]
            self._write(self._room.frame(data, ends=self._says_all and not unsent))

    def _flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _write(self, data: bytes) -> None:
        transport = self._transport
        if not data or transport is None or transport.is_closing():
            return
        transport.write(data)
        if self._paused and transport.get_write_buffer_size() > MAX_REPLIES_BYTES:
            self._end("the worker keeps asking and does not read the answers")

    # ------------------------------------------------------------ the end

    def _ping(self) -> None:
        self._h2.ping(bytes(8))
        self._write(self._h2.data_to_send())

    def _end(self, why: str, code: ErrorCodes | None = ErrorCodes.NO_ERROR) -> None:
        """Once, however often it is called. `code`: for our goodbye; None: it is written."""
        if not self._ended.done():
            self._ended.set_result(why)
        self._flows = False
        self._silence.stop()
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._paused:
            transport.abort()  # it would not read it
            return
        if code is not None:
            self._h2.close_connection(code)
        transport.write(self._h2.data_to_send())
        transport.close()
        self._loop.call_later(CLOSE_S, transport.abort)

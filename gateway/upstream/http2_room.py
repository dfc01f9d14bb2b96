"""How much a worker lets us send by HTTP/2, with frames of data within it, and we let it.

Its windows are h2's own, as its settings move them. But what comes for each message that is sent
(a frame of data out, two updates of windows in) is not h2's work: it took ten times as long.
"""

import struct
from collections.abc import Callable

from h2.connection import H2Connection

from radixgate.gateway.upstream.grpc_messages import BrokenStream

_DATA_HEAD = struct.Struct(">HBBBI")  # length in 24 bits, type, flags, stream
_INCREMENT = struct.Struct(">I")
_UPDATE = struct.Struct(">HBBBII")  # of a window: such a head, and the increment
_MOST_BYTES = 0x7FFF_FFFF  # of a window
_STREAM_BITS = 0x7FFF_FFFF


class Room:
    """What is left of the windows of a connection and its only stream, which is open."""

    def __init__(self, h2: H2Connection, stream: int) -> None:
        self._h2 = h2
        self._stream = stream

    def left(self) -> int:
        """Bytes that may be sent in one frame; may be negative."""
        h2 = self._h2
        return min(h2.local_flow_control_window(self._stream), h2.max_outbound_frame_size)

    def frame(self, data: bytes, *, ends: bool) -> bytes:
        """A frame of them, which are no more than are left. `ends`: nothing is sent behind it."""
        h2, size = self._h2, len(data)
        h2.outbound_flow_control_window -= size
        h2.streams[self._stream].outbound_flow_control_window -= size
        return _DATA_HEAD.pack(size >> 8, size & 0xFF, 0, ends, self._stream) + data

    def grow(self, stream: int, update: bytes) -> bool:
        """By the body of an update of a window, of the stream or (0) of the connection. False: it
        is none as they should be, and h2's to judge."""
        stream &= _STREAM_BITS
        of = self._h2 if stream == 0 else self._h2.streams.get(stream)
        if of is None or len(update) != _INCREMENT.size:
            return False
        more = _INCREMENT.unpack(update)[0] & _MOST_BYTES
        if not 0 < more <= _MOST_BYTES - of.outbound_flow_control_window:
            return False
        of.outbound_flow_control_window += more
        return True


class Window:
    """What a worker may still send us, on the connection and on its only stream alike."""

    def __init__(self, size: int, stream: int) -> None:
        self.left = self._size = size
        self._stream = stream

    def take(self, size: int, write: Callable[[bytes], None]) -> None:
        """So many bytes have come; writes updates of both windows once half of them is used.

        Raises BrokenStream if it is more than was left.
        """
        self.left -= size
        if self.left < 0:
            raise BrokenStream("more was sent than the window allows")
        if self.left < self._size // 2:
            more, self.left = self._size - self.left, self._size
            write(_UPDATE.pack(0, 4, 8, 0, 0, more) + _UPDATE.pack(0, 4, 8, 0, self._stream, more))

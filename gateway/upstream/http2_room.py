"""How much a worker lets us send by HTTP/2, and frames of data within it.

The windows are h2's own, as its settings move them. But what comes for each message that is sent
(a frame of data out, two updates of windows in) is not h2's work: it took ten times as long.
"""

import struct

from h2.connection import H2Connection

_DATA_HEAD = struct.Struct(">HBBBI")  # length in 24 bits, type, flags, stream
_INCREMENT = struct.Struct(">I")
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

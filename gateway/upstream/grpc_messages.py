"""gRPC's messages in the bytes of a stream: five bytes before each, cut anywhere."""

import struct
from collections.abc import Callable

_PREFIX = struct.Struct(">BI")  # compressed or not, length
_ALONE = struct.Struct(">HBBBIBI")  # the head of a frame of HTTP/2, then that
_MOST_ALONE = 16_384  # of a frame, the least that HTTP/2 lets its limit be


class BrokenStream(Exception):
    """What came over a stream cannot be gone on from; its text says why."""


def framed(message: bytes) -> bytes:
    """The message as it goes into a stream."""
    return _PREFIX.pack(0, len(message)) + message


class MessageReader:
    """Hands on each message once it is whole. Keeps at most one, and its own bytes only."""

    def __init__(self, on_message: Callable[[bytes], None], max_bytes: int) -> None:
        """`max_bytes`: of one message."""
        self._on_message = on_message
        self._max_bytes = max_bytes
        self._most_alone = min(max_bytes, _MOST_ALONE - _PREFIX.size)
        self._begun = bytearray()  # of a message, its prefix included
        self._wanted = 0  # bytes that have to be there before it is looked at again

    @property
    def between(self) -> bool:
        """No message has begun."""
        return not self._begun

    def is_alone(self, data: bytes, stream: int) -> bool:
        """These bytes are one frame of data, without flags, and that is one whole message: of a
        worker's steps nearly each is, and reads in a third of the time by `take_alone`."""
        size = len(data) - _ALONE.size
        if self._begun or not 0 <= size <= self._most_alone:
            return False
        high, low, kind, flags, of, compressed, length = _ALONE.unpack_from(data)
        if kind or flags or compressed or of != stream:
            return False
        frame: int = high << 8 | low
        return length == size and frame == size + _PREFIX.size

    def take_alone(self, data: bytes) -> None:
        """Of which `is_alone` was true. Raises BrokenStream."""
        self._on_message(data[_ALONE.size :])

    def feed(self, data: bytes, at: int, end: int) -> None:
        """Take `data[at:end]`; O(bytes), however they are cut. Raises BrokenStream."""
        begun = self._begun
        if begun:
            begun += memoryview(data)[at:end]
            if len(begun) < self._wanted:
                return
            data, at, end = bytes(begun), 0, len(begun)
            begun.clear()
        while end - at >= _PREFIX.size:
            compressed, length = _PREFIX.unpack_from(data, at)
            if compressed:
                raise BrokenStream("a compressed message, which was not asked for")
            if length > self._max_bytes:
                raise BrokenStream(f"a message of {length} bytes, over {self._max_bytes}")
            whole = at + _PREFIX.size + length
            if whole > end:
                self._wanted = whole - at
                break
            self._on_message(data[at + _PREFIX.size : whole])
            at = whole
        else:
            self._wanted = _PREFIX.size
        if at < end:
            begun += memoryview(data)[at:end]

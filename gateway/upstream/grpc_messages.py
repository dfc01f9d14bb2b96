"""gRPC's messages in the bytes of a stream: five bytes before each, cut anywhere."""

import struct
from collections.abc import Callable

_PREFIX = struct.Struct(">BI")  # compressed or not, length


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
        self._begun = bytearray()  # of a message, its prefix included
        self._wanted = 0  # bytes that have to be there before it is looked at again

    @property
    def between(self) -> bool:
        """No message has begun."""
        return not self._begun

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

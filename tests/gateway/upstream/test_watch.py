"""A call that is asked once: its messages are taken until one was enough, or the line ends."""

import asyncio
from collections.abc import Callable

import pytest
from google.protobuf.message import DecodeError

from radixgate.errors import WorkerFailed
from radixgate.gateway.upstream.grpc_messages import BrokenStream
from radixgate.gateway.upstream.watch import Watch


class ScriptedLine:
    """Brings these messages, whether it has been closed or not, and ends."""

    def __init__(self, on_message: Callable[[bytes], None], messages: list[bytes]) -> None:
        self._on_message = on_message
        self._messages = messages
        self.why = "they were all"
        self.sent: list[bytes] = []

    def send_last(self, message: bytes) -> None:
        self.sent.append(message)

    def close(self, why: str) -> None:
        self.why = why

    async def run(self) -> str:
        for message in self._messages:
            self._on_message(message)
        return self.why


def watch(take: Callable[[bytes], bool], *messages: bytes) -> tuple[Watch, list[ScriptedLine]]:
    lines: list[ScriptedLine] = []

    def dial(on_message: Callable[[bytes], None]) -> ScriptedLine:
        lines.append(ScriptedLine(on_message, list(messages)))
        return lines[-1]

    return Watch(dial, take), lines


async def test_it_asks_and_takes_all_that_comes() -> None:
    taken: list[bytes] = []

    def take(message: bytes) -> bool:
        taken.append(message)
        return False

    one, (line,) = watch(take, b"a", b"b")
    assert await one.run(b"from 7") == "they were all"
    assert (line.sent, taken) == ([b"from 7"], [b"a", b"b"])


async def test_nothing_is_taken_behind_what_was_enough() -> None:
    taken: list[bytes] = []

    def take(message: bytes) -> bool:
        taken.append(message)
        return message == b"b"

    one, _ = watch(take, b"a", b"b", b"c")
    assert await one.run(b"") == "it was enough"
    assert taken == [b"a", b"b"]


async def test_who_takes_and_raises_is_heard_once() -> None:
    def take(message: bytes) -> bool:
        raise WorkerFailed(f"about {message.decode()}")

    one, (line,) = watch(take, b"a", b"b")
    with pytest.raises(WorkerFailed, match="about a"):
        await one.run(b"")
    assert line.why == "what came could not be taken"


def test_what_is_no_such_message_breaks_the_line() -> None:
    def take(message: bytes) -> bool:
        raise DecodeError("cut short")

    one, _ = watch(take, b"a")
    with pytest.raises(BrokenStream, match="a message that is none of this call: cut short"):
        asyncio.run(one.run(b""))

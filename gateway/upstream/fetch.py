"""Small questions and orders to a foreign worker: one request, its whole answer."""

import asyncio
from dataclasses import dataclass

import msgspec

from radixgate.errors import RadixgateError, WorkerFailed
from radixgate.gateway.attempt.attempt import Headers
from radixgate.gateway.upstream.connection import UpstreamConnection
from radixgate.gateway.upstream.pool import UpstreamPool

# A worker's answer about itself that is larger than this is not read on.
MAX_FETCHED_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Fetched:
    """A whole answer."""

    status: int
    body: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> object:
        """None if the body is no JSON."""
        try:
            value: object = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, RecursionError):
            return None
        return value


async def fetch(
    pool: UpstreamPool, method: str, path: str, body: bytes = b"", *, timeout_s: float
) -> Fetched:
    """Ask the worker. Raises WorkerUnreachable, WorkerFailed (also for lack of time), or
    InternalFault if a fault of ours struck while the answer was read (OutOfFiles: before that)."""
    collector = _Collector(pool)
    head = (
        f"{method} {path} HTTP/1.1\r\nhost: {pool.authority}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    ).encode() + pool.credentials
    head += b"\r\n"
    connection: UpstreamConnection | None = None
    try:
        async with asyncio.timeout(timeout_s):
            connection = pool.take_idle()
            if connection is not None:
                connection.send(head, body, collector)
                try:
                    return await collector.answer
                except WorkerFailed:
                    if collector.answered:
                        raise
                    # A kept connection that the worker had closed: ask again on a fresh one.
                    collector = _Collector(pool)
            connection = await pool.connect(timeout_s)
            connection.send(head, body, collector)
            return await collector.answer
    except TimeoutError as exc:
        raise pool.failure(f"{method} {path}: no answer within {timeout_s:g} s") from exc
    finally:
        if connection is not None and not collector.answer.done():
            connection.abort()


class _Collector:
    """A listener that keeps the whole answer."""

    def __init__(self, pool: UpstreamPool) -> None:
        self.answer: asyncio.Future[Fetched] = asyncio.get_running_loop().create_future()
        self.answered = False
        self._pool = pool
        self._status = 0
        self._parts: list[bytes] = []
        self._size = 0

    def on_response(self, status: int, headers: Headers) -> None:
        self._status = status

    def on_data(self, data: bytes) -> None:
        self._size += len(data)
        if self._size <= MAX_FETCHED_BYTES:
            self._parts.append(data)

    def on_answer(self, status: int, headers: Headers, body: bytes) -> None:
        self.on_response(status, headers)
        self.on_data(body)
        self.on_complete()

    def on_complete(self) -> None:
        if self.answer.done():
            return
        if self._size > MAX_FETCHED_BYTES:
            self.answer.set_exception(self._pool.failure(f"an answer of {self._size} bytes"))
        else:
            self.answer.set_result(Fetched(self._status, b"".join(self._parts)))

    def on_broken(self, error: RadixgateError, answered: bool) -> None:
        self.answered = answered
        if not self.answer.done():
            self.answer.set_exception(error)

"""The HTTP side of a measurement: send a body, stamp what comes back, read nothing into it."""

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType

import aiohttp

from radixgate.clock import Clock
from radixgate.loadgen.exchange import CUT_OFF, Exchange

WORKER_HEADER = "x-radixgate-worker"

# Failure classes below HTTP.
REFUSED = "connection refused"
UNREACHABLE = "connection failed"
DISCONNECTED = "disconnected"
TIMEOUT = "timeout"
PROTOCOL = "protocol error"
TOO_LARGE = "answer too large"

# An answer is held until it ends, so that it can be parsed afterwards; past this it is a failure.
MAX_ANSWER_BYTES = 256 * 2**20
_CONNECT_TIMEOUT_S = 30.0
# Above what a socket delivers at once, so that reading is never paused between two tokens.
_READ_BUFFER_BYTES = 2**20


class StreamClient:
    """One pool of keep-alive connections to one server, without any cap of its own.

    Use as `async with`. Connections are as many as requests in flight; who bounds those is the
    runner. Nothing is retried: a lost request is a result.
    """

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        headers: Mapping[str, str] | None = None,
        idle_timeout_s: float,
        request_timeout_s: float | None = None,
    ) -> None:
        self._url = url
        self._clock = clock
        self._request_timeout_s = request_timeout_s
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            # No total time: it would end long streams that are well.
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=_CONNECT_TIMEOUT_S, sock_read=idle_timeout_s
            ),
            headers={"Accept-Encoding": "identity", **(headers or {})},
            read_bufsize=_READ_BUFFER_BYTES,
        )

    async def __aenter__(self) -> "StreamClient":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._session.close()

    async def exchange(self, path: str, body: bytes) -> Exchange:
        """POST `body` and take the answer in. Failures are in the result, none is raised."""
        now = self._clock.now()
        seen = Exchange(t_dispatch_s=now, t_end_s=now)
        try:
            async with asyncio.timeout(self._request_timeout_s):
                await self._take_in(path, body, seen)
        except TimeoutError as error:
            seen.broken, seen.detail = TIMEOUT, str(error) or "over the request timeout"
        except (aiohttp.ClientError, OSError) as error:
            seen.broken, seen.detail = _class_of(error), str(error)
        seen.t_end_s = self._clock.now()
        return seen

    async def get_json(self, path: str, timeout_s: float) -> object:
        """Raises aiohttp.ClientError, OSError (TimeoutError is one) or ValueError."""
        async with (
            asyncio.timeout(timeout_s),
            self._session.get(self._url + path) as response,
        ):
            response.raise_for_status()
            found: object = await response.json(content_type=None)
            return found

    async def post(self, path: str, timeout_s: float) -> int:
        """The status of an empty POST. Raises aiohttp.ClientError or OSError."""
        async with (
            asyncio.timeout(timeout_s),
            self._session.post(self._url + path) as response,
        ):
            await response.read()
            return response.status

    async def _take_in(self, path: str, body: bytes, seen: Exchange) -> None:
        clock = self._clock
        head = {"Content-Type": "application/json"}
        async with self._session.post(self._url + path, data=body, headers=head) as response:
            seen.t_first_byte_s = clock.now()
            seen.status = response.status
            seen.content_type = response.content_type
            seen.worker_id = response.headers.get(WORKER_HEADER)
            size = 0
            async for piece in response.content.iter_any():
                seen.pieces.append((clock.now(), piece))
                size += len(piece)
                if size > MAX_ANSWER_BYTES:
                    seen.broken, seen.detail = TOO_LARGE, f"over {MAX_ANSWER_BYTES} bytes"
                    response.close()
                    return


def headers_of(pairs: Sequence[str]) -> dict[str, str]:
    """`Name=Value` pairs as headers."""
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def _class_of(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return REFUSED if isinstance(error.os_error, ConnectionRefusedError) else UNREACHABLE
    if isinstance(error, aiohttp.ClientPayloadError):
        return CUT_OFF
    if isinstance(error, aiohttp.ServerDisconnectedError | OSError):
        return DISCONNECTED
    return PROTOCOL

"""A fake worker whose every answer is a list of steps, and which records what it was sent.

async with ScriptedWorker() as worker:
    worker.script = lambda request: [*sse_head(), *events("a", "b"), Reset()]
"""

import asyncio
import json
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, cast

# Of the event loop: one to take what a socket has, and more to hand it on.
_TURNS_TO_BE_READ = 4
# What a client asks of a worker, apart from questions about it.
GENERATION_PATHS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/generate",
    "/v1/embeddings",
    "/v1/classify",
    "/v1/rerank",
    "/rerank",
    "/v1/responses",
)


@dataclass(frozen=True)
class Raw:
    """Write these bytes."""

    data: bytes


@dataclass(frozen=True)
class Sleep:
    seconds: float


@dataclass(frozen=True)
class Await:
    """Go on once the test says so."""

    word: asyncio.Event


@dataclass(frozen=True)
class Close:
    """Close cleanly."""


@dataclass(frozen=True)
class Reset:
    """Close with a TCP reset."""


@dataclass(frozen=True)
class Hang:
    """Do nothing until the other side closes."""


Step = Raw | Sleep | Await | Close | Reset | Hang


@dataclass(frozen=True)
class Recorded:
    """One request as it arrived."""

    method: str
    target: str
    headers: list[tuple[str, str]]  # names in lower case
    body: bytes
    arrived_at: float  # time.monotonic
    connection: "Connection"

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def json(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.body)
        return body

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)


Script = Callable[[Recorded], Sequence[Step]]


def answer(
    body: bytes,
    status: int = 200,
    headers: Iterable[tuple[str, str]] = (("content-type", "application/json"),),
) -> list[Step]:
    """A whole answer with a content-length."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    head = f"HTTP/1.1 {status} Scripted\r\n{lines}content-length: {len(body)}\r\n\r\n"
    return [Raw(head.encode() + body)]


def json_answer(value: object, status: int = 200) -> list[Step]:
    return answer(json.dumps(value).encode(), status)


def sse_head(status: int = 200) -> list[Step]:
    head = f"HTTP/1.1 {status} OK\r\ncontent-type: text/event-stream\r\n"
    return [Raw(head.encode() + b"transfer-encoding: chunked\r\n\r\n")]


def chunk(data: bytes) -> Raw:
    return Raw(b"%x\r\n%b\r\n" % (len(data), data))


def delta(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def events(*texts: str, gap_s: float = 0.0) -> list[Step]:
    """One chunk an event, each after `gap_s`."""
    steps: list[Step] = []
    for text in texts:
        steps += [Sleep(gap_s), chunk(delta(text))] if gap_s else [chunk(delta(text))]
    return steps


def sse_end(usage: tuple[int, int] | None = None) -> list[Step]:
    """Finish chunk, usage if given as (prompt, completion), [DONE], and the end of the chunks."""
    steps: list[Step] = [chunk(delta("", "stop"))]
    if usage is not None:
        counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
        event = {"choices": [], "usage": counts}
        steps.append(chunk(b"data: " + json.dumps(event).encode() + b"\n\n"))
    return [*steps, chunk(b"data: [DONE]\n\n"), Raw(b"0\r\n\r\n")]


def chat_answer(text: str = "hello", prompt: int = 5, completion: int = 2) -> list[Step]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return json_answer({"choices": [{**choice, "finish_reason": "stop"}], "usage": usage})


def good_answer(request: Recorded) -> list[Step]:
    """What a healthy worker would say, streamed or not."""
    if request.json.get("stream"):
        return [*sse_head(), *events("hel", "lo"), *sse_end((5, 2))]
    return chat_answer()


@dataclass
class ScriptedWorker:
    """Serves on 127.0.0.1; `requests` holds the generation requests in order of arrival."""

    model: str = "toy"
    script: Script = good_answer
    # Other requests by path; without an entry the default below answers. None refuses with 503.
    admin: dict[str, Script] = field(default_factory=dict)
    port: int = 0
    tls: ssl.SSLContext | None = None  # None: in the clear
    requests: list[Recorded] = field(default_factory=list)
    admin_requests: list[Recorded] = field(default_factory=list)
    connections: list["Connection"] = field(default_factory=list)
    _server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"{'http' if self.tls is None else 'https'}://127.0.0.1:{self.port}"

    async def start(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self), "127.0.0.1", self.port, reuse_address=True, ssl=self.tls
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        """Refuse connections from now on and reset those that are open."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in self.connections:
            connection.reset()
        await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()

    def steps_for(self, request: Recorded) -> Sequence[Step]:
        if request.path in GENERATION_PATHS:
            self.requests.append(request)
            return self.script(request)
        self.admin_requests.append(request)
        script = self.admin.get(request.path)
        return script(request) if script is not None else self._default_admin(request)

    def _default_admin(self, request: Recorded) -> Sequence[Step]:
        if request.path == "/v1/models":
            return json_answer({"object": "list", "data": [{"id": self.model, "object": "model"}]})
        if request.path == "/health":
            return answer(b"")
        return json_answer({"error": {"message": f"no {request.path}"}}, 404)


class Connection(asyncio.Protocol):
    """One connection to the scripted worker: reads requests, plays their scripts."""

    def __init__(self, worker: ScriptedWorker) -> None:
        self.number = len(worker.connections)
        self.closed_at: float | None = None  # time.monotonic; None while it is open
        self.served = 0  # requests read from it
        self._worker = worker
        self._unread = b""
        self._transport: asyncio.Transport | None = None
        self._playing: asyncio.Task[None] | None = None
        worker.connections.append(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclasses of asyncio's.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed_at = time.monotonic()
        self._transport = None
        if self._playing is not None:
            self._playing.cancel()

    def data_received(self, data: bytes) -> None:
        self._unread += data
        self._read()

    def reset(self) -> None:
        if self._transport is not None:
            raw = self._transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()

    def _read(self) -> None:
        head, blank, rest = self._unread.partition(b"\r\n\r\n")
        if not blank or (self._playing is not None and not self._playing.done()):
            return
        line, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = line.split(" ")
        pairs = [text.partition(":") for text in lines]
        headers = [(name.lower(), value.strip()) for name, _, value in pairs]
        length = int(dict(headers).get("content-length", "0"))
        if len(rest) < length:
            return
        self._unread = rest[length:]
        self.served += 1
        request = Recorded(method, target, headers, rest[:length], time.monotonic(), self)
        steps = self._worker.steps_for(request)
        self._playing = asyncio.get_running_loop().create_task(self._play(steps))

    async def _play(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if self._transport is None:
                return
            match step:
                case Raw(data):
                    self._transport.write(data)
                case Sleep(seconds):
                    await asyncio.sleep(seconds)
                    # Had the whole process stood still meanwhile, what was written before would
                    # be read together with what comes next: here it is read first.
                    for _ in range(_TURNS_TO_BE_READ):
                        await asyncio.sleep(0)
                case Await(word):
                    await word.wait()
                case Hang():
                    await asyncio.Event().wait()
                case Close():
                    self._transport.close()
                case Reset():
                    # What was written before must be on its way: a reset would overtake it.
                    await asyncio.sleep(0.01)
                    self.reset()
        asyncio.get_running_loop().call_soon(self._read)

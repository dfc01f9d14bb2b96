"""An HTTP server that sends given bytes at given times, and remembers what it was asked."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Script:
    """One answer. `writes` are (seconds since the request was read, bytes), rising.

    `end` is how it ends, at the last write: `whole` (and the connection is kept), `cut` (reset in
    the middle), `close` (as if done, by closing a body without a length), or `hang`.
    """

    writes: tuple[tuple[float, bytes], ...] = ()
    end: str = "whole"
    status: int = 200
    content_type: str = "text/event-stream"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Asked:
    """A request as it came, and when its answer went: the times of the server's loop."""

    path: str
    headers: dict[str, str]
    raw_body: bytes
    connection: int
    read_at_s: float
    wrote_at_s: list[float] = field(default_factory=list)  # as each of the script's writes began

    @property
    def body(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.raw_body)
        return parsed


@dataclass
class TimedServer:
    """Use as `async with`; answers each request by `script(asked)`."""

    script: Callable[[Asked], Script]
    asked: list[Asked] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    url: str = ""
    _connections: int = 0
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> "TimedServer":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1024)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        task = asyncio.create_task(self._serve(reader, writer, self._connections))
        self._tasks.add(task)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, connection: int
    ) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while not writer.is_closing():
                    await self._answer_one(await _read(reader, connection), writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer_one(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        self.asked.append(asked)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await _answer(writer, self.script(asked), asked)
        finally:
            self.in_flight -= 1


async def _read(reader: asyncio.StreamReader, connection: int) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    now = asyncio.get_running_loop().time()
    return Asked(head[0].split()[1], headers, body, connection, now)


async def _answer(writer: asyncio.StreamWriter, script: Script, asked: Asked) -> None:
    loop = asyncio.get_running_loop()
    start = asked.read_at_s
    chunked = script.end != "close"
    head = f"HTTP/1.1 {script.status} Scripted\r\ncontent-type: {script.content_type}\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in script.headers)
    head += "transfer-encoding: chunked\r\n" if chunked else "connection: close\r\n"
    writer.write(head.encode() + b"\r\n")
    for at_s, data in script.writes:
        await asyncio.sleep(start + at_s - loop.time())
        asked.wrote_at_s.append(loop.time())
        writer.write(b"%x\r\n%s\r\n" % (len(data), data) if chunked else data)
    if script.end == "hang":
        await asyncio.sleep(3600)
    if script.end == "whole":
        writer.write(b"0\r\n\r\n")
    elif script.end == "cut":
        await writer.drain()
        writer.transport.abort()
    else:
        writer.close()


def sse(*payloads: object) -> bytes:
    """Events with JSON data; a str is taken as it is."""
    return b"".join(
        b"data: " + (item if isinstance(item, str) else json.dumps(item)).encode() + b"\n\n"
        for item in payloads
    )


def chat_chunk(
    content: str | None = None,
    *,
    role: str | None = None,
    finish: str | None = None,
    tokens: int | None = None,
) -> dict[str, object]:
    """A chat chunk; `tokens` as a continuous usage count."""
    delta = {"role": role, "content": content}
    chunk: dict[str, object] = {
        "object": "chat.completion.chunk",
        "choices": [
            {
                "index": 0,
                "delta": {name: value for name, value in delta.items() if value is not None},
                "finish_reason": finish,
            }
        ],
    }
    return chunk | ({} if tokens is None else usage(tokens))


def usage(tokens: int, *, prompt: int = 8, cached: int | None = None) -> dict[str, object]:
    """The usage object as a field; a usage event has `choices: []` beside it."""
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"usage": {"prompt_tokens": prompt, "completion_tokens": tokens, **details}}


def usage_event(tokens: int, *, prompt: int = 8, cached: int | None = None) -> dict[str, object]:
    return {"choices": [], **usage(tokens, prompt=prompt, cached=cached)}


def native_event(
    text: str, tokens: int, *, finish: str | None = None, prompt: int = 8, cached: int = 0
) -> dict[str, object]:
    """An event of `/generate`: text and tokens so far."""
    return {
        "text": text,
        "meta_info": {
            "prompt_tokens": prompt,
            "completion_tokens": tokens,
            "cached_tokens": cached,
            "finish_reason": None if finish is None else {"type": finish},
        },
    }

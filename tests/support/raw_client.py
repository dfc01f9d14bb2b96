"""An HTTP/1.1 client that hides nothing: every byte that came, and what they say."""

import asyncio
import json
import ssl
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


@dataclass
class Answer:
    """One answer as it came over the wire."""

    status: int
    headers: list[tuple[str, str]]  # names in lower case
    body: bytes = b""  # chunks joined
    chunked: bool = False
    cut: bool = False  # the connection ended before the body did
    interim: list[int] = field(default_factory=list)  # statuses of answers such as 100

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    @property
    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.body)
        return value

    @property
    def events(self) -> list[bytes]:
        """Data of the server-sent events."""
        blocks = self.body.replace(b"\r\n", b"\n").split(b"\n\n")
        return [block[5:].strip() for block in blocks if block.startswith(b"data:")]


def request(
    path: str,
    body: bytes | object = b"",
    *,
    method: str = "POST",
    headers: tuple[str, ...] = (),
    version: str = "1.1",
) -> bytes:
    """The bytes of a request; an object becomes JSON."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/{version}", "Host: gateway", *headers]
    if data or method == "POST":
        lines.append(f"Content-Length: {len(data)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


class RawClient:
    """One connection: `async with RawClient(port) as client`."""

    def __init__(
        self, port: int, read_limit: int = 2**26, tls: ssl.SSLContext | None = None
    ) -> None:
        self._port = port
        self._tls = tls
        self._limit = read_limit

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection(
            "127.0.0.1", self._port, limit=self._limit, ssl=self._tls
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.writer.transport.abort()

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def ask(self, data: bytes, *, head: bool = False) -> Answer:
        self.send(data)
        return await self.answer(head=head)

    async def answer(self, *, head: bool = False) -> Answer:
        """The next answer; `head`: of a HEAD request, so without a body."""
        answer = await self._read_head()
        interim = []
        while answer.status < 200:
            interim.append(answer.status)
            answer = await self._read_head()
        answer.interim = interim
        if head or answer.status in (204, 304):
            return answer
        try:
            await self._read_body(answer)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            answer.cut = True
            answer.body += getattr(error, "partial", b"")
        return answer

    async def ended(self) -> bool:
        """The other side closes without sending anything more."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True

    async def _read_head(self) -> Answer:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
        pairs = [text.partition(":") for text in lines]
        headers = [(name.lower(), value.strip()) for name, _, value in pairs]
        return Answer(int(line.split(" ")[1]), headers)

    async def _read_body(self, answer: Answer) -> None:
        length = answer.header("content-length")
        if answer.header("transfer-encoding") == "chunked":
            assert length is None, "both content-length and transfer-encoding"
            answer.chunked = True
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                answer.body += await self.reader.readexactly(size)
                assert await self.reader.readexactly(2) == b"\r\n"
            assert await self.reader.readexactly(2) == b"\r\n"
        elif length is not None:
            answer.body = await self.reader.readexactly(int(length))
        else:
            answer.body = await self.reader.read()


async def ask(port: int, data: bytes, tls: ssl.SSLContext | None = None) -> Answer:
    """One request on a connection of its own."""
    async with RawClient(port, tls=tls) as client:
        return await client.ask(data)

"""A real fleet of processes: toy workers and a gateway, each on ports of its own."""

import asyncio
import io
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import aiohttp

from radixgate.processes import Child
from radixgate.proto.sse import SseScanner
from radixgate.ready_lines import GATEWAY_READY, WORKER_READY

READY_WITHIN_S = 60.0
RADIXGATE = (sys.executable, "-m", "radixgate.cli")


@dataclass(slots=True)
class LiveWorker:
    """A worker process and where it listens, as host:port."""

    child: Child
    http: str
    grpc: str


@dataclass(slots=True)
class LiveFleet:
    """Started processes and one HTTP session; everything ends with the context."""

    session: aiohttp.ClientSession
    workers: list[LiveWorker] = field(default_factory=list)
    gateway: Child | None = None
    gateway_at: str = ""

    async def add_worker(self, *flags: str, model: str = "toy") -> LiveWorker:
        """Start a worker and wait for its ready line."""
        words = [*RADIXGATE, "worker", "--model-path", model, "--threads", "1"]
        if "--port" not in flags:
            words += ["--port", "0"]
        if "--grpc-port" not in flags:
            words += ["--grpc-port", "0"]
        name = f"worker{len(self.workers)}"
        child = await Child.start(name, [*words, *flags], ready=WORKER_READY)
        # Registered before it is ready: a worker that never gets there is stopped as well.
        worker = LiveWorker(child, "", "")
        self.workers.append(worker)
        ready = await child.wait_ready(READY_WITHIN_S)
        worker.http, worker.grpc = ready["http"], ready["grpc"]
        return worker

    async def start_gateway(self, *flags: str, urls: Sequence[str] | None = None) -> None:
        """Start the gateway over `urls`, by default the gRPC side of every worker."""
        if urls is None:
            urls = [f"grpc://{worker.grpc}" for worker in self.workers]
        words = [*RADIXGATE, "gateway", "--port", "0"]
        if urls:
            words += ["--worker-urls", *urls]
        self.gateway = await Child.start("gateway", [*words, *flags], ready=GATEWAY_READY)
        ready = await self.gateway.wait_ready(READY_WITHIN_S)
        self.gateway_at = ready["url"].removeprefix("http://")

    async def ready_workers(
        self, count: int, within_s: float = READY_WITHIN_S
    ) -> list[dict[str, Any]]:
        """Wait until exactly `count` workers are ready; all rows of GET /workers."""
        async with asyncio.timeout(within_s):
            while True:
                rows = await self.worker_rows()
                if sum(row["state"] == "ready" for row in rows) == count:
                    return rows
                await asyncio.sleep(0.05)

    async def worker_rows(self) -> list[dict[str, Any]]:
        status, _, body = await self.get("/workers")
        assert status == 200, body
        rows: list[dict[str, Any]] = body["workers"]
        return rows

    async def get(self, path: str, at: str | None = None) -> tuple[int, dict[str, str], Any]:
        async with self.session.get(f"http://{at or self.gateway_at}{path}") as answer:
            return answer.status, _headers(answer), _json(await answer.read())

    async def post(
        self, path: str, body: object, at: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        """`body` is sent as JSON, bytes as they are. Header names take _ for -."""
        data = io.BytesIO(body if isinstance(body, bytes) else json.dumps(body).encode())
        url = f"http://{at or self.gateway_at}{path}"
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.post(url, data=data, headers=sent) as answer:
            return answer.status, _headers(answer), _json(await answer.read())

    async def stream(self, path: str, body: object, at: str | None = None) -> "Streamed":
        """Read a whole stream; `events` are its JSON events without [DONE]."""
        url = f"http://{at or self.gateway_at}{path}"
        async with self.session.post(url, data=json.dumps(body).encode()) as answer:
            scanner = SseScanner()
            events = [
                event async for piece in answer.content.iter_any() for event in scanner.feed(piece)
            ]
            done = bool(events) and events[-1] == b"[DONE]"
            return Streamed(
                answer.status,
                _headers(answer),
                [json.loads(event) for event in events if event != b"[DONE]"],
                done,
            )

    async def tokens_made(self, worker: LiveWorker) -> float:
        """All that it has generated so far, of answers that nobody waits for, too."""
        _, _, metrics = await self.get("/metrics", at=worker.http)
        lines = [line for line in metrics.splitlines() if not line.startswith("#")]
        return sum(float(line.split()[-1]) for line in lines if "generation_tokens_total" in line)

    async def page_counts(self, worker: LiveWorker) -> dict[str, int]:
        _, _, info = await self.get("/get_server_info", at=worker.http)
        pages: dict[str, int] = info["pages"]
        return pages


@dataclass(frozen=True, slots=True)
class Streamed:
    status: int
    headers: dict[str, str]
    events: list[dict[str, Any]]
    done: bool  # [DONE] came last

    @property
    def chat_text(self) -> str:
        deltas = [choice["delta"] for event in self.events for choice in event["choices"]]
        return "".join(delta.get("content") or "" for delta in deltas)


@asynccontextmanager
async def live_fleet(
    workers: int = 2, *, worker_flags: Sequence[str] = (), gateway_flags: Sequence[str] = ()
) -> AsyncIterator[LiveFleet]:
    """`workers` toy workers and a gateway over them, all ready."""
    async with _Fleet() as fleet:
        await asyncio.gather(*(fleet.add_worker(*worker_flags) for _ in range(workers)))
        await fleet.start_gateway(*gateway_flags)
        await fleet.ready_workers(workers)
        yield fleet


class _Fleet:
    async def __aenter__(self) -> LiveFleet:
        timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
        self._fleet = LiveFleet(
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)
        )
        return self._fleet

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._fleet.session.close()
        children = [worker.child for worker in self._fleet.workers]
        if self._fleet.gateway is not None:
            children.insert(0, self._fleet.gateway)
        for child in children:
            await child.stop(5.0)


def empty_fleet() -> _Fleet:
    """A fleet to which nothing has been added yet."""
    return _Fleet()


def _headers(answer: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.headers.items()}


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")

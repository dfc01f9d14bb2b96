"""The front door on a socket, with a generator that says what it is told to."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import cast

from aiohttp import web

from clocks import FakeClock
from radixgate.errors import RadixgateError
from radixgate.gateway.attempt.attempt import AnswerCounts, Downstream, Headers
from radixgate.gateway.attempt.request_ids import RequestIds
from radixgate.gateway.entry.connections import Front
from radixgate.gateway.entry.http_front import FrontConnection
from radixgate.gateway.heads.own_headers import OwnHeaders
from radixgate.gateway.heads.request_head import HeadCache, RequestHead
from radixgate.gateway.heads.request_reader import FrontLimits
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.loop.loop_turn import LoopTurn
from until import until

JSON: Headers = [(b"content-type", b"application/json")]


@dataclass
class Asked:
    """One request as the generator got it; also the attempt that the front steers."""

    head: RequestHead
    body: bytes
    client: Downstream
    steered: list[str] = field(default_factory=list)

    def pause(self) -> None:
        self.steered.append("pause")

    def resume(self) -> None:
        self.steered.append("resume")

    def delivered(self) -> AnswerCounts | None:
        return None

    def ends_as(self, error: RadixgateError) -> RadixgateError:
        return error

    def cancel(self) -> None:
        self.steered.append("cancel")


class Scripted:
    """Answers at once with the body it got, or leaves the answer to the test."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.by_hand = False

    def generate(self, head: RequestHead, body: bytes, downstream: Downstream) -> Asked:
        asked = Asked(head, body, downstream)
        self.asked.append(asked)
        if not self.by_hand:
            downstream.on_head(200, [*JSON, (b"content-length", b"%d" % len(body))])
            downstream.on_body(body)
            downstream.on_end(None)
        return asked

    async def next(self, number: int = 0) -> Asked:
        await until(lambda: len(self.asked) > number)
        return self.asked[number]


@dataclass
class Served:
    port: int
    front: Front
    generator: Scripted
    clock: FakeClock


def connections_of(front: Front) -> set[FrontConnection]:
    """All that are open now; it changes as they come and go."""
    return cast(set[FrontConnection], front.connections)


@asynccontextmanager
async def served(max_body_bytes: int = 10_000_000) -> AsyncIterator[Served]:
    async def show(http: web.Request) -> web.Response:
        return web.Response(text=f"{http.method} {http.path} {(await http.read()).decode()}")

    app = web.Application()
    app.add_routes([web.get("/{path:.*}", show), web.post("/{path:.*}", show)])
    runner = web.AppRunner(app)
    await runner.setup()
    admin = runner.server
    assert admin is not None
    generator, clock = Scripted(), FakeClock()
    front = Front(
        generator,
        admin,
        frozenset((b"/generate",)),
        FrontLimits(max_body_bytes),
        clock,
        Deadlines(clock),
        LoopTurn(),
        OwnHeaders(b"random", RequestIds(random.Random(1))),
        HeadCache(),
    )
    server = await asyncio.get_running_loop().create_server(
        partial(FrontConnection, front), "127.0.0.1", 0
    )
    try:
        yield Served(server.sockets[0].getsockname()[1], front, generator, clock)
    finally:
        server.close()
        front.abort()
        await runner.cleanup()

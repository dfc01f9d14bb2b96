"""One request at a worker of ours or a foreign one, with a fault of the gateway's own in it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from attached_gateway import attached_gateway
from attached_worker import AttachedWorker
from items import item
from own_faults import Faults, streaming
from radixgate.gateway.settings.rules import GatewayRules
from raw_client import Answer, RawClient, request
from scripted_worker import ScriptedWorker, chat_answer
from small_gateway import CHAT, SmallGateway, chat_body, small_gateway
from until import PATIENCE_S


@dataclass(frozen=True)
class Strike:
    """Where a fault strikes: the `call`th call of it raises, `after`: having done its work."""

    owner: type
    name: str
    call: int = 1
    after: bool = False

    def __str__(self) -> str:
        when = "after" if self.after else "at"
        return f"{self.owner.__name__}.{self.name}-{when}-{self.call}"


@dataclass(frozen=True)
class Seen:
    """What the client got."""

    answer: Answer | None  # None: a reset before a head
    raw_heads: int  # of answers, in all that came

    @property
    def cut(self) -> bool:
        return self.answer is None or self.answer.cut


async def _three_items(worker: AttachedWorker) -> None:
    """A chat of three tokens, each in an item of its own."""
    submit = (await worker.next_command()).submit
    for number in (1, 2, 3):
        finish = "stop" if number == 3 else None
        await worker.send(
            item(
                "abc"[number - 1],
                ids=[number],
                handle=submit.handle,
                finish=finish,
                counts=(5, 0, number),
            )
        )


@contextlib.asynccontextmanager
async def struck_gateway(
    faults: Faults, strike: Strike, rules: GatewayRules, *, own: bool, stream: bool
) -> AsyncIterator[tuple[SmallGateway, Seen]]:
    """After one request that was struck, or passed where the fault did not."""
    if own:
        async with attached_gateway(rules=rules) as (gateway, worker):
            answering = asyncio.create_task(_three_items(worker))
            faults.strike(strike.owner, strike.name, call=strike.call, after=strike.after)
            seen = await _seen(gateway, stream=stream)
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
            yield gateway, seen
        return
    async with ScriptedWorker() as foreign, small_gateway([foreign], rules=rules) as gateway:
        foreign.script = streaming("a", "b", "c") if stream else lambda request: chat_answer()
        faults.strike(strike.owner, strike.name, call=strike.call, after=strike.after)
        yield gateway, await _seen(gateway, stream=stream)


async def _seen(gateway: SmallGateway, *, stream: bool) -> Seen:
    """Raises TimeoutError if the client hears of no end."""
    async with asyncio.timeout(PATIENCE_S), RawClient(gateway.port) as client:
        client.send(request(CHAT, chat_body(stream=stream), headers=("connection: close",)))
        raw = bytearray()
        with contextlib.suppress(ConnectionError):
            while piece := await client.reader.read(65_536):
                raw += piece
    return Seen(await _parsed(bytes(raw)), raw.count(b"HTTP/1.1 "))


async def _parsed(raw: bytes) -> Answer | None:
    client = RawClient(0)
    client.reader = asyncio.StreamReader()
    client.reader.feed_data(raw)
    client.reader.feed_eof()
    try:
        return await client.answer()
    except asyncio.IncompleteReadError:
        return None

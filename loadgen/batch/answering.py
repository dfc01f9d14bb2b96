"""One line of a batch: asked until it has an answer that will not change, and rendered."""

import asyncio
import random
from dataclasses import dataclass

import msgspec
import xxhash

from radixgate.clock import Clock
from radixgate.errors import GatewayError
from radixgate.loadgen.batch.work_list import Work
from radixgate.loadgen.client import REFUSED, UNREACHABLE, StreamClient
from radixgate.loadgen.exchange import Exchange

_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_OVERLOAD = frozenset({429, 503})
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 30.0
_KNOCK_EVERY_S = 1.0
_DETAIL_CHARACTERS = 500


@dataclass(frozen=True, slots=True)
class Answered:
    """The line for the output, and what it amounts to."""

    line: bytes
    ok: bool  # the server's status was 200
    prompt_tokens: int
    completion_tokens: int
    overloads: int  # refusals on the way


class _Usage(msgspec.Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0


class _Body(msgspec.Struct):
    usage: _Usage | None = None
    meta_info: _Usage | None = None


class Asker:
    """Sends lines through one pool of connections.

    A try that ends in 408, 429, a 5xx of the kind that passes, or a broken connection is repeated
    after a pause that doubles, with jitter. A server that cannot be reached costs no try: it is
    waited for, `give_up_s` after its last sign of life at most.
    """

    def __init__(
        self,
        client: StreamClient,
        clock: Clock,
        rng: random.Random,
        *,
        attempts: int,
        give_up_s: float,
    ) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._attempts = attempts
        self._give_up_s = give_up_s
        self._alive_s = clock.now()

    async def answer(self, work: Work) -> Answered:
        """Raises GatewayError if nobody can be reached for too long."""
        overloads = 0
        for attempt in range(1, self._attempts + 1):
            exchange = await self._reached(work)
            overloads += exchange.status in _OVERLOAD
            again = exchange.broken is not None or exchange.status in _AGAIN
            if not again or attempt == self._attempts:
                return _rendered(work, exchange, overloads)
            pause_s = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** (attempt - 1))
            await asyncio.sleep(pause_s * (0.5 + self._rng.random()))
        raise AssertionError("the last attempt always returns")

    async def _reached(self, work: Work) -> Exchange:
        while True:
            exchange = await self._client.exchange(work.path, work.body)
            now = self._clock.now()
            if exchange.broken not in (REFUSED, UNREACHABLE):
                self._alive_s = max(self._alive_s, now)
                return exchange
            if now - self._alive_s > self._give_up_s:
                raise GatewayError(
                    f"nobody could be reached for {self._give_up_s:g} s: {exchange.detail}; what "
                    "is answered is kept, start the same command again"
                )
            await asyncio.sleep(_KNOCK_EVERY_S)


def _rendered(work: Work, exchange: Exchange, overloads: int) -> Answered:
    raw = b"".join(piece for _, piece in exchange.pieces)
    request_id = "batch_req_" + xxhash.xxh3_64_hexdigest(work.custom_id.encode())
    response: dict[str, object] | None = None
    error: dict[str, object] | None = None
    usage = _Usage()
    if exchange.broken is not None or exchange.status is None:
        error = {"code": exchange.broken or "no answer", "message": exchange.detail}
    else:
        body, usage = _body(raw)
        response = {"status_code": exchange.status, "request_id": request_id, "body": body}
        if exchange.status != 200 or body is None:
            shown = raw[:_DETAIL_CHARACTERS].decode("utf-8", "replace")
            error = {"code": f"HTTP {exchange.status}", "message": shown}
    line = msgspec.json.encode(
        {"id": request_id, "custom_id": work.custom_id, "response": response, "error": error}
    )
    return Answered(line, error is None, usage.prompt_tokens, usage.completion_tokens, overloads)


def _body(raw: bytes) -> tuple[msgspec.Raw | None, _Usage]:
    """The answer as it came, on one line; None if it is no JSON."""
    try:
        told = msgspec.json.decode(raw, type=_Body)
    except msgspec.ValidationError:  # JSON of some other form
        told = _Body()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None, _Usage()
    # Outside of strings, where JSON has none, a line end is only layout.
    one_line = raw.replace(b"\n", b" ").replace(b"\r", b" ")
    return msgspec.Raw(one_line), told.usage or told.meta_info or _Usage()

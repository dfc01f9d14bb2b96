"""From the stamped bytes of an answer to its tokens, its counts, and whether it succeeded."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from radixgate.analysis.records import Arrival
from radixgate.loadgen.exchange import CUT_OFF, Exchange
from radixgate.loadgen.targets import Event, Target
from radixgate.loadgen.token_arrivals import tokens_in
from radixgate.proto.sse import CONTENT_TYPE, DONE_DATA, SseScanner

# Failure classes; `HTTP <status>` and the transport's own (client.py) stand beside them.
ERROR_EVENT = "error event"
MALFORMED = "malformed event"
NOT_A_STREAM = "not a stream"
ABORTED = "aborted by the server"
EMPTY = "empty answer"

_DETAIL_CHARACTERS = 200

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Answer:
    """What an exchange amounted to. A failed one keeps what came before it failed."""

    t_last_s: float  # the last token or finish reason; the end of the exchange, if it failed
    arrivals: tuple[Arrival, ...] = ()
    output_tokens: int = 0
    tokens_counted: bool = True
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    failure: str | None = None
    failure_detail: str = ""


Read = Callable[[Exchange], Answer]


@dataclass(frozen=True, slots=True)
class _Stream:
    """The events of a body, and whether `[DONE]` was among them."""

    events: Sequence[Event]
    done: bool

    @property
    def finish_reason(self) -> str | None:
        return _last(event.finish_reason for event in self.events)


def read_answer(target: Target, exchange: Exchange) -> Answer:
    """Parse a whole exchange: some microseconds an event, so not while it is being timed.

    A success has content or a finish reason, no error event, and a proper end: `[DONE]`, or a
    finish reason before a clean end of the body.
    """
    if exchange.status is None:
        return _failed(exchange, exchange.broken or CUT_OFF, exchange.detail)
    if exchange.status != 200:
        return _failed(exchange, f"HTTP {exchange.status}", _body_start(exchange))
    if exchange.content_type != CONTENT_TYPE.decode():
        return _failed(exchange, NOT_A_STREAM, _body_start(exchange))
    try:
        stream = _stream_of(target, exchange)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _failed(exchange, MALFORMED, str(error))
    return _answer(exchange, stream)


def _stream_of(target: Target, exchange: Exchange) -> _Stream:
    scanner = SseScanner()
    payloads: list[tuple[float, bytes]] = []
    for at_s, piece in exchange.pieces:
        for data in scanner.feed(piece):
            if data == DONE_DATA:
                return _Stream(target.events(payloads), done=True)
            payloads.append((at_s, data))
    return _Stream(target.events(payloads), done=False)


def _answer(exchange: Exchange, stream: _Stream) -> Answer:
    tokens = tokens_in(stream.events)
    finish = stream.finish_reason
    failure, detail = _failure(exchange, stream, shows_something=bool(tokens.arrivals or finish))
    ends = [arrival.at_s for arrival in tokens.arrivals]
    ends += [event.at_s for event in stream.events if event.finish_reason is not None]
    return Answer(
        t_last_s=max(ends) if failure is None else exchange.t_end_s,
        arrivals=tokens.arrivals,
        output_tokens=tokens.tokens,
        tokens_counted=tokens.counted,
        prompt_tokens=_last(event.prompt_tokens for event in stream.events),
        cached_tokens=_last(event.cached_tokens for event in stream.events),
        finish_reason=finish,
        failure=failure,
        failure_detail=detail[:_DETAIL_CHARACTERS],
    )


def _failure(
    exchange: Exchange, stream: _Stream, *, shows_something: bool
) -> tuple[str | None, str]:
    """Class and detail of what went wrong, the most telling first; (None, "") if nothing did."""
    for event in stream.events:
        if event.error is not None:
            return ERROR_EVENT, event.error
        if event.finish_reason == "abort":
            return ABORTED, ""
    # What happens to the connection after [DONE] is no longer this answer's business.
    if exchange.broken is not None and not stream.done:
        return exchange.broken, exchange.detail
    if not shows_something:
        return EMPTY, ""
    if not stream.done and stream.finish_reason is None:
        return CUT_OFF, "the body ended without a finish reason and without [DONE]"
    return None, ""


def _last(values: Iterable[Value | None]) -> Value | None:
    """The last value that an event told, None if none did."""
    found = None
    for value in values:
        found = found if value is None else value
    return found


def _failed(exchange: Exchange, failure: str, detail: str) -> Answer:
    return Answer(
        t_last_s=exchange.t_end_s, failure=failure, failure_detail=detail[:_DETAIL_CHARACTERS]
    )


def _body_start(exchange: Exchange) -> str:
    body = b"".join(piece for _, piece in exchange.pieces[:4])
    return body[:_DETAIL_CHARACTERS].decode("utf-8", "replace")

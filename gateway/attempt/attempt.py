"""One try at one worker: what the core of the gateway and every kind of worker agree on.

The core starts an attempt and is called back; it knows no difference between a worker behind gRPC
and a foreign one behind HTTP. The front door itself is a `Downstream` of the core, so bytes run
worker -> core -> client through one interface, and `pause`, `resume` and `cancel` run back.
All calls happen on the event loop's thread; none of them blocks or awaits.
"""

from array import array
from typing import Protocol

import msgspec

from radixgate.errors import RadixgateError
from radixgate.gateway.attempt.answer_progress import AnswerProgress
from radixgate.gateway.attempt.lane import ChunkLane
from radixgate.proto.generation import GenerationRequest

Headers = list[tuple[bytes, bytes]]


class PromptTokens(msgspec.Struct, frozen=True, gc=False):
    """The token ids of each prompt of a request, arrays of type 'I', in the client's order."""

    prompts: tuple["array[int]", ...]

    @property
    def total(self) -> int:
        return sum(map(len, self.prompts))


class FrontRequest(msgspec.Struct, frozen=True, gc=False):
    """A client's request as it came, and what was read out of it to route it.

    A Struct, as what is made for every request is: a frozen dataclass costs five times as much.
    """

    line: bytes  # method and target as the client wrote them, ready to be sent
    forwarded: bytes  # header lines that a worker may see, names in lower case, values as they came
    authorization: bytes  # the client's, as a line, for a worker without a key; empty: not for any
    body: bytes
    request_id: str
    generation: GenerationRequest | None = None  # None: no worker of ours serves the model
    progress: AnswerProgress | None = None  # None: no worker of ours serves the model

    @property
    def begun(self) -> bool:
        """A worker of ours has produced part of the answer: the next attempt goes on from it."""
        return self.progress is not None and self.progress.begun


class AnswerCounts(msgspec.Struct, frozen=True, gc=False):
    """What the worker said at the end: token counts, None where it did not say."""

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None
    response_id: str | None = None  # of /v1/responses: by it the client can go on
    error_status: int = 0  # of the error event that ended a stream, 400 to 599; 0: none did

    @property
    def untold(self) -> bool:
        """Nothing was counted."""
        return self.completion is None and self.prompt is None and self.cached is None


class WholeHead(msgspec.Struct, frozen=True, gc=False):
    """The head of good answers, as clients get it; one object for all answers that have it."""

    status: int
    headers: Headers  # never changed
    lines: bytes  # the same, rendered: status line and header lines
    framed: bool  # there is a content-length among them
    streams: bool  # the body is events


class Downstream(Protocol):
    """Takes an answer. `on_head` comes first and once, then `on_body` any number of times; of a
    good stream `on_begin` may come in place of `on_head` and the first `on_body`.

    Exactly one of `on_end`, `on_answer` and `on_failure` comes, last; after `cancel` nothing comes.
    Failing before `on_body` lets the core try another worker, even after `on_head`; one that goes
    on from another's progress brings no second `on_head`.
    """

    def on_head(self, status: int, headers: Headers) -> None:
        """End-to-end headers only, names in lower case. With a content-length the body is exactly
        that long; without one its length is not known yet."""
        ...

    def on_body(self, data: bytes) -> None:
        """The next bytes of the body, never empty."""
        ...

    def on_begin(self, head: WholeHead, own: bytes, body: bytes) -> None:
        """The head of a good stream, and the first bytes behind it. `own`: as of `on_answer`."""
        ...

    def lane(self) -> ChunkLane | None:
        """A shorter way for what follows, to be asked for behind `on_body`; None: there is none,
        or not yet."""
        ...

    def on_answer(self, head: WholeHead, own: bytes, body: bytes, counts: AnswerCounts) -> None:
        """A good answer that came whole, in place of its head, its body, and its end. `own`: header
        lines of the gateway's, to stand behind the worker's; attempts at workers give none."""
        ...

    def on_end(self, counts: AnswerCounts | None) -> None:
        """The answer is whole. None: it has no counts (an error answer, an unknown form)."""
        ...

    def on_failure(self, error: RadixgateError) -> None:
        """The answer broke off. WorkerFailed: another worker may do; other errors are final."""
        ...


class Client(Downstream, Protocol):
    """The front door's side of a request, or who listens before it."""

    @property
    def head_written(self) -> bool:
        """Some of the answer is on its way, or may be: no other head can stand before it."""
        ...


class Attempt(Protocol):
    """A started attempt, as its owner steers it. All may come at any time, also twice."""

    def pause(self) -> None:
        """Read nothing more from the worker: the client's side is full."""
        ...

    def resume(self) -> None: ...

    def delivered(self) -> AnswerCounts | None:
        """What has come of an answer that is about to be cut short; None: nothing is known of it.
        O(what is kept of it)."""
        ...

    def ends_as(self, error: RadixgateError) -> RadixgateError:
        """What it is to the request that the attempt ends, or has ended, with `error`: no failure
        where the worker was told to end it. O(what is kept of it)."""
        ...

    def cancel(self) -> None:
        """The client has left: tell the worker at once. No callback follows."""
        ...


class WorkerClient(Protocol):
    """The way to one worker, whatever it speaks."""

    def start(self, request: FrontRequest, downstream: Downstream, number: int) -> Attempt:
        """Begin an attempt. `number` rises from lease to lease: a worker of ours tells up to which
        its load reports count them. Raises nothing: failures arrive as callbacks, and no callback
        comes before this has returned."""
        ...

    def close(self) -> None:
        """Break off what runs (each downstream gets `on_failure`) and free the connections."""
        ...

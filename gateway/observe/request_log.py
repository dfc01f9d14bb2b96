"""`--request-log`: one line of JSON a request. It holds no prompt, no answer and no key."""

import msgspec

from radixgate.gateway.observe.line_writer import LineWriter
from radixgate.gateway.observe.story import Story

_LINE_BYTES = 1_000  # what a line holds while it waits, about
_encode = msgspec.json.Encoder().encode


class LoggedRequest(msgspec.Struct, frozen=True):
    """Times are in seconds; null: it never came to that, or nobody told."""

    at: float  # of its arrival, since the epoch
    id: str
    outcome: str  # as radixgate_requests_total has it
    status: int  # of the answer; 0: none began
    path: str
    model: str | None
    tenant: str | None
    worker: str | None  # the last that was asked
    attempts: int
    reason: str | None  # why the first went where it did
    stream: bool
    prompt_tokens: int | None  # as the worker counted, else as routing did
    cached_tokens: int | None
    completion_tokens: int | None
    waited_s: float  # for a place
    read_s: float | None  # until its prompt was read and a worker could be chosen
    ttft_s: float | None
    e2e_s: float

    def encode(self) -> bytes:
        """With its line end; called in the writer's thread."""
        return _encode(self) + b"\n"


class RequestLog:
    """Writes a line for each story, in a thread of its own."""

    def __init__(self, path: str, epoch_s: float) -> None:
        """`path`: `-` for standard error. `epoch_s`: what makes a time of the clock one since the
        epoch. Raises ConfigError if the file cannot be opened."""
        self._writer = LineWriter(path)
        self._epoch_s = epoch_s

    @property
    def dropped(self) -> int:
        """Lines that are not in the file."""
        return self._writer.dropped

    def tell(self, story: Story) -> None:
        self._writer.put(line_of(story, self._epoch_s), _LINE_BYTES)

    def reopen(self) -> None:
        """The file was moved away."""
        self._writer.reopen()

    def close(self) -> None:
        """For at most two seconds."""
        self._writer.close()


def line_of(story: Story, epoch_s: float) -> LoggedRequest:
    """Of a story that is over."""
    assert story.ended_at is not None
    ask, counts, arrived = story.ask, story.counts, story.arrived_at
    first = story.attempts[0].lease if story.attempts else None
    routed = None if ask is None else ask.prompt_tokens
    told = None if counts is None else counts.prompt
    return LoggedRequest(
        at=arrived + epoch_s,
        id=story.request_id,
        outcome=story.outcome.value,
        status=story.status,
        path=story.head.path.decode("latin-1"),
        model=None if ask is None else ask.name,
        tenant=story.tenant,
        worker=story.attempts[-1].lease.worker.id if story.attempts else None,
        attempts=len(story.attempts),
        reason=None if first is None else first.choice.branch,
        stream=story.streams,
        prompt_tokens=routed if told is None else told,
        cached_tokens=None if counts is None else counts.cached,
        completion_tokens=None if counts is None else counts.completion,
        waited_s=story.began_at - arrived,
        read_s=_since(story.began_at, story.asked_at),
        ttft_s=_since(arrived, story.first_token_at),
        e2e_s=story.ended_at - arrived,
    )


def _since(then: float, when: float | None) -> float | None:
    return None if when is None else when - then

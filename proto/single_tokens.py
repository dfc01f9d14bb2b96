"""The events of items that bring one token of a prompt's first choice with its text only."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.openai_logprobs import Offsets

_json = msgspec.json.Encoder().encode


class SingleTokens(Protocol):
    """Of one prompt."""

    def next(self, token_id: int, text: str) -> bytes:
        """The event of the next one; b"" if none is due."""
        ...

    def frame(self) -> tuple[bytes, bytes] | None:
        """What stands before and behind the JSON of a text, in the event of each token that comes
        from now on up to the next other item; without a text there is none. None: it differs."""
        ...


class EachItsOwn:
    """Events that differ by more than their text, or come all at the end."""

    def __init__(self, next: Callable[[int, str], bytes]) -> None:
        self.next = next

    def frame(self) -> None:
        return None


@dataclass(slots=True)
class Held:
    """What a choice has produced and no event has carried yet."""

    before: bytes  # of the next event, all that stands before its text
    begun: bool = False
    logprobs: list[pb.TokenLogprobs] = field(default_factory=list)
    offsets: Offsets | None = None  # None: no token has been told of yet


@dataclass(frozen=True, slots=True)
class TokenEvents:
    """Of a stream of chunks. The stream does not know it: no cycle is left."""

    item: Callable[[int, pb.Item], bytes]  # for what comes first, or with logprobs
    prompt: int
    held: Held
    after: bytes  # behind the text of an event that brings nothing else

    def next(self, token_id: int, text: str) -> bytes:
        held = self.held
        if not held.begun or held.logprobs:
            return self.item(self.prompt, pb.Item(token_ids=(token_id,), text=text))
        return held.before + _json(text) + self.after if text else b""

    def frame(self) -> tuple[bytes, bytes] | None:
        held = self.held
        return None if not held.begun or held.logprobs else (held.before, self.after)

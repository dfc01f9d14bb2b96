"""`continuous_usage_stats` of `stream_options`, as engines have it: each event tells its usage."""

from collections.abc import Callable

import msgspec

from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import AnswerContext, Renderer
from radixgate.proto.single_tokens import EachItsOwn, SingleTokens

_json = msgspec.json.Encoder().encode
_END = b"}\n\n"


def continuous(make: Callable[[AnswerContext], Renderer]) -> Callable[[AnswerContext], Renderer]:
    """`make` gives the renderer of a stream of chunks, one an item."""
    return lambda context: ContinuousUsage(make(context))


class ContinuousUsage:
    """Puts into each event the prompt's tokens, and how many its own choice has so far."""

    def __init__(self, inner: Renderer) -> None:
        self._inner = inner
        self.content_type = inner.content_type
        self._prompts: dict[int, int] = {}
        self._completions: dict[tuple[int, int], int] = {}

    def item(self, prompt: int, item: pb.Item) -> bytes:
        key = prompt, item.choice
        completion = self._completions.get(key, 0) + len(item.token_ids)
        self._completions[key] = completion
        if item.HasField("counts"):
            self._prompts[prompt] = item.counts.prompt
        event = self._inner.item(prompt, item)
        if not event:
            return event
        asked = self._prompts.get(prompt, 0)
        usage = {
            "prompt_tokens": asked,
            "completion_tokens": completion,
            "total_tokens": asked + completion,
        }
        return event[: -len(_END)] + b',"usage":' + _json(usage) + _END

    def token_of(self, prompt: int) -> SingleTokens:
        return EachItsOwn(
            lambda token_id, text: self.item(prompt, pb.Item(token_ids=(token_id,), text=text))
        )

    def end(self) -> bytes:
        return self._inner.end()

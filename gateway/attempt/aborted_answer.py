"""The answer to a request that was aborted by order before a worker, or another worker, had it.

It has the form that a worker's own would have: no text, or no more of it, and finish reason abort.
"""

import time
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from radixgate.errors import RadixgateError
from radixgate.gateway.attempt.answer_progress import AnswerProgress
from radixgate.gateway.attempt.broken_stream import BrokenStream, end_behind
from radixgate.proto import sse
from radixgate.proto.error_body import error_body
from radixgate.proto.fields import decode_object
from radixgate.proto.generation import AnswerContext, GenerationRequest
from radixgate.proto.native import parse_generate
from radixgate.proto.openai import parse_chat, parse_completion
from radixgate.proto.sampling import MAX_CHOICES

_CHAT = b"/v1/chat/completions"
_PARSERS: Mapping[bytes, Callable[[Mapping[str, object]], GenerationRequest]] = {
    _CHAT: parse_chat,
    b"/v1/completions": parse_completion,
    b"/generate": parse_generate,
}


class AbortedByOrder(RadixgateError):
    """By order, and in no form of generations; a client that meant it will not retry it."""

    status = 499
    kind = "aborted"
    broken: BrokenStream | None = None  # a stream that its worker broke off for it


@dataclass(frozen=True, slots=True)
class Ending:
    """How an answer ends, or all there is of it."""

    status: int
    content_type: bytes
    rest: bytes


def aborted_answer(
    path: bytes,
    body: bytes,
    request_id: str,
    progress: AnswerProgress | None = None,
    broken: BrokenStream | None = None,
) -> Ending:
    """After what `progress`, or a foreign worker's `broken` stream, have brought; None and
    None: nothing. An error for what is no generation."""
    if progress is not None and progress.begun:
        return _end_of(progress)
    error = AbortedByOrder("the request was aborted")
    nothing = Ending(error.status, b"application/json", error_body(error))
    parse = _PARSERS.get(path)
    if parse is None:
        return nothing
    values: Mapping[str, object] = {}
    try:
        values = decode_object(body)
        generation = parse(values)
    except RadixgateError:
        generation = None  # ours would have refused it; others take more, as images
    end = end_behind(path, broken or BrokenStream(), _choices(path, values, generation))
    if end is not None:
        return Ending(200, sse.CONTENT_TYPE, end)
    if generation is None:
        return nothing
    model = values.get("model")
    progress = AnswerProgress(generation, [array("I")] * len(generation.prompts))
    progress.open(
        AnswerContext(
            request_id=request_id,
            model=model if isinstance(model, str) else "",
            created=int(time.time()),
            token_bytes=_no_bytes,
            rids=generation.rids,
        ),
        Random(0),
    )
    return _end_of(progress)


def _choices(
    path: bytes, values: Mapping[str, object], generation: GenerationRequest | None
) -> int:
    """Of all prompts; 0: nobody knows."""
    if generation is not None:
        return len(generation.prompts) * (generation.sampling.n or 1)
    choices = values.get("n", 1)  # a chat is one prompt, whatever else it holds
    if path != _CHAT or not isinstance(choices, int):
        return 0
    return choices if 0 < choices <= MAX_CHOICES else 0


def _end_of(progress: AnswerProgress) -> Ending:
    return Ending(200, progress.renderer.content_type, progress.end_aborted())


def _no_bytes(token: int) -> bytes:
    return b""

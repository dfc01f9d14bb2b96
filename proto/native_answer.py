"""SGLang's `/generate`: the bytes of an answer.

As there, an event of a stream carries the text, the ids and the log probabilities so far, not the
difference. So what has come is kept as the JSON it is sent as, and sent again by copying.
"""

from collections.abc import Callable

import msgspec

from radixgate.proto import sse
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import AnswerContext, Renderer
from radixgate.proto.native_logprobs import JsonList, LogprobLists
from radixgate.proto.single_tokens import EachItsOwn, SingleTokens
from radixgate.proto.usage import cached_tokens

_json = msgspec.json.Encoder().encode


def renderer(
    *, stream: bool, batch: bool, choices: int, text_in_logprobs: bool
) -> Callable[[AnswerContext], Renderer]:
    """What makes the renderer. `batch`: the answer is an array, its events carry an index."""

    def make(context: AnswerContext) -> Renderer:
        form = _Form(context, choices, text_in_logprobs)
        return _Stream(form, batch) if stream else _Whole(form, batch)

    return make


class _Choice:
    """What one choice has produced so far."""

    __slots__ = (
        "counts",
        "finish",
        "input_logprobs",
        "logprobs",
        "output_ids",
        "text",
        "tokens",
        "weight_version",
    )

    def __init__(self) -> None:
        self.text = bytearray()  # as it stands between the quotes of a JSON string
        self.output_ids = JsonList()
        self.tokens = 0
        self.counts = pb.Counts()
        self.weight_version = ""
        self.finish: dict[str, object] | None = None
        self.logprobs: LogprobLists | None = None  # None: it has none
        self.input_logprobs: LogprobLists | None = None


class _Form:
    """The state of each choice, and how it reads as JSON."""

    def __init__(self, context: AnswerContext, choices: int, text_in_logprobs: bool) -> None:
        self._context = context
        self._choices_a_prompt = choices
        self._text_in_logprobs = text_in_logprobs
        self.choices: dict[int, _Choice] = {}

    def add(self, prompt: int, item: pb.Item) -> int:
        """Take `item` up; returns the index of its choice in the whole request."""
        index = prompt * self._choices_a_prompt + item.choice
        choice = self.choices.get(index)
        if choice is None:
            choice = self.choices[index] = _Choice()
        choice.text += _json(item.text)[1:-1]
        ids = item.token_ids[:]
        choice.output_ids.extend(ids)
        choice.tokens += len(ids)
        if item.logprobs:
            choice.logprobs = choice.logprobs or LogprobLists(self._text)
            choice.logprobs.extend(item.logprobs)
        if item.input_logprobs:
            choice.input_logprobs = choice.input_logprobs or LogprobLists(self._text)
            choice.input_logprobs.extend(item.input_logprobs)
        if item.HasField("counts"):
            choice.counts = item.counts
            choice.weight_version = item.weight_version
        if item.HasField("finish"):
            choice.finish = _finish(item.finish, choice.tokens)
        return index

    def read(self, index: int, *, numbered: bool = False) -> bytes:
        """`numbered`: with its index, as in an event of a batch. O(bytes), as copying is."""
        choice = self.choices[index]
        # They come with the first choice and hold for all.
        inputs = self.choices.get(index - index % self._choices_a_prompt, choice).input_logprobs
        return b"".join(
            (
                b'{"text":"',
                choice.text,
                b'","output_ids":[',
                choice.output_ids.elements,
                b'],"meta_info":',
                _json(self._meta(index, choice))[:-1],
                *(choice.logprobs.fields(b"output") if choice.logprobs else ()),
                *(inputs.fields(b"input") if inputs else ()),
                b'},"index":%d}' % index if numbered else b"}}",
            )
        )

    def _meta(self, index: int, choice: _Choice) -> dict[str, object]:
        counts = choice.counts
        prompt, fork = divmod(index, self._choices_a_prompt)
        rids = self._context.rids
        rid = rids[prompt] if prompt < len(rids) else self._context.request_id
        meta: dict[str, object] = {
            "id": rid if self._choices_a_prompt == 1 else f"{rid}-{fork}",
            "finish_reason": choice.finish,
            "prompt_tokens": counts.prompt,
            "completion_tokens": choice.tokens,
            "cached_tokens": cached_tokens(counts),
            "weight_version": choice.weight_version,
            "num_retractions": counts.retractions,
        }
        if choice.finish is not None:
            meta["e2e_latency"] = counts.e2e_s
            meta["queue_time"] = counts.queue_s
        return meta

    def _text(self, token_id: int) -> str | None:
        if not self._text_in_logprobs:
            return None
        return self._context.token_bytes(token_id).decode("utf-8", "replace")


class _Stream:
    content_type = sse.CONTENT_TYPE

    def __init__(self, form: _Form, batch: bool) -> None:
        self._form = form
        self._batch = batch

    def item(self, prompt: int, item: pb.Item) -> bytes:
        index = self._form.add(prompt, item)
        if not item.token_ids and not item.HasField("finish"):
            return b""  # nothing that counts as progress: the next event carries it
        return sse.event(self._form.read(index, numbered=self._batch))

    def token_of(self, prompt: int) -> SingleTokens:
        return EachItsOwn(lambda token_id, text: self.item(prompt, _item(token_id, text)))

    def end(self) -> bytes:
        return sse.DONE


class _Whole:
    content_type = b"application/json"

    def __init__(self, form: _Form, batch: bool) -> None:
        self._form = form
        self._batch = batch

    def item(self, prompt: int, item: pb.Item) -> bytes:
        self._form.add(prompt, item)
        return b""

    def token_of(self, prompt: int) -> SingleTokens:
        return EachItsOwn(lambda token_id, text: self.item(prompt, _item(token_id, text)))

    def end(self) -> bytes:
        answers = [self._form.read(index) for index in sorted(self._form.choices)]
        return b"[%b]" % b",".join(answers) if self._batch else answers[0]


def _item(token_id: int, text: str) -> pb.Item:
    return pb.Item(token_ids=(token_id,), text=text)


def _finish(finish: pb.Finish, length: int) -> dict[str, object]:
    if finish.reason == pb.Finish.LENGTH:
        return {"type": "length", "length": length}
    if finish.reason == pb.Finish.ABORT:
        return {"type": "abort", "message": finish.message}
    matched = finish.WhichOneof("matched")
    return {"type": "stop", "matched": getattr(finish, matched) if matched else None}

"""SGLang's `/generate`: the bytes of an answer.

As there, an event of a stream carries the text and the ids so far, not the difference.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from radixgate.proto import sse
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import AnswerContext, Renderer
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


@dataclass(slots=True)
class _Choice:
    """What one choice has produced so far."""

    text: str = ""
    output_ids: list[int] = field(default_factory=list)
    counts: pb.Counts | None = None
    finish: dict[str, object] | None = None
    weight_version: str = ""
    logprobs: list[pb.TokenLogprobs] = field(default_factory=list)
    input_logprobs: list[pb.TokenLogprobs] = field(default_factory=list)


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
        choice.text += item.text
        choice.output_ids.extend(item.token_ids)
        choice.logprobs.extend(item.logprobs)
        choice.input_logprobs.extend(item.input_logprobs)
        if item.HasField("counts"):
            choice.counts = item.counts
            choice.weight_version = item.weight_version
        if item.HasField("finish"):
            choice.finish = _finish(item.finish, len(choice.output_ids))
        return index

    def read(self, index: int) -> dict[str, object]:
        choice = self.choices[index]
        return {
            "text": choice.text,
            "output_ids": choice.output_ids,
            "meta_info": self._meta(index, choice),
        }

    def _meta(self, index: int, choice: _Choice) -> dict[str, object]:
        counts = choice.counts or pb.Counts()
        prompt, fork = divmod(index, self._choices_a_prompt)
        rids = self._context.rids
        rid = rids[prompt] if prompt < len(rids) else self._context.request_id
        meta: dict[str, object] = {
            "id": rid if self._choices_a_prompt == 1 else f"{rid}-{fork}",
            "finish_reason": choice.finish,
            "prompt_tokens": counts.prompt,
            "completion_tokens": len(choice.output_ids),
            "cached_tokens": cached_tokens(counts),
            "weight_version": choice.weight_version,
            "num_retractions": counts.retractions,
        }
        if choice.finish is not None:
            meta["e2e_latency"] = counts.e2e_s
            meta["queue_time"] = counts.queue_s
        if choice.logprobs:
            meta["output_token_logprobs"] = [self._entry(entry) for entry in choice.logprobs]
            if any(entry.top for entry in choice.logprobs):
                meta["output_top_logprobs"] = [self._tops(entry) for entry in choice.logprobs]
            if any(entry.of_ids for entry in choice.logprobs):
                meta["output_token_ids_logprobs"] = [
                    self._of_ids(entry) for entry in choice.logprobs
                ]
        # They come with the first choice and hold for all.
        inputs = self.choices.get(index - fork, choice).input_logprobs
        if inputs:
            meta["input_token_logprobs"] = [self._entry(entry) for entry in inputs]
            if any(entry.top for entry in inputs):
                meta["input_top_logprobs"] = [self._tops(entry) for entry in inputs]
            if any(entry.of_ids for entry in inputs):
                meta["input_token_ids_logprobs"] = [self._of_ids(entry) for entry in inputs]
        return meta

    def _entry(self, entry: pb.TokenLogprobs) -> tuple[float | None, int, str | None]:
        logprob = entry.logprob if entry.HasField("logprob") else None
        return logprob, entry.token_id, self._text(entry.token_id)

    def _tops(self, entry: pb.TokenLogprobs) -> list[tuple[float, int, str | None]]:
        return [(top.logprob, top.token_id, self._text(top.token_id)) for top in entry.top]

    def _of_ids(self, entry: pb.TokenLogprobs) -> list[tuple[float, int, str | None]]:
        return [(one.logprob, one.token_id, self._text(one.token_id)) for one in entry.of_ids]

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
        event = self._form.read(index)
        if self._batch:
            event["index"] = index
        return sse.event(_json(event))

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
        return _json(answers if self._batch else answers[0])


def _item(token_id: int, text: str) -> pb.Item:
    return pb.Item(token_ids=(token_id,), text=text)


def _finish(finish: pb.Finish, length: int) -> dict[str, object]:
    if finish.reason == pb.Finish.LENGTH:
        return {"type": "length", "length": length}
    if finish.reason == pb.Finish.ABORT:
        return {"type": "abort", "message": finish.message}
    matched = finish.WhichOneof("matched")
    return {"type": "stop", "matched": getattr(finish, matched) if matched else None}

"""Chat and text completions: the bytes of an answer, whole or as a stream of events.

Shapes: https://platform.openai.com/docs/api-reference/chat/streaming and /completions/object.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from radixgate.proto import openai_logprobs, sse
from radixgate.proto.fields import Fields
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.generation import AnswerContext, Renderer
from radixgate.proto.openai_logprobs import Offsets
from radixgate.proto.sampling_fields import top_logprobs
from radixgate.proto.single_tokens import EachItsOwn, Held, SingleTokens, TokenEvents
from radixgate.proto.usage import UsageSum

_json = msgspec.json.Encoder().encode
_FINISH = {pb.Finish.STOP: "stop", pb.Finish.LENGTH: "length", pb.Finish.ABORT: "abort"}
TokenBytes = Callable[[int], bytes]
Entries = Sequence[pb.TokenLogprobs]
Echo = Callable[[TokenBytes], str]  # a prompt's text


class AnswerForm(Protocol):
    """What differs between a chat completion and a text completion."""

    id_prefix: str
    whole_object: str
    stream_object: str
    after_text: bytes

    def read_logprobs(self, fields: Fields) -> int | None:
        """How many top logprobs were asked for; None: no logprobs at all."""
        ...

    def before_text(self, first: bool) -> bytes:
        """The JSON member that carries the text in a chunk's choice, up to the text."""
        ...

    def whole(self, text: str) -> dict[str, object]:
        """The members that carry the whole text of a choice."""
        ...

    def logprobs(self, entries: Entries, token_bytes: TokenBytes, offsets: Offsets) -> object:
        """`offsets`: of the choice, for where its tokens begin."""
        ...


class _Chat:
    id_prefix = "chatcmpl-"
    whole_object = "chat.completion"
    stream_object = "chat.completion.chunk"
    after_text = b"}"

    def read_logprobs(self, fields: Fields) -> int | None:
        wanted = top_logprobs(fields, "top_logprobs")
        if not fields.flag("logprobs"):
            return None
        return wanted or 0

    def before_text(self, first: bool) -> bytes:
        role = b'"role":"assistant",' if first else b""
        return b'"delta":{' + role + b'"content":'

    def whole(self, text: str) -> dict[str, object]:
        return {"message": {"role": "assistant", "content": text}}

    def logprobs(self, entries: Entries, token_bytes: TokenBytes, offsets: Offsets) -> object:
        return openai_logprobs.chat(entries, token_bytes)


class _Completion:
    id_prefix = "cmpl-"
    whole_object = "text_completion"
    stream_object = "text_completion"
    after_text = b""

    def read_logprobs(self, fields: Fields) -> int | None:
        return top_logprobs(fields, "logprobs")

    def before_text(self, first: bool) -> bytes:
        return b'"text":'

    def whole(self, text: str) -> dict[str, object]:
        return {"text": text}

    def logprobs(self, entries: Entries, token_bytes: TokenBytes, offsets: Offsets) -> object:
        return openai_logprobs.completion(entries, token_bytes, offsets)


chat: AnswerForm = _Chat()
completion: AnswerForm = _Completion()


def renderer(
    form: AnswerForm,
    *,
    stream: bool,
    include_usage: bool,
    choices: int,
    echoes: Sequence[Echo] = (),
) -> Callable[[AnswerContext], Renderer]:
    """What makes the renderer once it is known who answers. `choices` is n, for each prompt.

    `echoes`, one a prompt, stand before each of its texts, in a stream with the first event of each
    choice; empty: nothing does.
    """

    def make(context: AnswerContext) -> Renderer:
        if stream:
            return _Stream(form, context, choices, include_usage, echoes)
        return _Whole(form, context, choices, echoes)

    return make


class _Stream:
    """One event an item that has text or a finish; an item without either is held back."""

    content_type = sse.CONTENT_TYPE

    def __init__(
        self,
        form: AnswerForm,
        context: AnswerContext,
        choices: int,
        include_usage: bool,
        echoes: Sequence[Echo],
    ) -> None:
        self._form = form
        self._echoes = echoes
        # The scores of echoed prompts: they come with a prompt's first choice and hold for all.
        # Bounded by the prompts.
        self._scored: dict[int, list[pb.TokenLogprobs]] = {}
        self._token_bytes = context.token_bytes
        self._choices = choices
        self._include_usage = include_usage
        self._report_cached = context.report_cached
        self._usage = UsageSum()
        self._held: dict[int, Held] = {}
        about = {
            "id": form.id_prefix + context.request_id,
            "object": form.stream_object,
            "created": context.created,
            "model": context.model,
        }
        self._head = b"data: " + _json(about)[:-1] + b',"choices":['
        # Behind the text of an event that brings nothing else.
        self._only_text = form.after_text + b',"logprobs":null,"finish_reason":null}]}\n\n'

    def item(self, prompt: int, item: pb.Item) -> bytes:
        self._usage.add(prompt, item)
        index = prompt * self._choices + item.choice
        held = self._held.get(index) or self._hold(index)
        if item.logprobs:
            held.logprobs.extend(item.logprobs)
        if self._echoes and item.input_logprobs:
            self._scored.setdefault(prompt, []).extend(item.input_logprobs)
        finished = item.HasField("finish")
        text = item.text
        if not text and not finished:
            return b""
        if self._echoes and not held.begun:
            text = self._echoes[prompt](self._token_bytes) + text
            held.logprobs[:0] = self._scored.get(prompt, ())
        event = held.before + _json(text)
        if not held.begun:
            held.begun = True
            held.before = self._before(index, first=False)
        if not finished and not held.logprobs:
            return event + self._only_text
        finish = b'"' + _FINISH[item.finish.reason].encode() + b'"' if finished else b"null"
        logprobs, end = self._take_logprobs(held), self._form.after_text
        return b'%b%b,"logprobs":%b,"finish_reason":%b}]}\n\n' % (event, end, logprobs, finish)

    def token_of(self, prompt: int) -> SingleTokens:
        index = prompt * self._choices
        held = self._held.get(index) or self._hold(index)
        return TokenEvents(self.item, prompt, held, self._only_text)

    def end(self) -> bytes:
        if not self._include_usage:
            return sse.DONE
        usage = self._usage.openai(report_cached=self._report_cached)
        return self._head + b'],"usage":' + _json(usage) + b"}\n\n" + sse.DONE

    def _hold(self, index: int) -> Held:
        held = self._held[index] = Held(self._before(index, first=True))
        return held

    def _before(self, index: int, *, first: bool) -> bytes:
        return b'%b{"index":%d,%b' % (self._head, index, self._form.before_text(first))

    def _take_logprobs(self, held: Held) -> bytes:
        if not held.logprobs:
            return b"null"
        entries, held.logprobs = held.logprobs, []
        held.offsets = held.offsets or Offsets()
        return _json(self._form.logprobs(entries, self._token_bytes, held.offsets))


@dataclass(slots=True)
class _Collected:
    texts: list[str] = field(default_factory=list)
    logprobs: list[pb.TokenLogprobs] = field(default_factory=list)
    input_logprobs: list[pb.TokenLogprobs] = field(default_factory=list)
    finish: str | None = None


class _Whole:
    """Keeps what comes and gives the whole answer at the end; its size is bounded by max_tokens."""

    content_type = b"application/json"

    def __init__(
        self, form: AnswerForm, context: AnswerContext, choices: int, echoes: Sequence[Echo]
    ) -> None:
        self._echoes = echoes
        self._form = form
        self._context = context
        self._choices = choices
        self._usage = UsageSum()
        self._collected: dict[int, _Collected] = {}

    def item(self, prompt: int, item: pb.Item) -> bytes:
        self._usage.add(prompt, item)
        choice = self._collected.setdefault(prompt * self._choices + item.choice, _Collected())
        choice.texts.append(item.text)
        choice.logprobs.extend(item.logprobs)
        choice.input_logprobs.extend(item.input_logprobs)
        if item.HasField("finish"):
            choice.finish = _FINISH[item.finish.reason]
        return b""

    def token_of(self, prompt: int) -> SingleTokens:
        choice = self._collected.setdefault(prompt * self._choices, _Collected())

        def add(token_id: int, text: str) -> bytes:
            choice.texts.append(text)
            return b""

        return EachItsOwn(add)

    def end(self) -> bytes:
        return _json(
            {
                "id": self._form.id_prefix + self._context.request_id,
                "object": self._form.whole_object,
                "created": self._context.created,
                "model": self._context.model,
                "choices": [self._choice(index) for index in sorted(self._collected)],
                "usage": self._usage.openai(report_cached=self._context.report_cached),
            }
        )

    def _choice(self, index: int) -> dict[str, object]:
        choice, token_bytes = self._collected[index], self._context.token_bytes
        text, entries = "".join(choice.texts), choice.logprobs
        if self._echoes:
            prompt = index // self._choices
            text = self._echoes[prompt](token_bytes) + text
            # They come with a prompt's first choice and hold for all.
            entries = [*self._collected[prompt * self._choices].input_logprobs, *entries]
        logprobs = self._form.logprobs(entries, token_bytes, Offsets()) if entries else None
        return {
            "index": index,
            **self._form.whole(text),
            "logprobs": logprobs,
            "finish_reason": choice.finish,
        }

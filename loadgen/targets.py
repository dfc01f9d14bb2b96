"""How each kind of server is asked, and what its events say."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.schedule import ScheduledRequest


@dataclass(frozen=True, slots=True)
class Event:
    """One event of an answer."""

    at_s: float
    characters: int = 0  # of new text
    tokens_so_far: int | None = None  # of the answer; None: the event does not say
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: str | None = None
    error: str | None = None  # the message of an error event
    of_choice: bool = True  # False: it is about the whole answer (usage)


class Target(Protocol):
    """One endpoint."""

    path: str

    def body(self, request: ScheduledRequest) -> bytes:
        """The request's body. Raises ConfigError for a prompt that the endpoint cannot take."""
        ...

    def events(self, payloads: Iterable[tuple[float, bytes]]) -> list[Event]:
        """The events in the data of an SSE stream, without its `[DONE]`.

        Raises msgspec.DecodeError (also in the form of its ValidationError) for data that are
        not such an event.
        """
        ...


class _Meta(msgspec.Struct):
    finish_reason: object = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


class _NativeEvent(msgspec.Struct):
    text: str | None = None
    meta_info: _Meta = msgspec.field(default_factory=_Meta)
    error: object = None


class NativeTarget:
    """SGLang's `/generate`."""

    path = "/generate"

    def __init__(self, fields: "BodyFields") -> None:
        self._fields = fields
        self._decode = msgspec.json.Decoder(_NativeEvent).decode

    def body(self, request: ScheduledRequest) -> bytes:
        own = self._fields
        body = request.prompt.native() | {
            "sampling_params": {
                "temperature": own.temperature,
                "max_new_tokens": request.output_tokens,
                "ignore_eos": own.ignore_eos,
                "sampling_seed": own.seed,
            },
            "stream": True,
        }
        if own.model_asked is not None:
            body["model"] = own.model_asked
        return _merged(body | own.of_session(request), own.extra)

    def events(self, payloads: Iterable[tuple[float, bytes]]) -> list[Event]:
        shown = ""
        events = []
        for at_s, data in payloads:
            said = self._decode(data)
            text = said.text or ""
            # The text so far as a rule; servers can be told to send only what is new.
            new = len(text) - len(shown) if text.startswith(shown) else len(text)
            shown = text or shown
            events.append(
                Event(
                    at_s,
                    characters=new if text else 0,
                    tokens_so_far=said.meta_info.completion_tokens,
                    prompt_tokens=said.meta_info.prompt_tokens,
                    cached_tokens=said.meta_info.cached_tokens,
                    finish_reason=_reason(said.meta_info.finish_reason),
                    error=_message(said.error),
                )
            )
        return events


class _Cached(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Cached | None = None


class _Delta(msgspec.Struct):
    content: str | None = None
    reasoning_content: str | None = None
    tool_calls: object = None


class _Choice(msgspec.Struct):
    text: str | None = None
    delta: _Delta | None = None
    finish_reason: str | None = None


class _OpenAIEvent(msgspec.Struct):
    choices: list[_Choice] = msgspec.field(default_factory=list)
    usage: _Usage | None = None
    error: object = None
    object: str | None = None
    message: str | None = None


class OpenAITarget:
    """`/v1/completions`, and `/v1/chat/completions` if `chat`."""

    def __init__(self, fields: "BodyFields", *, chat: bool) -> None:
        self.path = "/v1/chat/completions" if chat else "/v1/completions"
        self._fields = fields
        self._chat = chat
        self._decode = msgspec.json.Decoder(_OpenAIEvent).decode

    def body(self, request: ScheduledRequest) -> bytes:
        own = self._fields
        prompt = request.prompt
        body: dict[str, object] = (
            {"messages": prompt.messages()} if self._chat else {"prompt": prompt.completion()}
        )
        body |= {
            "model": own.model,
            "temperature": own.temperature,
            "max_tokens": request.output_tokens,
            "ignore_eos": own.ignore_eos,
            "seed": own.seed,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }
        return _merged(body | own.of_session(request), own.extra)

    def events(self, payloads: Iterable[tuple[float, bytes]]) -> list[Event]:
        return [self._event(at_s, self._decode(data)) for at_s, data in payloads]

    def _event(self, at_s: float, said: _OpenAIEvent) -> Event:
        usage = said.usage or _Usage()
        choice = said.choices[0] if said.choices else _Choice()
        error = said.error
        if error is None and said.object == "error":
            error = said.message or "error"
        return Event(
            at_s,
            characters=_characters(choice),
            tokens_so_far=usage.completion_tokens,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=(usage.prompt_tokens_details or _Cached()).cached_tokens,
            finish_reason=choice.finish_reason,
            error=_message(error),
            of_choice=bool(said.choices),
        )


@dataclass(frozen=True, slots=True)
class BodyFields:
    """What every body of a run has in common."""

    model: str
    model_asked: str | None  # None: the user named none, and `/generate` needs none
    temperature: float
    ignore_eos: bool
    seed: int
    extra: Mapping[str, object]
    send_session: bool = False

    @classmethod
    def of(cls, config: BenchConfig, model: str, extra: Mapping[str, object]) -> "BodyFields":
        return cls(
            model=model,
            model_asked=config.model,
            temperature=config.temperature,
            ignore_eos=not config.disable_ignore_eos,
            seed=config.seed,
            extra=extra,
            send_session=config.send_session,
        )

    def of_session(self, request: ScheduledRequest) -> dict[str, object]:
        """What a body says of its session: nothing unless asked to."""
        return {"session_id": request.session} if self.send_session else {}


def target_for(backend: str, fields: BodyFields) -> Target:
    """The endpoint that a `--backend` stands for."""
    if backend in NATIVE_BACKENDS:
        return NativeTarget(fields)
    return OpenAITarget(fields, chat=backend.endswith("-chat"))


NATIVE_BACKENDS = frozenset({"radixgate", "sglang", "sglang-native"})


def _merged(body: dict[str, object], extra: Mapping[str, object]) -> bytes:
    """`extra` over the body; objects in both are merged one level deep."""
    for name, value in extra.items():
        own = body.get(name)
        body[name] = own | value if isinstance(own, dict) and isinstance(value, dict) else value
    return msgspec.json.encode(body)


def _characters(choice: _Choice) -> int:
    delta = choice.delta or _Delta()
    said = len(choice.text or "") + len(delta.content or "") + len(delta.reasoning_content or "")
    return said + (1 if delta.tool_calls else 0)


def _reason(value: object) -> str | None:
    """SGLang's finish reason is an object with a type; others give the text alone."""
    if isinstance(value, dict):
        value = value.get("type")
    return value if isinstance(value, str) else None


def _message(error: object) -> str | None:
    if error is None:
        return None
    if isinstance(error, dict):
        error = error.get("message", "")
    return str(error) or "no message"

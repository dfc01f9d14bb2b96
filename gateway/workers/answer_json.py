"""What a worker's answers say, in their JSON, of their cost and of their end."""

import msgspec

from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.gateway.workers.error_events import status_of, status_of_response

UNKNOWN = AnswerCounts()


class _PromptDetails(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    """Of chats, completions, embeddings; and under other names of /v1/responses."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _PromptDetails | None = None

    def counts(self) -> AnswerCounts:
        details = self.prompt_tokens_details or self.input_tokens_details
        return AnswerCounts(
            prompt=self.input_tokens if self.prompt_tokens is None else self.prompt_tokens,
            cached=None if details is None else details.cached_tokens,
            completion=(
                self.output_tokens if self.completion_tokens is None else self.completion_tokens
            ),
        )


class _Response(msgspec.Struct):
    """What the events of /v1/responses hold."""

    id: object = None
    usage: _Usage | None = None
    error: object = None

    def counts(self) -> AnswerCounts | None:
        counts = None if self.usage is None else self.usage.counts()
        if not isinstance(self.id, str):
            return counts
        return msgspec.structs.replace(counts or UNKNOWN, response_id=self.id)


class _MetaInfo(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    finish_reason: object = None


class _Choice(msgspec.Struct):
    finish_reason: object = None


class _Answer(msgspec.Struct):
    """What an answer says of its cost, in OpenAI's or SGLang's native form."""

    usage: _Usage | None = None
    meta_info: _MetaInfo | None = None
    id: object = None
    what: object = msgspec.field(default=None, name="object")

    def counts(self) -> AnswerCounts | None:
        if self.what == "response":
            return _Response(self.id, self.usage).counts()
        if self.usage is not None:
            return self.usage.counts()
        if self.meta_info is not None:
            meta = self.meta_info
            return AnswerCounts(meta.prompt_tokens, meta.cached_tokens, meta.completion_tokens)
        return None


# The last event of a stream of /v1/responses is one of these.
_FAILED_EVENTS = ("response.failed", "error")
_LAST_EVENTS = ("response.completed", "response.incomplete", *_FAILED_EVENTS)


class Event(_Answer):
    """An event of a streamed answer."""

    choices: list[_Choice] | None = None
    error: object = None
    type: object = None  # of the events of /v1/responses
    code: object = None  # of their errors
    response: _Response | None = None

    def counts(self) -> AnswerCounts | None:
        if self.response is not None:
            return self.response.counts()
        if self.usage is None and self.meta_info is None and self.what != "response":
            return None  # as most of them
        return super().counts()

    @property
    def error_status(self) -> int:
        """Of the error that it is, 400 to 599; 0: it is none."""
        if self.error is not None:
            return status_of(self.error)
        if self.type not in _FAILED_EVENTS:
            return 0
        told = {"code": self.code} if self.response is None else self.response.error
        return status_of_response(told)

    @property
    def finishes(self) -> bool:
        """None of the answer's own comes behind it."""
        if self.error is not None or self.type in _LAST_EVENTS:
            return True
        if self.meta_info is not None and self.meta_info.finish_reason is not None:
            return True
        return any(choice.finish_reason is not None for choice in self.choices or ())


_decode_one = msgspec.json.Decoder(_Answer).decode
_decode_many = msgspec.json.Decoder(list[_Answer]).decode
_decode_event = msgspec.json.Decoder(Event).decode


def counts_of(body: bytes) -> AnswerCounts:
    """Of a JSON answer that is there as a whole; unknown where it does not say."""
    try:
        if body[:1] != b"[":
            return _decode_one(body).counts() or UNKNOWN
        batch = _decode_many(body)  # of native requests
    except msgspec.MsgspecError:
        return UNKNOWN
    return _sum([counts for answer in batch if (counts := answer.counts()) is not None])


def read_event(event: bytes) -> Event | None:
    """The data of one event; None: it is nothing that we know."""
    try:
        return _decode_event(event)
    except msgspec.MsgspecError:
        return None


def _sum(counts: list[AnswerCounts]) -> AnswerCounts:
    """Of a batch; a figure that one answer lacks is unknown for all."""
    return AnswerCounts(
        prompt=_add([one.prompt for one in counts]),
        cached=_add([one.cached for one in counts]),
        completion=_add([one.completion for one in counts]),
    )


def _add(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None

"""A generation request after parsing, whatever API it came by, and what answers it."""

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from radixgate.errors import RequestError
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.single_tokens import SingleTokens


class Encoder(Protocol):
    """Turns what a client wrote into token ids; its owner decides about threads and caches."""

    @property
    def highest_id(self) -> int:
        """None that it gives is above."""
        ...

    def encode_text(self, text: str) -> "array[int]":
        """As a client wrote it."""
        ...

    def render_messages(
        self,
        messages: Sequence[Mapping[str, object]],
        *,
        tools: Sequence[object] | None,
        template_kwargs: Mapping[str, object] | None,
    ) -> str:
        """Raises RequestError."""
        ...

    def encode_rendered(self, text: str) -> "array[int]":
        """What `render_messages` gave."""
        ...


class Prompt(Protocol):
    """One prompt, in the form the client gave it."""

    @property
    def field(self) -> str:
        """Where the client wrote it: `messages`, `prompt`, `text` or `input_ids`."""
        ...

    @property
    def written_as_ids(self) -> bool:
        """Its ids are the client's own."""
        ...

    def text(self, encoder: Encoder) -> str:
        """What there is to be encoded; empty where the client wrote ids. Raises RequestError
        naming the field."""
        ...

    @property
    def rendered_quickly(self) -> bool:
        """What `text` takes goes by the prompt's length alone: there is little that a template
        could loop over."""
        ...

    def token_ids(self, encoder: Encoder, text: str) -> "array[int]":
        """The ids to prefill, array of type 'I'. `text`: what `text` gave."""
        ...

    def routing_bytes(self) -> bytes:
        """Bytes that grow as the prompt grows, where no tokenizer is at hand to route by."""
        ...


class GenerationRequest(msgspec.Struct, frozen=True, gc=False):
    """What to generate. One `Submit` for each prompt; each has `sampling.n` choices."""

    prompts: Sequence[Prompt]
    sampling: pb.Sampling  # only the fields that the client gave
    stream: bool
    renderer: Callable[["AnswerContext"], "Renderer"]
    model: str | None = None  # None: the only one there is
    rids: Sequence[str] = ()  # given by the client, one for each prompt; else empty
    adapter: str | None = None
    salt: str | None = None
    priority: int = 0
    session: str | None = None  # what sticky routing goes by


class AnswerContext(msgspec.Struct, frozen=True, gc=False):
    """What an answer says about itself."""

    request_id: str
    model: str
    created: int  # seconds since the epoch
    token_bytes: Callable[[int], bytes]  # used only where logprobs were asked for
    rids: Sequence[str] = ()  # one for each prompt
    report_cached: bool = True  # OpenAI's usage says how many prompt tokens were cached


class Renderer(Protocol):
    """Turns the items of one request into the bytes of its answer.

    A renderer of a whole answer returns b"" from `item` and everything from `end`.
    """

    content_type: bytes

    def item(self, prompt: int, item: pb.Item) -> bytes:
        """What can be sent now that `item` has come for prompt number `prompt`."""
        ...

    def token_of(self, prompt: int) -> SingleTokens:
        """`item` for a token id of choice 0 with its text and nothing else, made once a prompt."""
        ...

    def end(self) -> bytes:
        """The rest, after the last item of every choice."""
        ...


def encode_prompt(
    prompt: Prompt,
    encoder: Encoder,
    *,
    vocab_size: int,
    context_length: int,
    text: str | None = None,
) -> "array[int]":
    """The prompt's ids, known to be ones the model can take. O(length of the prompt).

    `text`: the prompt's, where it is at hand.
    A prompt that fills the context leaves no room for an answer and is refused. Raises
    RequestError naming the prompt's field.
    """
    ids = prompt.token_ids(encoder, prompt.text(encoder) if text is None else text)
    where = prompt.field
    if not ids:
        raise RequestError(f"{where} has no tokens: at least one is needed", param=where)
    if len(ids) >= context_length:
        raise RequestError(
            f"{where} has {len(ids)} tokens; the context of {context_length} leaves no room for"
            " an answer: shorten it",
            param=where,
            code="context_length_exceeded",
        )
    if not prompt.written_as_ids and encoder.highest_id < vocab_size:
        return ids
    highest = max(ids)
    if highest >= vocab_size:
        raise RequestError(
            f"{where} holds token id {highest}; the model has {vocab_size} tokens", param=where
        )
    return ids

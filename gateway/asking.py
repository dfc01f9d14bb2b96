"""From a request's JSON to what the fleet is asked: model, prompt, and the prompt's block ids."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from xxhash import xxh3_64_intdigest

from radixgate.errors import NoWorkerAvailable, RequestError, UnknownModel
from radixgate.fleet.fleet import Ask, Fleet, MirrorKey
from radixgate.gateway.attempt import PromptTokens
from radixgate.gateway.foreign_request import ForeignRequest, read_foreign
from radixgate.proto.blocks import byte_chain, root_id
from radixgate.proto.generation import GenerationRequest
from radixgate.proto.native import parse_generate
from radixgate.proto.openai import parse_chat, parse_completion
from radixgate.proto.routing_text import conversation_of

Body = Mapping[str, object]
Blocks = Mapping[MirrorKey, Sequence[int]]
BYTES: Literal["bytes"] = "bytes"
# What a token is worth where no tokenizer is known: English prose in common vocabularies.
BYTES_A_TOKEN = 4

_PARSERS: Mapping[bytes, Callable[[Body], GenerationRequest]] = {
    b"/v1/chat/completions": parse_chat,
    b"/v1/completions": parse_completion,
    b"/generate": parse_generate,
}


@dataclass(frozen=True, slots=True)
class Question:
    """A request, read as far as its workers need it."""

    ask: Ask
    generation: GenerationRequest | None = None  # None: only foreign workers serve the model
    prompt: PromptTokens | None = None


class PromptReader(Protocol):
    """Turns prompts into the tokens and block ids of our own workers."""

    async def read(
        self, model: str, generation: GenerationRequest, keys: Sequence[MirrorKey]
    ) -> tuple[PromptTokens, Blocks]:
        """Tokens of every prompt, and under each of `keys` the block ids of the first one.

        Raises RequestError (too long, a template that refuses), or WorkerFailed if no tokenizer
        could be had.
        """
        ...


class Asking:
    """Reads requests against the fleet as it is now."""

    def __init__(self, fleet: Fleet, prompts: PromptReader) -> None:
        self._fleet = fleet
        self._prompts = prompts

    def model_of(self, body: Body) -> str:
        """The model to route by. Raises UnknownModel, RequestError, or NoWorkerAvailable."""
        name = body.get("model")
        if name is not None and not isinstance(name, str):
            raise RequestError("model must be a string", param="model")
        models = self._fleet.models()
        if not models:
            raise NoWorkerAvailable("no worker has joined yet")
        if name is not None and name in models:
            return name
        known = ", ".join(sorted(models))
        if name is not None:
            raise UnknownModel(
                f"no worker serves the model {name!r:.200}; there are: {known}",
                param="model",
                code="model_not_found",
            )
        if len(models) > 1:
            raise RequestError(f"name a model: {known}", param="model")
        (only,) = models
        return only

    def needs_tokens(self, model: str) -> bool:
        """Workers of ours serve the model: then `read_own`, else `read_foreign`."""
        return any(key.unit != BYTES for key in self._fleet.mirrors_of(model))

    def read_foreign(self, path: bytes, model: str, body: Body) -> Question:
        """Raises RequestError naming the field."""
        request = read_foreign(path, body)
        blocks = self._byte_blocks(model, request.salt, request.prompt)
        return Question(_ask_of(model, request, blocks))

    async def read_own(self, path: bytes, model: str, body: Body) -> Question:
        """Raises RequestError naming the field; WorkerFailed if no tokenizer could be had."""
        generation = _PARSERS[path](body)
        first = generation.prompts[0].routing_bytes()
        keys = [key for key in self._fleet.mirrors_of(model) if key.unit != BYTES]
        prompt, blocks = await self._prompts.read(model, generation, keys)
        ask = Ask(
            model=model,
            prompt_tokens=prompt.total,
            blocks={**self._byte_blocks(model, generation.salt, first), **blocks},
            session=generation.session or conversation_of(first),
            group=None,
            tenant=None,
            priority=generation.priority,
            fingerprint=xxh3_64_intdigest(first),
        )
        return Question(ask, generation, prompt)

    def _byte_blocks(self, model: str, salt: str | None, prompt: bytes) -> Blocks:
        keys = [key for key in self._fleet.mirrors_of(model) if key.unit == BYTES]
        if not keys:
            return {}
        ids = byte_chain(root_id(model, None, salt), prompt)
        return dict.fromkeys(keys, ids)


def _ask_of(model: str, request: ForeignRequest, blocks: Blocks) -> Ask:
    return Ask(
        model=model,
        prompt_tokens=max(1, len(request.prompt) // BYTES_A_TOKEN),
        blocks=blocks,
        session=request.session or conversation_of(request.prompt),
        group=None,
        tenant=None,
        priority=request.priority,
        fingerprint=xxh3_64_intdigest(request.prompt),
    )

"""Prompts of our own workers' models: token ids and block ids, worked out off the event loop."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

import msgspec

from radixgate.errors import WorkerFailed
from radixgate.fleet.fleet import MirrorKey
from radixgate.gateway.attempt.attempt import PromptTokens
from radixgate.proto.blocks import root_id
from radixgate.proto.generation import Encoder, GenerationRequest, encode_prompt
from radixgate.proto.prompt_length import check_length
from radixgate.proto.token_chains import TokenChains

# Token ids that come as such cost nothing to take over, and so much text as the way to a thread and
# back: 0.1 ms, and 0.3 where nothing else has been done for a while. Both are encoded where they
# are, and so is a prompt that has no more of it beside what was encoded before.
AT_ONCE_CHARS = 512
# A longer prompt is rendered in the thread, too, and so is one of very many parts: of this one it
# takes 0.1 ms, and to look its parts up as long.
RENDERED_AT_ONCE_BYTES = 32_768
Read = tuple[PromptTokens, Mapping[MirrorKey, Sequence[int]]]
T = TypeVar("T")


class ModelTokenizer(Protocol):
    """One model's vocabulary, as far as the gateway asks for it."""

    @property
    def start_ids(self) -> Sequence[int]:
        """What a prompt in plain text begins with."""
        ...

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = True) -> str: ...

    def shown_bytes(self, token_id: int) -> bytes: ...


class ModelEncoder(Encoder, Protocol):
    """One model's template and tokenizer. Made by who speaks to its workers: a gateway that has
    foreign ones only loads no tokenizer library."""

    @property
    def tokenizer(self) -> ModelTokenizer: ...

    def unknown_chars(self, text: str) -> int:
        """How much of it has to be tokenized; the rest is kept. O(len(text))."""
        ...


class ServedModel(msgspec.Struct, frozen=True):
    """What is needed to talk to every worker of one model."""

    name: str  # what clients ask for
    weights_id: str
    tokenizer_hash: str
    vocab_size: int
    context_length: int
    encoder: ModelEncoder


class PromptTokenizer:
    """The models that our own workers serve, and their tokenizers.

    Owned by the loop's thread; the encoders and the chains are called from the encoding thread too.
    """

    def __init__(self) -> None:
        self._models: dict[str, ServedModel] = {}
        self._chains = TokenChains()
        # One thread: tokenizing is bounded by a core, and the loop needs the other.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tokenize")

    def served(self, model: str) -> ServedModel | None:
        """None: no worker of ours has told of it yet."""
        return self._models.get(model)

    def learn(self, served: ServedModel) -> None:
        """A worker told of its model; the last word counts (a fleet is updated one by one)."""
        self._models[served.name] = served

    def encoder_of(self, tokenizer_hash: str) -> ModelEncoder | None:
        """The encoder that another worker has brought, with all it has seen; None: read it."""
        for served in self._models.values():
            if served.tokenizer_hash == tokenizer_hash:
                return served.encoder
        return None

    async def off_the_loop(self, make: Callable[[], T]) -> T:
        """In the encoding thread: what takes longer than requests can wait. Raises what it does."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, make)

    async def read(
        self, model: str, generation: GenerationRequest, keys: Sequence[MirrorKey]
    ) -> Read:
        """Tokens of every prompt, and under each of `keys` the block ids of the first one.

        Raises RequestError (too long, unknown ids, a template that refuses), or WorkerFailed if
        no tokenizer could be had.
        """
        served = self._models.get(model)
        if served is None:
            raise WorkerFailed(f"the tokenizer of {model!r} has not been read from a worker yet")
        sizes = [len(prompt.routing_bytes()) for prompt in generation.prompts]
        texts: Sequence[str | None] = [None] * len(sizes)
        quick = all(prompt.rendered_quickly for prompt in generation.prompts)
        if quick and sum(sizes) <= RENDERED_AT_ONCE_BYTES:
            rendered = [prompt.text(served.encoder) for prompt in generation.prompts]
            if sum(map(served.encoder.unknown_chars, rendered)) <= AT_ONCE_CHARS:
                return _read(served, self._chains, generation, keys, rendered)
            texts = rendered
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._thread, _read_long, served, sizes, self._chains, generation, keys, texts
        )


def _read_long(
    served: ServedModel,
    sizes: Sequence[int],
    chains: TokenChains,
    generation: GenerationRequest,
    keys: Sequence[MirrorKey],
    texts: Sequence[str | None],
) -> Read:
    for prompt, size in zip(generation.prompts, sizes, strict=True):
        check_length(prompt, size, served.encoder, served.context_length)
    return _read(served, chains, generation, keys, texts)


def _read(
    served: ServedModel,
    chains: TokenChains,
    generation: GenerationRequest,
    keys: Sequence[MirrorKey],
    texts: Sequence[str | None],
) -> Read:
    """`texts`: the prompts', where they are at hand."""
    prompts = tuple(
        encode_prompt(
            prompt,
            served.encoder,
            vocab_size=served.vocab_size,
            context_length=served.context_length,
            text=text,
        )
        for prompt, text in zip(generation.prompts, texts, strict=True)
    )
    root = root_id(served.weights_id, generation.adapter, generation.salt)
    blocks = {key: chains.chain(root, prompts[0], key.block_size) for key in keys}
    return PromptTokens(prompts), blocks

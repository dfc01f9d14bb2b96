"""Sequences over a paged KV pool, computed chunk by chunk: what an engine does, by hand."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from radixgate.worker.forward.attention import AttentionBackend
from radixgate.worker.forward.batch import ForwardBatch, KvPool
from radixgate.worker.forward.kernels import Kernels
from radixgate.worker.forward.llama import Llama
from radixgate.worker.weights.checkpoint import tensor_shapes
from radixgate.worker.weights.model_config import ModelConfig

MakeAttention = Callable[[KvPool], AttentionBackend]

PLAIN = ModelConfig(
    architecture="llama",
    vocab_size=50,
    hidden_size=24,
    layers=2,
    heads=4,
    kv_heads=2,
    head_dim=8,
    intermediate_size=40,
    rope_base=10_000.0,
    rms_eps=1e-5,
    context_length=1024,
    tied_embeddings=True,
)
LLAMA3_SCALING = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 256,
}
YARN_SCALING = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 256,
}
# Every switch of the config, on and off.
VARIANTS = {
    "plain": PLAIN,
    "one-kv-head": replace(PLAIN, kv_heads=1),
    "kv-head-each": replace(PLAIN, kv_heads=4),
    "untied": replace(PLAIN, tied_embeddings=False),
    "qwen2-bias": replace(PLAIN, architecture="qwen2", attention_bias=True),
    "bias-everywhere": replace(PLAIN, attention_bias=True, attention_output_bias=True),
    "qwen3-qk-norm": replace(PLAIN, architecture="qwen3", qk_norm=True, tied_embeddings=False),
    "llama3-rope": replace(PLAIN, rope_scaling=LLAMA3_SCALING),
    "yarn-rope": replace(PLAIN, rope_scaling=YARN_SCALING),
    "wide-heads": replace(PLAIN, head_dim=16),
}


def random_weights(config: ModelConfig, seed: int = 0) -> dict[str, torch.Tensor]:
    """Float32 weights by Hugging Face name, scaled so that logits are about 1; norms too."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(shape, generator=generator) * shape[-1] ** -0.5
        if len(shape) > 1
        else 1 + 0.3 * torch.randn(shape, generator=generator)
        for name, shape in tensor_shapes(config).items()
    }


@dataclass
class PagedSequence:
    """Tokens, the pages for all of them, and how many have their KV."""

    ids: list[int]
    pages: list[int]
    computed: int = 0
    logits: list[torch.Tensor] = field(default_factory=list)  # of each row computed here


class PagedWorld:
    """A model, a pool and its sequences. Pages are dealt in random order.

    The pool starts as NaN, so whoever reads a token that was not written spoils its logits.
    """

    def __init__(
        self,
        config: ModelConfig,
        weights: Mapping[str, torch.Tensor],
        make_attention: MakeAttention,
        *,
        page_size: int,
        pages: int = 64,
        dtype: torch.dtype = torch.float32,
        seed: int = 0,
        kernels: Kernels | None = None,
    ) -> None:
        pool = KvPool.allocate(
            layers=config.layers,
            slots=pages * page_size + 3,  # a pool need not end with a page
            kv_heads=config.kv_heads,
            head_dim=config.head_dim,
            dtype=dtype,
        )
        unwritten = (*pool.key_scales, *pool.value_scales) or (*pool.keys, *pool.values)
        for stored in unwritten:
            stored.fill_(torch.nan)
        self._model = Llama(config, weights, kernels)
        self._attention = make_attention(pool)
        self._page_size = page_size
        self._free = list(range(pages))
        random.Random(seed).shuffle(self._free)

    def begin(self, ids: Sequence[int], *, spare_pages: int = 0) -> PagedSequence:
        """A sequence with nothing computed; `spare_pages` more pages than it needs."""
        return PagedSequence(list(ids), self._deal(len(ids), 0) + self._spare(spare_pages))

    def fork(self, parent: PagedSequence, pages: int, ids: Sequence[int]) -> PagedSequence:
        """Shares the first pages of `parent`, whose KV must be there; then `ids` follow."""
        tokens = pages * self._page_size
        assert parent.computed >= tokens
        whole = [*parent.ids[:tokens], *ids]
        fork = PagedSequence(whole, parent.pages[:pages] + self._deal(len(whole), pages))
        fork.computed = tokens
        return fork

    def extend(self, sequence: PagedSequence, token: int) -> None:
        """One more token, as sampling adds it."""
        sequence.ids.append(token)
        sequence.pages += self._deal(len(sequence.ids), len(sequence.pages))

    def step(self, chunks: Sequence[tuple[PagedSequence, int]]) -> torch.Tensor:
        """Compute the next tokens of each sequence: logits of all their rows, [rows, vocab]."""
        rows = [
            (sequence, position)
            for sequence, count in chunks
            for position in range(sequence.computed, sequence.computed + count)
        ]
        q_starts = [0]
        for sequence, count in chunks:
            q_starts.append(q_starts[-1] + count)
            sequence.computed += count
        logits = self._model.forward(
            ForwardBatch(
                token_ids=torch.tensor([sequence.ids[place] for sequence, place in rows]),
                positions=torch.tensor([place for _, place in rows]),
                slots=torch.tensor([self._slot(sequence, place) for sequence, place in rows]),
                q_starts=q_starts,
                context_lens=[sequence.computed for sequence, _ in chunks],
                page_tables=[torch.tensor(sequence.pages) for sequence, _ in chunks],
                page_size=self._page_size,
                logit_rows=torch.arange(len(rows)),
            ),
            self._attention,
        )
        for (sequence, _), row in zip(rows, logits, strict=True):
            sequence.logits.append(row)
        return logits

    def greedy(self, sequence: PagedSequence, new_tokens: int) -> list[int]:
        """Compute what remains, then decode one token after another."""
        start = len(sequence.ids)
        for _ in range(new_tokens):
            logits = self.step([(sequence, len(sequence.ids) - sequence.computed)])
            self.extend(sequence, int(logits[-1].argmax()))
        return sequence.ids[start:]

    def _slot(self, sequence: PagedSequence, place: int) -> int:
        return sequence.pages[place // self._page_size] * self._page_size + place % self._page_size

    def _deal(self, tokens: int, held: int) -> list[int]:
        return self._spare(max(0, -(-tokens // self._page_size) - held))

    def _spare(self, count: int) -> list[int]:
        return [self._free.pop() for _ in range(count)]

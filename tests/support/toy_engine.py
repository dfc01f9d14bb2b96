"""The engine core over the toy model, and what the plain reference says to a prompt."""

from collections.abc import Sequence
from functools import cache
from typing import Unpack

from radixgate.worker.attention_torch import TorchAttention
from radixgate.worker.batch import KvPool
from radixgate.worker.llama import Llama
from radixgate.worker.model_runner import ModelRunner
from radixgate.worker.page_copies import pool_copier
from radixgate.worker.reference import reference_greedy
from radixgate.worker.toy import toy_config, toy_tensors
from small_engine import Settings, SmallEngine

CONFIG = toy_config()
TENSORS = toy_tensors(CONFIG)


def toy_engine(*, pages: int = 256, **settings: Unpack[Settings]) -> SmallEngine:
    """Without a tokenizer: outputs are ids."""
    page_size = settings.get("page_size", 4)
    pool = KvPool.allocate(
        layers=CONFIG.layers,
        slots=pages * page_size,
        kv_heads=CONFIG.kv_heads,
        head_dim=CONFIG.head_dim,
    )
    runner = ModelRunner(
        Llama(CONFIG, TENSORS),
        TorchAttention(pool),
        page_size,
        copy_pages=pool_copier(pool, page_size),
    )
    return SmallEngine(
        pages=pages, runner=runner, vocab_size=CONFIG.vocab_size, context=8192, **settings
    )


def reference(prompt: Sequence[int], tokens: int) -> list[int]:
    """Greedy output of the plain forward without cache."""
    return list(_reference(tuple(prompt), tokens))


@cache
def _reference(prompt: tuple[int, ...], tokens: int) -> tuple[int, ...]:
    return tuple(reference_greedy(CONFIG, TENSORS, prompt, tokens))

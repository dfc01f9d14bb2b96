"""A model whose next token is a hash of everything before it, as read through the page table.

What it stores in a slot depends on the token and on all before it, as real keys and values do. So
a page that is lost, shared wrongly or overwritten changes the output, and the right output is
known without any cache: `expected_greedy`.
"""

import struct
from collections.abc import Sequence

import numpy as np
import torch
from xxhash import xxh3_64_intdigest

from radixgate.worker.forward.attention import AttentionBackend
from radixgate.worker.forward.batch import ForwardBatch
from radixgate.worker.requests.sequence import PageCopy
from radixgate.worker.steps.page_copies import CopyPages

_pack = struct.Struct("<QQ").pack


class HistoryModel:
    """Its KV is one number a slot, kept here; the attention backend is not used."""

    def __init__(self, slots: int, vocab_size: int = 64) -> None:
        self.vocab_size = vocab_size
        self.passes = 0
        self.rows = 0
        self.largest_pass = 0  # rows
        self.fail_next = False
        self._stored = [0] * slots

    def copier(self, page_size: int) -> CopyPages:
        def copy(copies: Sequence[PageCopy]) -> None:
            for one in copies:
                source, target = one.source * page_size, one.target * page_size
                run = self._stored[source : source + one.tokens]
                self._stored[target : target + one.tokens] = run

        return copy

    def forward(self, batch: ForwardBatch, attention: AttentionBackend) -> torch.Tensor:
        if self.fail_next:
            self.fail_next = False
            raise RuntimeError("the machine is on fire")
        self.passes += 1
        self.rows += len(batch.token_ids)
        self.largest_pass = max(self.largest_pass, len(batch.token_ids))
        ids, slots = batch.token_ids.tolist(), batch.slots.tolist()
        wanted = batch.logit_rows.tolist()
        logits = {}
        for place, table in enumerate(batch.page_tables):
            first, last = batch.q_starts[place], batch.q_starts[place + 1]
            pages = table.tolist()
            size = batch.page_size
            length = batch.context_lens[place]
            context = [pages[j // size] * size + j % size for j in range(length)]
            start = length - (last - first)
            assert batch.positions[first:last].tolist() == list(range(start, length))
            for row in range(first, last):
                j = start + row - first
                assert slots[row] == context[j], "a row's slot is not in its page table"
                before = self._stored[context[j - 1]] if j else 0
                self._stored[slots[row]] = _mix(before, ids[row])
                if row in wanted:
                    history = [self._stored[slot] for slot in context[: j + 1]]
                    logits[row] = _logits(history, self.vocab_size)
        if not logits:
            return torch.empty(0, self.vocab_size)
        return torch.from_numpy(np.stack([logits[row] for row in wanted]))


class NoAttention:
    """For a model that needs none."""

    def plan(self, batch: ForwardBatch) -> None:
        return None

    def run(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return q


def expected_logits(
    ids: Sequence[int], vocab_size: int = 64
) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    """HistoryModel's logits for the position after `ids`."""
    history: list[int] = []
    for token in ids:
        history.append(_mix(history[-1] if history else 0, token))
    return _logits(history, vocab_size)


def expected_greedy(prompt: Sequence[int], tokens: int, vocab_size: int = 64) -> list[int]:
    """What HistoryModel answers to this prompt, worked out without pages."""
    history: list[int] = []
    for token in prompt:
        history.append(_mix(history[-1] if history else 0, token))
    output: list[int] = []
    for _ in range(tokens):
        output.append(int(_logits(history, vocab_size).argmax()))
        history.append(_mix(history[-1], output[-1]))
    return output


def _mix(before: int, token: int) -> int:
    return xxh3_64_intdigest(_pack(before, token))


def _logits(
    history: Sequence[int], vocab_size: int
) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    seed = xxh3_64_intdigest(np.array(history, dtype=np.uint64).tobytes())
    return 3 * np.random.default_rng(seed).standard_normal(vocab_size, dtype=np.float32)

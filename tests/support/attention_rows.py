"""One layer of attention over sequences whose keys, values and queries are random."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import torch

from radixgate.worker.forward.attention import AttentionBackend
from radixgate.worker.forward.batch import ForwardBatch


@dataclass(frozen=True)
class Heads:
    """Of one layer."""

    queries: int = 6
    kv: int = 2
    dim: int = 32


@dataclass
class Rows:
    """The keys, values and queries of every token of one sequence, and its pages."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    pages: list[int]

    def __len__(self) -> int:
        return len(self.q)


@dataclass
class Deal:
    """Deals pages in random order, and lays chunks of sequences out as a batch."""

    heads: Heads
    page_size: int
    pages: int
    seed: int = 0
    _free: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._free = list(range(self.pages))
        random.Random(self.seed).shuffle(self._free)
        self._generator = torch.Generator().manual_seed(self.seed)

    def sequence(self, tokens: int, parent: Rows | None = None, shared_pages: int = 0) -> Rows:
        """With the same first pages as `parent`, and what lies in them."""
        shared = shared_pages * self.page_size
        heads = self.heads
        rows = Rows(
            self._random(tokens, heads.queries),
            self._random(tokens, heads.kv),
            self._random(tokens, heads.kv),
            [self._free.pop() for _ in range(-(-tokens // self.page_size) - shared_pages)],
        )
        if parent is not None:
            rows.k[:shared], rows.v[:shared] = parent.k[:shared], parent.v[:shared]
            rows.pages = parent.pages[:shared_pages] + rows.pages
        return rows

    def attend(
        self, backend: AttentionBackend, chunks: Sequence[tuple[Rows, range]]
    ) -> list[torch.Tensor]:
        """Each chunk's output, [tokens, heads, head_dim]."""
        starts = [0]
        for _, part in chunks:
            starts.append(starts[-1] + len(part))
        slots = torch.cat([self._slots(rows, part) for rows, part in chunks])
        unused = torch.zeros(len(slots), dtype=torch.int64)
        backend.plan(
            ForwardBatch(
                token_ids=unused,
                positions=unused,
                slots=slots,
                q_starts=starts,
                context_lens=[part.stop for _, part in chunks],
                page_tables=[torch.tensor(rows.pages) for rows, _ in chunks],
                page_size=self.page_size,
                logit_rows=unused,
            )
        )
        q, k, v = (
            torch.cat([getattr(rows, side)[part.start : part.stop] for rows, part in chunks])
            for side in "qkv"
        )
        out = backend.run(0, q, k, v)
        return [out[first:last] for first, last in pairwise(starts)]

    def _slots(self, rows: Rows, part: range) -> torch.Tensor:
        places = torch.arange(part.start, part.stop)
        pages = torch.tensor(rows.pages)[places // self.page_size]
        return pages * self.page_size + places % self.page_size

    def _random(self, tokens: int, heads: int) -> torch.Tensor:
        return torch.randn(tokens, heads, self.heads.dim, generator=self._generator)

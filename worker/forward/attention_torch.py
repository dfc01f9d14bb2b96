"""Attention over paged KV in plain torch operations: the reference backend, for any device."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as functional
from torch.nn.utils.rnn import pad_sequence

from radixgate.worker.forward.batch import ForwardBatch, KvPool
from radixgate.worker.weights.rounding import from_int8, to_int8

# Rows of a prefill chunk attended at once: bounds the mask to this many rows, and spares most of
# the scores above the diagonal.
_CHUNK_ROWS = 256
# A decode group is padded to its longest context, so shorter ones join only above this share.
_GROUP_FILL = 0.75
# Tokens of padded context in one decode group: bounds the copy of the keys.
_GROUP_TOKENS = 8192


class TorchAttention:
    """Causal attention in float32, whatever dtype the pool stores.

    Sequences with one new row (decode) are attended together in groups of similar context length;
    every longer chunk by itself. Each layer copies the keys of the contexts it attends, and for
    chunks the values too; never more than one group or one chunk at a time.
    """

    def __init__(self, pool: KvPool) -> None:
        self._pool = pool
        self._slots = torch.empty(0, dtype=torch.int64)
        self._chunks: list[_Chunk] = []
        self._groups: list[_DecodeGroup] = []

    def plan(self, batch: ForwardBatch) -> None:
        """Index tensors and the mask, once for all layers. O(rows + contexts of decode rows)."""
        rows = [after - first for first, after in pairwise(batch.q_starts)]
        chunks = [i for i, count in enumerate(rows) if count > 1]
        decodes = [i for i, count in enumerate(rows) if count == 1]
        self._slots = batch.slots
        self._chunks = _chunks(batch, chunks)
        self._groups = [
            _decode_group(batch, members, self._pool.keys[0])
            for members in _similar_lengths(decodes, batch.context_lens)
        ]

    def run(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Stores k and v, then attends; see AttentionBackend."""
        keys = _Side.of(self._pool.keys, self._pool.key_scales, layer)
        values = _Side.of(self._pool.values, self._pool.value_scales, layer)
        keys.write(self._slots, k)
        values.write(self._slots, v)
        out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
        for chunk in self._chunks:
            out[chunk.rows] = chunk.attend(q[chunk.rows], keys, values)
        for group in self._groups:
            out[group.rows] = group.attend(q[group.rows], keys, values)
        return out


@dataclass(frozen=True, slots=True)
class _Side:
    """Keys or values of one layer, as they are stored; read as float32."""

    stored: torch.Tensor  # [slots, kv_heads, head_dim]
    scales: torch.Tensor | None  # [slots, kv_heads]; None: what is stored is not scaled

    @classmethod
    def of(
        cls, stored: Sequence[torch.Tensor], scales: Sequence[torch.Tensor], layer: int
    ) -> "_Side":
        return cls(stored[layer], scales[layer] if scales else None)

    def write(self, slots: torch.Tensor, x: torch.Tensor) -> None:
        if self.scales is None:
            self.stored.index_copy_(0, slots, x.to(self.stored.dtype))
            return
        numbers, scales = to_int8(x)
        self.stored.index_copy_(0, slots, numbers)
        self.scales.index_copy_(0, slots, scales)

    def pages(self, pages: torch.Tensor, page_size: int) -> torch.Tensor:
        """All tokens of some pages: [len(pages) * page_size, kv_heads, head_dim]."""
        numbers = _pages_of(self.stored, pages, page_size)
        if self.scales is None:
            return numbers.to(torch.float32)
        return from_int8(numbers, _pages_of(self.scales, pages, page_size))

    def vectors(self, vectors: torch.Tensor, out: torch.Tensor) -> None:
        """Some vectors, counted over slots and heads, to `out` [len(vectors), head_dim]."""
        table = self.stored.view(-1, self.stored.shape[-1])
        if self.stored.dtype == torch.float32:
            torch.index_select(table, 0, vectors, out=out)
            return
        out.copy_(table.index_select(0, vectors))
        if self.scales is not None:
            out.mul_(self.scales.view(-1).index_select(0, vectors).unsqueeze(-1))


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Several new rows of one sequence, after `context` - rows tokens that are cached."""

    rows: slice
    pages: torch.Tensor  # int64, those that hold the context
    page_size: int
    context: int  # tokens, the rows included
    mask: torch.Tensor  # see _diagonal_mask

    def attend(self, q: torch.Tensor, keys: _Side, values: _Side) -> torch.Tensor:
        q_heads = q.transpose(0, 1).unsqueeze(0)
        k, v = self._context_of(keys), self._context_of(values)
        cached = self.context - len(q)
        parts = []
        for first in range(0, len(q), _CHUNK_ROWS):
            rows = min(_CHUNK_ROWS, len(q) - first)
            seen = cached + first + rows
            parts.append(
                functional.scaled_dot_product_attention(
                    q_heads[:, :, first : first + rows],
                    k[:, :, :seen],
                    v[:, :, :seen],
                    attn_mask=self.mask[_CHUNK_ROWS - rows :, self.mask.shape[1] - seen :],
                    enable_gqa=True,
                )
            )
        return torch.cat(parts, dim=2).squeeze(0).transpose(0, 1)

    def _context_of(self, side: _Side) -> torch.Tensor:
        context = side.pages(self.pages, self.page_size)[: self.context]
        return context.transpose(0, 1).unsqueeze(0)


@dataclass(frozen=True, slots=True)
class _DecodeGroup:
    """One new row of each of several sequences, their contexts padded to the longest.

    A pool of [slots, kv_heads, head_dim] is a table of slots * kv_heads vectors, and contexts are
    given as rows of it. Padding repeats a sequence's own last token, with no weight.
    """

    rows: torch.Tensor  # int64 [sequences], of the flat batch
    vectors: torch.Tensor  # int32 [sequences, kv_heads, longest]
    padding: torch.Tensor  # 0 or -inf, [sequences, 1, 1, longest]
    gathered: torch.Tensor  # float32 [vectors, head_dim]: the copied keys, layer after layer

    def attend(self, q: torch.Tensor, keys: _Side, values: _Side) -> torch.Tensor:
        sequences, kv_heads, longest = self.vectors.shape
        queries = q.reshape(sequences * kv_heads, -1, q.shape[-1]) * q.shape[-1] ** -0.5
        scores = torch.bmm(queries, self._gather(keys).transpose(1, 2))
        scores = scores.view(sequences, kv_heads, -1, longest).add_(self.padding)
        return self._weighted_sum(scores.softmax(dim=-1), values).view(q.shape)

    def _weighted_sum(self, weights: torch.Tensor, values: _Side) -> torch.Tensor:
        if values.stored.dtype != torch.float32:
            return torch.bmm(weights.flatten(0, 1), self._gather(values))
        # Gathers and sums in one kernel: the values are never copied.
        bags = self.vectors.unsqueeze(2).expand(weights.shape).flatten(0, 2)
        table = values.stored.view(-1, values.stored.shape[-1])
        return functional.embedding_bag(
            bags, table, mode="sum", per_sample_weights=weights.flatten(0, 2)
        )

    def _gather(self, side: _Side) -> torch.Tensor:
        """float32 [sequences * kv_heads, longest, head_dim]"""
        side.vectors(self.vectors.view(-1), self.gathered)
        return self.gathered.view(-1, self.vectors.shape[-1], self.gathered.shape[-1])


def _pages_of(stored: torch.Tensor, pages: torch.Tensor, page_size: int) -> torch.Tensor:
    whole_pages = len(stored) // page_size * page_size
    paged = stored[:whole_pages].view(-1, page_size, *stored.shape[1:])
    return paged.index_select(0, pages).flatten(0, 1)


def _chunks(batch: ForwardBatch, indexes: Sequence[int]) -> list[_Chunk]:
    """The prefill chunks; one mask serves them all, and a step without any makes none."""
    if not indexes:
        return []
    longest = max(batch.context_lens[index] for index in indexes)
    mask = _diagonal_mask(longest, batch.token_ids.device)
    return [_chunk(batch, index, mask) for index in indexes]


def _chunk(batch: ForwardBatch, index: int, mask: torch.Tensor) -> _Chunk:
    context = batch.context_lens[index]
    pages = batch.page_tables[index][: -(-context // batch.page_size)]
    rows = slice(batch.q_starts[index], batch.q_starts[index + 1])
    return _Chunk(rows, pages, batch.page_size, context, mask)


def _decode_group(
    batch: ForwardBatch, members: Sequence[int], pooled: torch.Tensor
) -> _DecodeGroup:
    """`pooled` is one layer of the pool, for its shape and device."""
    _, kv_heads, head_dim = pooled.shape
    device = pooled.device
    lens = torch.tensor([batch.context_lens[i] for i in members], device=device).unsqueeze(1)
    longest = max(batch.context_lens[i] for i in members)
    tokens = torch.arange(longest, device=device)
    pages = pad_sequence([batch.page_tables[i] for i in members], batch_first=True)
    held = tokens.minimum(lens - 1)
    slots = pages.gather(1, held // batch.page_size) * batch.page_size + held % batch.page_size
    vectors = slots.unsqueeze(1) * kv_heads + torch.arange(kv_heads, device=device).unsqueeze(1)
    vectors = vectors.to(torch.int32)
    padding = torch.zeros(slots.shape, device=device).masked_fill_(tokens >= lens, -torch.inf)
    return _DecodeGroup(
        rows=torch.tensor([batch.q_starts[i] for i in members], device=device),
        vectors=vectors,
        padding=padding[:, None, None, :],
        gathered=torch.empty(vectors.numel(), head_dim, device=device),
    )


def _similar_lengths(sequences: Sequence[int], context_lens: Sequence[int]) -> list[list[int]]:
    """The sequences in groups that waste little on padding, longest contexts first."""
    groups: list[list[int]] = []
    for index in sorted(sequences, key=lambda i: -context_lens[i]):
        longest = context_lens[groups[-1][0]] if groups else 0
        fits = groups and (len(groups[-1]) + 1) * longest <= _GROUP_TOKENS
        if fits and context_lens[index] >= _GROUP_FILL * longest:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _diagonal_mask(longest: int, device: torch.device) -> torch.Tensor:
    """0 and -inf for the last _CHUNK_ROWS tokens of any context up to `longest`.

    Its last n rows and c columns are the mask of the last n tokens of a context of c.
    """
    mask = torch.zeros(_CHUNK_ROWS, max(longest, _CHUNK_ROWS), device=device)
    ahead = torch.ones(_CHUNK_ROWS, _CHUNK_ROWS, dtype=torch.bool, device=device).triu(1)
    mask[:, -_CHUNK_ROWS:].masked_fill_(ahead, -torch.inf)
    return mask

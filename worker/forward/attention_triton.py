"""Attention over paged KV as Triton kernels, for GPUs; its interpreter runs them on any machine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import torch
from torch.nn.utils.rnn import pad_sequence

from radixgate.errors import ConfigError
from radixgate.worker.forward.batch import ForwardBatch, KvPool

try:
    import triton
    import triton.language as tl
except ImportError as exc:
    raise ConfigError(
        "the attention backend triton needs the package of that name:"
        " pip install 'radixgate[gpu]', or choose another backend",
        param="attention_backend",
    ) from exc

_STORABLE: Final = (torch.float32, torch.float16)
# Rows of a tile of a longer chunk. A product in float32 is unrolled, so code grows with the tile.
_ROWS: Final = 8
# tl.dot multiplies no smaller matrices.
_LEAST_DOT: Final = 16
# Elements of a block of keys: 32 tokens of 64 dimensions, 16 of 128.
_BLOCK: Final = 2048


class TritonAttention:
    """Causal attention in float32 over a pool in float32 or float16.

    One program attends one tile: some rows of one sequence with all query heads of one KV head,
    so that keys and values are loaded once for them. A decoding row is a tile of its own. The
    context is walked through the page table, block by block, with a running softmax; no key is
    copied. A context is not split among programs, so few long ones leave a large GPU partly idle.
    """

    def __init__(self, pool: KvPool) -> None:
        """Raises ConfigError for a pool in another dtype, or where kernels cannot run."""
        dtype = pool.keys[0].dtype
        if dtype not in _STORABLE:
            raise ConfigError(
                f"the attention backend triton stores KV in fp32 or fp16, not in {dtype};"
                " give another --kv-cache-dtype or another backend",
                param="kv_cache_dtype",
            )
        if pool.keys[0].is_cpu and not triton.knobs.runtime.interpret:
            raise ConfigError(
                "the attention backend triton compiles for GPUs: give --device cuda, or"
                " --attention-backend cpu (to try it here, set TRITON_INTERPRET=1: very slow)",
                param="attention_backend",
            )
        self._pool = pool
        self._slots = torch.empty(0, dtype=torch.int64)
        self._pages = torch.empty((0, 0), dtype=torch.int32)
        self._page_size = 1
        self._launches: list[_Launch] = []

    def plan(self, batch: ForwardBatch) -> None:
        """Page tables and tiles on the pool's device. O(rows / tile + pages)."""
        device = self._pool.keys[0].device
        self._slots = batch.slots
        self._pages = pad_sequence(list(batch.page_tables), batch_first=True)
        self._pages = self._pages.to(device, torch.int32).contiguous()
        self._page_size = batch.page_size
        chunks = [
            _Chunk(sequence, first, after - first, batch.context_lens[sequence] - after + first)
            for sequence, (first, after) in enumerate(pairwise(batch.q_starts))
        ]
        # Apart, as their tiles differ in shape.
        single = [chunk for chunk in chunks if chunk.rows == 1]
        longer = [chunk for chunk in chunks if chunk.rows > 1]
        self._launches = [
            _Launch(_table(members, rows).to(device), rows)
            for members, rows in ((single, 1), (longer, _ROWS))
            if members
        ]

    def run(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Stores k and v, then attends; see AttentionBackend."""
        keys, values = self._pool.keys[layer], self._pool.values[layer]
        q, k, v = _packed(q), _packed(k), _packed(v)
        rows, kv_heads, head_dim = k.shape
        size = kv_heads * head_dim
        _store[(rows,)](
            k,
            v,
            keys,
            values,
            self._slots,
            k.stride(0),
            v.stride(0),
            SIZE=size,
            PADDED=triton.next_power_of_2(size),
        )
        group = q.shape[1] // kv_heads
        dims = max(_LEAST_DOT, triton.next_power_of_2(head_dim))
        out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
        for launch in self._launches:
            _attend[(len(launch.tiles), kv_heads)](
                q,
                out,
                keys,
                values,
                launch.tiles,
                self._pages,
                q.stride(0),
                self._pages.stride(0),
                head_dim**-0.5,
                ROWS=launch.rows,
                LANES=max(triton.next_power_of_2(group), _LEAST_DOT // launch.rows),
                GROUP=group,
                KV_HEADS=kv_heads,
                HEAD_DIM=head_dim,
                DIMS=dims,
                PAGE_SIZE=self._page_size,
                TOKENS=max(_LEAST_DOT, _BLOCK // dims),
            )
        return out


@dataclass(frozen=True, slots=True)
class _Chunk:
    """The new rows of one sequence."""

    sequence: int
    first_row: int  # of the flat batch
    rows: int
    cached: int  # tokens before them


@dataclass(frozen=True, slots=True)
class _Launch:
    """All tiles of one shape."""

    tiles: torch.Tensor  # int32 [tiles, 4]: sequence, first row, rows, tokens before them
    rows: int  # at most, in a tile


def _table(chunks: Sequence[_Chunk], most_rows: int) -> torch.Tensor:
    tiles = [tile for chunk in chunks for tile in _tiles(chunk, most_rows)]
    return torch.tensor(tiles, dtype=torch.int32)


def _tiles(chunk: _Chunk, most_rows: int) -> Iterator[tuple[int, int, int, int]]:
    for first in range(0, chunk.rows, most_rows):
        rows = min(most_rows, chunk.rows - first)
        yield chunk.sequence, chunk.first_row + first, rows, chunk.cached + first


def _packed(x: torch.Tensor) -> torch.Tensor:
    """Heads of a row side by side; rows may be apart, as in a part of a joint q, k, v."""
    return x if x.stride(2) == 1 and x.stride(1) == x.shape[2] else x.contiguous()


@triton.jit  # type: ignore[untyped-decorator]
def _store(
    k: tl.tensor,
    v: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    slots: tl.tensor,
    k_stride: int,
    v_stride: int,
    SIZE: tl.constexpr,
    PADDED: tl.constexpr,
) -> None:
    """Copies one row's keys and values to its slot, in the pool's dtype."""
    row = tl.program_id(0)
    at = tl.arange(0, PADDED)
    inside = at < SIZE
    place = tl.load(slots + row) * SIZE + at
    key = tl.load(k + row * k_stride + at, mask=inside)
    tl.store(keys + place, key.to(keys.dtype.element_ty), mask=inside)
    value = tl.load(v + row * v_stride + at, mask=inside)
    tl.store(values + place, value.to(values.dtype.element_ty), mask=inside)


@triton.jit  # type: ignore[untyped-decorator]
def _attend(
    q: tl.tensor,
    out: tl.tensor,
    keys: tl.tensor,
    values: tl.tensor,
    tiles: tl.tensor,
    pages: tl.tensor,
    q_stride: int,
    pages_stride: int,
    scale: float,
    ROWS: tl.constexpr,
    LANES: tl.constexpr,
    GROUP: tl.constexpr,
    KV_HEADS: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    DIMS: tl.constexpr,
    PAGE_SIZE: tl.constexpr,
    TOKENS: tl.constexpr,
) -> None:
    """One tile against its sequence's tokens up to the tile's last row."""
    tile = tiles + tl.program_id(0) * 4
    sequence, first_row = tl.load(tile), tl.load(tile + 1)
    rows, cached = tl.load(tile + 2), tl.load(tile + 3)
    kv_head = tl.program_id(1)

    lane = tl.arange(0, ROWS * LANES)
    row, head = lane // LANES, lane % LANES
    dims = tl.arange(0, DIMS)
    is_query = ((row < rows) & (head < GROUP))[:, None] & (dims < HEAD_DIM)[None, :]
    in_row = (kv_head * GROUP + head)[:, None] * HEAD_DIM + dims[None, :]
    query = tl.load(q + (first_row + row)[:, None] * q_stride + in_row, mask=is_query, other=0.0)
    query = query.to(tl.float32) * scale

    highest = tl.full([ROWS * LANES], float("-inf"), tl.float32)
    total = tl.zeros([ROWS * LANES], tl.float32)
    mixed = tl.zeros([ROWS * LANES, DIMS], tl.float32)
    after = cached + rows
    for first in range(0, after, TOKENS):
        token = first + tl.arange(0, TOKENS)
        held = token < after
        page = tl.load(pages + sequence * pages_stride + token // PAGE_SIZE, mask=held, other=0)
        slot = page.to(tl.int64) * PAGE_SIZE + token % PAGE_SIZE
        vector = (slot * KV_HEADS + kv_head)[:, None] * HEAD_DIM + dims[None, :]
        # Slots that no token of this sequence was written to may hold anything, NaN too.
        is_kv = held[:, None] & (dims < HEAD_DIM)[None, :]
        key = tl.load(keys + vector, mask=is_kv, other=0.0).to(tl.float32)
        scores = tl.dot(query, tl.trans(key), input_precision="ieee")
        seen = held[None, :] & (token[None, :] <= (cached + row)[:, None])
        scores = tl.where(seen, scores, float("-inf"))
        # Every row sees the first token, so this is finite from the first block on.
        higher = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        faded = tl.exp(highest - higher)
        value = tl.load(values + vector, mask=is_kv, other=0.0).to(tl.float32)
        total = total * faded + tl.sum(weights, 1)
        mixed = mixed * faded[:, None] + tl.dot(weights, value, input_precision="ieee")
        highest = higher
    place = (first_row + row)[:, None] * (KV_HEADS * GROUP * HEAD_DIM) + in_row
    tl.store(out + place, mixed / total[:, None], mask=is_query)

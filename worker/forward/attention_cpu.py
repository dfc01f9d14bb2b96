"""Attention over paged KV by the compiled kernels: no copies, and a shared prefix only once."""

import weakref
from array import array
from typing import Final

import torch

from radixgate.worker.forward.batch import ForwardBatch, KvPool
from radixgate.worker.forward.native_library import NativeLibrary

_KINDS: Final = {torch.float32: 0, torch.float16: 1, torch.int8: 2}


class CpuAttention:
    """Causal attention in float32 over a pool in float32, float16 or int8.

    A context is attended in segments of 128 tokens, whose results are merged in order; sequences
    whose page tables agree on a segment attend it in one go. A row's result is the same to the
    last bit whatever else is in the batch, and however its context was cut into chunks and pages.

    Working memory grows with the largest pass: some 300 KiB a thread, and heads * (head_dim + 2)
    floats for each segment of each row that decodes.
    """

    def __init__(self, pool: KvPool, heads: int, native: NativeLibrary) -> None:
        """`heads` of the queries; the pool must lie on the CPU. Costs next to nothing."""
        _, kv_heads, head_dim = pool.keys[0].shape
        self._native = native
        self.kind = _KINDS[pool.keys[0].dtype]  # as the kernels number the pool's dtypes
        self._shape = (heads, kv_heads, head_dim)
        self._pool = pool  # its memory is read through the addresses below
        sides = (pool.keys, pool.values, pool.key_scales, pool.value_scales)
        # Keys, values, and the scales of each, by layer.
        self.addresses = [
            tuple(side[layer].data_ptr() if side else None for side in sides)
            for layer in range(len(pool.keys))
        ]
        self.handle: int | None = native.attention_new(heads, kv_heads, head_dim)
        if self.handle is None:
            raise MemoryError("no memory for the attention kernels")
        weakref.finalize(self, native.attention_free, self.handle)

    def plan(self, batch: ForwardBatch) -> None:
        """Which rows attend which segments together. O(rows + pages)."""
        starts = array("q", batch.q_starts)
        contexts = array("q", batch.context_lens)
        tables = array("Q", [table.data_ptr() for table in batch.page_tables])
        failed = self._native.attention_plan(
            self.handle,
            len(contexts),
            starts.buffer_info()[0],
            contexts.buffer_info()[0],
            tables.buffer_info()[0],
            batch.page_size,
            batch.slots.data_ptr(),
        )
        if failed:
            raise MemoryError(f"no memory to plan attention for {len(batch.slots)} rows")

    def run(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Stores k and v, then attends; see AttentionBackend."""
        heads, kv_heads, head_dim = self._shape
        rows = len(q)
        q, k, v = _whole_rows(q), _whole_rows(k), _whole_rows(v)
        out = torch.empty((rows, heads, head_dim))
        failed = self._native.attention_run(
            self.handle,
            self.kind,
            kv_heads,
            head_dim,
            *self.addresses[layer],
            q.data_ptr(),
            q.stride(0),
            k.data_ptr(),
            k.stride(0),
            v.data_ptr(),
            v.stride(0),
            out.data_ptr(),
        )
        if failed:
            raise MemoryError(f"no memory to attend for {rows} rows")
        return out


def _whole_rows(x: torch.Tensor) -> torch.Tensor:
    """x [rows, heads, head_dim] with each row in one piece; rows may lie apart."""
    return x if x.stride()[1:] == (x.shape[2], 1) else x.contiguous()

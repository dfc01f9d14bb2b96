"""What one forward pass computes: rows of several sequences, laid end to end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from radixgate.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ForwardBatch:
    """New tokens of `n` sequences (chunks of prefill and single decode tokens mixed).

    Sequence i owns rows `q_starts[i]:q_starts[i + 1]` of the flat tensors. Its KV after this pass
    has `context_lens[i]` tokens, in the pages of `page_tables[i]` in order: token j lies in slot
    `page_tables[i][j // page_size] * page_size + j % page_size`.
    """

    token_ids: torch.Tensor  # int64 [rows]
    positions: torch.Tensor  # int64 [rows], 0-based in the sequence
    slots: torch.Tensor  # int64 [rows], where each row's K and V are written
    q_starts: Sequence[int]  # n + 1
    context_lens: Sequence[int]  # n
    page_tables: Sequence[torch.Tensor]  # n of int64 [pages]
    page_size: int
    logit_rows: torch.Tensor  # int64 [wanted], rows whose logits are computed


@dataclass(frozen=True, slots=True)
class KvPool:
    """Keys and values of every layer, one slot a token: [layers][slots, kv_heads, head_dim]."""

    keys: Sequence[torch.Tensor]
    values: Sequence[torch.Tensor]
    # Float32 [layers][slots, kv_heads], by which what is stored is multiplied. Empty: by nothing.
    key_scales: Sequence[torch.Tensor] = ()
    value_scales: Sequence[torch.Tensor] = ()

    @classmethod
    def allocate(
        cls,
        *,
        layers: int,
        slots: int,
        kv_heads: int,
        head_dim: int,
        dtype: torch.dtype = torch.float32,
        device: str = "cpu",
        advise: Callable[[int, int], None] | None = None,
    ) -> "KvPool":
        """Zeroed memory for `slots` tokens: 2 * layers * slots * kv_heads * head_dim elements.

        torch.int8 gets scales beside it. `advise` is called with address and bytes of each piece
        before it is touched. Raises ConfigError if the device has not as much.
        """

        def zeros(*shape: int, dtype: torch.dtype) -> list[torch.Tensor]:
            try:
                pieces = [torch.empty(shape, dtype=dtype, device=device) for _ in range(layers)]
            except RuntimeError as exc:
                raise ConfigError(
                    f"a KV pool of {slots} tokens cannot be had on {device}:"
                    f" {str(exc).partition(chr(10))[0]}; give --max-total-tokens less"
                ) from exc
            for piece in pieces:
                if advise is not None:
                    advise(piece.data_ptr(), piece.nbytes)
                piece.zero_()
            return pieces

        scaled = dtype == torch.int8
        return cls(
            keys=zeros(slots, kv_heads, head_dim, dtype=dtype),
            values=zeros(slots, kv_heads, head_dim, dtype=dtype),
            key_scales=zeros(slots, kv_heads, dtype=torch.float32) if scaled else (),
            value_scales=zeros(slots, kv_heads, dtype=torch.float32) if scaled else (),
        )

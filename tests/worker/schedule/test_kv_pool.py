"""The memory of keys and values."""

import ctypes

import pytest
import torch

from radixgate.errors import ConfigError
from radixgate.worker.forward.batch import KvPool


@pytest.mark.parametrize("dtype", [torch.float16, torch.int8])
def test_every_piece_is_advised_of_before_it_is_zeroed(dtype: torch.dtype) -> None:
    advised: dict[int, int] = {}

    def advise(address: int, size: int) -> None:
        ctypes.memset(address, 0x3C, size)  # what is written now does not stay
        advised[address] = size

    pool = KvPool.allocate(layers=2, slots=16, kv_heads=3, head_dim=8, dtype=dtype, advise=advise)
    pieces = [*pool.keys, *pool.values, *pool.key_scales, *pool.value_scales]
    assert advised == {piece.data_ptr(): piece.nbytes for piece in pieces}
    assert not any(piece.any() for piece in pieces)


def test_more_memory_than_there_is_is_refused_with_the_tokens() -> None:
    with pytest.raises(ConfigError, match=f"a KV pool of {2**50} tokens cannot be had on cpu: "):
        KvPool.allocate(layers=1, slots=2**50, kv_heads=1, head_dim=8)

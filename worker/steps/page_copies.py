"""Copies the KV of part of a page: how a further choice gets the page that it cannot share."""

from collections.abc import Callable, Sequence

import torch

from radixgate.worker.forward.batch import KvPool
from radixgate.worker.requests.sequence import PageCopy

CopyPages = Callable[[Sequence[PageCopy]], None]


def pool_copier(pool: KvPool, page_size: int) -> CopyPages:
    """Copies within `pool`, whatever its dtype: to the last bit what would be computed again."""
    sides = [*pool.keys, *pool.values, *pool.key_scales, *pool.value_scales]

    def copy(copies: Sequence[PageCopy]) -> None:
        """O(layers) operations, however many pages."""
        device = pool.keys[0].device
        source = torch.tensor(_slots(copies, page_size, lambda c: c.source), device=device)
        target = torch.tensor(_slots(copies, page_size, lambda c: c.target), device=device)
        for side in sides:
            side[target] = side[source]

    return copy


def _slots(
    copies: Sequence[PageCopy], page_size: int, page: Callable[[PageCopy], int]
) -> list[int]:
    return [page(copy) * page_size + offset for copy in copies for offset in range(copy.tokens)]

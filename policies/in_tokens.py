"""What the depths to which workers hold a prompt are worth: the column of what is cached."""

import sys
from collections.abc import Sequence

__all__ = ["in_tokens", "in_tokens_in_python"]


def in_tokens_in_python(depths: Sequence[int], block_tokens: int, most: int, /) -> Sequence[int]:
    """What so many leading blocks are worth, of which `most` count. O(depths), 10 ns each compiled.

    Raises ValueError if something is below zero, OverflowError if `most` are worth 2^63 or so.
    """
    if min(block_tokens, most, min(depths, default=0)) < 0:
        raise ValueError("depths and blocks are not below zero")
    if max(block_tokens, most, block_tokens * most) >= sys.maxsize:
        raise OverflowError("no prompt has so many tokens")
    return [(depth if depth < most else most) * block_tokens for depth in depths]


try:
    from radixgate.policies.columns_compiled import in_tokens
except ImportError:  # it was installed without a compiler
    in_tokens = in_tokens_in_python

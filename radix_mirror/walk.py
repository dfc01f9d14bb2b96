"""The walk along a prompt's blocks: how far each worker holds it."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import repeat

import msgspec

__all__ = [
    "COMPILED",
    "CROWD",
    "Depths",
    "FallOffs",
    "Lookup",
    "enter",
    "enter_all",
    "enter_all_in_python",
    "fall_offs",
    "falls_in_python",
    "fill",
    "fill_in_python",
    "fill_without_holes",
    "without",
    "without_in_python",
]

Lookup = Callable[[int, int], int]  # block id, and the mask if it is not known -> mask of workers
# More workers than so many that fall at once are a crowd, and kept as one mask.
CROWD = 4
Depths = list[int]  # by a worker's place, which is that of its bit in a mask


class FallOffs(msgspec.Struct, frozen=True):
    """Where workers fell off on a walk. A Struct: one is made for every request."""

    falls: Sequence[tuple[int, int]]  # masks of workers, and the depth at which they fell
    left: int  # those that did not
    leaning: int  # those of which another table than the first told that they hold a block


def enter(depths: Depths | dict[int, int], mask: int, depth: int) -> None:
    """All workers of the mask hold so many blocks. O(workers of it)."""
    if mask.bit_count() > CROWD:
        for place in _places(mask):
            depths[place] = depth
        return
    while mask:
        place = mask.bit_length() - 1
        depths[place] = depth
        mask ^= 1 << place


@lru_cache(maxsize=256)
def _places(mask: int) -> Sequence[int]:
    """Crowds fall together again and again: where a prefix ends that all of them hold."""
    return [place for place, bit in enumerate(reversed(f"{mask:b}")) if bit == "1"]


def fall_offs(tables: Sequence[Lookup], alive: int, ids: Sequence[int], start: int) -> FallOffs:
    """A walk of the workers `alive` along blocks that begin at the depth `start`; a block is held
    if any table says so. O(blocks until all fell), compiled 0.1 us each, else three times that."""
    return FallOffs(*_falls(tables, alive, ids, start))


def falls_in_python(
    tables: Sequence[Lookup], alive: int, ids: Sequence[int], start: int, /
) -> tuple[Sequence[tuple[int, int]], int, int]:
    """The fields of `FallOffs`."""
    first, *others = tables
    falls: list[tuple[int, int]] = []
    leaning = 0
    covering = None  # the last mask that covered all that were alive
    for depth, mask in enumerate(map(first, ids, repeat(0)), start):
        if mask is covering:
            continue
        left = here = mask & alive
        if left != alive:
            for other in others:
                left |= other(ids[depth - start], 0) & alive
            if left != here:
                leaning |= left ^ here
            if left != alive:
                falls.append((alive ^ left, depth))
                alive = left
                if not alive:
                    break
            if left != here:
                continue
        covering = mask
    return falls, alive, leaning


def without_in_python(lookup: Lookup, bit: int, ids: Sequence[int], /) -> Sequence[int]:
    """Of the blocks those that a table does not have for the worker, in order; `ids` itself if
    these are all of them. O(blocks)."""
    held = [mask & bit for mask in map(lookup, ids, repeat(0))]
    return [block for block, has in zip(ids, held, strict=True) if not has] if any(held) else ids


def enter_all_in_python(
    depths: Depths, falls: Sequence[tuple[int, int]], left: int, end: int, /
) -> None:
    """The depths of a walk that ended at the depth `end`, zero as yet; of `falls` and `left` as
    `FallOffs` tells them."""
    for mask, depth in falls:
        if mask.bit_count() == 1:
            depths[mask.bit_length() - 1] = depth
        elif depth:
            enter(depths, mask, depth)
    if left:
        enter(depths, left, end)


def fill_in_python(
    depths: Depths, tables: Sequence[Lookup], alive: int, ids: Sequence[int], /
) -> int:
    """Enter the depths of the workers `alive`, which are zero as yet; who leans on another table
    than the first. O(blocks until all fell); compiled a third of the time."""
    falls, left, leaning = falls_in_python(tables, alive, ids, 0)
    enter_all_in_python(depths, falls, left, len(ids))
    return leaning


def fill_without_holes(depths: Depths, held: Lookup, alive: int, ids: Sequence[int]) -> None:
    """The same where nothing is reported or claimed: a worker holds a beginning of the prompt.

    O(depths that differ x log blocks), O(1) where each holds all of it or nothing.
    """
    whole = held(ids[-1], 0) & alive if ids else 0
    alive ^= whole
    depth = 0
    if not ids or not held(ids[0], 0) & alive:
        alive = 0
    while alive:
        low, high = depth, len(ids)
        while low < high:
            middle = (low + high) // 2
            if held(ids[middle], 0) & alive == alive:
                low = middle + 1
            else:
                high = middle
        depth = low
        left = alive & held(ids[depth], 0) if depth < len(ids) else 0
        enter(depths, alive ^ left, depth)
        alive = left
    enter(depths, whole, len(ids))


try:
    from radixgate.radix_mirror.walk_compiled import enter_all, fill, without
    from radixgate.radix_mirror.walk_compiled import fall_offs as _falls
except ImportError:  # it was installed without a compiler
    enter_all, fill, without = enter_all_in_python, fill_in_python, without_in_python
    _falls = falls_in_python
COMPILED = fill is not fill_in_python

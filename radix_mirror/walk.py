"""The walk along a prompt's blocks: how far each worker holds it."""

from collections.abc import Callable, Sequence
from itertools import repeat

Lookup = Callable[[int, int], int]  # block id, and the mask if it is not known -> mask of workers
Depths = list[int]  # by a worker's place, which is that of its bit in a mask


def enter(depths: Depths, mask: int, depth: int) -> None:
    """All workers of the mask hold so many blocks. O(workers of it)."""
    while mask:
        place = mask.bit_length() - 1
        depths[place] = depth
        mask ^= 1 << place


def fill(depths: Depths, tables: Sequence[Lookup], alive: int, ids: Sequence[int]) -> None:
    """Enter the depths of the workers `alive`, which are zero as yet; a block is held if any table
    says so. O(blocks until all fell)."""
    first, *others = tables
    covering = None  # the last mask that covered all that were alive
    for depth, mask in enumerate(map(first, ids, repeat(0))):
        if mask is covering:
            continue
        left = here = mask & alive
        if left != alive:
            for other in others:
                left |= other(ids[depth], 0) & alive
            if left != alive:
                fell = alive ^ left
                alive = left
                if fell.bit_count() == 1:
                    depths[fell.bit_length() - 1] = depth
                elif depth:
                    enter(depths, fell, depth)
                if not alive:
                    return
            if left != here:
                continue
        covering = mask
    enter(depths, alive, len(ids))


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

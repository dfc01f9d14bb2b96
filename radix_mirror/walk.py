"""The walk along a prompt's blocks: how far each worker holds it."""

from collections.abc import Callable, Sequence
from itertools import repeat

Lookup = Callable[[int, int], int]  # block id, and the mask if it is not known -> mask of workers
Falls = list[tuple[int, int]]  # (depth, mask of the workers that hold exactly so many blocks)


def falls(tables: Sequence[Lookup], alive: int, ids: Sequence[int]) -> Falls:
    """Of the workers `alive`; a block is held if any table says so. O(blocks until all fell)."""
    first, *others = tables
    covering = None  # the last mask that covered all that were alive
    found = []
    for depth, mask in enumerate(map(first, ids, repeat(0))):
        if mask is covering:
            continue
        left = here = mask & alive
        if left != alive:
            for other in others:
                left |= other(ids[depth], 0) & alive
            if left != alive:
                found.append((depth, alive ^ left))
                alive = left
                if not alive:
                    return found
            if left != here:
                continue
        covering = mask
    found.append((len(ids), alive))
    return found


def falls_without_holes(held: Lookup, alive: int, ids: Sequence[int]) -> Falls:
    """The same where nothing is reported or claimed: a worker holds a beginning of the prompt.

    O(depths that differ x log blocks), O(1) where each holds all of it or nothing.
    """
    whole = held(ids[-1], 0) & alive if ids else 0
    alive ^= whole
    depth, found = 0, []
    if alive and ids and not held(ids[0], 0) & alive:
        found.append((0, alive))
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
        found.append((depth, alive ^ left))
        alive = left
    if whole:
        found.append((len(ids), whole))
    return found

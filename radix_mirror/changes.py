"""Which workers came to hold more or less of late, and from which depth of which prompts on."""

from collections.abc import Mapping, Sequence

# Changes that are told apart: those between two walks of a busy path.
_MOST = 64


class Changes:
    """The last ones, so that who was here a moment ago need not look at all that may have changed.

    One is told by the block at which it begins: as an id names its whole prefix, it concerns the
    prompts that have this block there, and no others.
    """

    def __init__(self) -> None:
        self._last: list[tuple[int, int, int, int]] = []  # walk, worker's bit, depth, block there
        self._known_from = 0  # the walk from which on all are there

    def note(self, walk: int, bit: int, depth: int, block: int) -> None:
        """After this walk the worker changed, from this depth on of prompts with this block there.

        O(1) on average, 0.2 us.
        """
        last, change = self._last, (walk, bit, depth, block)
        if last and last[-1] == change:
            return
        last.append(change)
        if len(last) > _MOST:
            self._known_from = last[_MOST // 2 - 1][0] + 1
            del last[: _MOST // 2]

    def forget(self, walk: int) -> None:
        """More has changed after this walk than can be told."""
        self._last.clear()
        self._known_from = walk + 1

    def since(self, walk: int, ids: Sequence[int], end: int) -> Mapping[int, int] | None:
        """By bit, from which depth on workers may have changed after this walk within the first
        `end` blocks of a prompt; None: that is not known. O(changes since)."""
        if walk < self._known_from:
            return None
        changed: dict[int, int] = {}
        for when, bit, depth, block in reversed(self._last):
            if when < walk:
                break
            if depth < end and ids[depth] == block and depth <= changed.get(bit, depth):
                changed[bit] = depth
        return changed

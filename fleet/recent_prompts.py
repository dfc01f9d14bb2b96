"""The last distinct prompts: how large a share of them begins like this one?"""

from collections.abc import Sequence

import msgspec

# Enough to tell a share of one in sixteen from chance; a look at all of them takes 10 us.
REMEMBERED = 128
# Depths at which it was asked for beginnings, which are counted along since then: each costs 0.1 us
# a prompt, and how many beginnings of one depth there are costs nothing.
WATCHED_DEPTHS = 8
WATCHED_OF_A_DEPTH = 64


class RecentPrompt(msgspec.Struct, frozen=True, eq=False):
    """Block ids and what else tells prompts apart. A Struct: one is made for every request."""

    ids: Sequence[int]
    mark: int


class RecentPrompts:
    """At most 128 prompts, the oldest forgotten first; turns of a conversation are one prompt.

    A prompt continues another if it is the same one, or longer and begins with all of its blocks.
    As an id names its whole prefix, it is enough that the other's last id is among its own.
    """

    def __init__(self) -> None:
        # By last id and mark, the oldest first; two of one length never have both in common.
        self._prompts: dict[tuple[int, int], RecentPrompt] = {}
        self._marks: dict[int, list[int]] = {}  # last id -> marks of the prompts that end there
        self._lengths: dict[int, int] = {}  # in blocks -> prompts; none of zero
        # By depth and the id there, how many prompts begin so. What many prompts begin with is
        # asked for with each of them.
        self._alike: dict[int, dict[int, int]] = {}

    def add(self, prompt: RecentPrompt) -> None:
        """Remember it, in place of the prompt that it continues.

        O(different lengths + watched depths).
        """
        ids, mark, prompts = prompt.ids, prompt.mark, self._prompts
        if not ids:
            return
        last, own = ids[-1], len(ids)
        key = last, mark
        if prompts.pop(key, None) is not None:  # the same one, which counts as before
            prompts[key] = prompt
            marks = self._marks[last]
            if len(marks) > 1:
                marks.remove(mark)
                marks.append(mark)
            return
        continued = self._continued_by(ids)
        if continued is None and len(prompts) == REMEMBERED:
            continued = next(iter(prompts))
        if continued is not None:
            self._forget(continued)
        self._lengths[own] = self._lengths.get(own, 0) + 1
        self._count(ids, 1)
        prompts[key] = prompt
        self._marks.setdefault(last, []).append(mark)

    def clear(self) -> None:
        self._prompts.clear()
        self._marks.clear()
        self._lengths.clear()
        self._alike.clear()

    def _continued_by(self, ids: Sequence[int]) -> tuple[int, int] | None:
        """The longest is the last turn; a shorter one may belong to another conversation."""
        marks, own = self._marks, len(ids)
        lengths = [n for n in self._lengths if n < own and ids[n - 1] in marks]
        if not lengths:
            return None
        last = ids[max(lengths) - 1]
        return last, marks[last][0]

    def _forget(self, known: tuple[int, int]) -> None:
        ids = self._prompts.pop(known).ids
        self._count(ids, -1)
        length = len(ids)
        self._lengths[length] -= 1
        if not self._lengths[length]:
            del self._lengths[length]
        last, mark = known
        marks = self._marks[last]
        marks.remove(mark)
        if not marks:
            del self._marks[last]

    def share(self, prompt: RecentPrompt, depth: int) -> float:
        """Of the recent prompts but this one's own, the share that has its first `depth` blocks.

        The prompt itself counts as one that has not, so that a single other is no more than half.
        O(different lengths) for a beginning that was asked for lately, else O(prompts).
        """
        if not 0 < depth <= len(prompt.ids):
            return 0.0
        ids, marks, own = prompt.ids, self._marks, len(prompt.ids)
        watched = self._alike.get(depth)
        alike = None if watched is None else watched.get(ids[depth - 1])
        if alike is None:
            alike = self._look(depth, ids[depth - 1])
        # What it continues is its own, and so is the same prompt, which has all of its blocks.
        others = len(self._prompts)
        if (ids[-1], prompt.mark) in self._prompts:
            others -= 1
            alike -= 1
        for length in self._lengths:
            if length < own and ids[length - 1] in marks:
                mine = len(marks[ids[length - 1]])
                others -= mine
                if length >= depth:
                    alike -= mine
        return alike / (others + 1)

    def _look(self, depth: int, end: int) -> int:
        """How many prompts begin so, and keep count from now on."""
        begins = [one.ids[depth - 1] for one in self._prompts.values() if len(one.ids) >= depth]
        watched = self._alike.get(depth)
        if watched is None:
            if len(self._alike) >= WATCHED_DEPTHS:
                del self._alike[next(iter(self._alike))]
            watched = self._alike[depth] = {}
        elif len(watched) >= WATCHED_OF_A_DEPTH:
            watched.clear()
        watched[end] = count = begins.count(end)
        return count

    def _count(self, ids: Sequence[int], change: int) -> None:
        """A prompt has come, or gone."""
        own = len(ids)
        for depth, watched in self._alike.items():
            if depth <= own and ids[depth - 1] in watched:
                watched[ids[depth - 1]] += change

"""The last distinct prompts: how large a share of them begins like this one?"""

from collections import Counter
from collections.abc import Sequence

import msgspec

# Enough to tell a share of one in sixteen from chance; a look at all of them takes 10 us.
REMEMBERED = 128


class Prompt(msgspec.Struct, frozen=True, eq=False):
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
        self._prompts: dict[tuple[int, int], Prompt] = {}
        self._marks: dict[int, list[int]] = {}  # last id -> marks of the prompts that end there
        self._lengths: Counter[int] = Counter()  # in blocks -> prompts; none of zero

    def add(self, prompt: Prompt) -> None:
        """Remember it, in place of the prompt that it continues. O(different lengths)."""
        if not prompt.ids:
            return
        continued = self._continued_by(prompt)
        if continued is None and len(self._prompts) == REMEMBERED:
            continued = next(iter(self._prompts))
        if continued is not None:
            self._forget(continued)
        last = prompt.ids[-1]
        self._prompts[last, prompt.mark] = prompt
        self._marks.setdefault(last, []).append(prompt.mark)
        self._lengths[len(prompt.ids)] += 1

    def clear(self) -> None:
        self._prompts.clear()
        self._marks.clear()
        self._lengths.clear()

    def _continued_by(self, prompt: Prompt) -> tuple[int, int] | None:
        """The longest is the last turn; a shorter one may belong to another conversation."""
        ids, marks = prompt.ids, self._marks
        same = ids[-1], prompt.mark
        if same in self._prompts:
            return same
        own = len(ids)
        lengths = [n for n in self._lengths if n < own and ids[n - 1] in marks]
        if not lengths:
            return None
        last = ids[max(lengths) - 1]
        return last, marks[last][0]

    def _forget(self, known: tuple[int, int]) -> None:
        length = len(self._prompts.pop(known).ids)
        self._lengths[length] -= 1
        if not self._lengths[length]:
            del self._lengths[length]
        last, mark = known
        marks = self._marks[last]
        marks.remove(mark)
        if not marks:
            del self._marks[last]

    def share(self, prompt: Prompt, depth: int) -> float:
        """Of the recent prompts but this one's own, the share that has its first `depth` blocks.

        The prompt itself counts as one that has not, so that a single other is no more than half.
        O(prompts).
        """
        if not 0 < depth <= len(prompt.ids):
            return 0.0
        ids, marks, own = prompt.ids, self._marks, len(prompt.ids)
        end = ids[depth - 1]
        alike = [
            1
            for older in self._prompts.values()
            if len(older.ids) >= depth and older.ids[depth - 1] == end
        ]
        # What it continues is its own: by length, how many there are.
        mine = {n: len(marks[ids[n - 1]]) for n in self._lengths if n < own and ids[n - 1] in marks}
        mine[own] = (ids[-1], prompt.mark) in self._prompts
        others = len(self._prompts) - sum(mine.values())
        return (len(alike) - sum(n for length, n in mine.items() if length >= depth)) / (others + 1)

"""The last distinct prompts: how large a share of them begins like this one?"""

from collections.abc import Sequence
from dataclasses import dataclass

# Enough to tell a share of one in sixteen from chance; a look at all of them takes 10 us.
REMEMBERED = 128


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """Block ids and what else tells prompts apart."""

    ids: Sequence[int]
    mark: int

    def continues(self, older: "Prompt") -> bool:
        """The older one again, or a later turn of its conversation."""
        length = len(older.ids)
        if length == len(self.ids) and older.mark != self.mark:
            return False
        # An id names its whole prefix: where the last ids agree, all before them do.
        return 0 < length <= len(self.ids) and older.ids[-1] == self.ids[length - 1]


class RecentPrompts:
    """At most 128 prompts, the oldest forgotten first; turns of a conversation are one prompt."""

    def __init__(self) -> None:
        self._prompts: list[Prompt] = []

    def add(self, prompt: Prompt) -> None:
        """Remember it, in place of the prompt that it continues. O(prompts)."""
        if not prompt.ids:
            return
        prompts = self._prompts
        continued = [number for number, older in enumerate(prompts) if prompt.continues(older)]
        if continued:
            # The longest is the last turn; a shorter one may belong to another conversation.
            del prompts[max(continued, key=lambda number: len(prompts[number].ids))]
        elif len(prompts) == REMEMBERED:
            del prompts[0]
        prompts.append(prompt)

    def share(self, prompt: Prompt, depth: int) -> float:
        """Of the recent prompts but this one's own, the share that has its first `depth` blocks.

        The prompt itself counts as one that has not, so that a single other is no more than half.
        O(prompts).
        """
        if not 0 < depth <= len(prompt.ids):
            return 0.0
        end = prompt.ids[depth - 1]
        others = [older for older in self._prompts if not prompt.continues(older)]
        alike = sum(len(older.ids) >= depth and older.ids[depth - 1] == end for older in others)
        return alike / (len(others) + 1)

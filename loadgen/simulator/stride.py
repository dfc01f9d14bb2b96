"""Steps that only decode, taken together: each is longer than the last by the same."""

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, eq=False)
class Stride:
    """`steps` steps from `begins_s` on: the first takes `first_s`, each later one `growth_s` more.

    The growth is that of the contexts, by a token a sequence.
    """

    begins_s: float
    first_s: float
    growth_s: float
    steps: int

    @property
    def ends_s(self) -> float:
        return self.begins_s + self._seconds(self.steps)

    def cut(self, now: float) -> "Stride":
        """The same, up to the end of the step that is under way now."""
        done_s = now - self.begins_s
        # first * n + growth * n (n - 1) / 2 = done, solved for n.
        linear = self.first_s - self.growth_s / 2
        if self.growth_s:
            root = math.sqrt(linear * linear + 2 * self.growth_s * done_s)
            steps = int((root - linear) / self.growth_s)
        else:
            steps = int(done_s / linear)
        # Rounding may be off by a step.
        while steps > 1 and self._seconds(steps - 1) >= done_s:
            steps -= 1
        while self._seconds(steps) < done_s:
            steps += 1
        return replace(self, steps=min(max(steps, 1), self.steps))

    def _seconds(self, steps: int) -> float:
        return self.first_s * steps + self.growth_s * steps * (steps - 1) / 2

"""Is a worker faster or slower than its fellows? Equal, unless comparable steps say otherwise."""

import statistics
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from sortedcontainers import SortedList

# A step costs something however short it is, and its time is shared with what decodes in it: only
# one of so many prompt tokens, and so many for each request that runs, tells of the prefill speed.
LEAST_STEP_TOKENS = 128
_TOKENS_A_RUNNING = 4
# Steps of one worker that are remembered, and for how long: what slowed it may be over.
_REMEMBERED = 64
REMEMBERED_S = 600.0
# A worker has a usual speed in a size of steps from so many of them on.
_LEAST_OF_A_SIZE = 4
# Of one that is like its fellows each step is as likely faster as slower than theirs. That of 32 no
# more than 4 are on the other side has a chance of 1 in 100,000.
LEAST_COMPARED = 32
_SAME_SIDE = 7 / 8
# What the sizes of a class can do to the speed, so that less is no difference.
SAME_SPEED = 2.0

Typical = Mapping[int, float]  # class of sizes (tokens as a power of two) -> tokens a microsecond


class TypicalSpeeds:
    """Those of all workers that are compared with one another, in order by size."""

    def __init__(self) -> None:
        self._entered: dict[int, Typical] = {}  # by place
        self._by_size: dict[int, SortedList] = {}

    def enter(self, place: int, typical: Typical) -> None:
        """What is typical of this worker from now on. O(1) if that is known; else O(log workers)
        for each size."""
        before = self._entered.get(place, {})
        if typical is before:
            return
        self._entered[place] = typical
        for size, speed in before.items():
            self._by_size[size].remove(speed)
        for size, speed in typical.items():
            self._by_size.setdefault(size, SortedList()).add(speed)

    def usual(self, sizes: Iterable[int]) -> dict[int, float]:
        """Of each size that at least two workers know, the median; of two the faster, so that where
        half of them are slow it is these that differ."""
        usual = {}
        for size in sizes:
            known = self._by_size.get(size, ())
            if len(known) > 1:
                usual[size] = known[len(known) // 2]
        return usual


class ComparableSteps:
    """The last steps of one worker that tell of its prefill speed, at most 64."""

    def __init__(self) -> None:
        self._steps: deque[tuple[float, int, float]] = deque(maxlen=_REMEMBERED)  # at, class, speed
        self.typical: Typical = {}  # as of the last `settle`
        self.relative = 1.0  # its speed as a share of its fellows', as of the last `settle`

    def __len__(self) -> int:
        return len(self._steps)

    def clear(self) -> None:
        """The worker began anew."""
        self._steps.clear()
        self.typical, self.relative = {}, 1.0

    def add(self, tokens: int, busy_us: int, running: int, now: float) -> None:
        """What was computed between two reports; what tells nothing is passed over. O(1)."""
        if tokens >= LEAST_STEP_TOKENS and tokens >= _TOKENS_A_RUNNING * running and busy_us > 0:
            self._steps.append((now, tokens.bit_length(), tokens / busy_us))

    def settle(self, everyone: TypicalSpeeds, place: int, now: float) -> None:
        """Compare it, which is at this place, with everyone. O(steps), and what `enter` costs."""
        steps = self._steps
        while steps and now - steps[0][0] > REMEMBERED_S:
            steps.popleft()
        by_size: dict[int, list[float]] = {}
        for _, size, speed in steps:
            by_size.setdefault(size, []).append(speed)
        self.typical = {
            size: statistics.median(speeds)
            for size, speeds in by_size.items()
            if len(speeds) >= _LEAST_OF_A_SIZE
        }
        everyone.enter(place, self.typical)
        usual = everyone.usual(by_size)
        ratios = [speed / usual[size] for _, size, speed in steps if size in usual]
        self.relative = relative_speed(ratios)


def relative_speed(ratios: Sequence[float]) -> float:
    """Of steps as shares of what their size usually has, the speed of the worker; 1.0: like others.

    It differs if at least 32 steps have been compared, seven of eight lie on one side, and the
    median is beyond a factor of two.
    """
    if len(ratios) < LEAST_COMPARED:
        return 1.0
    middle = statistics.median(ratios)
    if 1.0 / SAME_SPEED <= middle <= SAME_SPEED:
        return 1.0
    slower = sum(ratio < 1.0 for ratio in ratios)
    on_its_side = slower if middle < 1.0 else len(ratios) - slower
    return middle if on_its_side >= _SAME_SIDE * len(ratios) else 1.0

"""Those who wait for pages, and in which order they are tried."""

from collections.abc import Callable, Iterator
from itertools import islice, takewhile

from sortedcontainers import SortedDict

from radixgate.worker.sequence import TokenSequence

# How many tokens of a sequence would have to be computed if it were admitted now.
UncachedTokens = Callable[[TokenSequence], int]

# Looking up every prefix costs more than a better order brings where very many wait.
_LPM_LIMIT = 128


class WaitingQueue:
    """Waiting sequences by priority, then by arrival (`fcfs`) or longest cached prefix (`lpm`).

    Nobody is passed over more than `max_passed_over` times by a later one of the same priority:
    then it is starved, and until it is admitted nobody of its priority or a lower one is.
    """

    def __init__(self, policy: str, uncached_tokens: UncachedTokens, max_passed_over: int) -> None:
        self._longest_prefix_first = policy == "lpm"
        self._uncached_tokens = uncached_tokens
        self._max_passed_over = max_passed_over
        self._waiting = SortedDict()  # arrival -> sequence
        self._starved: set[TokenSequence] = set()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[TokenSequence]:
        return iter(self._waiting.values())

    def add(self, sequence: TokenSequence) -> None:
        """O(log waiting). One that was retracted takes its old place."""
        self._waiting[sequence.arrival] = sequence

    def remove(self, sequence: TokenSequence) -> None:
        del self._waiting[sequence.arrival]
        self._starved.discard(sequence)

    def anyone_ready(self) -> bool:
        """Somebody waits for pages, and not only for credit. O(1) unless many wait for credit."""
        return next(self._ready(), None) is not None

    def in_order(self, most: int) -> list[TokenSequence]:
        """Whom to try, first to last, at most so many; nobody who waits for credit.

        O(most) for `fcfs`; `lpm` looks up the prefixes of all who wait, if they are at most 128.
        """
        starved = sorted(self._starved_ready(), key=lambda s: s.arrival)
        if starved:
            highest = starved[0].request.priority
            above = takewhile(lambda s: s.request.priority > highest, self._ready())
            return [*above, *starved][:most]
        if not self._longest_prefix_first or len(self._waiting) > _LPM_LIMIT:
            return list(islice(self._ready(), most))
        waiting = list(self._ready())
        found = {s: len(s.ids) - self._uncached_tokens(s) for s in waiting}
        waiting.sort(key=lambda s: (-s.request.priority, -found[s], s.arrival))
        return waiting[:most]

    def starved(self, sequence: TokenSequence) -> bool:
        """True: it may be passed over no more."""
        return sequence.passed_over >= self._max_passed_over

    def holds_back(self, sequence: TokenSequence) -> bool:
        """True: somebody who is starved has to be admitted before it."""
        if sequence in self._starved:
            return False
        priority = sequence.request.priority
        return any(other.request.priority >= priority for other in self._starved_ready())

    def admitted(self, sequence: TokenSequence) -> None:
        """It leaves the queue, and those it overtook remember it."""
        self.remove(sequence)
        for arrival, other in self._waiting.items():
            if arrival > sequence.arrival:
                break
            same_priority = other.request.priority == sequence.request.priority
            if same_priority and not other.waits_for_credit:
                other.passed_over += 1
                if self.starved(other):
                    self._starved.add(other)
        sequence.passed_over = 0

    def _ready(self) -> Iterator[TokenSequence]:
        return (s for s in self._waiting.values() if not s.waits_for_credit)

    def _starved_ready(self) -> list[TokenSequence]:
        return [s for s in self._starved if not s.waits_for_credit]

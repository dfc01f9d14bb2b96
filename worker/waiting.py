"""Those who wait for pages, and in which order they are tried."""

from collections.abc import Callable, Iterator

from sortedcontainers import SortedDict

from radixgate.worker.sequence import TokenSequence

# How many tokens of a sequence would have to be computed if it were admitted now.
UncachedTokens = Callable[[TokenSequence], int]

# Looking up every prefix costs more than a better order brings where very many wait.
_LPM_LIMIT = 128


class WaitingQueue:
    """Waiting sequences by priority, then by arrival (`fcfs`) or longest cached prefix (`lpm`).

    Nobody is passed over more than `max_passed_over` times by a later one of the same priority:
    then it comes first, and nobody is admitted before it.
    """

    def __init__(self, policy: str, uncached_tokens: UncachedTokens, max_passed_over: int) -> None:
        self._longest_prefix_first = policy == "lpm"
        self._uncached_tokens = uncached_tokens
        self._max_passed_over = max_passed_over
        self._waiting = SortedDict()  # arrival -> sequence

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[TokenSequence]:
        return iter(self._waiting.values())

    def add(self, sequence: TokenSequence) -> None:
        """O(log waiting). One that was retracted takes its old place."""
        self._waiting[sequence.arrival] = sequence

    def remove(self, sequence: TokenSequence) -> None:
        del self._waiting[sequence.arrival]

    def in_order(self) -> list[TokenSequence]:
        """Whom to try, first to last. O(waiting); `lpm` looks up the prefixes of at most 128."""
        waiting: list[TokenSequence] = list(self._waiting.values())
        if self._longest_prefix_first and len(waiting) <= _LPM_LIMIT:
            found = {s: len(s.ids) - self._uncached_tokens(s) for s in waiting}
            waiting.sort(key=lambda s: (-s.request.priority, -found[s], s.arrival))
        starved = [sequence for sequence in waiting if self.starved(sequence)]
        if not starved:
            return waiting
        starved.sort(key=lambda s: s.arrival)
        return starved + [sequence for sequence in waiting if not self.starved(sequence)]

    def starved(self, sequence: TokenSequence) -> bool:
        """True: nobody may be admitted before it."""
        return sequence.passed_over >= self._max_passed_over

    def admitted(self, sequence: TokenSequence) -> None:
        """It leaves the queue, and those it overtook remember it."""
        self.remove(sequence)
        for arrival, other in self._waiting.items():
            if arrival > sequence.arrival:
                break
            if other.request.priority == sequence.request.priority:
                other.passed_over += 1
        sequence.passed_over = 0

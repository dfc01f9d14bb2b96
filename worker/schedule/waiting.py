"""Those who wait for pages: in order of policy, and nobody passed over for ever."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, takewhile

from sortedcontainers import SortedDict

from radixgate.worker.requests.sequence import TokenSequence
from radixgate.worker.schedule.waiting_orders import PrefixOrder, RankOf, by_arrival

# Looking up every prefix costs more than a better order brings where very many wait.
_PREFIX_ORDER_LIMIT = 128


class WaitingQueue:
    """Waiting sequences, by priority first, then as the policy says.

    Nobody is passed over more than `max_passed_over` times by a later one of the same priority:
    then it is starved, and until it is admitted nobody of its priority or a lower one is.
    """

    def __init__(
        self,
        max_passed_over: int,
        *,
        rank: RankOf = by_arrival,
        prefix_order: PrefixOrder | None = None,
        cache_version: Callable[[], int] = lambda: 0,
    ) -> None:
        """`prefix_order` goes before `rank` while at most 128 wait. What it says holds until the
        queue or `cache_version` changes."""
        self._max_passed_over = max_passed_over
        self._rank = rank
        self._prefix_order = prefix_order
        self._cache_version = cache_version
        self._waiting = SortedDict()  # arrival -> sequence
        self._ranked = SortedDict()  # rank -> sequence
        self._ranks: dict[TokenSequence, object] = {}
        self._starved: set[TokenSequence] = set()
        self._changes = 0
        self._order: tuple[tuple[int, int], Sequence[TokenSequence]] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[TokenSequence]:
        return iter(self._waiting.values())

    @property
    def by_prefix(self) -> bool:
        """True: the order goes by what is cached."""
        return self._prefix_order is not None and len(self._waiting) <= _PREFIX_ORDER_LIMIT

    def add(self, sequence: TokenSequence) -> None:
        """O(log waiting). One that was retracted takes its old place."""
        self._waiting[sequence.arrival] = sequence
        rank = self._ranks[sequence] = self._rank(sequence)
        self._ranked[rank] = sequence
        self._changes += 1

    def remove(self, sequence: TokenSequence) -> None:
        del self._waiting[sequence.arrival]
        del self._ranked[self._ranks.pop(sequence)]
        self._starved.discard(sequence)
        self._changes += 1

    def anyone_ready(self) -> bool:
        """Somebody waits for pages, and not only for credit. O(1) unless many wait for credit."""
        return next(_ready(self._waiting.values()), None) is not None

    def in_order(self, most: int) -> list[TokenSequence]:
        """Whom to try, first to last, nobody who waits for credit; at most so many of more than
        128. O(most), and what the prefix order costs if anything has changed."""
        starved = sorted(self._starved_ready(), key=lambda s: s.arrival)
        if starved:
            highest = starved[0].request.priority
            ready = _ready(self._waiting.values())
            above = takewhile(lambda s: s.request.priority > highest, ready)
            return [*above, *starved][:most]
        if self._prefix_order is None or not self.by_prefix:
            return list(islice(_ready(self._ranked.values()), most))
        state = (self._changes, self._cache_version())
        if self._order is None or self._order[0] != state:
            self._order = state, self._prefix_order(list(self._waiting.values()))
        return list(_ready(self._order[1]))

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

    def check(self) -> None:
        """Both orders hold the same sequences. O(waiting)."""
        assert len(self._ranked) == len(self._waiting) == len(self._ranks), "the orders differ"
        assert set(self._ranked.values()) == set(self._waiting.values()), "the orders differ"
        assert self._starved <= set(self._ranks), "starves, and does not wait"

    def _starved_ready(self) -> list[TokenSequence]:
        return [s for s in self._starved if not s.waits_for_credit]


def _ready(sequences: Iterable[TokenSequence]) -> Iterator[TokenSequence]:
    return (s for s in sequences if not s.waits_for_credit)

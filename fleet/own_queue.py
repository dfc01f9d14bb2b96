"""Prompt tokens that we sent to one worker and that it has still to compute."""

from collections.abc import Iterator


class OwnQueue:
    """Each lease counts whole until its first output, or until the worker tells what is left.

    A report counts what had been submitted by then: its figure stands for the leases that it has
    seen, later ones count whole beside it. It is never taken for more than these count whole, as a
    worker counts what is queued twice over where prompts that begin alike wait together.
    """

    __slots__ = ("_left", "_numbers", "_seen", "_unseen")

    def __init__(self, numbers: Iterator[int]) -> None:
        """`numbers` rise, from one worker's life to the next as well."""
        self._numbers = numbers
        self._unseen: dict[int, int] = {}  # by number, rising: tokens of leases no report counts
        self._seen = 0  # tokens of all other leases, each whole
        self._left: int | None = None  # of those, as reported; None: it does not tell

    @property
    def tokens(self) -> int:
        """O(leases that no report has seen)."""
        return sum(self._unseen.values()) + self._waiting()

    def enter(self, tokens: int) -> int:
        """One more lease, with so many more tokens; its number. O(1)."""
        number = next(self._numbers)
        self._unseen[number] = tokens
        return number

    def leave(self, number: int, tokens: int) -> int:
        """They are computed, or given up; how many fewer wait. Once a lease. O(1)."""
        if self._unseen.pop(number, None) is not None:
            return tokens
        before = self._waiting()
        self._seen -= tokens
        return before - self._waiting()

    def hear(self, seen: int | None, left: int) -> int:
        """Of the leases up to number `seen` so many tokens are left; how many fewer wait.

        `seen` None: nothing is known, and all count whole. O(1) on average.
        """
        before, newly = self._waiting(), 0
        if seen is None:
            self._left = None
            return before - self._waiting()
        unseen = self._unseen
        while unseen:
            number = next(iter(unseen))
            if number > seen:
                break
            newly += unseen.pop(number)
        self._seen += newly
        self._left = left
        return before + newly - self._waiting()

    def check(self) -> None:
        """Assert that the counts are possible. O(leases that no report has seen)."""
        assert self._seen >= 0
        assert list(self._unseen) == sorted(self._unseen)

    def _waiting(self) -> int:
        return self._seen if self._left is None else min(self._seen, self._left)

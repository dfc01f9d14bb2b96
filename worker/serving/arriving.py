"""Requests whose prompts are still being tokenized: the engine does not know them, orders do."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Arriving:
    """One of them."""

    rids: Sequence[str]  # as the client gave them; empty: it gave none
    aborted: bool = False  # to be ended as soon as the engine has it


class ArrivingRequests:
    """Those of one server, from the end of their bodies until the engine has taken them."""

    def __init__(self) -> None:
        self._arriving: set[Arriving] = set()

    def __len__(self) -> int:
        return len(self._arriving)

    @contextmanager
    def of(self, rids: Sequence[str]) -> Iterator[Arriving]:
        """One more, while the context lasts."""
        one = Arriving(rids)
        self._arriving.add(one)
        try:
            yield one
        finally:
            self._arriving.discard(one)

    def abort_rid(self, rid: str, *, prefix: bool = False) -> int:
        """Those who have this rid, or with `prefix` one that begins so; how many. O(arriving)."""
        if prefix:
            return self._abort(one for one in self if any(r.startswith(rid) for r in one.rids))
        return self._abort(one for one in self if rid in one.rids)

    def abort_all(self) -> int:
        """How many those are."""
        return self._abort(iter(self))

    def __iter__(self) -> Iterator[Arriving]:
        return iter(self._arriving)

    def _abort(self, found: Iterator[Arriving]) -> int:
        ended = [one for one in found if not one.aborted]
        for one in ended:
            one.aborted = True
        return len(ended)

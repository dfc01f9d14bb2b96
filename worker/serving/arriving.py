"""Requests whose prompts are still being tokenized: the engine does not know them, orders do."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True, eq=False)
class Arriving:
    """One of them; its prompts are known by their places in it."""

    prompts: int
    rids: Sequence[str]  # as the client gave them, one for each prompt; empty: it gave none
    aborted: set[int] = field(default_factory=set)  # to be ended as soon as the engine has them


class ArrivingRequests:
    """Those of one server, from the end of their bodies until the engine has taken them."""

    def __init__(self) -> None:
        self._arriving: set[Arriving] = set()

    def __len__(self) -> int:
        return len(self._arriving)

    @contextmanager
    def of(self, prompts: int, rids: Sequence[str]) -> Iterator[Arriving]:
        """One more, while the context lasts."""
        one = Arriving(prompts, rids)
        self._arriving.add(one)
        try:
            yield one
        finally:
            self._arriving.discard(one)

    def abort_rid(self, rid: str, *, prefix: bool = False) -> int:
        """The prompts that have this rid, or with `prefix` one that begins so; how many those are.
        O(prompts arriving)."""
        return sum(
            _abort(
                one,
                [
                    place
                    for place, own in enumerate(one.rids)
                    if own == rid or (prefix and own.startswith(rid))
                ],
            )
            for one in self._arriving
        )

    def abort_all(self) -> int:
        """How many prompts those are."""
        return sum(_abort(one, range(one.prompts)) for one in self._arriving)


def _abort(one: Arriving, places: Sequence[int]) -> int:
    before = len(one.aborted)
    one.aborted.update(places)
    return len(one.aborted) - before

"""How many tokens each event of an answer brought."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from radixgate.analysis.records import Arrival
from radixgate.loadgen.targets import Event


@dataclass(frozen=True, slots=True)
class TokenArrivals:
    """The tokens of one answer in time."""

    arrivals: tuple[Arrival, ...]
    counted: bool  # False: shared out by length of text, as the server gave a total or nothing

    @property
    def tokens(self) -> int:
        return sum(arrival.tokens for arrival in self.arrivals)


def tokens_in(events: Sequence[Event]) -> TokenArrivals:
    """The arrivals in `events`: those that show text or count a new token. O(events).

    Where each event with text tells the tokens so far, an event's tokens are the growth since the
    one before, and growth told after the last choice (a usage event) belongs to that choice.
    Else the total is shared out, one token an event with text and the rest by length of text.
    """
    shown = [event for event in events if event.characters > 0]
    told = [event for event in events if event.tokens_so_far is not None]
    if told and all(event.tokens_so_far is not None for event in shown):
        return TokenArrivals(_by_growth(events), counted=True)
    total = max((event.tokens_so_far or 0 for event in told), default=len(shown))
    shares = _shares(total, [event.characters for event in shown])
    arrivals = tuple(
        Arrival(event.at_s, tokens) for event, tokens in zip(shown, shares, strict=True) if tokens
    )
    return TokenArrivals(arrivals, counted=bool(told) and total == len(shown))


def _by_growth(events: Sequence[Event]) -> tuple[Arrival, ...]:
    arrivals: list[Arrival] = []
    seen = 0
    choice_at_s: float | None = None
    for event in events:
        grown = max(0, (event.tokens_so_far or 0) - seen)
        if event.of_choice:
            choice_at_s = event.at_s
        if event.characters > 0 and not arrivals:
            grown = max(1, grown)  # text is there, so is its token, whenever it is counted
        seen += grown
        at_s = event.at_s if choice_at_s is None else choice_at_s
        if event.of_choice and (event.characters > 0 or grown):
            arrivals.append(Arrival(at_s, grown))
        elif grown and arrivals and arrivals[-1].at_s == at_s:
            arrivals[-1] = replace(arrivals[-1], tokens=arrivals[-1].tokens + grown)
        elif grown:
            arrivals.append(Arrival(at_s, grown))
    return tuple(arrivals)


def _shares(total: int, characters: Sequence[int]) -> list[int]:
    """`total` split over events: 1 each, the rest by text; or, where there are fewer, the first
    of each run of events that make up a token."""
    if not characters:
        return []
    spare = max(0, total - len(characters))
    each = len(characters) if total >= len(characters) else 0
    whole = sum(characters)
    ends = [0]
    for place, so_far in enumerate(accumulate(characters), 1):
        if each:
            ends.append(place + spare * so_far // whole)
        else:
            ends.append(-(-total * so_far // whole))
    return [late - early for early, late in pairwise(ends)]

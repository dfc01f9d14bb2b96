"""What became of an order that went to several workers, or by way of several processes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from radixgate.gateway.workers.worker_handle import OrderResult


@dataclass(frozen=True, slots=True)
class Reached:
    """Requests that were aborted before any worker had them, and what workers said."""

    held: int = 0
    results: Mapping[str, OrderResult] = field(default_factory=dict)  # by worker id
    # To be told once, what all workers said: until then whatever ends may have ended by the order.
    over: Callable[[Mapping[str, OrderResult]], None] = lambda results: None


def merged(*parts: Mapping[str, OrderResult]) -> dict[str, OrderResult]:
    """By worker id; where several asked one worker, what they ended is added up."""
    results: dict[str, OrderResult] = {}
    for part in parts:
        for worker_id, result in part.items():
            known = results.get(worker_id)
            results[worker_id] = result if known is None else _both(known, result)
    return results


def aborted_of(result: OrderResult) -> int | None:
    """How many requests it ended; None: it does not say."""
    count = result.answer.get("aborted") if isinstance(result.answer, Mapping) else None
    return count if isinstance(count, int) else None


def _both(one: OrderResult, other: OrderResult) -> OrderResult:
    mine, theirs = aborted_of(one), aborted_of(other)
    if mine is None or theirs is None:
        return one if one.ok else other
    count = mine + theirs
    return OrderResult(one.ok and other.ok, f"{count} aborted", {"aborted": count})

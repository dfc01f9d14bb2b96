"""What a policy is given and what it returns. It ranks; it never does I/O."""

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

# Structs, as they are made for every request: a frozen dataclass costs five times as much.


class RouteRequest(msgspec.Struct, frozen=True):
    """The request as a policy sees it."""

    prompt_tokens: int
    session: str | None = None  # None: the client named none
    group: str | None = None
    tenant: str | None = None
    priority: int = 0
    blocks: Sequence[int] = ()  # ids of the prompt's leading blocks; empty: none are known
    block_tokens: int = 0  # of each of the first of them, about; 0: nobody tells


def _nothing_seen(index: int) -> float:
    return 0.0


def _nothing_told() -> Sequence[float | None]:
    return ()


class Candidates(msgspec.Struct, frozen=True):
    """A snapshot of the workers that may be chosen, in columns of equal length. A policy never
    changes one: they are the fleet's own lists, which other decisions read.

    Where a worker has not reported, its column holds None and a policy uses what this gateway
    counts itself; a report older than 2 s is no report.
    """

    ids: Sequence[str]
    requests_in_flight: Sequence[int]  # dispatched by this gateway, not ended
    # Of those, prompt tokens still to be computed: until their first output, or until the worker
    # tells how much is left of those that it has seen.
    uncached_tokens_in_flight: Sequence[int]
    running: Sequence[int | None]  # from the last report
    waiting: Sequence[int | None]
    queued_uncached_tokens: Sequence[int | None]
    queued_elsewhere: Sequence[int | None]  # of those, what other gateways have sent
    kv_share_used: Sequence[float | None]  # 0..1, locked tokens over the pool
    # One speed for all but those that are known to differ.
    prefill_tokens_per_s: Sequence[float | None]
    read_cached_tokens: Callable[[], Sequence[int]]  # computed once, on the first call
    # The share of the recent distinct prompts that begin with what this candidate has cached of
    # ours; 0 where nothing is remembered. A conversation's turns are one prompt. O(prompts).
    read_recent_share: Callable[[int], float] = _nothing_seen
    # Seconds of each worker's decode step, as last reported; empty: nobody reports any.
    read_decode_step_s: Callable[[], Sequence[float | None]] = _nothing_told
    # `running` and `waiting` added up, -1 where one is None; empty: nobody has added them up.
    reported_requests: Sequence[int] = ()
    # Whichever is more of those and of `requests_in_flight`; empty: nobody has compared them.
    requests_there: Sequence[int] = ()
    # The largest of `kv_share_used`; None: one of them is, or nobody has compared them.
    most_kv_share: float | None = None

    def __len__(self) -> int:
        return len(self.ids)


class Choice(msgspec.Struct, frozen=True):
    """The chosen column, and why. `explain` is called only when somebody looks."""

    index: int
    branch: str  # a short, bounded word for metrics: "hit", "miss", "imbalance", "rotation"
    explain: Callable[[], Sequence[float]]  # a score per candidate, lower is better


class Policy(Protocol):
    """State a policy needs (a rotation, a sticky map) changes only inside `choose`.

    Nothing else of it is asked to explain a choice: a copy of it (`copy.deepcopy`) is asked to
    choose, and its `Choice` explains itself. So a policy holds nothing that cannot be copied.
    """

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        """Pick one of at least one candidates. Raises NoWorkerAvailable if there are none."""
        ...

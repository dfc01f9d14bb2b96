"""Guardrails: what B does to users is watched, and too much of it ends the experiment."""

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from radixgate.analysis.experiments.records import Guardrail, RequestLine
from radixgate.errors import ConfigError

# The last requests of an arm; with more of them the window is shorter than it says.
MOST_LOOKED_AT = 10_000

Values = Callable[[Sequence[RequestLine]], list[float]]


@dataclass(frozen=True, slots=True)
class Watched:
    """A metric as a guardrail reads it. `of` makes one number of a window's lines; NaN: none."""

    of: Callable[[Sequence[RequestLine]], float]
    floor: bool = False  # it is passed from above: less is worse
    in_washout: bool = False  # a cold cache is no excuse


@dataclass(frozen=True, slots=True)
class Trip:
    """A guardrail that was passed."""

    guardrail: Guardrail
    value: float
    limit: float  # in the metric's unit
    requests: int


def rail_of(text: str, fewest: int) -> Guardrail:
    """`metric=limit`, or `metric=1.5x` for a multiple of A's. Raises ConfigError."""
    metric, equals, limit = (part.strip() for part in text.partition("="))
    relative = limit.endswith("x")
    try:
        number = float(limit.removesuffix("x"))
    except ValueError:
        number = math.nan
    if not equals or not number >= 0 or math.isinf(number):
        raise ConfigError(
            f"guardrail {text!r:.100}: write it as metric=limit, or metric=1.5x for a multiple of"
            " A's"
        )
    if metric not in METRICS:
        raise ConfigError(f"guardrail {text!r:.100}: there are {', '.join(METRICS)}")
    return Guardrail(text, metric, number, relative, fewest)


class Guard:
    """Looks at the last requests of both arms, each arm's up to `window_s` before its last one."""

    def __init__(self, rails: Iterable[Guardrail], window_s: float) -> None:
        self._rails = tuple(rails)
        self._window_s = window_s
        self._lines: tuple[deque[RequestLine], deque[RequestLine]] = (
            deque(maxlen=MOST_LOOKED_AT),
            deque(maxlen=MOST_LOOKED_AT),
        )

    @property
    def rails(self) -> Sequence[Guardrail]:
        return self._rails

    def add(self, arm: int, line: RequestLine) -> None:
        """A request has ended. O(1) on average."""
        if not self._rails:
            return
        lines = self._lines[arm]
        lines.append(line)
        while lines[0].t_dispatch_s < line.t_dispatch_s - self._window_s:
            lines.popleft()

    def tripped(self, waiting_s: Sequence[float] = ()) -> Trip | None:
        """The first guardrail that B is past. O(requests in the window x log).

        `waiting_s`: how long requests of B have been without their first token. One that has
        waited beyond the limit is past it already, whatever becomes of it.
        """
        for rail in self._rails:
            trip = self._look(rail, waiting_s)
            if trip is not None:
                return trip
        return None

    def value(self, arm: int, rail: Guardrail) -> float | None:
        """As it is now; None: there is nothing to make it of."""
        watched = METRICS[rail.metric]
        value = watched.of(_counted(watched, self._lines[arm]))
        return None if math.isnan(value) else value

    def _look(self, rail: Guardrail, waiting_s: Sequence[float]) -> Trip | None:
        watched = METRICS[rail.metric]
        limit = rail.limit
        if rail.relative:
            by_a = _counted(watched, self._lines[0])
            limit *= watched.of(by_a) if len(by_a) >= rail.fewest else math.nan
        lines = list(_counted(watched, self._lines[1]))
        if rail.metric.startswith("ttft") and not math.isnan(limit) and lines:
            late = (seconds for seconds in waiting_s if seconds > limit)
            lines += [_still_waiting(lines[-1], seconds) for seconds in late]
        value = watched.of(lines)
        past = value < limit if watched.floor else value > limit
        if len(lines) < rail.fewest or not past:
            return None
        return Trip(rail, value, limit, len(lines))


def _counted(watched: Watched, lines: Iterable[RequestLine]) -> Sequence[RequestLine]:
    return [
        line
        for line in lines
        if line.outcome != "aborted" and (watched.in_washout or not line.washout)
    ]


def _still_waiting(like: RequestLine, seconds: float) -> RequestLine:
    return RequestLine(
        like.experiment, like.block, like.arm, False, like.t_dispatch_s, "ok", ttft_s=seconds
    )


def _error_share(lines: Sequence[RequestLine]) -> float:
    return sum(line.outcome != "ok" for line in lines) / len(lines) if lines else math.nan


def _hit_rate(lines: Sequence[RequestLine]) -> float:
    known = [
        (line.cached_tokens, line.prompt_tokens)
        for line in lines
        if line.cached_tokens is not None and line.prompt_tokens is not None
    ]
    prompt = sum(tokens for _, tokens in known)
    return sum(cached for cached, _ in known) / prompt if prompt else math.nan


def _mean(values: Values) -> Callable[[Sequence[RequestLine]], float]:
    def of(lines: Sequence[RequestLine]) -> float:
        found = values(lines)
        return sum(found) / len(found) if found else math.nan

    return of


def _quantile(values: Values, share: float) -> Callable[[Sequence[RequestLine]], float]:
    def of(lines: Sequence[RequestLine]) -> float:
        """The smallest value that so large a share of them is no greater than."""
        found = sorted(values(lines))
        return found[max(0, math.ceil(share * len(found)) - 1)] if found else math.nan

    return of


def _ttft(lines: Sequence[RequestLine]) -> list[float]:
    return [line.ttft_s for line in lines if line.ttft_s is not None]


def _e2e(lines: Sequence[RequestLine]) -> list[float]:
    return [line.e2e_s for line in lines if line.e2e_s is not None]


def _tpot(lines: Sequence[RequestLine]) -> list[float]:
    return [line.tpot_s for line in lines if line.tpot_s is not None]


METRICS: Mapping[str, Watched] = {
    "error_share": Watched(_error_share, in_washout=True),
    "hit_rate": Watched(_hit_rate, floor=True),
    "ttft_mean": Watched(_mean(_ttft)),
    "ttft_p50": Watched(_quantile(_ttft, 0.5)),
    "ttft_p95": Watched(_quantile(_ttft, 0.95)),
    "ttft_p99": Watched(_quantile(_ttft, 0.99)),
    "e2e_mean": Watched(_mean(_e2e)),
    "e2e_p95": Watched(_quantile(_e2e, 0.95)),
    "tpot_mean": Watched(_mean(_tpot)),
}

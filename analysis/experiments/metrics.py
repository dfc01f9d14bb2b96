"""What a block of an experiment is judged by: one number a block and metric."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from radixgate.analysis.balance import balance_of
from radixgate.analysis.experiments.records import Declaration, RequestLine
from radixgate.analysis.percentiles import percentile

Requests = Sequence[RequestLine]
# Of a block's requests; None: nothing to measure.
Figure = Callable[[Requests], float | None]


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of a block's kept requests."""

    name: str
    unit: str
    better: int  # -1: less is better; 1: more is
    of: Figure
    # True: the effect is a ratio, worked out on logarithms; False: a difference.
    as_ratio: bool
    formula: str

    def step(self, before: float | None, after: float | None) -> float | None:
        """From one outcome to another: their log ratio or difference. None: it cannot be told."""
        if before is None or after is None:
            return None
        if not self.as_ratio:
            return after - before
        return math.log(after / before) if before > 0 and after > 0 else None


def metrics_of(declaration: Declaration) -> list[Metric]:
    """The declared ones, the first of them primary; the usual ones if none is declared.

    Raises KeyError for a name that is none of `METRICS`.
    """
    names = declaration.metrics or DEFAULT
    if "attainment" in names:
        return [
            _attainment(declaration) if name == "attainment" else METRICS[name] for name in names
        ]
    return [METRICS[name] for name in names]


def _values(requests: Requests, of: Callable[[RequestLine], float | None]) -> list[float]:
    found = (of(request) for request in requests if request.outcome == "ok")
    return sorted(value for value in found if value is not None)


def _mean(of: Callable[[RequestLine], float | None]) -> Figure:
    def mean(requests: Requests) -> float | None:
        values = _values(requests, of)
        return math.fsum(values) / len(values) if values else None

    return mean


def _quantile(of: Callable[[RequestLine], float | None], q: float) -> Figure:
    def quantile(requests: Requests) -> float | None:
        values = _values(requests, of)
        return percentile(values, q) if values else None

    return quantile


def _hit_rate(requests: Requests) -> float | None:
    told = [r for r in requests if r.cached_tokens is not None and r.prompt_tokens]
    prompt = sum(r.prompt_tokens or 0 for r in told)
    return sum(r.cached_tokens or 0 for r in told) / prompt if prompt else None


def _error_share(requests: Requests) -> float | None:
    offered = [r for r in requests if r.outcome != "aborted"]
    return sum(r.outcome != "ok" for r in offered) / len(offered) if offered else None


def _imbalance(requests: Requests) -> float | None:
    """Workers that got nothing in the block are unknown here, and not counted."""
    load: dict[str, float] = {}
    for r in requests:
        if r.worker is not None and r.prompt_tokens is not None:
            load[r.worker] = load.get(r.worker, 0.0) + r.prompt_tokens - (r.cached_tokens or 0)
    found = balance_of(list(load.values()))
    return None if found is None else found.max_over_mean


def _attainment(declaration: Declaration) -> Metric:
    bounds = (declaration.slo_ttft_s, declaration.slo_tpot_s)

    def good(request: RequestLine) -> bool:
        # An answer that was not streamed, or has one token, has no TPOT to miss by.
        ttft, tpot = request.ttft_s, request.tpot_s
        return request.outcome == "ok" and not (
            (bounds[0] is not None and (ttft is None or ttft > bounds[0]))
            or (bounds[1] is not None and tpot is not None and tpot > bounds[1])
        )

    def share(requests: Requests) -> float | None:
        offered = [r for r in requests if r.outcome != "aborted"]
        return sum(map(good, offered)) / len(offered) if offered else None

    formula = "good over offered; good: ok, TTFT and TPOT within the declared bounds"
    return Metric("attainment", "", 1, share, False, formula)


def _ttft(request: RequestLine) -> float | None:
    return request.ttft_s


def _e2e(request: RequestLine) -> float | None:
    return request.e2e_s


def _tpot(request: RequestLine) -> float | None:
    return request.tpot_s


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("ttft_mean", "s", -1, _mean(_ttft), True, "mean TTFT of a block's successes"),
            Metric("ttft_p50", "s", -1, _quantile(_ttft, 50), True, "median TTFT of a block"),
            Metric("ttft_p95", "s", -1, _quantile(_ttft, 95), True, "P95 TTFT of a block"),
            Metric("ttft_p99", "s", -1, _quantile(_ttft, 99), True, "P99 TTFT of a block"),
            Metric("e2e_mean", "s", -1, _mean(_e2e), True, "mean E2E of a block's successes"),
            Metric("e2e_p95", "s", -1, _quantile(_e2e, 95), True, "P95 E2E of a block"),
            Metric("tpot_mean", "s", -1, _mean(_tpot), True, "mean TPOT of a block"),
            Metric("hit_rate", "", 1, _hit_rate, False, "cached over prompt tokens of a block"),
            Metric(
                "imbalance",
                "",
                -1,
                _imbalance,
                False,
                "uncached prompt tokens of the busiest worker over the mean",
            ),
            Metric(
                "error_share",
                "",
                -1,
                _error_share,
                False,
                "failed and rejected over offered; aborted by the client: not offered",
            ),
        )
    }
)
DEFAULT = ("ttft_mean", "ttft_p95", "e2e_mean", "hit_rate", "imbalance", "error_share")
NAMES = (*METRICS, "attainment")

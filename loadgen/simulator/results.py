"""What a run amounts to, as a table and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from radixgate.analysis.percentiles import Spread, spread_of
from radixgate.loadgen.simulator.job import Job
from radixgate.loadgen.simulator.objective import Objective
from radixgate.loadgen.simulator.simulation import SimulatedRun

# The first and the last tenth of the requests see a fleet that fills or drains.
_MARGIN = 0.1


@dataclass(frozen=True, slots=True)
class Goodput:
    """How an objective was kept."""

    objective: Objective
    share: float  # of the measured requests
    requests_per_s: float  # that share of all that was answered a second

    def as_json(self) -> dict[str, object]:
        return {
            "objective_ms": self.objective.as_json(),
            "share": self.share,
            "requests_per_s": self.requests_per_s,
        }


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of every measured request, in order of arrival, for plots."""

    ttft_s: Sequence[float]
    e2e_s: Sequence[float]


@dataclass(frozen=True, slots=True)
class Results:
    """Of one policy. Latencies and hits are those of the middle 80 % of the requests."""

    hit_rate: float  # prompt tokens that were cached, as a share of all
    ttft_s: Spread
    e2e_s: Spread
    tpot_s: Spread | None  # None: no answer had a second token
    imbalance: float  # busy seconds of the busiest worker over the mean
    requests_per_s: float  # over the whole run: answered, from the first arrival to the last end
    requests: int  # measured
    resyncs: int  # mirrors that were read anew after a loss
    goodput: Goodput | None  # None: no objective was given
    times: Times

    def as_json(self) -> dict[str, object]:
        """Without the single times."""
        return {
            "hit_rate": self.hit_rate,
            "ttft_s": _figures(self.ttft_s),
            "e2e_s": _figures(self.e2e_s),
            "tpot_s": None if self.tpot_s is None else _figures(self.tpot_s),
            "imbalance": self.imbalance,
            "requests_per_s": self.requests_per_s,
            "requests": self.requests,
            "resyncs": self.resyncs,
            "goodput": None if self.goodput is None else self.goodput.as_json(),
        }


def results_of(run: SimulatedRun, objective: Objective | None = None) -> Results:
    """Measure a run of at least one request. O(requests log requests)."""
    middle = _middle(run.jobs)
    times = Times([job.ttft_s for job in middle], [job.e2e_s for job in middle])
    ttft, e2e = spread_of(times.ttft_s), spread_of(times.e2e_s)
    assert ttft is not None
    assert e2e is not None
    busy = [worker.busy_s for worker in run.workers]
    seconds = max(job.ended_s for job in run.jobs) - run.jobs[0].arrived_s
    requests_per_s = len(run.jobs) / seconds
    goodput = None
    if objective is not None:
        share = sum(map(objective.met_by, middle)) / len(middle)
        goodput = Goodput(objective, share, share * requests_per_s)
    return Results(
        hit_rate=sum(job.cached_tokens for job in middle)
        / sum(job.request.input_tokens for job in middle),
        ttft_s=ttft,
        e2e_s=e2e,
        tpot_s=spread_of(tpot for job in middle if (tpot := job.tpot_s) is not None),
        imbalance=max(busy) * len(busy) / sum(busy),
        requests_per_s=requests_per_s,
        requests=len(middle),
        resyncs=run.resyncs,
        goodput=goodput,
        times=times,
    )


def completion_rate(run: SimulatedRun) -> float:
    """Answers a second: the slope of the line that fits the count of answers over time best.

    So that neither the slow start, when all prompts come first, nor the last stragglers decide.
    """
    ends = sorted(job.ended_s for job in run.jobs)
    mean_s = fsum(ends) / len(ends)
    middle = (len(ends) - 1) / 2
    spread = fsum((end - mean_s) ** 2 for end in ends)
    if not spread:
        return len(ends) / mean_s
    return fsum((count - middle) * (end - mean_s) for count, end in enumerate(ends)) / spread


def table(results: Mapping[str, Results]) -> str:
    """A line a policy; times in seconds, TPOT in milliseconds."""
    head = (
        f"{'policy':<20}{'hit':>7}{'TTFT mean':>11}{'p50':>8}{'p95':>8}{'p99':>8}"
        f"{'E2E mean':>10}{'p50':>8}{'p95':>8}{'p99':>8}{'TPOT ms':>9}{'max/mean':>10}{'req/s':>8}"
    )
    if any(one.goodput for one in results.values()):
        head += f"{'good':>7}{'good/s':>8}"
    return "\n".join([head, *(_line(name, one) for name, one in results.items())])


def _line(name: str, one: Results) -> str:
    ttft, e2e = one.ttft_s, one.e2e_s
    tpot = "-" if one.tpot_s is None else f"{1000 * one.tpot_s.mean:.1f}"
    kept = one.goodput
    good = "" if kept is None else f"{100 * kept.share:>6.1f}%{kept.requests_per_s:>8.2f}"
    return (
        f"{name:<20}{one.hit_rate:>7.3f}{ttft.mean:>11.2f}{ttft.p50:>8.2f}{ttft.p95:>8.2f}"
        f"{ttft.p99:>8.2f}{e2e.mean:>10.2f}{e2e.p50:>8.2f}{e2e.p95:>8.2f}{e2e.p99:>8.2f}"
        f"{tpot:>9}{one.imbalance:>10.2f}{one.requests_per_s:>8.2f}{good}"
    )


def _middle(jobs: Sequence[Job]) -> Sequence[Job]:
    cut = int(len(jobs) * _MARGIN)
    return jobs[cut : len(jobs) - cut]


def _figures(spread: Spread) -> dict[str, float]:
    return {"mean": spread.mean, "p50": spread.p50, "p95": spread.p95, "p99": spread.p99}

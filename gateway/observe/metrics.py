"""What the gateway counts. Counting is an addition; Prometheus's own types are built when asked."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.gateway.observe.watch_counts import WatchCounts

_SECONDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    30,
    60,
    300,
    1800,
)


_RATIOS = (0.1, 0.25, 0.5, 0.75, 0.9, 1.1, 1.25, 1.5, 2, 4, 10, 100)


class FinalOutcome(StrEnum):
    """How a request ended, once for each request, whatever attempts it took."""

    OK = "ok"
    CLIENT_ERROR = "client_error"  # refused as wrong, by the gateway or by a worker
    UPSTREAM_ERROR = "upstream_error"  # no worker gave a whole answer, or it ended with an error
    CLIENT_DISCONNECT = "client_disconnect"
    REJECTED = "rejected"  # no worker could take it


_OK = FinalOutcome.OK  # a member is looked up by a function call each time


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker as its gauges show it."""

    id: str
    state: str
    in_flight: int
    mirror_blocks: int
    breaker: str


class Buckets:
    """A histogram, of seconds unless it is given bounds: one bisection and two additions each."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float] = _SECONDS) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, seconds: float, times: int = 1) -> None:
        self._counts[bisect_left(self._bounds, seconds)] += times
        self._sum += seconds * times

    @property
    def count(self) -> int:
        return sum(self._counts)

    def family(self, name: str, help: str) -> HistogramMetricFamily:
        rows, total = [], 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            total += count
            rows.append(("+Inf" if bound == float("inf") else f"{float(bound)}", float(total)))
        return HistogramMetricFamily(name, help, buckets=rows, sum_value=self._sum)


class GatewayMetrics(Collector):
    """The counters of one gateway, all plain numbers, changed on the event loop only."""

    def __init__(self, read_workers: Callable[[], Sequence[WorkerRow]]) -> None:
        self._read_workers = read_workers  # the present ones: a removed one's series go with it
        self.requests = dict.fromkeys(FinalOutcome, 0)
        self.attempts = 0
        self.retries = 0
        self.continuations = 0
        self.worker_failures: dict[str, int] = {}  # by worker id, of present workers
        self.watches = WatchCounts()
        self.decisions: dict[str, int] = {}  # by the policy's branch, a bounded word
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.cached_tokens = 0
        self.predicted_cached_tokens = 0
        self.in_flight = 0
        self.read_ejections: Callable[[], int] = lambda: 0
        self.read_waiting: Callable[[], int] = lambda: 0  # for their turn; in flight only then
        self.read_more: Callable[[], Iterator[Metric]] = lambda: iter(())  # of other parts
        self.ttft = Buckets()
        self.itl = Buckets()
        self.duration = Buckets()
        self.ttft_ratio = Buckets(_RATIOS)
        self.ttft_error = Buckets()
        self.read_dropped: Callable[[], Mapping[str, int]] = dict  # lines, by log

    def aim(self, ttft_s: float | None, itl_s: float | None) -> None:
        """Before anything is counted: times to be kept get a bound of their own; None: no aim."""
        if ttft_s is not None:
            self.ttft = Buckets(sorted({*_SECONDS, ttft_s}))
        if itl_s is not None:
            self.itl = Buckets(sorted({*_SECONDS, itl_s}))

    def predicted(self, ttft_s: float, observed_s: float) -> None:
        """A worker brought the first token of a stream so long after it was asked."""
        self.ttft_ratio.observe(observed_s / max(ttft_s, 1e-6))
        self.ttft_error.observe(abs(observed_s - ttft_s))

    def dispatched(self, branch: str, predicted_cached_tokens: int) -> None:
        """An attempt begins; `branch` is the policy's word for why it goes there."""
        self.attempts += 1
        self.decisions[branch] = self.decisions.get(branch, 0) + 1
        self.predicted_cached_tokens += predicted_cached_tokens

    def ended(self, outcome: FinalOutcome, seconds: float) -> None:
        """A request that was in flight is over."""
        self.in_flight -= 1
        self.requests[outcome] += 1
        self.duration.observe(seconds)

    def answered_whole(self, counts: AnswerCounts, seconds: float) -> None:
        """`answered`, and `ended` as it should, in one."""
        self.in_flight -= 1
        self.requests[_OK] += 1
        self.duration.observe(seconds)
        self.prompt_tokens += counts.prompt or 0
        self.completion_tokens += counts.completion or 0
        self.cached_tokens += counts.cached or 0

    def turned_away(self, outcome: FinalOutcome) -> None:
        """A request was answered before it was in flight."""
        self.requests[outcome] += 1

    def answered(self, counts: AnswerCounts) -> None:
        """Add what a whole answer said; what it did not say adds nothing."""
        self.prompt_tokens += counts.prompt or 0
        self.completion_tokens += counts.completion or 0
        self.cached_tokens += counts.cached or 0

    def worker_failed(self, worker_id: str) -> None:
        self.worker_failures[worker_id] = self.worker_failures.get(worker_id, 0) + 1

    def exposition(self) -> bytes:
        """The text that a Prometheus server scrapes."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator[Metric]:
        rows = self._read_workers()
        present = {row.id for row in rows}
        for gone in self.worker_failures.keys() - present:
            del self.worker_failures[gone]
        yield _by_label(
            "radixgate_requests",
            "Requests by how they ended",
            "outcome",
            {outcome.value: count for outcome, count in self.requests.items()},
        )
        yield _by_label(
            "radixgate_decisions", "Choices by the policy's reason", "reason", self.decisions
        )
        yield _by_label(
            "radixgate_worker_failures",
            "Attempts that a worker broke off or answered with an error of its own",
            "worker",
            self.worker_failures,
        )
        yield _by_label(
            "radixgate_mirror_resyncs",
            "Times that what a worker has cached was asked for anew, as its news did not fit",
            "cause",
            self.watches.resyncs,
        )
        yield _by_label(
            "radixgate_watch_faults",
            "News of workers that a fault of the gateway's own kept from being taken",
            "watch",
            self.watches.faults,
        )
        for name, help, value in (
            ("attempts", "Attempts at workers", self.attempts),
            (
                "ejections",
                "Times that a worker was set aside for its share of failures",
                self.read_ejections(),
            ),
            ("retries", "Attempts that repeat one that failed unseen", self.retries),
            (
                "continuations",
                "Attempts that go on with an answer from where another worker left it",
                self.continuations,
            ),
            ("prompt_tokens", "Prompt tokens as workers counted them", self.prompt_tokens),
            ("completion_tokens", "Tokens that workers generated", self.completion_tokens),
            ("cached_tokens", "Prompt tokens that workers had cached", self.cached_tokens),
            (
                "predicted_cached_tokens",
                "Prompt tokens that the mirror believed to be cached",
                self.predicted_cached_tokens,
            ),
        ):
            yield CounterMetricFamily(f"radixgate_{name}", help, value=value)
        yield GaugeMetricFamily(
            "radixgate_in_flight", "Requests that have not ended", value=self.in_flight
        )
        yield GaugeMetricFamily(
            "radixgate_queue_waiting", "Requests that wait for a place", value=self.read_waiting()
        )
        yield self.ttft.family(
            "radixgate_ttft_seconds", "To the first token of a successful streamed answer"
        )
        yield self.ttft_ratio.family(
            "radixgate_ttft_ratio", "Time to the first token at a worker, over what was predicted"
        )
        yield self.ttft_error.family(
            "radixgate_ttft_error_seconds", "And by how much the prediction was off, either way"
        )
        yield _by_label(
            "radixgate_log_lines_dropped",
            "Lines that a log's disk did not take in time",
            "log",
            dict(self.read_dropped()),
        )
        yield self.itl.family(
            "radixgate_itl_seconds", "Between two pieces of a streamed answer after its first token"
        )
        yield self.duration.family(
            "radixgate_request_duration_seconds", "From the whole request to the answer's last byte"
        )
        yield from _worker_gauges(rows)
        yield from self.read_more()


def _worker_gauges(rows: Sequence[WorkerRow]) -> Iterator[Metric]:
    load = GaugeMetricFamily(
        "radixgate_worker_in_flight", "Requests sent there and not ended", labels=["worker"]
    )
    blocks = GaugeMetricFamily(
        "radixgate_mirror_blocks", "Blocks the mirror holds for a worker", labels=["worker"]
    )
    state = GaugeMetricFamily(
        "radixgate_worker_state", "1 for the state a worker is in", labels=["worker", "state"]
    )
    breaker = GaugeMetricFamily(
        "radixgate_worker_breaker",
        "1 for the state a worker's circuit breaker is in",
        labels=["worker", "state"],
    )
    for row in rows:
        breaker.add_metric([row.id, row.breaker], 1)
        load.add_metric([row.id], row.in_flight)
        blocks.add_metric([row.id], row.mirror_blocks)
        state.add_metric([row.id, row.state], 1)
    yield from (load, blocks, state, breaker)


def _by_label(name: str, help: str, label: str, values: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, help, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family

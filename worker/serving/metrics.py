"""The worker's Prometheus metrics, under SGLang's names where a gateway or dashboard reads them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from radixgate.clock import Clock
from radixgate.worker.engine.latencies import ABOUT
from radixgate.worker.engine.stats import EngineStats

RATE_WINDOW_S = 10.0


class GenerationRate:
    """Output tokens a second over the last ten seconds, from samples of the running total."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # At most one sample in a twentieth of the window, so at most 21 are kept.
        self._samples: deque[tuple[float, int]] = deque()

    def sample(self, generated_total: int) -> None:
        """Call whenever the total may have grown. O(1)."""
        now = self._clock.now()
        samples = self._samples
        if samples and now - samples[-1][0] < RATE_WINDOW_S / 20:
            return
        samples.append((now, generated_total))
        while now - samples[0][0] > RATE_WINDOW_S:
            samples.popleft()

    def per_second(self, generated_total: int) -> float:
        """0 when nothing was sampled within the window."""
        now = self._clock.now()
        recent = [sample for sample in self._samples if now - sample[0] <= RATE_WINDOW_S]
        if not recent or now <= recent[0][0]:
            return 0.0
        return (generated_total - recent[0][1]) / (now - recent[0][0])


class WorkerMetrics(Collector):
    """Reads the engine's frozen statistics at each scrape; nothing is counted twice."""

    def __init__(self, stats: Callable[[], EngineStats], model: str, clock: Clock) -> None:
        self._stats = stats
        self._model = model
        self.rate = GenerationRate(clock)
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def render(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        stats = self._stats()
        for name, about, value in self._gauges(stats):
            gauge = GaugeMetricFamily(name, about, labels=("model_name",))
            gauge.add_metric((self._model,), value)
            yield gauge
        for name, about, value in _counters(stats):
            counter = CounterMetricFamily(name, about, labels=("model_name",))
            counter.add_metric((self._model,), value)
            yield counter
        for name, about in ABOUT.items():
            counts = stats.latencies[name]
            histogram = HistogramMetricFamily(
                f"sglang:{name}_seconds", about, labels=("model_name",)
            )
            histogram.add_metric((self._model,), counts.cumulative(), counts.total_s)
            yield histogram

    def _gauges(self, stats: EngineStats) -> Iterator[tuple[str, str, float]]:
        pages, size = stats.pages, stats.page_size
        asked = stats.prompt_tokens_total
        yield "sglang:num_running_reqs", "outputs being computed", stats.running
        yield "sglang:num_queue_reqs", "outputs that wait for pages", stats.waiting
        yield "sglang:token_usage", "share of the KV pool in use", pages.locked / pages.total
        yield (
            "sglang:cache_hit_rate",
            "share of all prompt tokens that was found in the cache",
            stats.cached_tokens_total / asked if asked else 0.0,
        )
        yield (
            "sglang:gen_throughput",
            "output tokens a second, over the last ten",
            self.rate.per_second(stats.generated_tokens_total),
        )
        yield "sglang:max_total_num_tokens", "size of the KV pool", pages.total * size
        yield "sglang:kv_available_tokens", "free KV, in tokens", pages.free * size
        yield "sglang:kv_evictable_tokens", "cached and unused KV", pages.evictable * size
        yield "sglang:kv_used_tokens", "KV in use, in tokens", pages.locked * size
        yield "sglang:page_size", "tokens a page", size
        yield (
            "radixgate_worker_queued_uncached_tokens",
            "prompt tokens still to be computed",
            stats.queued_uncached_tokens,
        )


def _counters(stats: EngineStats) -> Iterator[tuple[str, str, float]]:
    yield "sglang:prompt_tokens", "prompt tokens, once a request", stats.prompt_tokens_total
    yield "sglang:cached_tokens", "of those, found in the cache", stats.cached_tokens_total
    yield "sglang:generation_tokens", "output tokens", stats.generated_tokens_total
    yield "sglang:num_requests", "requests taken up", stats.requests_total
    yield "sglang:num_aborted_requests", "requests aborted", stats.aborted_total
    yield "sglang:num_retracted_requests", "retractions", stats.retractions_total
    yield "sglang:evicted_tokens", "tokens evicted from the cache", stats.evicted_tokens_total
    yield "radixgate_worker_recomputed_tokens", "computed again", stats.recomputed_tokens_total
    yield "radixgate_worker_refused_requests", "requests refused", stats.refused_total
    yield "radixgate_worker_failed_steps", "forward passes that raised", stats.failed_steps_total
    yield "radixgate_worker_page_leaks", "page counts that did not add up", stats.leaks_total

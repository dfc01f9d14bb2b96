"""What the engine counts, and the frozen picture of it that others read."""

import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from radixgate.worker.engine.histogram import HistogramCounts
from radixgate.worker.engine.latencies import Latencies
from radixgate.worker.requests.outbox import Sink
from radixgate.worker.requests.sequence import Request, TokenSequence
from radixgate.worker.schedule.chunks import Chunk
from radixgate.worker.schedule.kv_memory import KvMemory, PageCounts

_DECODE_STEPS = 33  # steps the median is taken of


@dataclass(frozen=True, slots=True)
class EngineStats:
    """The engine between two steps. Totals run from its start and never fall."""

    pages: PageCounts
    page_size: int  # tokens
    running: int  # choices that have pages
    waiting: int  # choices that have none yet
    queued_uncached_tokens: int  # prompt tokens still to be computed
    queued_uncached_by_sink: Mapping[Sink, int]  # of those, by who asked; 0 is left out
    seen_by_sink: Mapping[Sink, int]  # the last number of each sink that numbers its requests
    decode_step_s: float | None  # median of the last steps that decoded; None: none yet
    prefill_tokens_total: int
    prefill_busy_us_total: int  # a step's time, shared between prefill and decode by rows
    requests_total: int
    finished_total: int
    aborted_total: int
    refused_total: int
    prompt_tokens_total: int  # once a request, at its first admission
    cached_tokens_total: int  # of those, found in the cache
    recomputed_tokens_total: int  # computed again after a retraction
    generated_tokens_total: int
    retractions_total: int
    evicted_tokens_total: int
    failed_steps_total: int  # forward passes that raised
    latencies: Mapping[str, HistogramCounts]  # by the names of `latencies.ABOUT`
    leaks_total: int  # times that pages were missing when nobody ran: a bug, see the log


@dataclass(slots=True)
class EngineTally:
    """The totals, while they grow. One owner: the engine's thread."""

    prefill_tokens: int = 0
    prefill_busy_us: float = 0.0
    requests: int = 0
    finished: int = 0
    aborted: int = 0
    refused: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    recomputed_tokens: int = 0
    generated_tokens: int = 0
    failed_steps: int = 0
    leaks: int = 0
    latencies: Latencies = field(default_factory=Latencies)
    decode_steps_s: "deque[float]" = field(default_factory=lambda: deque(maxlen=_DECODE_STEPS))

    def admitted(self, request: Request, now_s: float) -> None:
        """For the first time: a retry or a return after a retraction is no new lookup."""
        self.latencies.admitted(request, now_s)
        self.prompt_tokens += request.prompt_tokens
        self.cached_tokens += request.cached_tokens or 0

    def generated(self, sequence: TokenSequence, now_s: float) -> None:
        self.generated_tokens += 1
        self.latencies.token(sequence, now_s)

    def ended(self, request: Request, now_s: float) -> None:
        if request.aborted:
            self.aborted += 1
        else:
            self.finished += 1
            self.latencies.ended(request, now_s)

    def stepped(self, chunks: Sequence[Chunk], seconds: float) -> None:
        prefill = sum(chunk.count for chunk in chunks if chunk.prefill)
        decode = sum(not chunk.prefill for chunk in chunks)
        self.prefill_tokens += prefill
        self.recomputed_tokens += sum(
            chunk.count for chunk in chunks if chunk.prefill and chunk.sequence.retractions
        )
        self.prefill_busy_us += seconds * 1e6 * prefill / (prefill + decode)
        if decode:
            self.decode_steps_s.append(seconds)

    @property
    def decode_step_s(self) -> float | None:
        return statistics.median(self.decode_steps_s) if self.decode_steps_s else None

    def stats(
        self,
        memory: KvMemory,
        *,
        running: int,
        waiting: int,
        queued_uncached_by_sink: Mapping[Sink, int],
        seen_by_sink: Mapping[Sink, int],
        retractions_total: int,
    ) -> EngineStats:
        """The frozen picture: these totals and what holds now."""
        return EngineStats(
            pages=memory.counts(),
            page_size=memory.page_size,
            running=running,
            waiting=waiting,
            queued_uncached_tokens=sum(queued_uncached_by_sink.values()),
            queued_uncached_by_sink=dict(queued_uncached_by_sink),
            seen_by_sink=dict(seen_by_sink),
            decode_step_s=self.decode_step_s,
            prefill_tokens_total=self.prefill_tokens,
            prefill_busy_us_total=int(self.prefill_busy_us),
            requests_total=self.requests,
            finished_total=self.finished,
            aborted_total=self.aborted,
            refused_total=self.refused,
            prompt_tokens_total=self.prompt_tokens,
            cached_tokens_total=self.cached_tokens,
            recomputed_tokens_total=self.recomputed_tokens,
            generated_tokens_total=self.generated_tokens,
            retractions_total=retractions_total,
            evicted_tokens_total=memory.evicted_tokens_total,
            failed_steps_total=self.failed_steps,
            latencies=self.latencies.snapshot(),
            leaks_total=self.leaks,
        )

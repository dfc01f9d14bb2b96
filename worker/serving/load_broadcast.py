"""Load reports: what a gateway is told about this worker, and when."""

import asyncio
from collections.abc import AsyncIterator, Callable

from radixgate.clock import Clock
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.worker.engine.engine import Engine, Sink
from radixgate.worker.serving.changes import Changes, wait_for_change

REPORT_EVERY_S = 0.2  # at the latest, changed or not: old news is worse than none
REPORT_GAP_S = 0.02  # at the soonest: a busy engine changes with each step


class LoadBroadcast:
    """Turns the engine's statistics into reports, for any number of watchers."""

    def __init__(
        self, engine: Engine, clock: Clock, *, weight_version: str, instance_id: str
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._weight_version = weight_version
        self._instance_id = instance_id
        self._changes = Changes()
        self.phase = "serving"  # or "draining"

    def notify(self) -> None:
        """The engine's statistics may have changed."""
        self._changes.notify()

    def changed(self) -> asyncio.Event:
        """Set at the next change."""
        return self._changes.next()

    def report(self, asker: Sink | None) -> pb.LoadReport:
        """As of now. `asker` is the gateway's attached stream; None: it has none."""
        stats = self._engine.stats()
        pages = stats.pages
        report = pb.LoadReport(
            running=stats.running,
            waiting=stats.waiting,
            queued_uncached_tokens=stats.queued_uncached_tokens,
            kv_tokens_used=pages.locked * stats.page_size,
            kv_tokens_evictable=pages.evictable * stats.page_size,
            kv_tokens_total=pages.total * stats.page_size,
            prefill_tokens_total=stats.prefill_tokens_total,
            prefill_busy_us_total=stats.prefill_busy_us_total,
            phase=self.phase,
            weight_version=self._weight_version,
            instance_id=self._instance_id,
        )
        if asker is not None:
            report.queued_uncached_tokens_yours = stats.queued_uncached_by_sink.get(asker, 0)
            if asker in stats.seen_by_sink:
                report.seen_number = stats.seen_by_sink[asker]
        if stats.decode_step_s is not None:
            report.decode_step_s = stats.decode_step_s
        return report

    async def follow(self, asker: Callable[[], Sink | None]) -> AsyncIterator[pb.LoadReport]:
        """A report at once, then on change, 20 to 200 ms apart, for ever."""
        while True:
            changed = self._changes.next()
            sent_s = self._clock.now()
            yield self.report(asker())
            await wait_for_change(changed, sent_s + REPORT_EVERY_S - self._clock.now())
            # What changes within the gap is in the next report anyway: `report` reads it fresh.
            await asyncio.sleep(max(0.0, sent_s + REPORT_GAP_S - self._clock.now()))

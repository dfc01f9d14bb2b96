"""A small engine core over HistoryModel, and the ear that listens to it."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TypedDict, Unpack

from asking import Asked, submit
from clocks import FakeClock
from history_model import HistoryModel, NoAttention
from radixgate.clock import Clock
from radixgate.proto.generated import worker_pb2 as pb
from radixgate.proto.kv_events import KvEvent
from radixgate.text.tokenizer import Tokenizer
from radixgate.worker.engine.assembly import build_core
from radixgate.worker.engine.core import EngineCore
from radixgate.worker.requests.intake import ProcessorFactory
from radixgate.worker.requests.limits import WorkerLimits
from radixgate.worker.requests.logits import standard_processors
from radixgate.worker.settings.engine_config import EngineConfig
from radixgate.worker.steps.model_runner import ModelRunner
from radixgate.worker.steps.passes import ComputeLine


class Ear:
    """A sink that keeps all it hears, by handle and choice."""

    def __init__(self) -> None:
        self.items: list[pb.Item] = []
        self.refused: dict[int, pb.Refused] = {}

    def deliver(self, batch: pb.StepBatch) -> None:
        self.items += batch.items
        for refused in batch.refused:
            assert refused.handle not in self.refused, "refused twice"
            self.refused[refused.handle] = refused

    def of(self, handle: int, choice: int = 0) -> list[pb.Item]:
        return [i for i in self.items if (i.handle, i.choice) == (handle, choice)]

    def ids(self, handle: int, choice: int = 0) -> list[int]:
        return [token for item in self.of(handle, choice) for token in item.token_ids]

    def text(self, handle: int, choice: int = 0) -> str:
        return "".join(item.text for item in self.of(handle, choice))

    def finish(self, handle: int, choice: int = 0) -> str | None:
        """Name of the reason; None: it has not ended. Fails if anything follows the end."""
        items = self.of(handle, choice)
        ends = [place for place, item in enumerate(items) if item.HasField("finish")]
        if not ends:
            return None
        assert ends == [len(items) - 1], "something came after the end"
        return pb.Finish.Reason.Name(items[-1].finish.reason)

    def counts(self, handle: int, choice: int = 0) -> pb.Counts:
        return self.of(handle, choice)[-1].counts

    def cached(self, handle: int, choice: int = 0) -> int:
        return self.counts(handle, choice).cached_device


class Settings(TypedDict, total=False):
    """Of EngineConfig."""

    page_size: int  # 4
    chunked_prefill_size: int  # 8
    random_seed: int | None  # 1
    max_prefill_tokens: int
    max_running_requests: int
    max_queued_requests: int
    max_passed_over: int
    schedule_policy: str
    schedule_conservativeness: float
    radix_eviction_policy: str
    stream_interval: int
    itl_slo: float | None
    disable_radix_cache: bool
    disable_overlap_schedule: bool  # True
    debug_checks: bool


class SmallEngine:
    """An EngineCore with its model, stepped by hand; keeps the cache's events."""

    def __init__(
        self,
        *,
        pages: int = 64,
        context: int = 4096,
        tokenizer: Tokenizer | None = None,
        vocab_size: int = 64,
        clock: Clock | None = None,
        processors: ProcessorFactory = standard_processors,
        runner: ModelRunner | None = None,
        line: ComputeLine | None = None,
        even_context: int | None = None,
        **settings: Unpack[Settings],
    ) -> None:
        small = Settings(
            page_size=4,
            chunked_prefill_size=8,
            random_seed=1,
            # One step is one pass, and what it brings.
            disable_overlap_schedule=True,
        )
        self.config = EngineConfig(**(small | settings))
        size = self.config.page_size
        self.clock = clock or FakeClock()
        self.model = HistoryModel(pages * size, vocab_size)
        self.core: EngineCore = build_core(
            self.config,
            WorkerLimits(vocab_size, context, pages * size),
            runner
            or ModelRunner(self.model, NoAttention(), size, copy_pages=self.model.copier(size)),
            self.clock,
            weights_id="history",
            tokenizer=tokenizer,
            processors=processors,
            line=line,
            even_context=even_context,
        )
        self.events: list[KvEvent] = []
        self.ended: dict[int, int] = defaultdict(int)  # how often a handle ended

    def submit(self, ear: Ear, handle: int, ids: Sequence[int], **asked: Unpack[Asked]) -> None:
        self.core.submit(ear, submit(handle, ids, **asked))

    def step(self) -> bool:
        busy = self.core.step()
        self.deliver()
        return busy

    def deliver(self) -> None:
        delivery = self.core.take()
        if delivery is None:
            return
        if delivery.cleared:
            self.events.clear()
        self.events += delivery.kv_events
        for _, handle in delivery.ended:
            self.ended[handle] += 1
        for sink, batch in delivery.batches:
            sink.deliver(batch)

    def run(self, most: int = 20_000) -> int:
        """Until nobody can go on; how many steps it took."""
        for steps in range(most):
            if not self.step():
                return steps
        raise AssertionError(f"still busy after {most} steps")

    def run_until(self, reached: Callable[[], bool], most: int = 20_000) -> None:
        """Step until it is so; fails if it never comes to be."""
        for _ in range(most):
            if reached():
                return
            assert self.step(), "nobody can go on, and it is not so"

    def answer(self, ids: Sequence[int], **asked: Unpack[Asked]) -> Ear:
        """One request alone, from start to end, as handle 1."""
        ear = Ear()
        self.submit(ear, 1, ids, **asked)
        self.run()
        return ear

    def check_idle(self) -> None:
        """Nobody runs, and every page is free or cached."""
        self.core.check()
        pages = self.core.stats().pages
        assert pages.locked == 0
        assert pages.free + pages.evictable == pages.total
        assert self.core.stats().leaks_total == 0

"""A worker that is only timed: continuous batching, chunked prefill, first come first served."""

import heapq
from collections import Counter, deque
from collections.abc import Callable, Sequence
from functools import partial

from radixgate.fleet.load_report import LoadReport
from radixgate.loadgen.simulator.block_pool import ROOT, BlockPool
from radixgate.loadgen.simulator.engine_model import EngineModel
from radixgate.loadgen.simulator.job import Job
from radixgate.loadgen.simulator.stride import Stride
from radixgate.loadgen.simulator.timeline import Timeline
from radixgate.proto.kv_events import KvEvent, Pending, Settled


class SimulatedWorker:
    """Runs jobs step by step. A step costs O(prompts in it), however many sequences decode,
    and steps without prompts are taken many at once, unless neighbours have a say in each.

    A job waits until the pool has room for its prompt and all its output; those behind it wait
    too. `on_step` is told what each step changed in the pool, `on_room` that a job gave room back.
    """

    def __init__(
        self,
        number: int,
        engine: EngineModel,
        pool: BlockPool,
        block_size: int,
        timeline: Timeline,
    ) -> None:
        self.number = number
        self.pool = pool
        self.owed_tokens = 0  # prompt tokens still to be computed
        self.decoding = 0
        self.busy_s = 0.0
        self.computed_tokens = 0
        self.on_events: Callable[[Sequence[KvEvent]], None] = lambda events: None
        self.on_step: Callable[[], None] = lambda: None
        self.on_room: Callable[[], None] = lambda: None
        self.neighbours: Callable[[], int] = lambda: 0  # that compute now, on the same cores
        self._engine = engine
        self._block_size = block_size
        self._timeline = timeline
        self._waiting: deque[Job] = deque()
        self._prefilling: deque[Job] = deque()
        self._owed_to: Counter[int] = Counter()  # the same by gateway
        self._seen: dict[int, int] = {}  # by gateway, the last of its leases
        self._context_tokens = 0
        self._decode_steps = 0
        # (the decode step that gives its last token, its number, job)
        self._ends: list[tuple[int, int, Job]] = []
        self._decode_step_s: float | None = None
        self._prefill_busy_s = 0.0
        self._stride: Stride | None = None  # None: nothing runs
        self._pieces: Sequence[tuple[Job, int]] = ()  # prompts in the step under way
        self._prefill_share = 0.0  # their part of it

    @property
    def shares_cores(self) -> bool:
        """Its steps take longer while neighbours compute."""
        return self._engine.neighbour_share > 0.0

    @property
    def requests(self) -> int:
        return len(self._waiting) + len(self._prefilling) + self.decoding

    @property
    def computes(self) -> bool:
        return self._stride is not None

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def submit(self, job: Job) -> None:
        """Take a job; if nothing runs, its first step begins now."""
        job.worker = self.number
        self._seen[job.gateway] = job.lease
        self._owe(job, job.request.input_tokens - self._cached_tokens(job))
        self._waiting.append(job)
        self.on_events([Pending(job.number, ROOT, job.request.ids)])
        if self._stride is not None:
            self._interrupt(self._stride)
        else:
            self._begin_step()

    def wake(self) -> None:
        """There may be room now for those that wait."""
        if self._stride is None:
            self._begin_step()

    def load_report(self, gateway: int) -> LoadReport:
        """What it would say to this gateway now."""
        pool, size = self.pool, self._block_size
        return LoadReport(
            running=len(self._prefilling) + self.decoding,
            waiting=len(self._waiting),
            queued_uncached_tokens=self.owed_tokens,
            queued_uncached_tokens_yours=self._owed_to[gateway],
            kv_tokens_used=pool.locked * size,
            kv_tokens_evictable=pool.evictable * size,
            kv_tokens_total=pool.capacity * size,
            prefill_tokens_total=self.computed_tokens,
            prefill_busy_us_total=int(self._prefill_busy_s * 1e6),
            decode_step_s=self._decode_step_s,
            instance_id=str(self.number),
            seen_number=self._seen.get(gateway),
        )

    def check(self) -> None:
        """Assert that what is counted is there. O(jobs)."""
        jobs = [*self._waiting, *self._prefilling]
        assert self.owed_tokens == sum(job.owed for job in jobs) == self._owed_to.total()
        assert self.decoding == len(self._ends)
        self.pool.check()

    # ------------------------------------------------------------ a step

    def _begin_step(self) -> None:
        """One step with prompts in it, or of cores that are shared; else as many as go on until
        somebody has his last token."""
        pieces = self._plan()
        prefill_tokens = sum(tokens for _, tokens in pieces)
        rows = self.decoding
        if not prefill_tokens and not rows:
            return
        # As it begins and no more: who begins beside it later pays for the time they share.
        share = self._engine.neighbour_share
        slower = 1.0 + share * self.neighbours()
        one = bool(pieces or self._waiting or share)
        self._stride = Stride(
            self._timeline.now(),
            self._engine.step_time(prefill_tokens, rows, self._context_tokens) * slower,
            self._engine.context_token_s * rows * slower,
            1 if one else self._ends[0][0] - self._decode_steps,
        )
        self._pieces = pieces
        self._prefill_share = prefill_tokens / (prefill_tokens + rows)
        self._end_at(self._stride)

    def _interrupt(self, stride: Stride) -> None:
        """The step under way is the last of its stride: there is a prompt to begin with."""
        if stride.steps > 1:
            self._stride = stride.cut(self._timeline.now())
            self._end_at(self._stride)

    def _end_at(self, stride: Stride) -> None:
        def end() -> None:
            if self._stride is stride:  # else it was cut short, and has ended
                self._end_step(stride)

        self._timeline.at(stride.ends_s, end)

    def _plan(self) -> list[tuple[Job, int]]:
        """Who computes how many prompt tokens in the next step."""
        budget = self._engine.chunk_tokens
        pieces: list[tuple[Job, int]] = []
        for job in self._prefilling:
            tokens = min(budget, job.owed)
            pieces.append((job, tokens))
            budget -= tokens
            if not budget:
                return pieces
        while budget and self._waiting and self._admit(self._waiting[0]):
            job = self._waiting.popleft()
            self._prefilling.append(job)
            tokens = min(budget, job.owed)
            pieces.append((job, tokens))
            budget -= tokens
        return pieces

    def _admit(self, job: Job) -> bool:
        request, size = job.request, self._block_size
        cached = self._cached_tokens(job)
        blocks = -(-(request.input_tokens + request.output_tokens) // size)
        job.holding = self.pool.admit(request.ids, cached // size, blocks)
        if job.holding is None:
            return False
        job.cached_tokens = cached
        self._owe(job, request.input_tokens - cached)
        return True

    def _end_step(self, stride: Stride) -> None:
        pieces = self._pieces
        self._stride = None
        seconds = stride.ends_s - stride.begins_s
        self.busy_s += seconds
        # As our worker counts it: a step's time belongs to its rows in equal parts.
        self._prefill_busy_s += seconds * self._prefill_share
        if self.decoding:
            self._decode_step_s = seconds / stride.steps
        self._decode_steps += stride.steps
        self._context_tokens += self.decoding * stride.steps
        room = self._end_decoding()
        settled: list[KvEvent] = []
        for job, tokens in pieces:
            room |= self._end_piece(job, tokens, settled)
        events = [*self.pool.take_events(), *settled]
        if events:
            self.on_events(events)
        self._begin_step()
        self.on_step()
        if room:
            self.on_room()

    def _end_decoding(self) -> bool:
        """Those whose last token this step gave are over; True: there were any."""
        ends = self._ends
        over = False
        while ends and ends[0][0] <= self._decode_steps:
            job = heapq.heappop(ends)[2]
            self.decoding -= 1
            self._context_tokens -= job.request.input_tokens + job.request.output_tokens
            self._end(job)
            over = True
        return over

    def _end_piece(self, job: Job, tokens: int, settled: list[KvEvent]) -> bool:
        """A piece of a prompt is computed; True: the job is over with it."""
        assert job.holding is not None
        self.computed_tokens += tokens
        job.computed_tokens += tokens
        self._owe(job, job.owed - tokens)
        done = (job.request.input_tokens - job.owed) // self._block_size
        self.pool.store(job.holding, min(done, len(job.request.ids)))
        if job.owed:
            return False
        assert self._prefilling[0] is job
        self._prefilling.popleft()
        settled.append(Settled(job.number))
        job.first_s = self._timeline.now()
        job.on_first(job)
        if job.request.output_tokens <= 1:
            self._end(job)
            return True
        self.decoding += 1
        self._context_tokens += job.request.input_tokens + 1
        last = self._decode_steps + job.request.output_tokens - 1
        heapq.heappush(self._ends, (last, job.number, job))
        return False

    def _end(self, job: Job) -> None:
        assert job.holding is not None
        self.pool.release(job.holding)
        job.holding = None
        job.ended_s = self._timeline.now()
        job.on_end(job)

    def _cached_tokens(self, job: Job) -> int:
        """Whole blocks, and never the prompt's last token."""
        size = self._block_size
        most = (job.request.input_tokens - 1) // size
        return min(self.pool.depth(job.request.ids), most) * size

    def _owe(self, job: Job, tokens: int) -> None:
        self.owed_tokens += tokens - job.owed
        self._owed_to[job.gateway] += tokens - job.owed
        job.owed = tokens


def know_neighbours(workers: Sequence[SimulatedWorker]) -> None:
    """Those of an engine whose workers share cores are told how many of the others compute."""
    for worker in workers:
        if worker.shares_cores:
            worker.neighbours = partial(_computing, workers, worker)


def _computing(workers: Sequence[SimulatedWorker], but: SimulatedWorker) -> int:
    return sum(worker.computes for worker in workers if worker is not but)

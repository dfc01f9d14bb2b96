"""Who computes what in the next step."""

from collections.abc import Collection, Sequence

from radixgate.worker.requests.outbox import Sink
from radixgate.worker.requests.sequence import Phase, TokenSequence
from radixgate.worker.schedule.chunks import Chunk, plan_chunk
from radixgate.worker.schedule.coming import ComingPrefixes
from radixgate.worker.schedule.kv_memory import KvMemory
from radixgate.worker.schedule.prompt_budget import PromptBudget
from radixgate.worker.schedule.reserve import DecodeReserve
from radixgate.worker.schedule.waiting import WaitingQueue
from radixgate.worker.settings.engine_config import EngineConfig

# A step looks at no more requests that do not fit than this, so that a full pool with thousands
# waiting costs little.
_MAX_MISFITS = 4
# A row of logits is the whole vocabulary: 512 rows of 49k are 100 MB.
_MOST_SCORED = 512


class Scheduler:
    """One budget of tokens a step: a row for each decoding sequence, the rest for prompts.

    Prompts are computed in chunks, those that run already first. They end on page borders, but
    where an inter-token latency is to be kept: a page may be too much for it. A sequence has pages
    for all its tokens from its admission on, so only decoding can run out of them; then somebody is
    retracted: gives its pages back, waits again, and recomputes.

    A sequence without credit keeps its pages and does nothing that would emit a token. It is the
    first to be retracted, also when nobody else can go on but by having its pages; then it waits
    for credit before it is admitted again.

    A step may be planned while passes before it are in flight. It then goes on from where these
    will have come to; only what they may still end by themselves cannot be foreseen.
    """

    def __init__(
        self,
        config: EngineConfig,
        memory: KvMemory,
        waiting: WaitingQueue,
        reserve: DecodeReserve,
        budget: PromptBudget,
    ) -> None:
        self.running: list[TokenSequence] = []  # in order of admission
        self.waiting = waiting
        self.held = 0  # further choices, whose prompt the first still computes
        self.retractions_total = 0
        # Prompt tokens not computed yet, by who asked; empties itself.
        self.owed: dict[Sink, int] = {}
        self._memory = memory
        self._coming = ComingPrefixes(memory, shared=not config.disable_radix_cache)
        self._reserve = reserve
        self._budget = budget
        self._max_running = config.max_running_requests

    # ------------------------------------------------------------------ comings and goings

    @property
    def waiting_in_all(self) -> int:
        """Choices without pages."""
        return len(self.waiting) + self.held

    @property
    def free_rows(self) -> int:
        """Choices that may run beside those that do."""
        return max(0, self._max_running - len(self.running))

    def hold(self, sequences: Collection[TokenSequence]) -> None:
        """They are known from now on, and wait for `add`."""
        assert all(sequence.phase is Phase.HELD for sequence in sequences)
        self.held += len(sequences)

    def add(self, sequence: TokenSequence) -> None:
        """Let it wait for its turn. O(tokens), to see what of it is cached."""
        assert sequence.phase is Phase.HELD
        self.held -= 1
        sequence.phase = Phase.WAITING
        self.waiting.add(sequence)
        self._owe(sequence, self._memory.uncached_tokens(sequence))

    def remove(self, sequence: TokenSequence) -> None:
        """It is done or given up, whatever its state; its pages come back at once."""
        if sequence.phase is Phase.WAITING:
            self.waiting.remove(sequence)
        elif sequence.phase is Phase.HELD:
            self.held -= 1
        elif sequence.phase is Phase.RUNNING:
            self.running.remove(sequence)
            self._memory.release(sequence)
        sequence.phase = Phase.FINISHED
        self._owe(sequence, 0)

    def schedule(self) -> tuple[list[Chunk], list[TokenSequence]]:
        """The chunks of the next step, and who was admitted for it. Nothing to do: no chunks."""
        admitted: list[TokenSequence] = []
        self._coming.look_ahead(self.running)
        while True:
            chunks = self._decode_rows()
            budget = self._budget.tokens(len(chunks), self._next_start)
            for sequence in self.running:
                if sequence.prefilling:
                    budget -= self._add_prefill(chunks, sequence, budget)
            admitted += self._admit(chunks, budget)
            if chunks or not self._make_way():
                break
        if chunks:
            self._reserve.step_went_well()
        return chunks, admitted

    def computed(self, chunk: Chunk) -> None:
        """The chunk went through the model: its KV is there, and its prompt can be shared."""
        sequence = chunk.sequence
        sequence.computed = chunk.end
        sequence.drawing -= chunk.samples
        if chunk.prefill:
            self._memory.store(sequence)
            self._owe(sequence, max(0, sequence.prefill_end - sequence.computed))

    def void(self, chunk: Chunk) -> None:
        """What comes of a chunk that no longer holds is thrown away: no token goes out for it."""
        chunk.sequence.request.credit += chunk.samples

    def took(self, chunks: Sequence[Chunk], seconds: float) -> None:
        """The step with these chunks took so long."""
        self._budget.took(chunks, seconds)

    def check(self) -> None:
        self._memory.check(self.running)
        self.waiting.check()
        assert all(sequence.phase is Phase.RUNNING for sequence in self.running)
        assert not any(sequence.copy for sequence in self.running), "a page was not copied in time"
        assert all(sequence.phase is Phase.WAITING for sequence in self.waiting)
        owed: dict[Sink, int] = {}
        for sequence in [*self.running, *self.waiting]:
            if sequence.owed:
                sink = sequence.request.sink
                owed[sink] = owed.get(sink, 0) + sequence.owed
        assert owed == self.owed, "the prompt tokens still owed are miscounted"

    # ------------------------------------------------------------------ decoding

    def _decode_rows(self) -> list[Chunk]:
        rows: list[Chunk] = []
        # Rows are given from the worthiest down and pages taken from the least worthy up, so that
        # nobody who has a row loses it, and the worthiest always gets on.
        by_worth = sorted(self.running, key=self._worth)
        victims = iter(by_worth)
        for sequence in reversed(by_worth):
            if sequence.phase is not Phase.RUNNING or not sequence.decodes:
                continue
            if sequence.request.credit <= 0:
                continue
            while sequence.phase is Phase.RUNNING and not self._memory.cover(sequence):
                self._retract(next(victims))
            if sequence.phase is Phase.RUNNING:
                rows.append(plan_chunk(sequence, 1, prefill=False, samples=True))
        return rows

    def _worth(self, sequence: TokenSequence) -> tuple[bool, int, int, tuple[int, int, int]]:
        """Who is least worth keeping: cheap to compute again, and nobody waits for it."""
        arrival = sequence.arrival
        return (
            sequence.request.credit > 0,
            sequence.output_len,
            -sequence.request.prompt_tokens,
            (-arrival[0], -arrival[1], -arrival[2]),
        )

    def _make_way(self) -> bool:
        """All that have pages wait for credit. If others wait for pages, one of those gives way."""
        if not self.running or not self.waiting.anyone_ready():
            return False
        if any(sequence.in_flight for sequence in self.running):
            return False  # what comes of it may well be room
        self._retract(min(self.running, key=self._worth))
        return True

    def _retract(self, sequence: TokenSequence) -> None:
        self.running.remove(sequence)
        self._memory.release(sequence)
        sequence.phase = Phase.WAITING
        sequence.retractions += 1
        self.retractions_total += 1
        self.waiting.add(sequence)
        self._owe(sequence, self._memory.uncached_tokens(sequence))
        self._reserve.retracted(self.running)

    # ------------------------------------------------------------------ prompts

    def _next_start(self) -> int:
        """Where the first prompt of the next step goes on, or begins."""
        for sequence in self.running:
            if sequence.planned < self._open_end(sequence):
                return sequence.planned
        return next((self._memory.found(s).tokens for s in self.waiting.in_order(1)), 0)

    def _add_prefill(self, chunks: list[Chunk], sequence: TokenSequence, budget: int) -> int:
        """Append the sequence's next chunk if there is one; returns its tokens."""
        start, last = sequence.planned, sequence.prefill_end
        request = sequence.request
        emits = not request.scoring
        end = last
        if sequence.scores:
            budget = min(budget, self._scorable(chunks))
        if self._budget.whole and not sequence.scores:
            alone = not any(chunk.prefill for chunk in chunks)
            if last - start > budget and not alone:
                return 0
        elif last - start > budget:
            end = (start + budget) // self._budget.grain * self._budget.grain
        if end == last:
            end = self._open_end(sequence)
        if end <= start:
            return 0
        scored = range(0)
        if sequence.scores:
            scored = range(sequence.unscored, min(end + 1, request.prompt_tokens))
        samples = end == last and emits
        chunks.append(
            plan_chunk(sequence, end - start, prefill=True, samples=samples, scored=scored)
        )
        return end - start

    def _open_end(self, sequence: TokenSequence) -> int:
        """How far its prompt may be computed: short of the last page, whose pass brings a token,
        while there is no credit for one."""
        request, last = sequence.request, sequence.prefill_end
        if request.scoring or request.credit > 0:
            return last
        page = self._memory.page_size
        return (last - 1) // page * page

    def _scorable(self, chunks: list[Chunk]) -> int:
        """Tokens of prompts to be scored that still go into the step."""
        most = max(_MOST_SCORED, self._memory.page_size)
        return most - sum(len(chunk.scored) for chunk in chunks)

    def _admit(self, chunks: list[Chunk], budget: int) -> list[TokenSequence]:
        admitted: list[TokenSequence] = []
        if not len(self.waiting) or not self._room(budget):
            return admitted
        misfits = 0
        most = self._max_running - len(self.running) + _MAX_MISFITS
        by_prefix = self.waiting.by_prefix
        coming = self._coming.prefixes(self.running, by_prefix=by_prefix)
        for sequence in self.waiting.in_order(most):
            if self.waiting.holds_back(sequence):
                break
            starved = self.waiting.starved(sequence)
            if coming and not starved and self._memory.next_prefix(sequence) in coming:
                continue  # the next steps compute what it would compute now
            if not self._memory.admit(sequence, self._spare_pages(sequence)):
                misfits += 1
                if misfits == _MAX_MISFITS or starved:
                    break
                continue
            self._begin(sequence)
            admitted.append(sequence)
            if by_prefix:
                coming = self._coming.prefixes(self.running, by_prefix=True)
            budget -= self._add_prefill(chunks, sequence, budget)
            if not self._room(budget):
                break
        return admitted

    def _room(self, budget: int) -> bool:
        return budget >= self._budget.least and len(self.running) < self._max_running

    def _spare_pages(self, newcomer: TokenSequence) -> int:
        """Pages that the running ones are expected to need still, and the newcomer beyond its own.

        Nobody runs: none, so that whoever fits into the pool is admitted in the end.
        """
        if not self.running:
            return 0
        tokens = sum(self._reserve.tokens(sequence) for sequence in (*self.running, newcomer))
        return -(-tokens // self._memory.page_size)

    def _begin(self, sequence: TokenSequence) -> None:
        self.waiting.admitted(sequence)
        self.running.append(sequence)
        sequence.phase = Phase.RUNNING
        sequence.prefill_end = len(sequence.ids)
        request = sequence.request
        if request.cached_tokens is None:
            # Prior output is no part of the prompt, though it may be cached as well.
            request.cached_tokens = min(sequence.computed, request.prompt_tokens)
        self._owe(sequence, sequence.prefill_end - sequence.computed)

    def _owe(self, sequence: TokenSequence, tokens: int) -> None:
        sink = sequence.request.sink
        owed = self.owed.get(sink, 0) + tokens - sequence.owed
        sequence.owed = tokens
        if owed:
            self.owed[sink] = owed
        else:
            self.owed.pop(sink, None)

"""Steps on their way through the model: laid out, begun, sampled, and what came of them."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch

from radixgate.clock import Clock
from radixgate.worker.forward.batch import ForwardBatch
from radixgate.worker.requests.sequence import TokenSequence
from radixgate.worker.schedule.chunks import Chunk
from radixgate.worker.steps.logprobs import ScoredToken, prompt_logprobs
from radixgate.worker.steps.model_runner import ModelRunner
from radixgate.worker.steps.sampler import Draw, sample

T = TypeVar("T")
Scores = Sequence[ScoredToken] | Exception


@dataclass(frozen=True, slots=True)
class PassOutcome:
    """What a pass brought."""

    draws: Mapping[TokenSequence, Draw | Exception]  # of those that sampled, in their order
    scored: Sequence[Scores]  # one a chunk; empty where no position is scored
    seconds: float  # from its first kernel to its last draw


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """One step, laid out and not begun."""

    chunks: Sequence[Chunk]
    batch: ForwardBatch
    late: Mapping[int, TokenSequence]  # rows whose token the pass before it is still to draw


class ComputeLine(Protocol):
    """Does what it is given, one after the other; a ThreadPoolExecutor of one thread is one."""

    def submit(self, call: Callable[[], T], /) -> "Future[T]": ...


class Here:
    """Does it at once, in the thread that asks for it."""

    def submit(self, call: Callable[[], T], /) -> "Future[T]":
        done: Future[T] = Future()
        try:
            done.set_result(call())
        except Exception as exc:
            done.set_exception(exc)
        return done


class Passes:
    """Runs passes in a line of their own, beside which the next one can be laid out.

    The line is: the forward of one pass, its sampling, the forward of the next. Sampling looks at
    the sequences' ids, so it is asked for once these stand as of the pass before.
    """

    def __init__(self, runner: ModelRunner, clock: Clock, line: ComputeLine) -> None:
        self._runner = runner
        self._clock = clock
        self._line = line

    def lay_out(self, chunks: Sequence[Chunk]) -> Pass:
        """O(rows + pages)."""
        batch, late = self._runner.batch(chunks)
        return Pass(chunks, batch, late)

    def begin(self, one: Pass, before: PassOutcome | None = None) -> "Begun":
        """Send its forward off. `before` is the outcome of the pass before it, if one of its rows
        goes on from there."""
        if one.late:
            assert before is not None, "goes on from a pass that is not known"
            draws = [before.draws[sequence] for sequence in one.late.values()]
            # Whoever could not draw has failed, and what its row computes is thrown away.
            ids = [draw.token_id if isinstance(draw, Draw) else 0 for draw in draws]
            one.batch.token_ids[list(one.late)] = torch.tensor(ids).to(one.batch.token_ids.device)

        def forward() -> tuple[torch.Tensor, float]:
            started_s = self._clock.now()
            return self._runner.run(one.chunks, one.batch), started_s

        return Begun(one, self._line.submit(forward), self._line, self._clock)


class Begun:
    """A pass in the line."""

    def __init__(
        self,
        one: Pass,
        logits: "Future[tuple[torch.Tensor, float]]",
        line: ComputeLine,
        clock: Clock,
    ) -> None:
        self.chunks = one.chunks
        self._logits = logits
        self._line = line
        self._clock = clock
        self._outcome: Future[PassOutcome] | None = None

    def sample(self) -> None:
        """Let the draws follow the forward: the sequences' ids are complete up to this pass."""

        def draw() -> PassOutcome:
            logits, started_s = self._logits.result()
            sampling = [chunk.sequence for chunk in self.chunks if chunk.samples]
            draws = sample(logits[: len(sampling)], sampling)
            scored = self._scored(logits[len(sampling) :])
            by_sequence = dict(zip(sampling, draws, strict=True))
            return PassOutcome(by_sequence, scored, self._clock.now() - started_s)

        self._outcome = self._line.submit(draw)

    def outcome(self) -> PassOutcome:
        """Waits for it. Raises what forward or sampling raised."""
        assert self._outcome is not None, "its draws were never asked for"
        return self._outcome.result()

    def end(self) -> None:
        """Waits until nothing of it is being computed any more; what it brought is dropped."""
        self._logits.exception()
        if self._outcome is not None:
            self._outcome.exception()

    def _scored(self, logits: torch.Tensor) -> list[Scores]:
        scored: list[Scores] = []
        for chunk in self.chunks:
            rows = sum(position > 0 for position in chunk.scored)
            try:
                scored.append(prompt_logprobs(logits[:rows], chunk))
            except Exception as exc:  # it is this request's and stays with it
                scored.append(exc)
            logits = logits[rows:]
        return scored

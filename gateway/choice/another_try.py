"""Whether a request whose attempt failed is tried again, and after how long."""

import random
from dataclasses import dataclass

from radixgate.fleet.fleet import Ask
from radixgate.gateway.attempt.answer_progress import AnswerProgress
from radixgate.gateway.choice.retries import RetryRule
from radixgate.gateway.choice.retry_budget import RetryBudget
from radixgate.gateway.choice.worker_choice import WorkerChoice
from radixgate.gateway.observe.metrics import GatewayMetrics

# An attempt that brought so many tokens is counted as a success when it breaks off: the next one
# is the first again. So a long answer outlives any number of workers, while a request that kills
# whoever goes on with it is given up after the usual number of attempts.
FRESH_AFTER_TOKENS = 64
# A rest of just the longest wait may come out as a hair more.
_ROUNDING_S = 1e-6


@dataclass(frozen=True, slots=True)
class AnotherTry:
    """A retry repeats what nobody has seen, and a failing fleet must not be buried under those: it
    asks the budget. A continuation goes on with work that was under way before, one for each answer
    of a lost worker, and is bounded by the attempts of its own request alone."""

    rule: RetryRule
    budget: RetryBudget
    choice: WorkerChoice
    metrics: GatewayMetrics
    rng: random.Random

    def wait_s(
        self, tried: list[str], ask: Ask, progress: AnswerProgress | None, *, sent: bool
    ) -> float | None:
        """Seconds to wait after the attempts at `tried`, and the next one is counted. None: no
        more. `sent`: the client has seen part of the answer, so that nothing can be repeated.

        After an attempt that brought enough, only its own worker counts as tried.
        """
        continues = progress is not None and progress.begun
        if (sent and not continues) or (progress is not None and progress.ended_by_order):
            return None
        if progress is not None and progress.brought >= FRESH_AFTER_TOKENS:
            del tried[:-1]
        wait_s = self.rule.backoff_s(len(tried), self.rng)
        if wait_s is None:
            return None
        rest_s = self.choice.wait_s(ask)
        if rest_s > self.rule.max_backoff_s + _ROUNDING_S:
            return None
        if continues:
            self.metrics.continuations += 1
        elif self.budget.allows():
            self.metrics.retries += 1
        else:
            return None
        return max(wait_s, rest_s)

    def rest_by_fault(self, worker_id: str, seconds: float) -> None:
        """The worker takes nothing for so long, and did not ask to be left alone: where nobody else
        is, a request does not fail for that, but tries it again after the longest wait at most."""
        self.choice.rest(worker_id, min(seconds, self.rule.max_backoff_s))

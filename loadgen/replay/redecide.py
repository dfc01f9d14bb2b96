"""Each recorded decision once more: the same workers as they were, another policy."""

import random
from collections.abc import Callable
from dataclasses import dataclass

from radixgate.errors import ConfigError
from radixgate.fleet.decision_lines import Columns, DecisionLine, StartLine, unpacked
from radixgate.policies.base import Candidates, Policy, RouteRequest

# Of a log whose beginning is missing nobody knows the seed.
UNKNOWN_SEED = 0


class LogClock:
    """Stands at the decision under way."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        return self.at


@dataclass(frozen=True, slots=True)
class Redecided:
    """One decision twice."""

    line: DecisionLine
    index: int  # of the new choice, among the candidates
    recorded: int  # of the recorded one
    reason: str
    scores: tuple[float, float]  # the new policy's, of the recorded choice and of its own

    @property
    def differs(self) -> bool:
        return self.index != self.recorded


MakePolicy = Callable[[StartLine | None, random.Random, LogClock], Policy]


class Redecider:
    """Holds a policy for each run of the log, made anew wherever the recorded one was."""

    def __init__(self, make: MakePolicy, seed: int | None) -> None:
        """`seed`: instead of the recorded ones."""
        self._make = make
        self._seed = seed
        self._clock = LogClock()
        self._policies: dict[str, Policy] = {}
        self._rules: dict[str, tuple[str, object]] = {}
        self.seedless = 0  # policies whose recorded random source nobody knows

    def start(self, line: StartLine) -> None:
        """A policy began to decide there, or a file goes on with the one before."""
        rule = line.policy, line.settings
        # A file that goes on has the same rule again; its policy remembers what it did.
        if line.seed is None and self._rules.get(line.run) == rule:
            return
        self._rules[line.run] = rule
        self._policies[line.run] = self._policy(line)

    def _policy(self, line: StartLine | None) -> Policy:
        seed = self._seed
        if seed is None:
            seed = None if line is None else line.seed
        if seed is None:
            self.seedless += 1
            seed = UNKNOWN_SEED
        return self._make(line, random.Random(seed), self._clock)

    def decide(self, line: DecisionLine) -> Redecided:
        """In the log's order. Raises ConfigError for a line that contradicts itself."""
        policy = self._policies.get(line.run)
        if policy is None:
            policy = self._policies[line.run] = self._policy(None)
        workers = line.candidates.worker
        if line.chosen not in workers:
            raise ConfigError(
                f"decision {line.n} of run {line.run}: {line.chosen!r} was no candidate"
            )
        self._clock.at = line.at
        choice = policy.choose(_request(line), _candidates(line.candidates))
        recorded = workers.index(line.chosen)
        scores = choice.explain()
        return Redecided(
            line, choice.index, recorded, choice.branch, (scores[recorded], scores[choice.index])
        )


def _request(line: DecisionLine) -> RouteRequest:
    return RouteRequest(
        prompt_tokens=line.prompt_tokens,
        session=line.session,
        group=line.group,
        tenant=line.tenant,
        priority=line.priority,
        blocks=unpacked(line.blocks),
        block_tokens=line.block_tokens,
    )


def _candidates(columns: Columns) -> Candidates:
    return Candidates(
        ids=columns.worker,
        requests_in_flight=columns.requests_in_flight,
        uncached_tokens_in_flight=columns.uncached_tokens_in_flight,
        running=columns.running,
        waiting=columns.waiting,
        queued_uncached_tokens=columns.queued_uncached_tokens,
        queued_elsewhere=columns.queued_elsewhere,
        kv_share_used=columns.kv_share_used,
        prefill_tokens_per_s=columns.prefill_tokens_per_s,
        read_cached_tokens=lambda: columns.cached_tokens,
        read_recent_share=lambda index: columns.recent_share[index],
        read_decode_step_s=lambda: columns.decode_step_s,
    )

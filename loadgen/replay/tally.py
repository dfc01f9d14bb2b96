"""What comes of deciding again: how often, where and why it comes out otherwise."""

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from radixgate.analysis.percentiles import spread_of
from radixgate.fleet.decision_lines import DecisionLine, OutcomeLine
from radixgate.loadgen.replay.redecide import Redecided

# Differences kept in full; beyond it they are counted only.
MOST_KEPT = 10_000


@dataclass(slots=True)
class Sums:
    """Over all decisions, at the workers that were chosen."""

    cached_tokens: int = 0
    queued_tokens: int = 0
    requests: int = 0

    def add(self, line: DecisionLine, index: int) -> None:
        columns = line.candidates
        self.cached_tokens += columns.cached_tokens[index]
        self.queued_tokens += queued_at(line, index)
        self.requests += columns.requests_in_flight[index]


@dataclass(slots=True)
class RecordedTimes:
    """How recorded attempts went, in seconds; 8 bytes each."""

    ttft: "array[float]" = field(default_factory=lambda: array("d"))
    e2e: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, line: OutcomeLine) -> None:
        if line.outcome != "ok":
            return
        self.e2e.append(line.e2e_s)
        if line.ttft_s is not None:
            self.ttft.append(line.ttft_s)

    def as_json(self) -> dict[str, object]:
        return {
            "answers": len(self.e2e),
            "ttft_s": _figures(self.ttft),
            "e2e_s": _figures(self.e2e),
        }


class Tally:
    """Grows with each decision and each outcome; bounded but for the times."""

    def __init__(self) -> None:
        self.decisions = 0
        self.differing = 0
        self.prompt_tokens = 0
        self.policies: Counter[str] = Counter()  # recorded
        self.reasons: Counter[tuple[str, str, bool]] = (
            Counter()
        )  # recorded, new, whether it differs
        self.recorded, self.again = Sums(), Sums()
        # By whether the choice differs.
        self.times = {False: RecordedTimes(), True: RecordedTimes()}
        self.kept: list[Redecided] = []
        self.kept_outcomes: dict[tuple[str, int], OutcomeLine] = {}
        self._open: dict[tuple[str, int], bool] = {}  # decisions without an outcome as yet

    def decided(self, one: Redecided) -> None:
        line = one.line
        self.decisions += 1
        self.differing += one.differs
        self.prompt_tokens += line.prompt_tokens
        self.policies[line.policy] += 1
        self.reasons[line.reason, one.reason, one.differs] += 1
        self.recorded.add(line, one.recorded)
        self.again.add(line, one.index)
        self._open[line.run, line.n] = one.differs
        if one.differs and len(self.kept) < MOST_KEPT:
            self.kept.append(one)

    def ended(self, line: OutcomeLine) -> None:
        """An outcome whose decision is not there is passed over."""
        differs = self._open.pop((line.run, line.n), None)
        if differs is None:
            return
        self.times[differs].add(line)
        if differs and len(self.kept_outcomes) < MOST_KEPT:
            self.kept_outcomes[line.run, line.n] = line

    def summary(self) -> dict[str, object]:
        """The figures, as JSON; means are over all decisions."""
        count = max(1, self.decisions)
        return {
            "decisions": self.decisions,
            "same": self.decisions - self.differing,
            "differing": self.differing,
            "recorded_policies": dict(sorted(self.policies.items())),
            "believed_hit_rate": {
                "recorded": self.recorded.cached_tokens / max(1, self.prompt_tokens),
                "again": self.again.cached_tokens / max(1, self.prompt_tokens),
            },
            "mean_queued_tokens": {
                "recorded": self.recorded.queued_tokens / count,
                "again": self.again.queued_tokens / count,
            },
            "mean_requests_in_flight": {
                "recorded": self.recorded.requests / count,
                "again": self.again.requests / count,
            },
            "reasons": [
                {"recorded": recorded, "again": again, "differs": differs, "decisions": times}
                for (recorded, again, differs), times in sorted(
                    self.reasons.items(), key=lambda item: (-item[1], item[0])
                )
            ],
            "recorded_outcomes": {
                "where_same": self.times[False].as_json(),
                "where_differing": self.times[True].as_json(),
            },
        }

    def differences(self) -> list[dict[str, object]]:
        """Each as JSON, in the log's order."""
        return [self._difference(one) for one in self.kept]

    def _difference(self, one: Redecided) -> dict[str, object]:
        line = one.line
        outcome = self.kept_outcomes.get((line.run, line.n))
        return {
            "run": line.run,
            "n": line.n,
            "at": line.at,
            "prompt_tokens": line.prompt_tokens,
            "recorded": _side(line, one.recorded, line.reason, one.scores[0]),
            "again": _side(line, one.index, one.reason, one.scores[1]),
            "ttft_s": None if outcome is None else outcome.ttft_s,
            "e2e_s": None if outcome is None else outcome.e2e_s,
        }


def queued_at(line: DecisionLine, index: int) -> int:
    """Prompt tokens that the worker had before it: ours, and of other gateways as reported."""
    columns = line.candidates
    return columns.uncached_tokens_in_flight[index] + (columns.queued_elsewhere[index] or 0)


def _side(line: DecisionLine, index: int, reason: str, score: float) -> dict[str, object]:
    """What one choice rested on. The score is the new policy's in both."""
    columns = line.candidates
    return {
        "worker": columns.worker[index],
        "reason": reason,
        "cached_tokens": columns.cached_tokens[index],
        "queued_tokens": queued_at(line, index),
        "requests_in_flight": columns.requests_in_flight[index],
        "score": score,
    }


def _figures(seconds: "array[float]") -> Mapping[str, float] | None:
    spread = spread_of(seconds)
    if spread is None:
        return None
    return {"mean": spread.mean, "p50": spread.p50, "p95": spread.p95}

"""One experiment as its gateway knows it, from its declaration to its last line."""

from dataclasses import dataclass
from enum import StrEnum

from radixgate.gateway.experiments.acting import Acting
from radixgate.gateway.experiments.shadow import Shadow
from radixgate.gateway.settings.experiments_config import LiveExperimentConfig


class State(StrEnum):
    DECLARED = "declared"  # it has not been started
    RUNNING = "running"
    CLOSING = "closing"  # the gateway's own policy is back; last answers are waited for
    OVER = "over"


@dataclass(slots=True, eq=False)
class Known:
    """Of `acting` and `shadow` one at most is there; neither: it was never started."""

    name: str
    config: LiveExperimentConfig
    state: State = State.DECLARED
    acting: Acting | None = None
    shadow: Shadow | None = None
    trouble: str = ""  # why it was not begun, though it was to be

    @property
    def runs(self) -> bool:
        return self.state in (State.RUNNING, State.CLOSING)

    def row(self) -> dict[str, object]:
        """As JSON in a list."""
        row: dict[str, object] = {
            "name": self.name,
            "kind": self.config.kind,
            "state": self.state.value,
        }
        if self.config.kind in ("canary", "bucket"):
            row["not_an_effect_estimate"] = True
        if self.trouble:
            row["trouble"] = self.trouble
        return row

    def details(self) -> dict[str, object]:
        """All there is to tell; no salt, and nothing of any request."""
        row = self.row()
        run = self.acting or self.shadow
        if run is None:
            return row
        logbook = run.logbook
        declared = logbook.declaration
        row |= {
            "arms": [
                {"name": arm.name, "policy": arm.policy, "settings": dict(arm.settings)}
                for arm in declared.arms
            ],
            "began_at": declared.began_at,
            "seconds": logbook.lasted_s(),
            "seed": declared.seed,
            "file": str(logbook.file.path),
            "dropped_lines": logbook.file.dropped,
            "now": run.state(),
        }
        if logbook.schedule is not None:
            row["schedule_sha256"] = logbook.schedule.sha256
            row["schedule"] = [block.arm for block in logbook.schedule.blocks]
        if self.acting is not None:
            row |= _of_acting(self.acting)
        return row


def _of_acting(acting: Acting) -> dict[str, object]:
    logbook, guard = acting.logbook, acting.guard
    counts: dict[str, dict[str, int]] = {arm.name: {} for arm in logbook.declaration.arms}
    for (arm, result), count in logbook.requests.items():
        counts[arm][result] = count
    return {
        "requests": counts,
        "washout_requests": dict(logbook.washout),
        "in_flight": acting.in_flight,
        "guardrails": [
            {
                "guardrail": rail.name,
                "a": guard.value(0, rail),
                "b": guard.value(1, rail),
                "passed": acting.trip is not None and acting.trip.guardrail is rail,
            }
            for rail in guard.rails
        ],
        "reason": acting.reason,
        "detail": acting.detail,
    }

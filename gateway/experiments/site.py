"""What experiments find in the gateway they run in."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from radixgate.analysis.experiments.records import Declaration
from radixgate.clock import Clock
from radixgate.fleet.fleet import Fleet, FleetConfig, WorkerState
from radixgate.fleet.rule import RuledPolicy
from radixgate.gateway.exchange.detour import Detour
from radixgate.gateway.experiments.acting import Acting
from radixgate.gateway.experiments.arm_policies import ArmPolicies
from radixgate.log import fields

_log = logging.getLogger(__name__)

# Orders these workers to empty their caches; what went wrong, by worker id.
FlushOrder = Callable[[Sequence[str]], Awaitable[Mapping[str, str]]]


@dataclass(frozen=True, slots=True)
class Site:
    """Where the experiments of one gateway take place."""

    fleet: Fleet
    fleet_config: FleetConfig
    detour: Detour
    arms: ArmPolicies
    flush: FlushOrder
    folder: Path
    most_lines: int
    clock: Clock
    wall_clock: Callable[[], float]
    rng: random.Random
    all_ready: Callable[[], bool]  # every worker that the gateway knows of


class LiveStage:
    """A `Stage` over the live fleet."""

    def __init__(
        self,
        site: Site,
        declaration: Declaration,
        flush: str,
        install: Callable[[RuledPolicy], None],
        acting: Callable[[], Acting | None],
    ) -> None:
        """`flush`: `auto`, `always` or `never`; `install` makes a policy the live one."""
        self._site = site
        self._arms = site.arms.as_now()
        self._declaration = declaration
        self._flush = flush
        self._install = install
        self._acting = acting
        self._flushing: asyncio.Task[None] | None = None
        self._ordered: list[str] = []  # workers to flush

    def in_flight(self) -> int:
        """What is at the workers, or on its way there: its prompt may still be tokenized."""
        acting = self._acting()
        begun = 0 if acting is None else acting.in_flight
        return max(begun, sum(record.in_flight for record in self._site.fleet.records()))

    def flush(self) -> None:
        self._ordered = [
            record.identity.id
            for record in self._site.fleet.records()
            if record.state is WorkerState.READY
            and (self._flush == "always" or (self._flush == "auto" and record.identity.reports_kv))
        ]
        self._flushing = asyncio.create_task(self._flush_all()) if self._ordered else None

    def flushed(self) -> bool:
        """They have, and those that report say so; what refused is not waited for."""
        if self._flushing is None:
            return True
        return self._flushing.done() and not any(map(self._holds_blocks, self._ordered))

    def turn_to(self, arm: int) -> int:
        if self._flushing is not None:
            self._flushing.cancel()  # harmless for what is done
        self._install(self._arms.make(self._declaration.arms[arm]))
        return self._site.fleet.forget() if self._declaration.resets_mirror else 0

    async def _flush_all(self) -> None:
        refused = await self._site.flush(self._ordered)
        for worker_id, why in refused.items():
            _log.warning(
                "a worker was not flushed",
                extra=fields(experiment=self._declaration.experiment, worker=worker_id, why=why),
            )
        self._ordered = [name for name in self._ordered if name not in refused]

    def _holds_blocks(self, worker_id: str) -> bool:
        record = self._site.fleet.record(worker_id)
        if record is None:
            return False
        return any(record.shared.mirror.blocks_of(worker_id).stored.values())

"""A switchback over a fleet in virtual time: the records it leaves are those of a live one."""

import math
import random
from collections import deque
from dataclasses import dataclass
from functools import partial

from radixgate.analysis.experiments.records import (
    Block,
    BlockEvent,
    Declaration,
    ExperimentEnd,
    Moment,
    Record,
    RequestLine,
)
from radixgate.analysis.experiments.schedule import bucket_of, schedule_of
from radixgate.loadgen.simulator.block_pool import BlockPool
from radixgate.loadgen.simulator.engine_model import EngineModel
from radixgate.loadgen.simulator.job import Job
from radixgate.loadgen.simulator.switched_gateway import PolicyOf, SwitchedGateway
from radixgate.loadgen.simulator.timeline import Timeline
from radixgate.loadgen.simulator.worker import SimulatedWorker, know_neighbours
from radixgate.loadgen.simulator.workload import Client, Workload

_SALT = b"simulated"


@dataclass(frozen=True, slots=True)
class SwitchedSite:
    """The fleet that is experimented on."""

    workers: int
    kv_blocks: int  # of each worker
    believed_blocks: int  # of each worker, in the mirror
    block_size: int
    engine: EngineModel


@dataclass(slots=True)
class _Sent:
    """What the record of a request will need, from its dispatch on."""

    block: int
    arm: str
    washout: bool
    predicted: int
    held_s: float


class SimulatedSwitchback:
    """Built for one run: `lead_in_s` under arm A, then the blocks of the declared schedule.

    A held request waits in a line without a bound: the trace is finite, and nobody leaves.
    Nobody sends anything from `sends_until_s` on, counted from the beginning of the lead-in.
    """

    def __init__(
        self,
        site: SwitchedSite,
        declared: Declaration,
        policy_of: PolicyOf,
        seed: int,
        lead_in_s: float,
        *,
        sends_until_s: float = math.inf,
    ) -> None:
        self._sends_until_s = sends_until_s
        self._timeline = Timeline()
        self._declared = declared
        self._policy_of = policy_of
        self._rng = random.Random(f"{seed}/policies")
        self._lead_in_s = lead_in_s
        self._workers = [
            SimulatedWorker(
                number,
                site.engine,
                BlockPool(site.kv_blocks),
                site.block_size,
                self._timeline,
            )
            for number in range(site.workers)
        ]
        know_neighbours(self._workers)
        self._arm = declared.arms[0].name
        self._gateway = SwitchedGateway(
            policy_of(self._arm, self._rng),
            self._workers,
            site.block_size,
            site.believed_blocks * site.block_size,
            self._timeline,
            self._rng,
        )
        self.records: list[Record] = [declared]
        self._block: Block | None = None
        self._sent: dict[int, _Sent] = {}
        self._numbers = 0
        self._washing = False
        self._holding: Block | None = None  # the block that waits for the fleet to drain
        self._held_since_s = 0.0
        self._line: deque[tuple[Job, float]] = deque()

    def run(self, traffic: Workload) -> list[Record]:
        """Until everything is answered; the records in order of time."""
        declared = self._declared
        if declared.pairs:
            schedule = schedule_of(declared)
            self.records.append(schedule)
            for block in schedule.blocks:
                self._timeline.at(self._lead_in_s + block.starts_s, partial(self._reach, block))
            self._timeline.at(self._lead_in_s + schedule.blocks[-1].ends_s, self._finish)
        for client in traffic.clients:
            self._timeline.at(client.starts_s, partial(self._arrive, client, 0))
        self._timeline.run()
        assert not self._line
        assert not self._gateway.in_flight
        return self.records

    # ------------------------------------------------------------ blocks

    def _reach(self, block: Block) -> None:
        if self._block is not None:
            self._note(self._block, "ended")
        self._block = None
        if block.index == 0 or not self._declared.hold_cap_s:
            self._begin(block)
            return
        self._note(block, "holding")
        self._holding = block
        self._held_since_s = self._timeline.now()
        if not self._gateway.in_flight:
            self._release("drained")
            return
        self._timeline.after(self._declared.hold_cap_s, partial(self._cap, block))

    def _cap(self, block: Block) -> None:
        if self._holding is block:
            self._release("capped")

    def _release(self, moment: Moment) -> None:
        block, self._holding = self._holding, None
        assert block is not None
        now = self._timeline.now()
        self._note(
            block,
            moment,
            held=len(self._line),
            held_s=sum(now - since for _, since in self._line),
            hold_s=now - self._held_since_s,
            left=self._gateway.in_flight,
        )
        self._begin(block)
        line, self._line = self._line, deque()
        for job, since in line:
            self._dispatch(job, now - since)

    def _begin(self, block: Block) -> None:
        self._block, self._arm = block, block.arm
        self._gateway.turn_to(self._policy_of(block.arm, self._rng))
        forgotten = self._gateway.forget() if self._declared.resets_mirror else 0
        self._note(block, "reset", forgotten=forgotten)
        self._washing = True
        self._note(block, "began")
        self._timeline.after(self._declared.washout_s, partial(self._wash, block))

    def _wash(self, block: Block) -> None:
        if self._block is block:
            self._washing = False
            self._note(block, "washed_out")

    def _finish(self) -> None:
        if self._block is not None:
            self._note(self._block, "ended")
        self._block = None
        self.records.append(ExperimentEnd(self._declared.experiment, self._now_s(), "finished"))

    def _note(self, block: Block, moment: Moment, **told: float) -> None:
        self.records.append(
            BlockEvent(
                self._declared.experiment,
                block.index,
                block.arm,
                moment,
                self._now_s(),
                held=int(told.get("held", 0)),
                held_s=told.get("held_s", 0.0),
                hold_s=told.get("hold_s", 0.0),
                left=int(told.get("left", 0)),
                forgotten=int(told.get("forgotten", 0)),
            )
        )

    # ------------------------------------------------------------ requests

    def _arrive(self, client: Client, turn: int) -> None:
        now = self._timeline.now()
        if now >= self._sends_until_s:
            return
        job = Job(
            client.requests[turn],
            self._numbers,
            now,
            self._gateway.first_output,
            partial(self._ended, client, turn),
        )
        self._numbers += 1
        if self._holding is not None:
            self._line.append((job, now))
        else:
            self._dispatch(job, 0.0)

    def _dispatch(self, job: Job, held_s: float) -> None:
        block = self._block
        sent = _Sent(-1 if block is None else block.index, self._arm, self._washing, 0, held_s)
        self._sent[job.number] = sent
        sent.predicted = self._gateway.send(job)

    def _ended(self, client: Client, turn: int, job: Job) -> None:
        self._gateway.ended(job)
        self._record(job, self._sent.pop(job.number))
        if self._holding is not None and not self._gateway.in_flight:
            self._release("drained")
        if turn + 1 < len(client.requests):
            when = self._timeline.now() + client.requests[turn + 1].think_s
            self._timeline.at(when, partial(self._arrive, client, turn + 1))

    def _record(self, job: Job, sent: _Sent) -> None:
        """Nothing of the lead-in, and in an experiment with blocks nothing outside of them."""
        dispatched_s = job.arrived_s + sent.held_s - self._lead_in_s
        if dispatched_s < 0 or (self._declared.pairs and sent.block < 0):
            return
        self.records.append(
            RequestLine(
                experiment=self._declared.experiment,
                block=sent.block,
                arm=sent.arm,
                washout=sent.washout,
                t_dispatch_s=dispatched_s,
                outcome="ok",
                ttft_s=job.ttft_s - sent.held_s,
                e2e_s=job.e2e_s - sent.held_s,
                tpot_s=job.tpot_s,
                prompt_tokens=job.request.input_tokens,
                cached_tokens=job.cached_tokens,
                output_tokens=job.request.output_tokens,
                predicted_cached_tokens=sent.predicted,
                worker=f"w{job.worker}",
                unit=bucket_of(_SALT, job.request.session or ""),
                held_s=sent.held_s,
            )
        )

    def _now_s(self) -> float:
        return self._timeline.now() - self._lead_in_s

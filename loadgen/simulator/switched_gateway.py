"""A gateway whose policy is exchanged while requests are under way."""

import random
from collections.abc import Callable, Sequence

from radixgate.fleet.fleet import (
    Fleet,
    FleetConfig,
    Lease,
    MirrorKey,
    Outcome,
    WorkerIdentity,
    WorkerState,
)
from radixgate.loadgen.simulator.gateway import MODEL, ask_of, name_of
from radixgate.loadgen.simulator.job import Job
from radixgate.loadgen.simulator.timeline import Timeline
from radixgate.loadgen.simulator.worker import SimulatedWorker
from radixgate.policies.base import Policy

PolicyOf = Callable[[str, random.Random], Policy]  # by name of the arm, fresh at each call


class SwitchedGateway:
    """The real books and mirror before workers that report nothing, as foreign ones do.

    What each has cached is believed from what was sent there, within `believed_tokens`; answers do
    not tell. So a mirror that one policy filled misleads the next until it is reset.
    """

    def __init__(
        self,
        policy: Policy,
        workers: Sequence[SimulatedWorker],
        block_size: int,
        believed_tokens: int,
        timeline: Timeline,
        rng: random.Random,
    ) -> None:
        self.in_flight = 0
        self.fleet = Fleet(policy, timeline, rng, FleetConfig())
        self._key = MirrorKey(MODEL, "tokens", block_size)
        self._workers = {name_of(worker): worker for worker in workers}
        self._leases: dict[int, Lease] = {}
        for name in self._workers:
            self.fleet.admit(
                WorkerIdentity(
                    id=name,
                    url=f"http://{name}",
                    kind="http",
                    model=MODEL,
                    mirror=self._key,
                    capacity_tokens=believed_tokens,
                    weights_id=MODEL,
                    instance_id=name,
                    reports_kv=False,
                )
            )
            self.fleet.set_state(name, WorkerState.READY)

    def turn_to(self, policy: Policy) -> None:
        """Later requests are this policy's. Books and mirror stay as they are."""
        self.fleet.use_policy(policy)

    def forget(self) -> int:
        """Empty the mirror; entries that were in it. Requests in flight stay in the books."""
        return self.fleet.forget()

    def send(self, job: Job) -> int:
        """Choose a worker and submit the job there; the cached tokens that were predicted."""
        lease = self._leases[job.number] = self.fleet.lease(ask_of(job, self._key))
        self.in_flight += 1
        self._workers[lease.worker.id].submit(job)
        return lease.predicted_cached_tokens

    def first_output(self, job: Job) -> None:
        """Its prompt is computed."""
        self._leases[job.number].first_output()

    def ended(self, job: Job) -> None:
        """It left the fleet."""
        self._leases.pop(job.number).close(Outcome.OK)
        self.in_flight -= 1

"""The workers that are here, by address: entered, admitted to the fleet, and dropped."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from radixgate.errors import RequestError
from radixgate.fleet.fleet import Fleet, WorkerIdentity, WorkerState
from radixgate.gateway.attempt.attempt import WorkerClient
from radixgate.gateway.choice.worker_choice import WorkerChoice
from radixgate.gateway.workers.health import HealthRule, Pulse
from radixgate.gateway.workers.worker_address import WorkerAddress, read_worker_url
from radixgate.gateway.workers.worker_handle import WorkerFactory, WorkerHandle
from radixgate.log import fields

UP = (WorkerState.READY, WorkerState.PAUSED)
# Streams of a worker that ended by a fault of ours are begun again, but not in a circle that burns
# a core.
_RUN_AGAIN_S = 1.0
_log = logging.getLogger(__name__)


class UnknownWorker(RequestError):
    """No worker has this id or URL."""

    status = 404


@dataclass(slots=True, eq=False)
class Member:
    """One worker, from its address on."""

    address: WorkerAddress
    handle: WorkerHandle
    pulse: Pulse
    state: WorkerState = WorkerState.JOINING
    identity: WorkerIdentity | None = None  # None: it has never said who it is
    absent: bool = False  # it never has, and had time to load: no answer waits for its word
    told: bool = False  # in the log, that it does not come up
    asked_since: float = 0.0  # the loop's time at its first check
    incarnation: int = 0  # how often it has been admitted, each time cold
    trouble: str = ""  # of the last check, empty if it went well
    check_now: asyncio.Event = field(default_factory=asyncio.Event)
    checking: asyncio.Task[None] | None = None
    running: asyncio.Task[None] | None = None
    leaving: asyncio.Task[None] | None = None
    paused: bool = False  # by order: it is checked, and given nothing new
    labels: Mapping[str, str] = field(default_factory=dict)
    api_key: str | None = field(default=None, repr=False)  # what it was added with
    heard_elsewhere: bool = False  # by another process, since this was last asked


class RosterWatch(Protocol):
    """Who wants to know of every change."""

    def changed(self, member: Member, *, returned: bool) -> None:
        """It has come, or its state has changed. `returned`: it was admitted before."""
        ...

    def gone(self, worker_id: str) -> None: ...


class _Nobody:
    def changed(self, member: Member, *, returned: bool) -> None: ...

    def gone(self, worker_id: str) -> None: ...


class Roster:
    """Owns the members, and says to the fleet who is there. Does no checks of its own."""

    def __init__(
        self, fleet: Fleet, factories: Mapping[str, WorkerFactory], choice: WorkerChoice
    ) -> None:
        self.clients: dict[str, WorkerClient] = {}  # by worker id, of admitted ones
        self.choice = choice
        self.watch: RosterWatch = _Nobody()
        self._fleet = fleet
        self._factories = factories
        self._members: dict[str, Member] = {}

    def members(self) -> list[Member]:
        return list(self._members.values())

    def ready(self) -> list[Member]:
        return [one for one in self._members.values() if one.state is WorkerState.READY]

    def unheard_of(self) -> int:
        """How many may yet say who they are, and never have. O(workers)."""
        return sum(one.identity is None and not one.absent for one in self._members.values())

    def get(self, worker_id: str) -> Member | None:
        return self._members.get(worker_id)

    def find(self, name: str) -> Member:
        """By id or URL. Raises UnknownWorker, RequestError if a URL is none."""
        member = self._members.get(name)
        if member is None and "://" in name:
            member = self._members.get(self.address(name).id)
        if member is None:
            raise UnknownWorker(f"there is no worker {name!r:.200}", param="worker")
        return member

    def address(self, url: str) -> WorkerAddress:
        """Raises RequestError if the URL is none."""
        return read_worker_url(url, frozenset(self._factories))

    def enter(self, address: WorkerAddress, api_key: str | None, rule: HealthRule) -> Member:
        """A worker nobody knows anything of yet. Raises RequestError if it can take no key."""
        handle = self._factories[address.scheme](address, api_key)
        member = Member(address, handle, Pulse(rule), api_key=api_key)
        self._members[address.id] = member
        return member

    def admit(self, member: Member, identity: WorkerIdentity) -> None:
        """It is in the fleet, cold; it gets nothing until its state is READY."""
        self._fleet.remove(identity.id)
        self._fleet.admit(identity)
        member.identity, member.absent = identity, False
        member.incarnation += 1
        self.clients[identity.id] = member.handle.client
        # What ran for another process at this address reports to a mirror that is no more.
        if member.running is not None:
            member.running.cancel()
        member.running = asyncio.create_task(_run(member))
        _log.info(
            "worker ready",
            extra=fields(worker=identity.id, kind=identity.kind, model=identity.model),
        )

    def rename(self, member: Member, identity: WorkerIdentity) -> None:
        """It is the same, and has other names."""
        member.identity = identity
        self._fleet.rename(identity)
        self.watch.changed(member, returned=False)

    def come(self, member: Member, *, returned: bool) -> None:
        """It may be given requests. `returned`: it was down before, or another process."""
        self.choice.came(member.address.id, returned=returned)
        self._enter_state(member, state_of(member), returned=returned)

    def set_state(self, member: Member, state: WorkerState) -> None:
        self._enter_state(member, state, returned=False)

    def in_flight(self, member: Member) -> int:
        """Requests at it that have not ended."""
        record = self._fleet.record(member.address.id)
        return 0 if record is None else record.in_flight

    def drop(self, member: Member) -> None:
        """What still runs there fails over, as when a worker dies."""
        worker_id = member.address.id
        self._members.pop(worker_id, None)
        self.clients.pop(worker_id, None)
        self.choice.left(worker_id)
        for task in (member.checking, member.running):
            if task is not None:
                task.cancel()
        if member.leaving is not None and member.leaving is not asyncio.current_task():
            member.leaving.cancel()
        if member.identity is not None:
            self._fleet.remove(member.identity.id)
        member.handle.close()
        self.watch.gone(worker_id)
        _log.info("worker removed", extra=fields(worker=worker_id))

    def _enter_state(self, member: Member, state: WorkerState, *, returned: bool) -> None:
        member.state = state
        if member.identity is not None:
            self._fleet.set_state(member.identity.id, state)
        self.watch.changed(member, returned=returned)


def state_of(member: Member) -> WorkerState:
    """Of one that is well."""
    return WorkerState.PAUSED if member.paused else WorkerState.READY


async def _run(member: Member) -> None:
    while True:
        try:
            await member.handle.run()
        except Exception:
            _log.exception("a worker's streams ended", extra=fields(worker=member.address.id))
        await asyncio.sleep(_RUN_AGAIN_S)

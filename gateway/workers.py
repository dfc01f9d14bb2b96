"""The workers of this gateway: added and removed by address, checked in parallel, known by state.

A worker joins when it first says who it is, however late that is; it is asked again at every
interval. One that comes back from being down starts cold, unless it is the same process as before.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from radixgate.errors import RequestError, WorkerFailed, WorkerUnreachable
from radixgate.fleet.fleet import Fleet, WorkerIdentity, WorkerState
from radixgate.gateway.attempt import WorkerClient
from radixgate.gateway.health import HealthRule, Pulse
from radixgate.gateway.worker_address import WorkerAddress, read_worker_url
from radixgate.gateway.worker_choice import WorkerChoice
from radixgate.gateway.worker_handle import WorkerFactory, WorkerHandle
from radixgate.log import fields

_DRAIN_LOOK_S = 0.05
_UP = (WorkerState.READY, WorkerState.PAUSED)
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
    trouble: str = ""  # of the last check, empty if it went well
    check_now: asyncio.Event = field(default_factory=asyncio.Event)
    checking: asyncio.Task[None] | None = None
    running: asyncio.Task[None] | None = None
    leaving: asyncio.Task[None] | None = None
    paused: bool = False  # by order: it is checked, and given nothing new
    labels: Mapping[str, str] = field(default_factory=dict)
    api_key_digest: bytes = b""  # of the key it was added with; empty: with none


class Workers:
    """Owns the members and what runs for them; the fleet learns from it who is ready."""

    def __init__(
        self,
        fleet: Fleet,
        factories: Mapping[str, WorkerFactory],
        rule: HealthRule,
        drain_s: float,
        choice: WorkerChoice,
    ) -> None:
        self.clients: dict[str, WorkerClient] = {}  # by worker id, of admitted ones
        self.choice = choice
        self._fleet = fleet
        self._factories = factories
        self._rule = rule
        self._drain_s = drain_s
        self._members: dict[str, Member] = {}

    def members(self) -> list[Member]:
        return list(self._members.values())

    def ready(self) -> list[Member]:
        return [one for one in self._members.values() if one.state is WorkerState.READY]

    def find(self, name: str) -> Member:
        """By id or URL. Raises UnknownWorker."""
        member = self._members.get(name)
        if member is None and "://" in name:
            member = self._members.get(self._address(name).id)
        if member is None:
            raise UnknownWorker(f"there is no worker {name!r:.200}", param="worker")
        return member

    def add(self, url: str, api_key: str | None = None) -> Member:
        """Add by URL; one that is there already is returned as it is. Raises RequestError."""
        address = self._address(url)
        digest = b"" if api_key is None else sha256(api_key.encode()).digest()
        member = self._members.get(address.id)
        if member is not None and member.address != address:
            raise RequestError(
                f"{address.id} is a worker already, as {member.address.url}", param="url"
            )
        if member is not None and member.leaving is None:
            if digest not in (b"", member.api_key_digest):
                raise RequestError(
                    f"{address.id} is a worker already, with another key or none: remove it first",
                    param="api_key",
                )
            return member
        if member is not None:
            self._drop(member)
        handle = self._factories[address.scheme](address, api_key)
        member = Member(address, handle, Pulse(self._rule), api_key_digest=digest)
        self._members[address.id] = member
        member.checking = asyncio.create_task(self._check(member))
        return member

    def remove(self, name: str) -> Member:
        """Nothing new goes there from now on; what runs may end. Raises UnknownWorker."""
        member = self.find(name)
        if not self._in_flight(member):
            self._drop(member)
        elif member.leaving is None:
            self._set_state(member, WorkerState.DRAINING)
            member.leaving = asyncio.create_task(self._drain(member))
        return member

    def pause(self, member: Member, *, paused: bool) -> None:
        """What runs there may end. Raises RequestError if it is leaving."""
        if member.leaving is not None:
            raise RequestError(f"worker {member.address.id} is leaving", param="state")
        member.paused = paused
        if member.state in _UP:
            self._set_state(member, _state_of(member))

    def check_soon(self, worker_id: str) -> None:
        """An attempt failed there: look now rather than at the next interval."""
        member = self._members.get(worker_id)
        if member is not None:
            member.check_now.set()

    def close(self) -> None:
        """Remove every worker at once."""
        for member in self.members():
            self._drop(member)

    def _address(self, url: str) -> WorkerAddress:
        return read_worker_url(url, frozenset(self._factories))

    # ------------------------------------------------------------ checks

    async def _check(self, member: Member) -> None:
        while True:
            member.check_now.clear()
            member.handle.heard()  # what came before this check says nothing about it
            try:
                async with asyncio.timeout(self._rule.timeout_s):
                    identity = await member.handle.probe()
            except TimeoutError:
                self._failed(member, f"no answer within {self._rule.timeout_s:g} s", refused=False)
            except WorkerUnreachable as error:
                self._failed(member, error.message, refused=True)
            except WorkerFailed as error:
                self._failed(member, error.message, refused=False)
            except Exception:
                # A fault of ours must not end the checks of this worker.
                _log.exception("a check went wrong", extra=fields(worker=member.address.id))
                self._failed(member, "the check itself went wrong", refused=False)
            else:
                self._succeeded(member, identity)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._rule.interval_s):
                    await member.check_now.wait()

    def _failed(self, member: Member, why: str, *, refused: bool) -> None:
        member.trouble = why
        if not refused and member.state in _UP and member.handle.heard():
            return  # it answers requests meanwhile: busy, not dead
        if member.pulse.failed(refused=refused) and member.state in _UP:
            self._set_state(member, WorkerState.DOWN)
            _log.warning("worker down", extra=fields(worker=member.address.id, why=why))

    def _succeeded(self, member: Member, identity: WorkerIdentity) -> None:
        member.trouble = ""
        came_up = member.pulse.succeeded()
        if not member.pulse.up or member.leaving is not None:
            return
        if not self._is_same(member.identity, identity, came_up=came_up):
            self._admit(member, identity)
        elif member.state not in _UP:
            self._come(member, returned=True)

    def _is_same(self, known: WorkerIdentity | None, now: WorkerIdentity, *, came_up: bool) -> bool:
        """The process that answers is the one we knew. Without an instance id, an absence counts
        as a restart: a cold worker taken for warm costs more than a warm one taken for cold."""
        if known != now:
            return False
        return bool(now.instance_id) or not came_up

    def _admit(self, member: Member, identity: WorkerIdentity) -> None:
        returned = member.identity is not None
        self._fleet.remove(identity.id)
        self._fleet.admit(identity)
        member.identity = identity
        self.clients[identity.id] = member.handle.client
        self._come(member, returned=returned)
        # What ran for another process at this address reports to a mirror that is no more.
        if member.running is not None:
            member.running.cancel()
        member.running = asyncio.create_task(self._run(member))
        _log.info(
            "worker ready",
            extra=fields(worker=identity.id, kind=identity.kind, model=identity.model),
        )

    async def _run(self, member: Member) -> None:
        while True:
            try:
                await member.handle.run()
            except Exception:
                _log.exception("a worker's streams ended", extra=fields(worker=member.address.id))
            # A fault of ours: begun again, but not in a circle that burns a core.
            await asyncio.sleep(self._rule.interval_s)

    def _come(self, member: Member, *, returned: bool) -> None:
        self.choice.came(member.address.id, returned=returned)
        self._set_state(member, _state_of(member))

    def _set_state(self, member: Member, state: WorkerState) -> None:
        member.state = state
        if member.identity is not None:
            self._fleet.set_state(member.identity.id, state)

    # ------------------------------------------------------------ leaving

    def _in_flight(self, member: Member) -> int:
        view = self._fleet.worker(member.address.id)
        return 0 if view is None else view.in_flight

    async def _drain(self, member: Member) -> None:
        waited_s = 0.0
        while self._in_flight(member) and waited_s < self._drain_s:
            await asyncio.sleep(_DRAIN_LOOK_S)
            waited_s += _DRAIN_LOOK_S
        self._drop(member)

    def _drop(self, member: Member) -> None:
        """What still runs there fails over, as when a worker dies."""
        self._members.pop(member.address.id, None)
        self.clients.pop(member.address.id, None)
        self.choice.left(member.address.id)
        for task in (member.checking, member.running):
            if task is not None:
                task.cancel()
        if member.leaving is not None and member.leaving is not asyncio.current_task():
            member.leaving.cancel()
        if member.identity is not None:
            self._fleet.remove(member.identity.id)
        member.handle.client.close()
        _log.info("worker removed", extra=fields(worker=member.address.id))


def _state_of(member: Member) -> WorkerState:
    """Of one that is well."""
    return WorkerState.PAUSED if member.paused else WorkerState.READY

"""The workers of this gateway: added and removed by address, checked in parallel, known by state.

A worker joins when it first says who it is, however late that is; it is asked again at every
interval. One that comes back from being down starts cold, unless it is the same process as before.
"""

import asyncio
import contextlib
import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping

from radixgate.errors import Conflict, RequestError, WorkerFailed, WorkerUnreachable
from radixgate.fleet.fleet import Fleet, WorkerIdentity, WorkerState
from radixgate.gateway.attempt.attempt import WorkerClient
from radixgate.gateway.choice.worker_choice import WorkerChoice
from radixgate.gateway.workers.health import HealthRule
from radixgate.gateway.workers.roster import UP, Member, Roster, UnknownWorker, state_of
from radixgate.gateway.workers.worker_handle import WorkerFactory
from radixgate.log import fields

__all__ = ["Member", "UnknownWorker", "Workers"]

_DRAIN_LOOK_S = 0.05
# Of one that has said who it is: about to come, or here.
_JOINED_STATES = (WorkerState.JOINING, *UP)
_log = logging.getLogger(__name__)


async def _at_once(member: Member) -> None:
    """Nobody else has to know of the member first."""


class _NamedTwice(WorkerFailed):
    """Its process is a worker under another name, by its own word: what is heard from it, or a
    good check before, is no reason to wait for more of them."""


class Workers:
    """Checks the members of a roster and obeys the orders about them."""

    def __init__(
        self,
        fleet: Fleet,
        factories: Mapping[str, WorkerFactory],
        rule: HealthRule,
        drain_s: float,
        choice: WorkerChoice,
    ) -> None:
        self.roster = Roster(fleet, factories, choice)
        self.rule = rule
        self.drain_s = drain_s
        # Awaited before a worker that was just admitted is called ready, and before one leaves.
        self.before_ready: Callable[[Member], Awaitable[None]] = _at_once
        self.before_leaving: Callable[[Member], Awaitable[None]] = _at_once
        # Admitted, while others are told of it: it may still be down, and has its place already.
        self._coming: set[Member] = set()

    def judge_by(self, rule: HealthRule) -> None:
        """From the next check of each worker on."""
        self.rule = rule
        for member in self.members():
            member.pulse.rule = rule

    @property
    def clients(self) -> Mapping[str, WorkerClient]:
        """By worker id, of admitted ones."""
        return self.roster.clients

    @property
    def choice(self) -> WorkerChoice:
        return self.roster.choice

    def members(self) -> list[Member]:
        return self.roster.members()

    def ready(self) -> list[Member]:
        return self.roster.ready()

    def find(self, name: str) -> Member:
        """By id or URL. Raises UnknownWorker."""
        return self.roster.find(name)

    def add(self, url: str, api_key: str | None = None) -> Member:
        """Add by URL; one that is there already is returned as it is, and stays if it was leaving.

        Raises RequestError if it is no URL, and Conflict if it is there with another key or scheme.
        """
        address = self.roster.address(url)
        member = self.roster.get(address.id)
        if member is not None and member.address != address:
            raise Conflict(
                f"{address.id} is a worker already, as {member.address.url}", param="url"
            )
        if member is not None:
            if api_key is None or _same_key(api_key, member.api_key):
                self._stay(member)
                return member
            if member.leaving is None:
                raise Conflict(
                    f"{address.id} is a worker already, with another key or none: remove it first",
                    param="api_key",
                )
            self.roster.drop(member)
        member = self.roster.enter(address, api_key, self.rule)
        member.checking = asyncio.create_task(self._check(member))
        self.roster.watch.changed(member, returned=False)
        return member

    def remove(self, name: str) -> Member:
        """Nothing new goes there from now on; what runs may end. Raises UnknownWorker."""
        member = self.find(name)
        if not self.roster.in_flight(member):
            self.roster.drop(member)
        elif member.leaving is None:
            self.roster.set_state(member, WorkerState.DRAINING)
            member.leaving = asyncio.create_task(self._drain(member))
        return member

    def pause(self, member: Member, *, paused: bool) -> None:
        """What runs there may end. Raises RequestError if it is leaving."""
        if member.leaving is not None:
            raise RequestError(f"worker {member.address.id} is leaving", param="state")
        member.paused = paused
        if member.state in UP:
            self.roster.set_state(member, state_of(member))

    def check_soon(self, worker_id: str) -> None:
        """An attempt failed there: look now rather than at the next interval."""
        member = self.roster.get(worker_id)
        if member is not None:
            member.check_now.set()

    def close(self) -> None:
        """Remove every worker at once."""
        for member in self.members():
            self.roster.drop(member)

    # ------------------------------------------------------------ checks

    async def _check(self, member: Member) -> None:
        member.asked_since = asyncio.get_running_loop().time()
        while True:
            member.check_now.clear()
            _heard(member)  # what came before this check says nothing about it
            try:
                async with asyncio.timeout(self.rule.timeout_s):
                    identity = await member.handle.probe()
                self._check_alone(member, identity)
                await self._succeeded(member, identity)
            except TimeoutError:
                self._failed(member, f"no answer within {self.rule.timeout_s:g} s", refused=False)
            except (WorkerUnreachable, _NamedTwice) as error:
                self._failed(member, error.message, refused=True)
            except WorkerFailed as error:
                self._failed(member, error.message, refused=False)
            except Exception:
                # A fault of ours must not end the checks of this worker.
                _log.exception("a check went wrong", extra=fields(worker=member.address.id))
                self._struck(member)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.rule.interval_s):
                    await member.check_now.wait()

    def _check_alone(self, member: Member, identity: WorkerIdentity) -> None:
        """One process is one worker, by the address that was here first: its load and its cache
        would stand there twice. Raises _NamedTwice; O(workers) for one that is not here yet."""
        instance = identity.instance_id
        known = "" if member.identity is None else member.identity.instance_id
        if not instance or (member.state in UP and instance == known):
            return
        twin = self._twin(member, instance)
        if twin is not None:
            raise _NamedTwice(_same_process(member, twin))

    def _twin(self, member: Member, instance: str) -> Member | None:
        """Who is here, or about to come, as this process under another name."""
        for other in self.members():
            if other is member or other.identity is None:
                continue
            here = other.state in _JOINED_STATES or other in self._coming
            if here and other.identity.instance_id == instance:
                return other
        return None

    def _struck(self, member: Member) -> None:
        """By a fault of ours, which says nothing about the worker. One that is not up is not waited
        for any longer than if it were silent."""
        why = "the check itself went wrong"
        if member.state in UP:
            member.trouble = why
        else:
            self._failed(member, why, refused=False)

    def _failed(self, member: Member, why: str, *, refused: bool) -> None:
        member.trouble = why
        if member.state is WorkerState.JOINING and not member.told:
            member.told = True
            _log.warning("worker not up yet", extra=fields(worker=member.address.id, why=why))
        if not refused and member.state in UP and _heard(member):
            return  # it answers requests meanwhile: busy, not dead
        if member.pulse.failed(refused=refused) and member.state in UP:
            self.roster.set_state(member, WorkerState.DOWN)
            _log.warning("worker down", extra=fields(worker=member.address.id, why=why))
        elif member.identity is None and not member.absent and self._has_had_its_time(member):
            member.absent = True
            self.roster.watch.changed(member, returned=False)

    def _has_had_its_time(self, member: Member) -> bool:
        """To load: for minutes most servers refuse connections, as one does that never comes."""
        asked_for_s = asyncio.get_running_loop().time() - member.asked_since
        return member.pulse.lost and asked_for_s >= self.rule.startup_s

    async def _succeeded(self, member: Member, identity: WorkerIdentity) -> None:
        member.trouble = ""
        if member.leaving is not None:
            return  # its pulse is left alone: should it stay after all, an absence still counts
        came_up = member.pulse.succeeded()
        if not member.pulse.up:
            return
        known = member.identity
        if known is not None and known != identity and known.is_same_but_for_names(identity):
            self.roster.rename(member, identity)
        if not self._is_same(member.identity, identity, came_up=came_up):
            returned = member.identity is not None
            self.roster.admit(member, identity)
            self._coming.add(member)
            try:
                await self.before_ready(member)
            finally:
                self._coming.discard(member)
            if member.leaving is None:
                self.roster.come(member, returned=returned)
        elif member.state not in UP:
            self.roster.come(member, returned=True)

    def _is_same(self, known: WorkerIdentity | None, now: WorkerIdentity, *, came_up: bool) -> bool:
        """The process that answers is the one we knew. Without an instance id, an absence counts
        as a restart: a cold worker taken for warm costs more than a warm one taken for cold."""
        if known != now:
            return False
        return bool(now.instance_id) or not came_up

    # ------------------------------------------------------------ leaving

    def _stay(self, member: Member) -> None:
        """It is not to leave after all; what runs there runs on."""
        if member.leaving is None:
            return
        member.leaving.cancel()
        member.leaving = None
        state = state_of(member) if member.pulse.up else WorkerState.DOWN
        instance = "" if member.identity is None else member.identity.instance_id
        twin = self._twin(member, instance) if instance else None
        if twin is not None:
            # It came while this one left, and has the place until it goes itself.
            state, member.trouble = WorkerState.DOWN, _same_process(member, twin)
        self.roster.set_state(member, state)
        member.check_now.set()

    async def _drain(self, member: Member) -> None:
        waited_s = 0.0
        while self.roster.in_flight(member) and waited_s < self.drain_s:
            await asyncio.sleep(_DRAIN_LOOK_S)
            waited_s += _DRAIN_LOOK_S
        self.roster.drop(member)


def _heard(member: Member) -> bool:
    """Bytes have come from it since this was last asked, here or at another process."""
    elsewhere, member.heard_elsewhere = member.heard_elsewhere, False
    return member.handle.heard() or elsewhere


def _same_process(member: Member, twin: Member) -> str:
    return (
        f"worker {member.address.id} is the same process as {twin.address.id},"
        " which is a worker already"
    )


def _same_key(given: str, known: str | None) -> bool:
    return known is not None and hmac.compare_digest(given.encode(), known.encode())

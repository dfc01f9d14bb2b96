"""The workers as another process has told of them: who checks them is the parent."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

from radixgate.errors import RadixgateError
from radixgate.fleet.fleet import WorkerState
from radixgate.gateway.attempt.attempt import WorkerClient
from radixgate.gateway.processes.messages import Admitted, CheckSoon, ToParent, WorkerIs
from radixgate.gateway.workers.health import HealthRule
from radixgate.gateway.workers.roster import UP, Member, Roster
from radixgate.log import fields

_AGAIN_S = 0.1
_log = logging.getLogger(__name__)


class FollowedWorkers:
    """A roster that does as it is told. Each worker is asked once by itself, for its tokenizer."""

    def __init__(self, roster: Roster, rule: HealthRule, tell: Callable[[ToParent], None]) -> None:
        self.roster = roster
        self.rule = rule
        self._tell = tell
        self._wanted: dict[str, WorkerIs] = {}  # by id, the last word
        self._one_more = asyncio.Event()  # has been admitted
        self._admitted: dict[str, int] = {}  # by id, the incarnation that is in the fleet

    @property
    def clients(self) -> Mapping[str, WorkerClient]:
        return self.roster.clients

    def check_soon(self, worker_id: str) -> None:
        """An attempt failed there: the parent shall look."""
        self._tell(CheckSoon(worker_id))

    def follow(self, told: WorkerIs) -> None:
        """Be as told; a worker that is not in the fleet yet gets there by itself."""
        address = self.roster.address(told.url)
        member = self.roster.get(address.id)
        if member is not None and (member.address, member.api_key) != (address, told.api_key):
            self.gone(address.id)
            member = None
        if member is None:
            member = self.roster.enter(address, told.api_key, self.rule)
        self._wanted[address.id] = told
        member.absent = told.absent
        if told.identity is None:
            return
        if self._admitted.get(address.id) == told.incarnation:
            self._be(member, told)
            return
        if member.checking is not None:
            member.checking.cancel()
        member.checking = asyncio.create_task(self._admit(member, told))

    def gone(self, worker_id: str) -> None:
        """Remove it at once; twice is harmless."""
        self._wanted.pop(worker_id, None)
        self._admitted.pop(worker_id, None)
        member = self.roster.get(worker_id)
        if member is not None:
            self.roster.drop(member)

    async def settled(self, timeout_s: float) -> None:
        """Returns once every worker that is up is in the fleet, or after so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not self._is_settled():
                    self._one_more.clear()
                    await self._one_more.wait()

    def _is_settled(self) -> bool:
        return all(
            self._admitted.get(worker_id) == told.incarnation
            for worker_id, told in self._wanted.items()
            if told.state in UP
        )

    async def _admit(self, member: Member, told: WorkerIs) -> None:
        worker_id = member.address.id
        while True:
            try:
                async with asyncio.timeout(self.rule.timeout_s):
                    identity = await member.handle.probe()
            except (TimeoutError, RadixgateError) as error:
                _log.debug("not admitted yet", extra=fields(worker=worker_id, why=error))
            else:
                # If it is another one by now, the parent will see it too, and say so.
                known = told.identity
                if known is not None and known.is_same_but_for_names(identity):
                    break
            await asyncio.sleep(_AGAIN_S)
        self.roster.admit(member, identity)
        self._admitted[worker_id] = told.incarnation
        self._be(member, self._wanted[worker_id])
        self._one_more.set()
        self._tell(Admitted(worker_id, told.incarnation))

    def _be(self, member: Member, told: WorkerIs) -> None:
        if told.identity is not None and told.identity != member.identity:
            self.roster.rename(member, told.identity)
        member.paused = told.state is WorkerState.PAUSED
        if told.returned and told.state in UP:
            self.roster.come(member, returned=True)
        else:
            self.roster.set_state(member, told.state)

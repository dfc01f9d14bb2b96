"""A gateway of several processes: the parent knows the fleet, its children answer generations."""

import asyncio
import random
import signal
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace

from radixgate.clock import Clock
from radixgate.errors import ProcessFailed
from radixgate.fleet.fleet import WorkerState
from radixgate.fleet.rule import RuledPolicy
from radixgate.fleet.siblings import Siblings
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.choice.own_policy import own_policy
from radixgate.gateway.data_path import Rules
from radixgate.gateway.entry.key_ring import KeyRing, keys_of
from radixgate.gateway.headquarters import Headquarters
from radixgate.gateway.one_process import check_one_process, refused_routes
from radixgate.gateway.processes.channel import parent_end
from radixgate.gateway.processes.child import ADMIN_SOCKET, CHILDREN_SOCKET
from radixgate.gateway.processes.crew import Crew, Hand, worker_is
from radixgate.gateway.processes.kept_processes import KeptProcesses, Running, start_python
from radixgate.gateway.processes.messages import (
    Adopt,
    Drain,
    Flushed,
    Open,
    ResponsesStored,
    SetUp,
    Standing,
    TellAll,
    WorkerGone,
    WorkerResult,
)
from radixgate.gateway.processes.metric_families import (
    about_workers,
    exposition,
    families_of,
    of_present,
)
from radixgate.gateway.processes.private_folder import PrivateFolder
from radixgate.gateway.processes.reserved_port import reserve
from radixgate.gateway.reloading import Adoption, Reloading
from radixgate.gateway.settings.gateway_settings import GatewaySettings
from radixgate.gateway.settings.keys_file import KeyEntry
from radixgate.gateway.settings.share_of_limits import check_shares
from radixgate.gateway.workers.reached import Reached, merged
from radixgate.gateway.workers.roster import UP, Member, state_of
from radixgate.gateway.workers.worker_handle import OrderResult

_CHILD = ("-m", "radixgate.gateway.processes.child")
_PARENT = -1  # among the siblings
_START_S = 60.0
_LAST_WORDS_S = 2.0
_COUNT_EVERY_S = 1.0


class ParentGateway:
    """As `Gateway`: made, then `start`ed on a running loop; ended by `drain` and `stop`."""

    def __init__(
        self, settings: GatewaySettings, policy: RuledPolicy, clock: Clock, rng: random.Random
    ) -> None:
        """Raises ConfigError for limits that cannot be divided, or what only one process can do."""
        self._settings = settings
        check_shares(settings.config.processes, settings.rules.limits)
        check_one_process(settings)
        settings.rules.tls.for_clients()  # the children's, seen here before one starts
        self._keys: Sequence[KeyEntry] = keys_of(settings.rules.access)
        ring = KeyRing.made(settings.rules.access, self._keys)
        rules = Rules(settings.config, settings.rules, ring)
        self.headquarters = Headquarters(rules, policy, clock, rng)
        self._siblings = Siblings(_PARENT, lambda: None)
        self._siblings.open(self.headquarters.path.fleet)
        self._crew = Crew(
            welcome=self._welcome,
            on_news=self._siblings.hear,
            on_gone=self._siblings.gone,
            on_check_soon=self.headquarters.workers.check_soon,
            on_standing=self._on_standing,
            on_stored=self.headquarters.path.stored.hear,
        )
        self._clock, self._rng = clock, rng
        self.reloading = Reloading(settings, self._adopt, self.headquarters.workers)
        self.headquarters.admin.reload = self.reloading.by_request
        self._folder: PrivateFolder | None = None
        self._reserved: socket.socket | None = None
        self._server: asyncio.AbstractServer | None = None
        self._admin_server: asyncio.AbstractServer | None = None
        self._children = KeptProcesses(self._start_child)
        self._counting: asyncio.Task[None] | None = None  # None: it has not begun
        self.port = 0  # the one really taken, once started

    async def start(self) -> None:
        """Returns when every child listens. Raises ConfigError, or ProcessFailed if one cannot."""
        config = self._settings.config
        self._reserved = reserve(config.host, config.port)
        self.port = self._reserved.getsockname()[1]
        workers, admin = self.headquarters.workers, self.headquarters.admin
        workers.roster.watch = self
        workers.before_ready = self._everywhere
        workers.before_leaving = self._nowhere
        admin.read_metrics = self._read_metrics
        admin.abort_elsewhere = self._abort
        admin.before_flush, admin.flushed_elsewhere = self._all_told, self._flushed
        admin.settled = self._crew.settled
        self.headquarters.path.choice.breaker_elsewhere = self._crew.breaker_of
        self.headquarters.path.metrics.read_waiting = lambda: self._crew.waiting
        loop = asyncio.get_running_loop()
        try:
            folder = self._folder = PrivateFolder()
            make_admin = await self.headquarters.open(*refused_routes(config.processes))
            self._admin_server = await loop.create_unix_server(
                make_admin, folder.socket(ADMIN_SOCKET)
            )
            self._server = await loop.create_unix_server(
                lambda: parent_end(self._crew.heard, self._crew.lost),
                folder.socket(CHILDREN_SOCKET),
            )
            self.reloading.begin()
            self._children.keep(config.processes)
            self._counting = loop.create_task(self._count())
            await self._all_listen(config.processes)
        except BaseException:
            await self.stop()
            raise

    async def drain(self) -> None:
        """Let running answers end at every child, as `Gateway.drain`."""
        self.headquarters.admin.draining = True
        self._crew.broadcast(Drain())
        config = self._settings.config
        own_s = config.shutdown_accept_secs + config.shutdown_grace_period_secs
        await self._children.ended(own_s + _LAST_WORDS_S)

    def reopen_logs(self) -> None:
        """Each child's files may have been moved away."""
        self._children.signal(signal.SIGHUP)

    async def stop(self) -> None:
        """End the children that still run, and free everything."""
        if self._counting is not None:
            self._counting.cancel()
        await self._children.kill(signal.SIGKILL)
        for server in (self._server, self._admin_server):
            if server is not None:
                server.close()
        if self._reserved is not None:
            self._reserved.close()
        await self.headquarters.close()
        if self._folder is not None:
            self._folder.remove()

    async def _adopt(self, adoption: Adoption) -> None:
        """Raises ConfigError if the policy cannot be made; nothing has changed then."""
        settings, changed = adoption.settings, adoption.change.policy
        own = None
        if changed:
            own = own_policy(settings.config.policy, settings.policies, self._clock, self._rng)
        ring = KeyRing.made(settings.rules.access, adoption.keys)
        rules = Rules(settings.config, settings.rules, ring)
        self.headquarters.apply(rules, own)
        self._settings, self._keys = settings, adoption.keys
        here = replace(settings, config=replace(settings.config, port=self.port))
        keys = list(adoption.keys)
        self._crew.order(lambda seq: Adopt(seq, here, keys, changed))
        await self._crew.settled()

    # ------------------------------------------------------------ children

    async def _start_child(self, index: int) -> Running:
        assert self._folder is not None
        return await start_python(*_CHILD, self._folder.path, str(index))

    async def _all_listen(self, count: int) -> None:
        all_listen = asyncio.ensure_future(self._crew.all_listen(count))
        died = asyncio.ensure_future(self._children.one_ended.wait())
        await asyncio.wait(
            {all_listen, died}, timeout=_START_S, return_when=asyncio.FIRST_COMPLETED
        )
        for wait in (all_listen, died):
            wait.cancel()
        if self._crew.listening < count:
            why = (
                "one has ended"
                if self._children.one_ended.is_set()
                else f"{_START_S:g} s have passed"
            )
            raise ProcessFailed(f"{self._crew.listening} of {count} processes listen, and {why}")

    def _welcome(self, hand: Hand) -> None:
        """Tell a child everything; one that comes when all are about to end is not needed."""
        if self.headquarters.admin.draining:
            hand.channel.close()
            return
        config = replace(self._settings.config, port=self.port)
        settings = replace(self._settings, config=config)
        hand.channel.send(SetUp(hand.index, settings, list(self._keys)))
        for member in self.headquarters.workers.members():
            state = member.state
            # One that is about to be called ready is waited for here as well.
            if state is WorkerState.JOINING and member.identity is not None:
                state = state_of(member)
            hand.channel.send(worker_is(member, self._crew.seq, state, returned=False))
        hand.channel.send(ResponsesStored(self.headquarters.path.stored.all()))
        hand.channel.send(Open())

    async def _count(self) -> None:
        """What a child has counted shall outlive it, but for its last second."""
        while True:
            await asyncio.sleep(_COUNT_EVERY_S)
            await self._crew.families([])

    # ------------------------------------------------------------ the workers

    def changed(self, member: Member, *, returned: bool) -> None:
        self._crew.order(lambda seq: worker_is(member, seq, member.state, returned=returned))

    def gone(self, worker_id: str) -> None:
        self._crew.order(lambda seq: WorkerGone(seq, worker_id))

    async def _everywhere(self, member: Member) -> None:
        """It can be sent to from every child, which is told that it is well."""
        state, returned = state_of(member), member.incarnation > 1
        self._crew.order(lambda seq: worker_is(member, seq, state, returned=returned))
        await self._crew.admitted(member.address.id, member.incarnation)

    async def _nowhere(self, member: Member) -> None:
        """No child sends anything there any more, and what runs is known here."""
        if member.state in UP:
            state = WorkerState.DRAINING
            self._crew.order(lambda seq: worker_is(member, seq, state, returned=False))
        await self._crew.settled()

    def _on_standing(self, standing: Standing) -> None:
        for worker_id in standing.heard:
            member = self.headquarters.workers.roster.get(worker_id)
            if member is not None:
                member.heard_elsewhere = True

    # ------------------------------------------------------------ for the admin

    async def _all_told(self) -> None:
        """What was placed before a flush must not be believed after it."""
        self._crew.order(lambda seq: TellAll(seq))
        await self._crew.settled()

    def _flushed(self, worker_id: str) -> None:
        self._crew.order(lambda seq: Flushed(seq, worker_id))

    async def _read_metrics(self) -> bytes:
        own = about_workers(families_of(self.headquarters.path.metrics.collect()))
        present = {one.address.id for one in self.headquarters.workers.members()}
        return exposition(of_present(await self._crew.families(own), present))

    async def _abort(self, order: AbortOrder) -> Reached:
        which, answers = await self._crew.abort(order)
        parts = [{one.worker_id: _result(one) for one in answer.results} for answer in answers]

        def over(results: Mapping[str, OrderResult]) -> None:
            self._crew.abort_over(which, [one for one, result in results.items() if result.ok])

        return Reached(sum(answer.held for answer in answers), merged(*parts), over)


def _result(told: WorkerResult) -> OrderResult:
    answer = None if told.aborted is None else {"aborted": told.aborted}
    return OrderResult(told.ok, told.message, answer)

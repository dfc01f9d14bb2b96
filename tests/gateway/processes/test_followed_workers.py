"""A process that is told of the workers has them when it can send to them, and as it is told."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace

from books import KEY, identity
from clocks import FakeClock
from radixgate.errors import WorkerFailed
from radixgate.fleet.fleet import Fleet, WorkerIdentity, WorkerState
from radixgate.gateway.attempt.abort_order import AbortOrder
from radixgate.gateway.attempt.attempt import Attempt, Downstream, FrontRequest
from radixgate.gateway.choice.breakers import Breakers
from radixgate.gateway.choice.outliers import Outliers
from radixgate.gateway.choice.spared import Spared
from radixgate.gateway.choice.worker_choice import WorkerChoice
from radixgate.gateway.processes.followed_workers import FollowedWorkers
from radixgate.gateway.processes.messages import Admitted, CheckSoon, ToParent, WorkerIs
from radixgate.gateway.settings.gateway_config import GatewayConfig
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.upstream.fetch import Fetched
from radixgate.gateway.workers.health import HealthRule
from radixgate.gateway.workers.roster import Roster
from radixgate.gateway.workers.worker_address import WorkerAddress
from radixgate.gateway.workers.worker_handle import OrderResult, WorkerHandle
from radixgate.policies.registry import make_policy
from until import until

WORKER = "127.0.0.1:9001"
URL = f"http://{WORKER}"
FIRST = replace(identity(WORKER), url=URL)


class Client:
    closed = False

    def start(self, request: FrontRequest, downstream: Downstream, number: int) -> Attempt:
        raise NotImplementedError

    def close(self) -> None:
        self.closed = True


class Handle:
    """A worker that says what it is told to say."""

    def __init__(self, says: dict[str, WorkerIdentity | None]) -> None:
        self._says = says
        self.client = Client()

    async def probe(self) -> WorkerIdentity:
        said = self._says[WORKER]
        if said is None:
            raise WorkerFailed("not yet")
        return said

    async def run(self) -> None:
        await asyncio.Event().wait()

    def close(self) -> None:
        self.client.close()

    def heard(self) -> bool:
        return False

    async def flush_cache(self) -> OrderResult:
        raise NotImplementedError

    async def abort_request(self, order: AbortOrder) -> OrderResult:
        raise NotImplementedError

    async def read_rids(self) -> None:
        raise NotImplementedError

    def expect_abort(self, order: AbortOrder) -> Callable[[bool], None]:
        raise NotImplementedError

    def runs(self, order: AbortOrder) -> bool:
        return False

    async def ask(self, method: str, path: str, body: bytes) -> Fetched:
        raise NotImplementedError

    async def info(self, path: str) -> OrderResult:
        raise NotImplementedError


class Follower:
    def __init__(self) -> None:
        clock, rng = FakeClock(), random.Random(1)
        self.fleet = Fleet(make_policy("round_robin", clock, rng), clock, rng)
        reliability = ReliabilityConfig()
        choice = WorkerChoice(
            self.fleet,
            Breakers(reliability, clock),
            Spared(0.0, clock, rng),
            Outliers(reliability, clock),
        )
        self.says: dict[str, WorkerIdentity | None] = {WORKER: FIRST}
        self.told: list[ToParent] = []
        self.roster = Roster(self.fleet, {"http": self._make}, choice)
        self.workers = FollowedWorkers(
            self.roster, HealthRule.of(GatewayConfig()), self.told.append
        )

    def _make(self, address: WorkerAddress, api_key: str | None) -> WorkerHandle:
        return Handle(self.says)

    def follow(
        self,
        state: WorkerState,
        incarnation: int,
        who: WorkerIdentity | None = FIRST,
        *,
        absent: bool = False,
    ) -> None:
        told = WorkerIs(1, URL, None, state, incarnation, who, returned=False, absent=absent)
        self.workers.follow(told)

    def state(self) -> WorkerState | None:
        view = self.fleet.worker(WORKER)
        return None if view is None else view.state


async def test_it_is_ready_when_it_can_be_sent_to_and_the_parent_hears() -> None:
    follower = Follower()
    follower.follow(WorkerState.JOINING, 0, None)
    assert follower.state() is None
    follower.says[WORKER] = None
    follower.follow(WorkerState.READY, 1)
    await asyncio.sleep(0)
    assert follower.state() is None
    follower.says[WORKER] = FIRST
    await until(lambda: follower.state() is WorkerState.READY)
    assert follower.told == [Admitted(WORKER, 1)]
    assert list(follower.workers.clients) == [WORKER]
    follower.workers.gone(WORKER)


async def test_one_that_has_not_come_is_waited_for_until_the_parent_gives_it_up() -> None:
    follower = Follower()
    follower.follow(WorkerState.JOINING, 0, None)
    assert follower.roster.unheard_of() == 1
    follower.follow(WorkerState.JOINING, 0, None, absent=True)
    assert follower.roster.unheard_of() == 0
    follower.says[WORKER] = None
    follower.follow(WorkerState.READY, 1)
    assert follower.roster.unheard_of() == 1, "it is there, and not yet to be sent to"
    follower.workers.gone(WORKER)


async def test_states_follow_at_once_and_another_incarnation_begins_cold() -> None:
    follower = Follower()
    follower.follow(WorkerState.READY, 1)
    await until(lambda: follower.state() is WorkerState.READY)
    follower.follow(WorkerState.PAUSED, 1)
    assert follower.state() is WorkerState.PAUSED
    follower.fleet.mirror_of(WORKER).expect(WORKER, [1, 2, 3], 60.0)
    follower.follow(WorkerState.READY, 1)
    assert follower.fleet.mirror_of(WORKER).depths([1, 2, 3]) == {WORKER: 3}
    follower.follow(WorkerState.READY, 2)
    await until(lambda: follower.told == [Admitted(WORKER, 1), Admitted(WORKER, 2)])
    assert follower.fleet.mirror_of(WORKER).depths([1, 2, 3]) == {}
    assert KEY in follower.fleet.mirrors_of(FIRST.model)
    follower.workers.gone(WORKER)


async def test_what_is_gone_is_gone_and_its_client_closed() -> None:
    follower = Follower()
    follower.follow(WorkerState.READY, 1)
    await until(lambda: follower.state() is WorkerState.READY)
    member = follower.roster.find(WORKER)
    follower.workers.gone(WORKER)
    follower.workers.gone(WORKER)
    assert follower.state() is None
    assert follower.roster.members() == []
    client = member.handle.client
    assert isinstance(client, Client)
    assert client.closed


async def test_waiting_for_the_workers_ends_with_the_last_of_them() -> None:
    follower = Follower()
    await follower.workers.settled(0.0)
    follower.follow(WorkerState.READY, 1)
    await follower.workers.settled(5.0)
    assert follower.state() is WorkerState.READY
    follower.workers.gone(WORKER)


def test_a_failed_attempt_is_the_parent_s_to_look_into() -> None:
    follower = Follower()
    follower.workers.check_soon(WORKER)
    assert follower.told == [CheckSoon(WORKER)]

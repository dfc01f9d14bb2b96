"""The fleet's books: who is there, what is in flight, and who takes the next request."""

import random
from collections.abc import Collection, Iterable
from itertools import count

from radixgate.clock import Clock
from radixgate.errors import WorkerFailed
from radixgate.fleet.ask import Ask
from radixgate.fleet.fleet_config import FleetConfig
from radixgate.fleet.forecast import Forecast
from radixgate.fleet.identity import MirrorKey, WorkerIdentity, WorkerState
from radixgate.fleet.journal import FollowedLease, Journal
from radixgate.fleet.lease import Lease, Outcome, Stake
from radixgate.fleet.lineup import Lineup, request_of
from radixgate.fleet.load_report import LoadReport
from radixgate.fleet.own_queue import OwnQueue
from radixgate.fleet.picked_workers import PickedWorkers, Ready
from radixgate.fleet.ready_groups import ReadyGroups
from radixgate.fleet.ready_workers import nobody
from radixgate.fleet.recent_prompts import RecentPrompt
from radixgate.fleet.rehearsal import Rehearsal
from radixgate.fleet.served_models import ServedModels
from radixgate.fleet.worker_record import SharedMirror, WorkerRecord, WorkerView
from radixgate.policies.base import Policy
from radixgate.policies.rehearsal import understudy, undrawn
from radixgate.radix_mirror.mirror import RadixMirror

__all__ = [
    "Ask",
    "Fleet",
    "FleetConfig",
    "Lease",
    "LoadReport",
    "MirrorKey",
    "Outcome",
    "Rehearsal",
    "WorkerIdentity",
    "WorkerState",
    "WorkerView",
]

# A dispatched prompt counts as cached for three times the time it should take, in these bounds.
_EXPECT_TIMES_TTFT = 3.0
_EXPECT_AT_LEAST_S = 2.0
_EXPECT_AT_MOST_S = 600.0


class Fleet:
    """All workers of a gateway or a simulation. Not thread-safe; does no I/O.

    Leases are the only way into the counts, and each leaves them exactly once.
    """

    def __init__(
        self,
        policy: Policy,
        clock: Clock,
        rng: random.Random,
        config: FleetConfig | None = None,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._rng = rng
        self._config = config or FleetConfig()
        self._records: dict[str, WorkerRecord] = {}
        self._models = ServedModels()
        self._forecast = Forecast(self._records, self._config.prefill_speed_guess)
        self._mirrors: dict[MirrorKey, SharedMirror] = {}
        self._keys: dict[str, tuple[MirrorKey, ...]] = {}  # by name, as far as asked for
        self.journal: Journal | None = None  # None: nobody wants to know
        self.make_shared = SharedMirror.of
        self._ready = ReadyGroups(self._records, clock, rng)
        self._numbers = count(1)  # of leases

    # ------------------------------------------------------------ who is there

    def admit(self, identity: WorkerIdentity) -> None:
        """A worker joins, cold and in state JOINING, also if one of this id was there."""
        self.remove(identity.id)
        key = identity.mirror
        shared = self._mirrors.get(key)
        if shared is None:
            shared = self._mirrors[key] = self.make_shared(key, self._clock, self._config.mirror)
        record = WorkerRecord(identity, shared, OwnQueue(self._numbers))
        self._records[identity.id] = record
        self._models.join(identity)
        self._keys.clear()
        record.enter_mirror()

    def set_state(self, worker_id: str, state: WorkerState) -> None:
        """Raises WorkerFailed if there is no such worker."""
        record = self._record(worker_id)
        record.state = state
        self._ready.changed(record.identity)

    def rename(self, identity: WorkerIdentity) -> None:
        """It has other aliases or adapters now. Raises WorkerFailed if there is no such worker."""
        record = self._record(identity.id)
        self._models.leave(record.identity)
        self._ready.changed(record.identity)
        record.identity = identity
        self._models.join(identity)
        self._ready.changed(identity)
        self._keys.clear()

    def remove(self, worker_id: str) -> None:
        """The worker leaves and its blocks are forgotten; twice is harmless.

        Leases it holds stay valid and change nothing any more.
        """
        record = self._records.pop(worker_id, None)
        if record is None:
            return
        shared = record.shared
        self._ready.changed(record.identity)
        self._models.leave(record.identity)
        self._keys.clear()
        self._forecast.news_of(record.identity.model)
        shared.mirror.remove_worker(worker_id)
        if all(other.shared is not shared for other in self._records.values()):
            del self._mirrors[shared.key]

    def workers(self) -> tuple[WorkerView, ...]:
        """Every worker, in the order of joining. O(workers); who asks often reads `records`."""
        now = self._clock.now()
        return tuple(record.view(now) for record in self._records.values())

    def worker(self, worker_id: str) -> WorkerView | None:
        """One worker; None: there is none of this id. O(1)."""
        record = self._records.get(worker_id)
        return record.view(self._clock.now()) if record else None

    def records(self) -> Iterable[WorkerRecord]:
        """The pages themselves, for who keeps the books with us or only reads. O(1)."""
        return self._records.values()

    def record(self, worker_id: str) -> WorkerRecord | None:
        """The page itself; None: there is no such worker. O(1)."""
        return self._records.get(worker_id)

    def models(self) -> frozenset[str]:
        """What the workers serve under any name, whatever their state."""
        return self._models.names

    @property
    def served(self) -> ServedModels:
        return self._models

    def mirrors_of(self, model: str) -> tuple[MirrorKey, ...]:
        """The mirrors under which a prompt for this name needs block ids."""
        keys = self._keys.get(model)
        if keys is None:
            of_all = [
                one.shared.key for one in self._records.values() if one.identity.serves(model)
            ]
            keys = self._keys[model] = tuple(dict.fromkeys(of_all))
        return keys

    def mirror_of(self, worker_id: str) -> RadixMirror:
        """The mirror that knows this worker. Raises WorkerFailed if there is no such worker."""
        return self._record(worker_id).shared.mirror

    # ------------------------------------------------------------ what they say

    def report_load(self, worker_id: str, report: LoadReport) -> None:
        """Enter a report; one of a worker that is gone is ignored."""
        record = self._records.get(worker_id)
        if record is None:
            return
        now = self._clock.now()
        if record.hear(report, now):
            self._forecast.news_of(record.identity.model)
        self._ready.heard(record, now)

    # ------------------------------------------------------------ by which policy

    def use_policy(self, policy: Policy) -> None:
        """It chooses from now on. Leases stay as they are, and end as they would have. The journal
        is told by who knows whether another policy decides now."""
        self._policy = policy

    def flushed(self, worker_id: str) -> None:
        """It has dropped its cache. One that reports says so itself; of another nothing is believed
        any more. O(all blocks); leases stay."""
        record = self._records.get(worker_id)
        if record is not None and not record.identity.reports_kv:
            record.enter_mirror()

    def forget(self) -> int:
        """Begin anew with all that is believed and not reported; how many blocks that were.

        Leases stay in the counts; when they end they leave nothing in the mirrors. O(blocks).
        """
        return sum(shared.forget() for shared in self._mirrors.values())

    # ------------------------------------------------------------ who takes it

    def lease(self, ask: Ask, exclude: Collection[str] = ()) -> Lease:
        """Choose a ready worker that is not in `exclude`, and enter the request for it.

        O(workers + blocks). Raises RequestError if no model is named and there are several,
        UnknownModel with the list of models, NoWorkerAvailable if none is ready or left.
        """
        model = self._models.named(ask.model)
        ready = self._ready.kept.get(model)
        if ready is None:
            ready = self._ready.made(model)
        if exclude or not ready.records:
            ready = self._without(exclude, model, ready)
        now = self._clock.now()
        lineup = Lineup(ask, ready, now)
        candidates = lineup.candidates()
        choice = self._policy.choose(request_of(ask), candidates)
        record = ready.records[choice.index]
        held, cached = lineup.held(choice.index)
        ttft_s = self._forecast.ttft_s(record, ask.prompt_tokens - cached, now)
        shared, placement = record.shared, None
        blocks = ask.blocks.get(shared.key, ())
        if blocks:
            keep_s = min(max(_EXPECT_AT_LEAST_S, _EXPECT_TIMES_TTFT * ttft_s), _EXPECT_AT_MOST_S)
            placement = shared.mirror.expect(record.identity.id, blocks, keep_s, held)
        stake = Stake(ask.prompt_tokens, cached, ttft_s, len(blocks))
        if self.journal is None:
            self._remember(ask)
            return Lease(record, choice, stake, placement)
        lease = FollowedLease(record, choice, stake, placement)
        shares = lineup.recent_shares()
        lease.follow(self.journal.decided(ask, model, candidates, shares, choice, ttft_s))
        self._remember(ask)
        return lease

    def rehearse(self, ask: Ask, exclude: Collection[str] = ()) -> Rehearsal:
        """What `lease` would choose now, and by what. Changes nothing, and draws nothing.

        Raises as `lease`; RadixgateError if the policy cannot be copied. O(workers x blocks).
        """
        model = self._models.named(ask.model)
        with undrawn(self._rng):
            ready = self._without(exclude, model, self._ready.looked_at(model))
            now = self._clock.now()
            lineup = Lineup(ask, ready, now)
            candidates, cached = lineup.candidates(), lineup.cached_tokens()
            policy = understudy(self._policy, self._rng)
            choice = policy.choose(request_of(ask), candidates)
            return Rehearsal(
                model=model,
                candidates=candidates,
                cached_tokens=cached,
                confirmed_tokens=lineup.confirmed_tokens(),
                predicted_ttft_s=[
                    self._forecast.ttft_s(record, ask.prompt_tokens - tokens, now)
                    for record, tokens in zip(ready.records, cached, strict=True)
                ],
                choice=choice,
                scores=choice.explain(),
            )

    def check(self) -> None:
        """Assert that counts are possible and mirrors consistent. O(everything)."""
        for record in self._records.values():
            record.check()
            assert self._mirrors[record.identity.mirror] is record.shared
        self._ready.check()
        for shared in self._mirrors.values():
            shared.mirror.check()

    def _without(self, exclude: Collection[str], model: str, ready: Ready) -> Ready:
        """Raises NoWorkerAvailable if that leaves nobody."""
        if exclude:
            out = frozenset(exclude)
            left = [record for record in ready.records if record.identity.id not in out]
            ready = PickedWorkers(left, ready.groups)
        if not len(ready):
            raise nobody(model, self._records.values(), exclude)
        return ready

    def _remember(self, ask: Ask) -> None:
        for key, blocks in ask.blocks.items():
            if blocks and (shared := self._mirrors.get(key)) is not None:
                shared.recent.add(RecentPrompt(blocks, ask.fingerprint or ask.prompt_tokens))

    def _record(self, worker_id: str) -> WorkerRecord:
        record = self._records.get(worker_id)
        if record is None:
            raise WorkerFailed(f"there is no worker {worker_id!r:.200} in the fleet")
        return record

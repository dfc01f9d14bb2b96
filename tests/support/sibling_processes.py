"""Several processes over one fleet, and what they tell each other."""

import random

from books import ask, identity, ids_of
from clocks import FakeClock
from radixgate.fleet.fleet import Fleet, FleetConfig, Lease, WorkerState
from radixgate.fleet.siblings import Siblings
from radixgate.policies.cache_aware import CacheAwareConfig, cache_aware


class Process:
    """One of several over the workers `a` and `b`."""

    def __init__(
        self,
        peer: int,
        clock: FakeClock,
        *,
        reports_kv: bool = True,
        config: FleetConfig | None = None,
    ) -> None:
        self.calls = 0
        self.clock = clock
        policy = cache_aware(CacheAwareConfig(), random.Random(peer))
        self.fleet = Fleet(policy, clock, random.Random(peer), config)
        self.siblings = Siblings(peer, self._call)
        self.siblings.open(self.fleet)
        self._reports_kv = reports_kv
        for name in ("a", "b"):
            self.join(name)

    def _call(self) -> None:
        self.calls += 1

    def join(self, name: str) -> None:
        self.fleet.admit(identity(name, reports_kv=self._reports_kv))
        self.fleet.set_state(name, WorkerState.READY)

    def lease(self, text: str, only: str = "a") -> Lease:
        return self.fleet.lease(ask(text), {"a", "b"} - {only})

    def counts(self, name: str) -> tuple[int, int, int]:
        view = self.fleet.worker(name)
        assert view is not None
        return view.in_flight, view.tokens_in_flight, view.uncached_tokens_in_flight

    def depth(self, name: str, text: str) -> int:
        return self.fleet.mirror_of(name).depths(ids_of(text)).get(name, 0)


class Pair:
    def __init__(self, *, reports_kv: bool = True) -> None:
        self.clock = FakeClock()
        self.one = Process(1, self.clock, reports_kv=reports_kv)
        self.two = Process(2, self.clock, reports_kv=reports_kv)

    def tell(self, *, whole: bool = False) -> None:
        """What each has to tell reaches the other."""
        for teller, hearer in ((self.one, self.two), (self.two, self.one)):
            news = teller.siblings.take(whole=whole)
            if news is not None:
                hearer.siblings.hear(news)
        self.one.fleet.check()
        self.two.fleet.check()

"""A shadow's own books: what it would have placed, for as long as it really runs."""

import copy
import random
from collections.abc import Callable
from pathlib import Path

from books import Books, ask
from clocks import FakeClock
from columns import columns
from experiment_parts import logbook, records
from radixgate.analysis.experiments.records import Arm, ShadowDecision
from radixgate.errors import NoWorkerAvailable
from radixgate.fleet.fleet import FleetConfig, Outcome, WorkerState
from radixgate.gateway.experiments.overheard import Overheard
from radixgate.gateway.experiments.shadow import Shadow
from radixgate.gateway.experiments.units import session_of
from radixgate.policies.base import Candidates, Choice, Policy, RouteRequest


class Always:
    """The worker of this name, if it is there."""

    def __init__(self, name: str) -> None:
        self.name = name

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        if self.name not in candidates.ids:
            raise NoWorkerAvailable("it is not there")
        return Choice(list(candidates.ids).index(self.name), "always", list)


class Broken:
    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        raise ZeroDivisionError


class World:
    """A live fleet that sends all to `a`, and a shadow beside it."""

    def __init__(
        self, folder: Path, make: Callable[[], Policy] = lambda: Always("b"), share: float = 1.0
    ) -> None:
        clock = FakeClock()
        arms = (Arm("A", "own"), Arm("B", "tried"))
        book = logbook(folder, clock, kind="shadow", arms=arms, share_b=share, pairs=0)
        rng = random.Random(1)
        self.shadow = Shadow(book, make, session_of, FleetConfig(), clock, rng)
        live = Overheard(Always("a"), [self.shadow])
        self.books = Books("a", "b", policy=live, reports_kv=False)
        self.shadow.follow(self.books.fleet)
        self.book = book

    def decisions(self) -> list[ShadowDecision]:
        return [one for one in records(self.book) if isinstance(one, ShadowDecision)]


def test_it_decides_on_its_own_books_and_on_the_real_ones(tmp_path: Path) -> None:
    world = World(tmp_path)
    for text in ("hello", "hello there"):
        lease = world.books.fleet.lease(ask(text))
        assert lease.worker.id == "a"
        shade = world.shadow.placed(ask(text), lease)
        assert shade is not None
        shade.first_token()
        lease.first_output()
        shade.over()
        lease.close(Outcome.OK)
    first, second = world.decisions()
    assert (first.chosen_a, first.chosen_b, first.chosen_b_actual) == ("a", "b", "b")
    # On its own books `b` has the first prompt; really nothing was ever sent there.
    assert (second.predicted_cached_a, second.predicted_cached_b) == (5, 5)
    assert second.predicted_cached_b_actual == 0
    assert (first.imbalance_a, first.imbalance_b) == (2.0, 2.0)
    tally = world.shadow.tally
    assert (tally.decisions, tally.agreed, tally.agreed_actual, tally.undecided) == (2, 0, 0, 0)
    world.shadow.check()


def test_load_is_what_still_runs(tmp_path: Path) -> None:
    world = World(tmp_path)
    shades = []
    for text in ("one", "other"):
        lease = world.books.fleet.lease(ask(text))
        shades.append(world.shadow.placed(ask(text), lease))
    for shade in shades:
        assert shade is not None
        shade.over()
        shade.over()
    lease = world.books.fleet.lease(ask("third"))
    world.shadow.placed(ask("third"), lease)
    assert world.decisions()[-1].imbalance_b == 2.0
    assert [view.in_flight for view in world.books.fleet.workers()] == [3, 0]


def test_it_has_the_workers_that_the_fleet_has(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.books.fleet.set_state("b", WorkerState.DOWN)
    world.shadow.follow(world.books.fleet)
    lease = world.books.fleet.lease(ask("hello"))
    assert world.shadow.placed(ask("hello"), lease) is None
    assert world.shadow.tally.undecided == 2, "neither on its own books nor on the real ones"
    world.books.fleet.remove("b")
    world.shadow.follow(world.books.fleet)
    world.books.join("b")
    world.shadow.follow(world.books.fleet)
    lease = world.books.fleet.lease(ask("hello"))
    assert world.shadow.placed(ask("hello"), lease) is not None


def test_a_policy_that_fails_reaches_no_request(tmp_path: Path) -> None:
    world = World(tmp_path, Broken)
    lease = world.books.fleet.lease(ask("hello"))
    assert lease.worker.id == "a"
    assert world.shadow.placed(ask("hello"), lease) is None
    assert world.decisions() == []


def test_a_part_is_whole_sessions(tmp_path: Path) -> None:
    world = World(tmp_path, share=0.5)
    sessions = [RouteRequest(10, session=f"s{n}") for n in range(400)]
    looked = [world.shadow.looks_at(one) for one in sessions]
    assert looked == [world.shadow.looks_at(one) for one in sessions]
    assert 150 < sum(looked) < 250
    assert not world.shadow.looks_at(RouteRequest(10))


def test_a_copy_of_the_live_policy_asks_no_shadow(tmp_path: Path) -> None:

    world = World(tmp_path)
    live = Overheard(Always("w0"), [world.shadow])
    copied = copy.deepcopy(live)
    assert copied.choose(RouteRequest(10), columns(2)).index == 0
    assert isinstance(copied, Always)

"""Workers under several names: whoever serves a name is found, and counted in one place."""

import random
from collections import Counter
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from books import identity
from clocks import FakeClock
from radixgate.errors import NoWorkerAvailable, UnknownModel
from radixgate.fleet.fleet import Ask, Fleet, Lease, Outcome, WorkerState
from radixgate.fleet.own_queue import OwnQueue
from radixgate.fleet.ready_groups import ReadyGroups
from radixgate.fleet.worker_record import SharedMirror, WorkerRecord
from radixgate.policies.registry import make_policy
from radixgate.radix_mirror.mirror import MirrorConfig

WORKERS = ("w0", "w1", "w2", "w3")
ADAPTERS = ("x", "y", "z")
MODELS = ("a", "b")
NAMES = (*MODELS, *ADAPTERS)


def fleet(policy: str = "least_load") -> Fleet:
    clock, rng = FakeClock(), random.Random(1)
    return Fleet(make_policy(policy, clock, rng), clock, rng)


def join(books: Fleet, name: str, model: str = "a", *adapters: str) -> None:
    books.admit(replace(identity(name, model=model), adapters=adapters))
    books.set_state(name, WorkerState.READY)


def lease(books: Fleet, name: str) -> Lease:
    return books.lease(Ask(name, 10, {}))


def test_a_name_leads_to_who_serves_it_by_load_of_all_names() -> None:
    books = fleet()
    join(books, "w0", "a", "x")
    join(books, "w1", "a")
    assert {lease(books, "x").worker.id for _ in range(3)} == {"w0"}
    assert {lease(books, "a").worker.id for _ in range(3)} == {"w1"}, "w0 is busy with x"
    assert Counter(view.in_flight for view in books.workers()) == {3: 2}
    books.check()


def test_a_group_is_made_once_and_others_keep_their_order() -> None:
    names = [f"w{number}" for number in range(6)]
    shared = SharedMirror.of(identity("w0").mirror, FakeClock(), MirrorConfig())
    ready = {
        name: WorkerRecord(
            replace(identity(name), adapters=("x",) if name != "w5" else ()),
            shared,
            OwnQueue(count(1)),
            WorkerState.READY,
        )
        for name in names
    }
    groups = ReadyGroups(ready, FakeClock(), random.Random(1))
    assert groups.made("toy") is groups.made("toy") is groups.kept["toy"]
    assert {*groups.made("toy").ids} == {*names}
    some = groups.made("x")
    assert groups.looked_at("x") is groups.kept["x"] is some
    assert {*some.ids} == {*names[:5]}
    assert [*some.groups] == [groups.kept["toy"]]
    groups.check()


def test_who_has_left_is_not_the_model_of_who_names_none() -> None:
    books = fleet()
    join(books, "w0", "a")
    join(books, "w1", "b")
    books.remove("w0")
    assert books.lease(Ask(None, 10, {})).worker.id == "w1"


def test_a_rehearsal_by_another_name_sees_what_is_counted_under_the_first() -> None:
    books = fleet()
    join(books, "w0", "a", "x")
    lease(books, "a")
    assert list(books.rehearse(Ask("x", 10, {})).candidates.requests_in_flight) == [1]


def test_other_names_change_neither_counts_nor_mirror() -> None:
    books = fleet()
    join(books, "w0", "a", "x")
    held = [lease(books, "a"), lease(books, "x")]
    books.rename(replace(identity("w0", model="a"), adapters=("y",)))
    held.append(lease(books, "y"))
    (view,) = books.workers()
    assert (view.in_flight, view.identity.names) == (3, ("a", "y"))
    assert books.models() == {"a", "y"}
    for one in held:
        one.close(Outcome.OK)
    (view,) = books.workers()
    assert view.in_flight == 0
    books.check()


def test_a_name_s_cache_is_the_model_s_own_unless_workers_disagree() -> None:
    books = fleet()
    books.admit(replace(identity("w0", model="a"), aliases=("x",)))
    books.admit(replace(identity("w1", model="a"), aliases=("x",), adapters=("y",)))
    assert [books.served.space_of(name) for name in ("a", "x", "y")] == ["a", "a", "y"]
    books.admit(replace(identity("w2", model="b"), adapters=("x",)))
    assert books.served.space_of("x") == "x"
    assert {key.model for key in books.mirrors_of("x")} == {"a", "b"}
    books.remove("w2")
    assert books.served.space_of("x") == "a"
    assert books.models() == {"a", "x", "y"}


@settings(max_examples=6)
@given(st.data())
def test_counts_and_names_hold_whatever_comes_and_goes(data: st.DataObject) -> None:
    come_and_go(data)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.data())
def test_counts_and_names_hold_in_many_lives(data: st.DataObject) -> None:
    come_and_go(data)


def come_and_go(data: st.DataObject) -> None:
    """Up to forty steps of four workers of two models, after each of which all is counted."""
    books = fleet("round_robin")
    there: dict[str, set[str]] = {}
    paused: set[str] = set()
    held: list[Lease] = []
    for _ in range(data.draw(st.integers(5, 40))):
        worker = data.draw(st.sampled_from(WORKERS))
        model = MODELS[WORKERS.index(worker) % 2]
        step = data.draw(st.sampled_from(("join", "leave", "rename", "pause", "lease", "close")))
        adapters = tuple(sorted(data.draw(st.sets(st.sampled_from(ADAPTERS)))))
        if step == "join":
            held = [one for one in held if one.worker.id != worker]
            join(books, worker, model, *adapters)
            there[worker] = {model, *adapters}
            paused.discard(worker)
        elif step == "leave":
            held = [one for one in held if one.worker.id != worker]
            books.remove(worker)
            there.pop(worker, None)
        elif step == "rename" and worker in there:
            books.rename(replace(identity(worker, model=model), adapters=adapters))
            there[worker] = {model, *adapters}
        elif step == "pause" and worker in there:
            paused ^= {worker}
            state = WorkerState.PAUSED if worker in paused else WorkerState.READY
            books.set_state(worker, state)
        elif step == "lease":
            name = data.draw(st.sampled_from(NAMES))
            could = {one for one, names in there.items() if name in names and one not in paused}
            try:
                chosen = lease(books, name)
            except (NoWorkerAvailable, UnknownModel):
                assert not could
            else:
                assert chosen.worker.id in could
                held.append(chosen)
        elif step == "close" and held:
            held.pop(data.draw(st.integers(0, len(held) - 1))).close(Outcome.OK)
        books.check()
        counted = {view.identity.id: view.in_flight for view in books.workers()}
        assert counted == dict.fromkeys(there, 0) | Counter(one.worker.id for one in held)

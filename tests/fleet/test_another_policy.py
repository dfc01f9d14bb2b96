"""Another policy on books begun anew, while leases of the one before are still open."""

import random

import pytest

from books import KEY, Books, ask
from radixgate.fleet.fleet import Outcome
from radixgate.policies.round_robin import RoundRobin
from radixgate.proto.kv_events import Stored, Tier


@pytest.mark.parametrize("reports_kv", [False, True])
def test_nothing_that_was_believed_before_is_left_but_the_counts(reports_kv: bool) -> None:
    books = Books("a", "b", reports_kv=reports_kv)
    old = books.lease("hello there")
    books.fleet.use_policy(RoundRobin(random.Random(1)))
    assert books.fleet.forget() == len("hello there")
    books.fleet.check()
    assert sum(view.in_flight for view in books.fleet.workers()) == 1
    again = books.lease("hello there")
    assert again.predicted_cached_tokens == 0
    # The one before ends: its counts leave, and what the new one stands for stays.
    blocks = {name: books.blocks_of(name) for name in "ab"}
    old.close(Outcome.FAILED)
    assert {name: books.blocks_of(name) for name in "ab"} == blocks
    again.close(Outcome.OK, 0)
    assert all(view.in_flight == 0 for view in books.fleet.workers())
    books.fleet.check()


def test_what_a_worker_has_reported_stays() -> None:
    books = Books("a")
    mirror = books.fleet.mirror_of("a")
    mirror.reset("a", 1)
    ids = ask("abc").blocks[KEY]
    mirror.apply("a", 1, [Stored(0, ids, Tier.DEVICE)])
    assert books.fleet.forget() == 0
    assert books.lease("abcd").predicted_cached_tokens == 3

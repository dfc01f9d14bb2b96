"""What a lease would be: told without a trace."""

import random

import pytest

from books import Books, ask, ids_of, report
from radixgate.errors import NoWorkerAvailable
from radixgate.fleet.fleet import Outcome, WorkerState
from radixgate.policies.kv_cost import KvCost, KvCostConfig
from radixgate.proto.kv_events import Stored


def books(*names: str, seed: int = 1) -> Books:
    return Books(*names, policy=KvCost(KvCostConfig(), random.Random(seed)), seed=seed)


def test_it_tells_what_each_holds_and_of_that_what_is_confirmed() -> None:
    held = books("cold", "told", "sent")
    ids = ids_of("abcdef")
    mirror = held.fleet.mirror_of("told")
    mirror.reset("told", 1)
    mirror.apply("told", 1, [Stored(0, ids[:3])])
    mirror.expect("told", ids[:4], keep_s=9.0)
    mirror.expect("sent", ids[:2], keep_s=9.0)
    found = held.fleet.rehearse(ask("abcdef"))
    rows = zip(
        found.candidates.ids,
        zip(found.cached_tokens, found.confirmed_tokens, strict=True),
        strict=True,
    )
    assert dict(rows) == {"cold": (0, 0), "told": (4, 3), "sent": (2, 0)}
    assert (found.worker_id, found.choice.branch, found.model) == ("told", "hit", "toy")


def test_the_last_token_of_a_prompt_is_never_confirmed() -> None:
    held = books("told")
    mirror = held.fleet.mirror_of("told")
    mirror.reset("told", 1)
    mirror.apply("told", 1, [Stored(0, ids_of("abc"))])
    found = held.fleet.rehearse(ask("abc"))
    assert (found.cached_tokens, found.confirmed_tokens) == ([2], [2])


def test_it_is_what_the_lease_then_is_and_asking_leaves_no_trace() -> None:
    asked, unasked = books("a", "b", "c"), books("a", "b", "c")
    for text in ("one", "two", "one and more", "two", "three", "four", "one"):
        foretold = asked.fleet.rehearse(ask(text))
        before = [asked.counts(name) for name in "abc"]
        again = asked.fleet.rehearse(ask(text))
        assert [asked.counts(name) for name in "abc"] == before
        assert again.scores == foretold.scores
        lease, alone = asked.lease(text), unasked.lease(text)
        assert lease.worker.id == foretold.worker_id == again.worker_id == alone.worker.id
        assert lease.choice.branch == foretold.choice.branch
        assert lease.choice.explain() == foretold.scores
        if text == "two":
            lease.close(Outcome.OK)
            alone.close(Outcome.OK)
    asked.fleet.check()


def test_prompts_that_were_only_asked_about_are_not_remembered() -> None:
    held = books("a", "b")
    for number in range(20):
        held.fleet.rehearse(ask(f"system prompt {number}"))
    shared = held.fleet.rehearse(ask("system prompt and more"))
    assert list(shared.cached_tokens) == [0, 0]
    assert all(shared.candidates.read_recent_share(index) == 0.0 for index in (0, 1))


def test_the_time_to_the_first_token_is_told_for_each() -> None:
    held = books("a", "b")
    held.fleet.report_load("a", report(queued_uncached_tokens=500))
    found = held.fleet.rehearse(ask("x" * 100))
    assert dict(zip(found.candidates.ids, found.predicted_ttft_s, strict=True)) == {
        "a": pytest.approx(0.6),
        "b": pytest.approx(0.1),
    }


def test_nobody_is_an_error_as_for_a_lease() -> None:
    held = books("a")
    with pytest.raises(NoWorkerAvailable, match="1 left out"):
        held.fleet.rehearse(ask("x"), exclude=["a"])
    held.fleet.set_state("a", WorkerState.PAUSED)
    with pytest.raises(NoWorkerAvailable, match="1 paused"):
        held.fleet.rehearse(ask("x"))


def test_a_worker_that_is_gone_has_confirmed_nothing() -> None:
    held = books("a")
    mirror = held.fleet.mirror_of("a")
    assert mirror.confirmed_depth("nobody", ids_of("abc")) == 0

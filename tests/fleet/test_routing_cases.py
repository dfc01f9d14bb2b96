"""The routing cases, told in characters, through the fleet's own objects."""

import random
from collections import Counter

import pytest

from books import Books
from radixgate.fleet.fleet import Lease, Outcome
from radixgate.policies.cache_aware import CacheAwareConfig

SYSTEM = "You are a helpful assistant. " * 11
CONVERSATIONS = 8
TURNS = 4


def keep_busy(books: Books, name: str, requests: int) -> list[Lease]:
    """Requests in flight at one worker that share no text with any other."""
    others = [view.identity.id for view in books.fleet.workers() if view.identity.id != name]
    return [books.lease(f"{name}#{n}", others) for n in range(requests)]


def finish(lease: Lease) -> str:
    lease.first_output()
    lease.close(Outcome.OK)
    return lease.worker.id


# ------------------------------------------------------------ M01


@pytest.mark.parametrize("knobs", [CacheAwareConfig(), CacheAwareConfig(cache_threshold=0.3)])
@pytest.mark.parametrize("reports_kv", [True, False])
def test_m01_the_same_worker_comes_back_cold(knobs: CacheAwareConfig, reports_kv: bool) -> None:
    books = Books("a", "b", knobs=knobs, reports_kv=reports_kv)
    prompt = "once upon a time " * 24
    gone = finish(books.lease(prompt))
    books.fleet.remove(gone)
    other = finish(books.lease(prompt))
    assert other != gone
    books.join(gone)
    assert [finish(books.lease(prompt)) for _ in range(6)] == [other] * 6


# ------------------------------------------------------------ M02


def turns_of(number: int) -> list[str]:
    """The prompts of one conversation, each a prefix of the next."""
    rng = random.Random(number)
    history = SYSTEM + f"conversation {number} " + "".join(rng.choices("abcdef ", k=2_000))
    prompts = [history]
    for _ in range(TURNS - 1):
        history += "".join(rng.choices("uvwxyz ", k=150))
        prompts.append(history)
    return prompts


def homes_of(books: Books) -> list[list[str]]:
    """Where the turns of each conversation went, all interleaved."""
    conversations = [turns_of(number) for number in range(CONVERSATIONS)]
    homes: list[list[str]] = [[] for _ in conversations]
    for turn in range(TURNS):
        for number, prompts in enumerate(conversations):
            homes[number].append(finish(books.lease(prompts[turn])))
            books.clock.advance(1.0)
    return homes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "knobs",
    [
        pytest.param(CacheAwareConfig(cache_threshold=0.3), id="threshold"),
        pytest.param(CacheAwareConfig(cache_threshold=0.9), id="first-turns-always-fall-back"),
        pytest.param(CacheAwareConfig(), id="no-flags"),
    ],
)
def test_m02_conversations_spread_and_stay(knobs: CacheAwareConfig, seed: int) -> None:
    books = Books("a", "b", "c", "d", knobs=knobs, reports_kv=False, seed=seed)
    homes = homes_of(books)
    assert [home for home in homes if len(set(home)) > 1] == []
    assert max(Counter(home[0] for home in homes).values()) <= 6


def test_m02_a_turn_sent_while_the_gate_is_on_feeds_the_mirror() -> None:
    knobs = CacheAwareConfig(0.3, 2, 1.5)
    books = Books("a", "b", knobs=knobs, reports_kv=False)
    prompts = turns_of(0)
    books.warm(prompts[0], "a")
    busy = keep_busy(books, "a", 5)
    lease = books.lease(prompts[0])
    assert (lease.worker.id, lease.choice.branch) == ("b", "imbalance")
    for other in busy:
        finish(other)
    assert finish(lease) == "b"
    # Both hold the first turn now; the second stays with the one that is less busy.
    keep_busy(books, "a", 1)
    assert {finish(books.lease(prompt)) for prompt in prompts[1:]} == {"b"}


def test_m02_a_retried_turn_is_warm_where_it_was_answered() -> None:
    books = Books("a", "b", knobs=CacheAwareConfig(cache_threshold=0.3), reports_kv=False)
    prompts = turns_of(0)
    first = books.lease(prompts[0])
    first.close(Outcome.FAILED)
    second = finish(books.lease(prompts[0], [first.worker.id]))
    assert second != first.worker.id
    assert {finish(books.lease(prompt)) for prompt in prompts[1:]} == {second}


def test_m02_tenants_with_salts_of_their_own_share_nothing() -> None:
    books = Books("a", "b", "c", "d")
    leases = [books.lease(SYSTEM, salt=f"tenant{n}") for n in range(8)]
    assert [lease.predicted_cached_tokens for lease in leases] == [0] * 8
    assert set(Counter(lease.worker.id for lease in leases).values()) == {2}


# ------------------------------------------------------------ M03


@pytest.mark.parametrize(
    ("threshold", "branch"), [pytest.param(0.5, "hit"), pytest.param(0.7, "miss")]
)
def test_m03_three_of_five_characters_are_a_match_of_six_tenths(
    threshold: float, branch: str
) -> None:
    books = Books("a", "b", knobs=CacheAwareConfig(cache_threshold=threshold))
    books.warm("日本語テスト", "a")
    lease = books.lease("日本語AB")
    assert lease.choice.branch == branch


# ------------------------------------------------------------ P03


@pytest.mark.slow
def test_p03_a_miss_goes_to_the_least_busy_whatever_it_holds() -> None:
    books = Books("a", "b", knobs=CacheAwareConfig(cache_threshold=0.3))
    books.warm("a" * 100, "a")
    books.warm("b" * 100_000, "b")
    keep_busy(books, "a", 12)
    assert books.lease("never seen").worker.id == "b"


@pytest.mark.parametrize(
    ("busy", "idle", "chosen"),
    [
        pytest.param(9, 0, "idle", id="nine-to-none"),
        pytest.param(8, 0, "warm", id="eight-to-none"),
        pytest.param(20, 15, "warm", id="twenty-to-fifteen"),
        pytest.param(20, 10, "idle", id="twenty-to-ten"),
    ],
)
def test_p03_a_warm_worker_is_left_beyond_both_thresholds(
    busy: int, idle: int, chosen: str
) -> None:
    books = Books("warm", "idle", knobs=CacheAwareConfig(None, 8, 1.5))
    books.warm("a long prompt that is cached", "warm")
    keep_busy(books, "warm", busy)
    keep_busy(books, "idle", idle)
    assert books.lease("a long prompt that is cached").worker.id == chosen


@pytest.mark.parametrize(("cached", "chosen"), [(49, "b"), (51, "a")])
def test_p03_a_match_counts_above_half(cached: int, chosen: str) -> None:
    books = Books("a", "b", knobs=CacheAwareConfig(cache_threshold=0.5))
    books.warm("w" * cached, "a")
    keep_busy(books, "a", 1)
    assert books.lease("w" * cached + "x" * (100 - cached)).worker.id == chosen


# ------------------------------------------------------------ all of them


def test_counts_end_at_zero_whatever_happens() -> None:
    books = Books("a", "b", "c")
    rng = random.Random(5)
    live: list[Lease] = []
    for number in range(300):
        live.append(books.lease(f"{number % 7}" * rng.randint(1, 50)))
        if rng.random() < 0.5:
            live[rng.randrange(len(live))].first_output()
        if rng.random() < 0.7:
            live.pop(rng.randrange(len(live))).close(rng.choice(list(Outcome)))
        books.clock.advance(rng.random())
    for lease in live:
        lease.close(Outcome.ABORTED)
    assert {books.counts(name) for name in "abc"} == {(0, 0)}
    books.fleet.check()

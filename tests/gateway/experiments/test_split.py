"""Sessions in buckets, pools of workers: sticky, each among its own, and never a lost request."""

import copy
import random

from msgspec import structs

from books import Books
from columns import columns
from experiment_parts import question
from radixgate.fleet.fleet import Outcome
from radixgate.gateway.experiments.split import Bucketing, SplitPolicy, pool_of
from radixgate.gateway.experiments.units import session_of, tenant_of
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.policies.round_robin import RoundRobin


def buckets(share: float = 0.5, salt: bytes = b"salt") -> Bucketing:
    return Bucketing(salt, share, session_of)


def split(pool: tuple[str, ...] = ("c",), share: float = 0.5) -> SplitPolicy:
    arms = [RoundRobin(random.Random(1)), RoundRobin(random.Random(2))]
    return SplitPolicy(arms, buckets(share), pool)


def candidates(*ids: str) -> Candidates:
    return columns(len(ids), ids=ids)


def request(session: str | None) -> RouteRequest:
    return RouteRequest(10, session=session)


def test_a_session_stays_and_the_share_is_kept() -> None:
    sessions = [f"s{n}" for n in range(2_000)]
    first = [buckets(0.2).arm_of(request(one)) for one in sessions]
    assert first == [buckets(0.2).arm_of(question(one)) for one in sessions]
    assert abs(sum(first) / len(first) - 0.2) < 0.03
    # A larger share takes in more and sends nobody back; another salt is another draw.
    wider = [buckets(0.4).arm_of(request(one)) for one in sessions]
    assert all(late >= early for early, late in zip(first, wider, strict=True))
    other = [buckets(0.2, b"other").arm_of(request(one)) for one in sessions]
    assert first != other


def test_who_names_no_unit_is_as() -> None:
    assert buckets(0.99).arm_of(request(None)) == 0
    assert Bucketing(b"", 0.99, tenant_of).arm_of(question("s")) == 0


def test_sessions_of_two_tenants_are_two() -> None:
    assert session_of(question("s", "a")) != session_of(question("s", "b"))


def test_each_arm_has_its_own_workers() -> None:
    policy, sorting = split(), buckets()
    for number in range(200):
        asked = request(f"s{number}")
        three = candidates("a", "b", "c")
        choice = policy.choose(asked, three)
        assert (three.ids[choice.index] == "c") == bool(sorting.arm_of(asked))
        scores = choice.explain()
        assert len(scores) == 3
        assert min(scores) == scores[choice.index]


class Asked:
    """Keeps what it was given to choose from."""

    def __init__(self) -> None:
        self.given: list[Candidates] = []

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        self.given.append(candidates)
        return Choice(0, "first", lambda: [0.0] * len(candidates))


def test_an_arm_is_told_of_its_own_workers_all_that_is_known() -> None:
    arm = Asked()
    policy = SplitPolicy([arm, arm], buckets(0.0), ("b",))
    three = structs.replace(
        columns(
            3,
            ids="abc",
            cached=[1, 2, 3],
            requests=[4, 5, 6],
            uncached=[7, 8, 9],
            reported=[10, 11, 12],
            waiting=[13, 14, 15],
            elsewhere=[16, 17, 18],
            speeds=[1.0, 2.0, 3.0],
            kv_share=[0.1, 0.2, 0.3],
            recent_share=lambda at: (0.4, 0.5, 0.6)[at],
        ),
        read_decode_step_s=lambda: [0.01, 0.02, None],
        reported_requests=(23, 25, 27),
        requests_there=(24, 26, 28),
        most_kv_share=0.3,
    )
    assert policy.choose(request("s"), three).index == 0
    (mine,) = arm.given
    assert mine.most_kv_share == 0.3
    lists = [name for name in Candidates.__struct_fields__ if not name.startswith("read_")]
    lists.remove("most_kv_share")  # which is one number
    for name in lists:
        whole = getattr(three, name)
        assert list(getattr(mine, name)) == [whole[0], whole[2]], name
    assert mine.read_cached_tokens() == [1, 3]
    assert [mine.read_recent_share(at) for at in (0, 1)] == [0.4, 0.6]
    assert mine.read_decode_step_s() == [0.01, None]
    nobody_tells = structs.replace(three, read_decode_step_s=tuple, reported_requests=())
    policy.choose(request("s"), nobody_tells)
    assert arm.given[-1].read_decode_step_s() == ()
    assert arm.given[-1].reported_requests == ()
    without_the_fullest = structs.replace(three, kv_share_used=[0.1, 0.3, 0.2])
    policy.choose(request("s"), without_the_fullest)
    assert arm.given[-1].most_kv_share == 0.2
    policy.choose(request("s"), structs.replace(three, most_kv_share=None))
    assert arm.given[-1].most_kv_share is None


def test_an_empty_pool_is_stood_in_for() -> None:
    policy = split()
    for number in range(20):
        assert policy.choose(request(f"s{number}"), candidates("a", "b")).index in (0, 1)
        assert policy.choose(request(f"s{number}"), candidates("c")).index == 0


def test_without_a_pool_the_arms_share_the_workers() -> None:
    policy = split(pool=())
    chosen = {policy.choose(request("s1"), candidates("a", "b")).index for _ in range(4)}
    assert chosen == {0, 1}


def test_it_can_be_copied_and_asked_what_it_would_choose() -> None:
    policy = split()
    copied = copy.deepcopy(policy)
    three = candidates("a", "b", "c")
    assert copied.choose(request("s"), three).index == policy.choose(request("s"), three).index


def test_pools_are_drawn_with_somebody_left() -> None:
    workers = [f"w{n}" for n in range(8)]
    rng = random.Random(1)
    assert len(pool_of(workers, 0.25, rng)) == 2
    assert len(pool_of(workers, 0.01, rng)) == 1
    assert len(pool_of(workers, 0.99, rng)) == 7
    assert set(pool_of(workers, 0.5, rng)) <= set(workers)


def test_the_books_of_a_pool_are_of_its_own_requests() -> None:
    books = Books("a", "b", "c", policy=split(), reports_kv=False)
    for number in range(30):
        books.lease(f"text {number}").close(Outcome.OK)
    held = {name: books.blocks_of(name).approximate for name in "abc"}
    assert held["c"] == 0, "who names no session is A's"
    assert held["a"] > 0
    assert held["b"] > 0

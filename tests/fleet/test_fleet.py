"""Who is there, who can be chosen, and what the policy is shown."""

from dataclasses import replace

import pytest

from books import KEY, MODEL, Books, ask, identity, ids_of, report
from columns import PROMPT
from radixgate.errors import NoWorkerAvailable, RequestError, UnknownModel, WorkerFailed
from radixgate.fleet.fleet import Ask, FleetConfig, LoadReport, MirrorKey, WorkerState
from radixgate.policies.base import Candidates, Choice, RouteRequest
from radixgate.radix_mirror.mirror import MirrorConfig, RadixMirror

OTHERS = [state for state in WorkerState if state is not WorkerState.READY]


class First:
    """Chooses the first and keeps what it was shown."""

    def __init__(self) -> None:
        self.seen: list[Candidates] = []

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        self.seen.append(candidates)
        return Choice(0, "first", lambda: [0.0] * len(candidates))


def test_a_worker_begins_joining_and_is_chosen_once_ready() -> None:
    books = Books()
    books.fleet.admit(identity("a"))
    with pytest.raises(NoWorkerAvailable, match="1 joining"):
        books.lease("hello")
    books.fleet.set_state("a", WorkerState.READY)
    assert books.lease("hello").worker.id == "a"


@pytest.mark.parametrize("state", OTHERS, ids=[state.value for state in OTHERS])
def test_a_worker_that_is_not_ready_is_not_chosen(state: WorkerState) -> None:
    books = Books("a", "b")
    books.fleet.set_state("a", state)
    assert {books.lease(f"{n}" * 9).worker.id for n in range(9)} == {"b"}


def test_excluded_workers_are_not_chosen() -> None:
    books = Books("a", "b")
    assert books.lease("hello", ["a"]).worker.id == "b"
    with pytest.raises(NoWorkerAvailable, match=r"2 ready; 2 left out") as raised:
        books.lease("hello", ["a", "b"])
    assert raised.value.retry_after_s == 1.0


def test_before_anyone_joined_a_retry_makes_sense() -> None:
    with pytest.raises(NoWorkerAvailable, match=r"^no worker has joined yet$"):
        Books().lease("hello")


def test_an_unknown_model_is_told_those_there_are() -> None:
    books = Books("a")
    books.fleet.admit(identity("b", model="big"))
    with pytest.raises(UnknownModel, match="there are: big, toy") as raised:
        books.fleet.lease(ask("hello", model="small"))
    assert (raised.value.status, raised.value.param) == (404, "model")
    assert raised.value.code == "model_not_found"


@pytest.mark.parametrize("model", [None, ""])
def test_an_unnamed_model_is_the_only_one_or_an_error(model: str | None) -> None:
    books = Books("a")
    assert books.fleet.lease(ask("hello", model=model)).worker.id == "a"
    books.fleet.admit(identity("b", model="big"))
    with pytest.raises(RequestError, match="name a model: big, toy") as raised:
        books.fleet.lease(ask("hello", model=model))
    assert raised.value.param == "model"


def test_only_workers_of_the_model_are_chosen() -> None:
    books = Books("a")
    books.fleet.admit(identity("b", model="big"))
    books.fleet.set_state("b", WorkerState.READY)
    assert {books.lease(f"{n}" * 9).worker.id for n in range(9)} == {"a"}
    assert books.fleet.models() == {"toy", "big"}


def test_an_unknown_worker_is_an_error_except_where_it_may_just_have_left() -> None:
    books = Books("a")
    with pytest.raises(WorkerFailed, match="no worker 'x'"):
        books.fleet.set_state("x", WorkerState.READY)
    with pytest.raises(WorkerFailed):
        books.fleet.mirror_of("x")
    books.fleet.report_load("x", report())
    books.fleet.remove("x")
    assert books.fleet.worker("x") is None


def test_what_belongs_to_a_model_leaves_with_its_last_worker() -> None:
    books = Books("a")
    books.fleet.admit(identity("b"))
    books.lease("hello")
    books.fleet.remove("a")
    assert books.fleet.mirrors_of(MODEL) == (MirrorKey(MODEL, "tokens", 1),)
    books.fleet.remove("b")
    books.fleet.remove("b")
    assert books.fleet.mirrors_of(MODEL) == ()
    assert books.fleet.models() == frozenset()


def test_workers_of_one_model_may_cut_it_differently() -> None:
    policy = First()
    books = Books("a", policy=policy)
    text = MirrorKey(MODEL, "bytes", 0)
    books.fleet.admit(identity("b", key=text, reports_kv=False))
    books.fleet.set_state("b", WorkerState.READY)
    assert set(books.fleet.mirrors_of(MODEL)) == {MirrorKey(MODEL, "tokens", 1), text}
    books.lease("hello")
    assert list(policy.seen[0].read_cached_tokens()) == [0, 0]


def test_what_is_cached_is_looked_up_in_each_worker_s_own_mirror() -> None:
    policy = First()
    books = Books("a", policy=policy)
    twos = MirrorKey(MODEL, "tokens", 2)
    books.fleet.admit(identity("b", key=twos))
    books.fleet.set_state("b", WorkerState.READY)
    books.warm("hello", "a")
    mine, pairs = ids_of("hello"), ids_of("hello", block=2)
    books.fleet.mirror_of("b").expect("b", pairs[:1], keep_s=60.0)
    books.fleet.lease(Ask(MODEL, 5, {KEY: mine, twos: pairs}))
    seen = policy.seen[0]
    held = dict(zip(seen.ids, seen.read_cached_tokens(), strict=True))
    assert held == {"a": 4, "b": 2}


def test_the_policy_sees_own_counts_and_fresh_reports() -> None:
    policy = First()
    books = Books("a", policy=policy)
    books.lease("x" * 100)
    books.fleet.report_load(
        "a",
        report(
            running=3,
            waiting=2,
            queued_uncached_tokens=700,
            kv_tokens_used=25,
            kv_tokens_total=100,
        ),
    )
    books.clock.advance(2.0)
    books.lease("y" * 50)
    seen = policy.seen[1]
    assert (list(seen.ids), list(seen.requests_in_flight)) == (["a"], [1])
    assert list(seen.uncached_tokens_in_flight) == [100]
    assert (list(seen.running), list(seen.waiting)) == ([3], [2])
    assert list(seen.queued_uncached_tokens) == [700]
    assert list(seen.kv_share_used) == [0.25]
    view = books.fleet.worker("a")
    assert view is not None
    assert view.report is not None
    assert view.report.running == 3


def test_times_and_speeds_that_are_reported_are_shown() -> None:
    policy = First()
    books = Books("a", policy=policy)
    for total in (busy(0, 0), replace(busy(1.0, 4_000), decode_step_s=0.02)):
        books.fleet.report_load("a", total)
    books.lease("x")
    assert list(policy.seen[0].read_decode_step_s()) == [0.02]
    view = books.fleet.worker("a")
    assert view is not None
    assert view.prefill_tokens_per_s == 4_000
    books.clock.advance(2.001)
    books.lease("x")
    assert list(policy.seen[1].read_decode_step_s()) == [None]


def test_looking_at_the_workers_asks_no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    books = Books("a", "b")
    books.warm("hello", "a")
    asked: list[str] = []
    monkeypatch.setattr(RadixMirror, "blocks_of", lambda mirror, name: asked.append(name))
    assert [view.identity.id for view in books.fleet.workers()] == ["a", "b"]
    assert books.fleet.worker("a") is not None
    assert asked == [], "each would have what is overdue taken away first"


def test_what_is_believed_is_bounded_as_configured() -> None:
    config = FleetConfig(mirror=MirrorConfig(mirror_ttl_s=5.0))
    books = Books("a", reports_kv=False, config=config)
    books.warm("hello", "a")
    books.clock.advance(4.9)
    assert books.fleet.mirror_of("a").depths(ids_of("hello")) == {"a": 5}
    books.clock.advance(0.2)
    assert books.fleet.mirror_of("a").depths(ids_of("hello")) == {}


@pytest.mark.parametrize(("reports_kv", "left"), [(True, {"a": 5}), (False, {})])
def test_a_flush_is_believed_at_once_of_a_worker_that_does_not_report_it(
    reports_kv: bool, left: dict[str, int]
) -> None:
    books = Books("a", "b", reports_kv=reports_kv)
    books.warm("hello", "a")
    books.warm("other", "b")
    books.fleet.flushed("a")
    books.fleet.flushed("nobody")
    assert books.fleet.mirror_of("a").depths(ids_of("hello")) == left
    assert books.fleet.mirror_of("b").depths(ids_of("other")) == {"b": 5}


def test_a_report_older_than_two_seconds_is_no_report() -> None:
    policy = First()
    books = Books("a", policy=policy)
    books.fleet.report_load("a", report(running=3, kv_tokens_total=100))
    books.clock.advance(2.001)
    books.lease("x")
    seen = policy.seen[0]
    assert (list(seen.running), list(seen.kv_share_used)) == ([None], [None])
    view = books.fleet.worker("a")
    assert view is not None
    assert view.report is None


def test_without_a_report_kv_use_is_our_tokens_over_the_capacity() -> None:
    policy = First()
    books = Books(policy=policy)
    books.fleet.admit(identity("a", capacity=400))
    books.fleet.set_state("a", WorkerState.READY)
    for _ in range(6):
        books.lease("x" * 100)
    shares = [seen.kv_share_used[0] for seen in policy.seen]
    assert shares == [0, 0.25, 0.5, 0.75, 1.0, 1.0]


def test_the_order_of_workers_differs_between_gateways() -> None:
    names = [f"w{n}" for n in range(6)]
    firsts = set()
    for seed in range(30):
        policy = First()
        Books(*names, policy=policy, seed=seed).lease("x")
        firsts.add(policy.seen[0].ids[0])
    assert firsts == set(names)


def busy(seconds: float, tokens: int) -> LoadReport:
    return report(prefill_busy_us_total=int(seconds * 1e6), prefill_tokens_total=tokens)


def test_expected_time_to_first_token_uses_the_best_known_speed() -> None:
    books = Books("a", "b", config=FleetConfig(prefill_speed_guess=500.0))
    assert books.lease("x" * 1_000, ["b"]).predicted_ttft_s == 2.0
    for total in (busy(0, 0), busy(1.0, 4_000)):
        books.fleet.report_load("a", total)
    # Behind the thousand tokens that are queued at a already.
    assert books.lease("y" * 1_000, ["b"]).predicted_ttft_s == 0.5
    # b has not told: it is taken to be as fast as its fellows.
    assert books.lease("z" * 1_000, ["a"]).predicted_ttft_s == 0.25
    # What is cached takes no time; what others have queued there does.
    books.fleet.report_load("b", report(queued_uncached_tokens=7_000))
    books.warm("w" * 600, "b")
    assert books.lease("w" * 1_000, ["a"]).predicted_ttft_s == (7_000 + 400) / 4_000


def test_expected_blocks_stay_for_thrice_the_predicted_time() -> None:
    books = Books("a", config=FleetConfig(prefill_speed_guess=100.0))
    mirror = books.fleet.mirror_of("a")
    books.lease("x" * 100)
    books.lease("y" * 100)
    books.clock.advance(2.9)
    assert mirror.blocks_of("a").expected == 200
    books.clock.advance(0.1)
    assert mirror.blocks_of("a").expected == 100
    books.clock.advance(3.0)
    assert mirror.blocks_of("a").expected == 0


def test_the_whole_request_reaches_the_policy() -> None:
    class Listener(First):
        def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
            assert request.prompt_tokens == 5
            return super().choose(PROMPT, candidates)

    policy = Listener()
    Books("a", policy=policy).lease("hello")
    assert policy.seen

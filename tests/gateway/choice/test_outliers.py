"""Who fails too often is set aside; never the last, and never more than half."""

import random

import pytest

from books import Books, ask
from clocks import FakeClock
from radixgate.errors import ConfigError
from radixgate.fleet.fleet import Outcome
from radixgate.fleet.worker_record import WorkerRecord
from radixgate.gateway.choice.breakers import Breakers, Verdict
from radixgate.gateway.choice.outliers import Outliers
from radixgate.gateway.choice.spared import Spared
from radixgate.gateway.choice.worker_choice import WorkerChoice
from radixgate.gateway.settings.reliability_config import ReliabilityConfig
from radixgate.gateway.settings.rules import GatewayRules
from scripted_worker import Recorded, ScriptedWorker, Step, good_answer, json_answer
from small_gateway import small_gateway

FLEET = ("a", "b", "c", "d")


class Judged:
    """Outliers over fake time: half of at least ten attempts, in windows of 30 s, for 30 s."""

    def __init__(self, **knobs: float) -> None:
        self.clock = FakeClock()
        settings = {"outlier_min_attempts": 10, **knobs}
        self.outliers = Outliers(ReliabilityConfig(**settings), self.clock)  # type: ignore[arg-type]

    def fails(self, worker: str, times: int = 10) -> None:
        for _ in range(times):
            self.outliers.ended(worker, Verdict.FAILURE)

    def succeeds(self, worker: str, times: int) -> None:
        for _ in range(times):
            self.outliers.ended(worker, Verdict.SUCCESS)

    def away(self, *workers: str) -> list[str]:
        return sorted(self.outliers.among(workers or FLEET))

    def choice(self, books: Books) -> WorkerChoice:
        breakers = Breakers(ReliabilityConfig(), self.clock)
        spared = Spared(0.0, self.clock, random.Random(0))
        return WorkerChoice(books.fleet, breakers, spared, self.outliers)


def test_a_share_of_failures_sets_a_worker_aside_for_a_time() -> None:
    judged = Judged()
    for _ in range(5):
        judged.succeeds("a", 1)
        judged.fails("a", 1)
    assert judged.away() == [], "nine attempts since the first failure"
    judged.fails("a", 1)
    assert judged.away() == ["a"]
    assert judged.outliers.is_ejected("a")
    judged.clock.advance(30.1)
    assert judged.away() == []
    assert not judged.outliers.is_ejected("a")


def test_fewer_failures_and_what_says_nothing_set_nobody_aside() -> None:
    judged = Judged()
    for _ in range(30):
        judged.fails("a", 1)
        judged.succeeds("a", 2)
    for _ in range(100):
        judged.outliers.ended("b", Verdict.NEUTRAL)
    assert judged.away() == []
    assert not judged.outliers.ejections


def test_successes_count_between_failures_however_the_breaker_stands() -> None:
    judged = Judged()
    choice = judged.choice(Books("a", reports_kv=False))
    for number in range(1, 1_001):
        lease = choice.lease(ask("hello"), (), own_only=False)
        outcome = Outcome.FAILED if number % 100 == 0 else Outcome.OK
        lease.close(outcome)
        choice.ended(lease, outcome, busy=False)
    assert judged.away("a", "b") == [], "ten of a thousand have failed"


def test_while_one_is_set_aside_a_request_reads_the_books_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    judged = Judged()
    judged.fails("a")
    choice = judged.choice(Books(*FLEET))
    viewed: list[str] = []
    monkeypatch.setattr(WorkerRecord, "view", lambda record, now: viewed.append("a view"))
    chosen = {choice.lease(ask("hello"), (), own_only=False).worker.id for _ in range(8)}
    assert "a" not in chosen
    assert viewed == []


def test_failures_of_another_window_do_not_add_up() -> None:
    judged = Judged()
    judged.fails("a", 9)
    judged.clock.advance(31)
    judged.fails("a", 9)
    judged.clock.advance(31)
    judged.succeeds("a", 1)
    judged.fails("a", 9)
    assert judged.away() == []


def test_never_the_last_and_never_more_than_half() -> None:
    judged = Judged()
    for worker in "dcba":
        judged.fails(worker)
    assert judged.away() == ["c", "d"], "the first that were set aside"
    assert judged.away("c", "d", "a") == ["d"]
    assert judged.away("c", "d") == ["d"]
    assert judged.away("c") == []


def test_one_that_fails_again_after_its_return_is_away_longer() -> None:
    judged = Judged()
    judged.fails("a")
    judged.clock.advance(31)
    judged.fails("a")
    judged.clock.advance(59)
    assert judged.away() == ["a"]
    judged.clock.advance(2)
    assert judged.away() == []
    judged.clock.advance(31)  # it did well for a window
    assert judged.away() == []
    assert not judged.outliers.ejections, "a sound fleet costs nothing"
    judged.fails("a")
    judged.clock.advance(31)
    assert judged.away() == []


def test_one_that_is_another_process_now_begins_anew() -> None:
    judged = Judged()
    judged.fails("a")
    judged.outliers.forget("a")
    assert judged.away() == []
    judged.fails("b", 9)
    judged.outliers.forget("b")
    judged.fails("b", 9)
    assert judged.away() == []


def test_a_ratio_of_nought_is_off() -> None:
    judged = Judged(outlier_failure_ratio=0.0)
    judged.fails("a", 100)
    assert judged.away() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("outlier_failure_ratio", 1.5),
        ("outlier_failure_ratio", -0.1),
        ("outlier_min_attempts", 0),
        ("outlier_window_secs", 0.0),
        ("outlier_ejection_secs", 0.0),
    ],
)
def test_a_setting_out_of_range_is_named(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        ReliabilityConfig(**{name: value})  # type: ignore[arg-type]


async def test_an_outlier_is_left_out_shown_and_asked_again_when_it_is_the_last() -> None:
    rules = GatewayRules(
        reliability=ReliabilityConfig(cb_failure_threshold=1_000, outlier_min_attempts=10)
    )
    rng = random.Random(1)

    def often_broken(request: Recorded) -> list[Step]:
        return json_answer({}, 500) if rng.random() < 0.8 else good_answer(request)

    async with (
        ScriptedWorker() as good,
        ScriptedWorker(script=often_broken) as odd,
        small_gateway([good, odd], rules=rules) as gateway,
    ):
        choice, name = gateway.gateway.choice, f"127.0.0.1:{odd.port}"
        while choice.breaker_of(name) != "ejected":
            assert (await gateway.chat()).status == 200
        before = len(odd.requests)
        assert before >= 10
        for _ in range(20):
            assert (await gateway.chat()).status == 200
        assert len(odd.requests) == before
        shown = await gateway.counter("radixgate_worker_breaker", worker=name, state="ejected")
        assert shown == 1
        assert await gateway.counter("radixgate_ejections_total") == 1
        await gateway.put(f"/workers/{good.url}", {"state": "paused"})
        await gateway.chat()
        assert len(odd.requests) > before

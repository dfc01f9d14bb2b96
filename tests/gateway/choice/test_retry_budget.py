"""Retries are a share of the requests, and workers that ask for it are left alone."""

import random

import pytest

from clocks import FakeClock
from radixgate.gateway.choice.retry_budget import RetryBudget
from radixgate.gateway.choice.spared import LONGEST_REST_S, Spared
from radixgate.gateway.loop.deadlines import Deadlines
from radixgate.gateway.observe.metrics import GatewayMetrics


class Traffic:
    """Requests and retries over fake time."""

    def __init__(self, ratio: float = 0.2) -> None:
        self.clock = FakeClock()
        self.deadlines = Deadlines(self.clock)
        self.metrics = GatewayMetrics(lambda: [])
        self.budget = RetryBudget(ratio, self.metrics, self.clock, self.deadlines)

    def requests(self, number: int) -> None:
        self.metrics.attempts += number

    def retries(self) -> int:
        made = 0
        while self.budget.allows() and made < 10_000:
            self.metrics.retries += 1
            self.metrics.attempts += 1
            made += 1
        return made

    def seconds(self, number: int) -> None:
        for _ in range(number):
            self.clock.advance(1.0)
            self.deadlines.sweep()


def test_small_traffic_may_retry_a_hundred_times_in_ten_seconds() -> None:
    traffic = Traffic()
    assert traffic.retries() == 100
    traffic.seconds(9)
    assert traffic.retries() == 0
    traffic.seconds(1)
    assert traffic.retries() == 100


def test_of_many_requests_a_share_may_be_retried() -> None:
    traffic = Traffic()
    traffic.requests(5_000)
    assert traffic.retries() == 1_000
    traffic.seconds(5)
    traffic.requests(500)
    assert traffic.retries() == 100
    traffic.seconds(5)
    assert traffic.retries() == 0
    traffic.seconds(5)
    assert traffic.retries() == 100


def test_a_ratio_of_nought_leaves_the_hundred() -> None:
    traffic = Traffic(ratio=0)
    traffic.requests(5_000)
    assert traffic.retries() == 100


def test_a_worker_rests_as_long_as_it_asks_but_not_for_ever() -> None:
    clock = FakeClock()
    spared = Spared(0.0, clock, random.Random(1))
    assert not spared.drawn()
    spared.rest("w", 2.0)
    spared.rest("v", 9_999.0)
    assert spared.drawn() == {"w", "v"}
    clock.advance(2.0)
    assert (spared.drawn(), spared.rest_s("w")) == ({"v"}, 0.0)
    clock.advance(LONGEST_REST_S)
    assert not spared.drawn()


def test_a_shorter_rest_does_not_end_a_longer_one() -> None:
    clock = FakeClock()
    spared = Spared(0.0, clock, random.Random(1))
    spared.rest("w", 30.0)
    clock.advance(10.0)
    spared.rest("w", 0.105)
    assert spared.rest_s("w") == pytest.approx(20.0)
    spared.rest("w", 25.0)
    assert spared.rest_s("w") == pytest.approx(25.0)


def test_a_returned_worker_s_share_grows_to_the_whole() -> None:
    clock = FakeClock()
    spared = Spared(10.0, clock, random.Random(1))
    spared.returned("w")
    shares = []
    for _ in range(4):
        clock.advance(2.5)
        shares.append(sum("w" not in spared.drawn() for _ in range(400)) / 400)
    assert [round(share * 4) for share in shares] == [1, 2, 3, 4]
    assert shares[-1] == 1.0


def test_without_slow_start_nobody_is_spared() -> None:
    spared = Spared(0.0, FakeClock(), random.Random(1))
    spared.returned("w")
    assert not spared.drawn()

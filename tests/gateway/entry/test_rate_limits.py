"""Token buckets of tenants."""

import pytest

from clocks import FakeClock
from radixgate.errors import TooManyRequests
from radixgate.gateway.attempt.attempt import AnswerCounts
from radixgate.gateway.entry.rate_limits import Bucket, RateLimits
from radixgate.gateway.settings.keys_file import TenantLimits
from radixgate.gateway.settings.limits_config import LimitsConfig


def limits(clock: FakeClock, **own: TenantLimits) -> RateLimits:
    flags = LimitsConfig(tenant_requests_per_minute=2, tenant_tokens_per_minute=1_000)
    return RateLimits(flags, own, clock)


def test_a_minute_s_worth_may_come_at_once_and_then_as_it_fills() -> None:
    clock = FakeClock()
    rates = limits(clock)
    rates.take(None, 4, clock.now())
    rates.take(None, 4, clock.now())
    with pytest.raises(TooManyRequests, match="requests a minute") as caught:
        rates.take(None, 4, clock.now())
    assert caught.value.retry_after_s == pytest.approx(30)
    clock.advance(30)
    rates.take(None, 4, clock.now())


def test_tenants_do_not_share() -> None:
    clock = FakeClock()
    rates = limits(clock, red=TenantLimits(requests_per_minute=1))
    rates.take("red", 4, clock.now())
    with pytest.raises(TooManyRequests):
        rates.take("red", 4, clock.now())
    rates.take(None, 4, clock.now())


def test_an_answer_s_tokens_are_charged_when_it_is_over() -> None:
    clock = FakeClock()
    rates = limits(clock, red=TenantLimits(requests_per_minute=100))
    charged = rates.take("red", 400, clock.now())
    rates.settle("red", charged, AnswerCounts(prompt=90, cached=80, completion=1_510))
    with pytest.raises(TooManyRequests, match="tokens a minute") as caught:
        rates.take("red", 400, clock.now())
    assert caught.value.retry_after_s == pytest.approx(700 * 60 / 1_000)
    clock.advance(42.1)
    rates.take("red", 400, clock.now())


def test_an_answer_without_counts_costs_what_its_prompt_was_guessed_at() -> None:
    clock = FakeClock()
    rates = limits(clock, red=TenantLimits(requests_per_minute=100))
    rates.settle("red", rates.take("red", 2_000, clock.now()), None)
    rates.take("red", 2_000, clock.now())
    with pytest.raises(TooManyRequests):
        rates.take("red", 400, clock.now())


def test_a_prompt_larger_than_the_bucket_passes_a_full_one() -> None:
    clock = FakeClock()
    limits(clock).take(None, 1_000_000, clock.now())


def test_what_is_refused_is_not_charged() -> None:
    clock = FakeClock()
    rates = limits(clock)
    for _ in range(2):
        rates.take(None, 4, clock.now())
    for _ in range(50):
        with pytest.raises(TooManyRequests):
            rates.take(None, 4, clock.now())
    clock.advance(30)
    rates.take(None, 4, clock.now())


def test_what_the_tokens_refuse_costs_no_request() -> None:
    clock = FakeClock()
    rates = limits(clock, red=TenantLimits(requests_per_minute=2))
    rates.take("red", 4_000, clock.now())
    for _ in range(5):
        with pytest.raises(TooManyRequests, match="tokens a minute"):
            rates.take("red", 400, clock.now())
    clock.advance(6.1)
    rates.take("red", 400, clock.now())


def test_without_limits_there_is_nothing_to_look_at() -> None:
    assert not RateLimits(LimitsConfig(), {"red": TenantLimits()}, FakeClock()).any


def test_time_before_a_change_of_the_rate_has_filled_at_the_old_one() -> None:
    bucket = Bucket(60, now=0)
    assert bucket.take(60, now=0) == 0
    bucket.resize(6_000, now=30)
    assert bucket.take(31, now=30) == pytest.approx(0.01)
    assert bucket.take(30, now=30) == 0


def test_a_bucket_that_is_made_smaller_keeps_no_more_than_its_new_minute() -> None:
    bucket = Bucket(60, now=0)
    bucket.resize(6, now=0)
    assert bucket.take(6, now=0) == 0
    assert bucket.take(1, now=0) == pytest.approx(10)

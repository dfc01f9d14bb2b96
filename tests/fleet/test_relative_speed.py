"""Workers count as equally fast until enough comparable steps say otherwise."""

import random
import statistics
from collections.abc import Callable
from dataclasses import replace

import pytest

from books import Books, report
from radixgate.fleet.load_report import PrefillSpeed
from radixgate.fleet.relative_speed import (
    REMEMBERED_S,
    ComparableSteps,
    TypicalSpeeds,
    relative_speed,
)
from radixgate.policies.base import Candidates, Choice, RouteRequest

Speed = Callable[[int], float]  # of a worker, by the tokens of a step: tokens a second


class Keen:
    """Takes the first, and shows the speeds that policies are given."""

    def __init__(self) -> None:
        self.speeds: dict[str, float | None] = {}

    def choose(self, request: RouteRequest, candidates: Candidates) -> Choice:
        self.speeds = dict(zip(candidates.ids, candidates.prefill_tokens_per_s, strict=True))
        return Choice(0, "first", lambda: [0.0] * len(candidates))


class Reporters:
    """Workers that compute steps of their own sizes and report each."""

    def __init__(self, *workers: tuple[Speed, range], seed: int = 0, sigma: float = 0.0) -> None:
        self._rng, self._sigma, self._policy = random.Random(seed), sigma, Keen()
        self._names = [f"w{n}" for n in range(len(workers))]
        self._workers = dict(zip(self._names, workers, strict=True))
        self._books = Books(*self._names, policy=self._policy)
        self._totals = dict.fromkeys(self._names, (0, 0))
        for name in self._names:
            self._books.fleet.report_load(name, report())

    def speeds(self) -> list[float | None]:
        self._books.lease("x")
        return [self._policy.speeds[name] for name in self._names]

    def round(self) -> None:
        """A step and a report of each, a second apart from the last."""
        self._books.clock.advance(1.0)
        for name in self._names:
            speed, sizes = self._workers[name]
            tokens = self._rng.choice(sizes)
            noise = self._rng.lognormvariate(0.0, self._sigma)
            took_us = int(1e6 * noise * tokens / speed(tokens))
            total, busy_us = self._totals[name]
            total, busy_us = self._totals[name] = total + tokens, busy_us + took_us
            told = report(prefill_tokens_total=total, prefill_busy_us_total=busy_us)
            self._books.fleet.report_load(name, told)


def by_size(per_token_us: float) -> Speed:
    """10 ms a step and so long a token: what is asked decides how fast a worker seems."""
    return lambda tokens: 1e6 * tokens / (10_000 + per_token_us * tokens)


SIZES = range(130, 4_096)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sigma", [0.0, 0.5, 1.0])
def test_equal_workers_with_noisy_reports_stay_equal(seed: int, sigma: float) -> None:
    fleet = Reporters(*[(by_size(50.0), SIZES)] * 4, seed=seed, sigma=sigma)
    fleet.speeds()
    for _ in range(100):
        fleet.round()
        assert len(set(fleet.speeds()) - {None}) == 1


@pytest.mark.parametrize("seed", range(5))
def test_workers_that_are_asked_different_things_stay_equal(seed: int) -> None:
    short, long = range(130, 250), range(3_000, 4_000)
    workers = [(by_size(50.0), short), (by_size(50.0), short), (by_size(50.0), long)]
    fleet = Reporters(*workers, seed=seed, sigma=0.3)
    fleet.speeds()
    for _ in range(100):
        fleet.round()
        assert len(set(fleet.speeds()) - {None}) == 1


@pytest.mark.parametrize("fellows", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_one_that_is_three_times_slower_is_found_within_sixty_reports(
    seed: int, fellows: int
) -> None:
    fast, slow = (lambda tokens: 9_000.0), (lambda tokens: 3_000.0)
    sizes = range(512, 600)
    workers = [(fast, sizes)] * fellows + [(slow, sizes)]
    fleet = Reporters(*workers, seed=seed, sigma=0.3)
    fleet.speeds()
    for _ in range(60):
        fleet.round()
    *usual, found = fleet.speeds()
    assert len(set(usual)) == 1
    assert found is not None
    assert usual[0] is not None
    assert found / usual[0] == pytest.approx(1 / 3, rel=0.25)


def test_the_speed_of_all_is_the_median_of_what_is_measured() -> None:
    fleet = Reporters(*[((lambda tokens, n=n: 1_000.0 * n), range(200, 300)) for n in (4, 5, 6)])
    for _ in range(3):
        fleet.round()
    assert fleet.speeds() == pytest.approx([5_000.0] * 3, rel=0.01)


@pytest.mark.parametrize(
    ("ratios", "speed"),
    [
        pytest.param([0.3] * 31, 1.0, id="too-few-steps"),
        pytest.param([0.3] * 32, 0.3, id="enough"),
        pytest.param([3.0] * 32, 3.0, id="faster"),
        pytest.param([0.51] * 64, 1.0, id="less-than-twice-as-slow"),
        pytest.param([0.3] * 56 + [1.2] * 8, 0.3, id="seven-of-eight-on-one-side"),
        pytest.param([0.3] * 55 + [1.2] * 9, 1.0, id="one-less"),
        pytest.param([3.0] * 55 + [0.9] * 9, 1.0, id="one-less-of-a-faster-one"),
    ],
)
def test_the_rule(ratios: list[float], speed: float) -> None:
    assert relative_speed(ratios) == speed


@pytest.mark.parametrize(
    ("tokens", "busy_us", "running", "told"),
    [
        pytest.param(128, 1_000, 0, 1, id="long-enough"),
        pytest.param(127, 1_000, 0, 0, id="too-short"),
        pytest.param(400, 1_000, 100, 1, id="mostly-prompt"),
        pytest.param(399, 1_000, 100, 0, id="much-decoding-beside"),
        pytest.param(400, 0, 0, 0, id="no-time"),
    ],
)
def test_only_steps_that_are_mostly_prompt_count(
    tokens: int, busy_us: int, running: int, told: int
) -> None:
    steps = ComparableSteps()
    steps.add(tokens, busy_us, running, 0.0)
    assert len(steps) == told


def slow_by_three() -> ComparableSteps:
    steps = ComparableSteps()
    for _ in range(40):
        steps.add(512, 3_000, 0, 0.0)
    return steps


FELLOW = {(512).bit_length(): 512 / 1_000}


def settle(steps: ComparableSteps, *fellows: dict[int, float], now: float = 0.0) -> None:
    everyone = TypicalSpeeds()
    for place, typical in enumerate(fellows, 1):
        everyone.enter(place, typical)
    steps.settle(everyone, 0, now)


def test_what_is_old_counts_no_more() -> None:
    steps = slow_by_three()
    settle(steps, FELLOW, now=REMEMBERED_S)
    assert steps.relative == pytest.approx(1 / 3)
    settle(steps, FELLOW, now=REMEMBERED_S + 1.0)
    assert (steps.relative, len(steps)) == (1.0, 0)


def test_sizes_that_no_other_worker_has_had_are_not_compared() -> None:
    steps = slow_by_three()
    settle(steps, {}, {5: 0.1})
    assert steps.relative == 1.0


def test_a_worker_that_began_anew_is_like_the_others_again() -> None:
    speed = PrefillSpeed()
    for n in range(1, 42):
        told = report(prefill_tokens_total=512 * n, prefill_busy_us_total=3_000 * n)
        speed.add(told, 0.0)
    settle(speed.steps, FELLOW)
    assert speed.steps.relative == pytest.approx(1 / 3)
    speed.add(replace(report(), instance_id="another"), 0.0)
    assert speed.steps.relative == 1.0
    assert not len(speed.steps)


def test_steps_are_bounded() -> None:
    steps = ComparableSteps()
    for _ in range(1_000):
        steps.add(512, 1_000, 0, 0.0)
    assert len(steps) == 64
    settle(steps)
    assert statistics.median(steps.typical.values()) == pytest.approx(0.512)

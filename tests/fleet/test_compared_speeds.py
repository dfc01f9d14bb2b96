"""Speeds that are kept up from report to report are those of a look at all workers."""

import random
import statistics
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from books import report
from radixgate.fleet.compared_speeds import ComparedSpeeds
from radixgate.fleet.load_report import LoadReport, PrefillSpeed
from radixgate.fleet.relative_speed import TypicalSpeeds

Entered = list[tuple[int, dict[int, float]]]
typical = st.dictionaries(st.integers(7, 9), st.sampled_from([0.1, 0.2, 0.3]) | st.floats(0.1, 9.0))


@given(entered=st.lists(st.tuples(st.integers(0, 4), typical), max_size=12))
def test_what_is_usual_is_the_median_of_what_each_worker_entered_last(entered: Entered) -> None:
    everyone = TypicalSpeeds()
    for place, speeds in entered:
        everyone.enter(place, speeds)
    expected = {}
    for size in range(7, 10):
        known = [speeds[size] for speeds in dict(entered).values() if size in speeds]
        if len(known) > 1:
            expected[size] = statistics.median_high(known)
    assert everyone.usual(range(7, 10)) == expected


class Anew:
    """The same, but each comparison looks at all workers."""

    def __init__(self, workers: list[PrefillSpeed]) -> None:
        self._workers = workers
        self._compared_at = [float("-inf")] * len(workers)
        self.column: list[float | None] = [None] * len(workers)

    def heard(self, place: int, now: float) -> None:
        speed = self._workers[place]
        if now - self._compared_at[place] >= 5.0:
            self._compared_at[place] = now
            everyone = TypicalSpeeds()
            for other, one in enumerate(self._workers):
                everyone.enter(other, one.steps.typical)
            speed.steps.settle(everyone, place, now)
        elif (self.column[place] is None) == (speed.tokens_per_s is None):
            return
        measured = [one.tokens_per_s for one in self._workers if one.tokens_per_s]
        usual = statistics.median(measured) if measured else 0.0
        self.column = [
            usual * one.steps.relative if one.tokens_per_s else None for one in self._workers
        ]


def life(rng: random.Random, number: int, us_a_token: float) -> list[LoadReport]:
    """The reports of a worker, one after the other."""
    tokens = busy_us = 0
    told = []
    for _ in range(rng.randrange(20, 200)):
        told.append(replace(report(), instance_id=str(number), prefill_tokens_total=tokens))
        told[-1] = replace(told[-1], prefill_busy_us_total=busy_us)
        step = rng.choice((150, 400, 900))
        tokens += step
        busy_us += int(step * us_a_token * rng.uniform(0.8, 1.2))
    return told


@pytest.mark.parametrize("seed", range(4))
def test_a_column_kept_up_is_one_made_anew(seed: int) -> None:
    """Of five workers that report at random and begin anew; one is four times slower."""
    rng = random.Random(seed)
    kept_by, anew_by = ([PrefillSpeed() for _ in range(5)] for _ in range(2))
    kept, anew = ComparedSpeeds(kept_by), Anew(anew_by)
    lives: list[list[LoadReport]] = [[] for _ in range(5)]
    now, differed = 0.0, 0
    for number in range(500):
        now += rng.choice((0.1, 1.0))
        place = rng.randrange(5)
        if not lives[place]:
            lives[place] = life(rng, number, 400.0 if place == 0 else 100.0)
        told = lives[place].pop(0)
        for workers, speeds in ((kept_by, kept), (anew_by, anew)):
            workers[place].add(told, now)
            speeds.heard(place, now)
        assert list(kept.column) == anew.column
        differed += len(set(anew.column) - {None}) > 1
    assert differed > 50

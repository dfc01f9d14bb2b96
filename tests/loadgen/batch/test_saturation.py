"""The search for how many requests in flight a fleet can use, against fleets with known answers."""

from collections.abc import Callable

import pytest

from radixgate.loadgen.batch.saturation import Saturation


def searched(rate_of: Callable[[int], float], start: int, highest: int) -> Saturation:
    """Answers of 10 tokens come at `rate_of(in flight)` a second until the search is over."""
    search = Saturation(start, highest, window_s=2.0)
    now_s = 0.0
    for _ in range(100_000):
        if search.settled:
            return search
        now_s += 1.0 / rate_of(search.in_flight)
        search.note(now_s, 10)
    raise AssertionError("the search does not end")


@pytest.mark.parametrize(
    ("full_at", "start", "kept"),
    [
        pytest.param(32, 4, 32, id="a-power-of-the-start"),
        pytest.param(40, 4, 64, id="between-two-steps"),
        pytest.param(1, 4, 4, id="full-from-the-start"),
        pytest.param(10_000, 4, 256, id="never-full"),
    ],
)
def test_it_stops_where_doubling_yields_no_more(full_at: int, start: int, kept: int) -> None:
    search = searched(lambda in_flight: 5.0 * min(in_flight, full_at), start, 256)
    assert search.in_flight == kept
    assert search.refused_at is None
    assert f"keeps {kept} requests in flight" in search.table()


def test_steps_tell_what_each_number_yielded() -> None:
    search = searched(lambda in_flight: 5.0 * min(in_flight, 8), 4, 256)
    assert [step.in_flight for step in search.steps] == [4, 8, 16]
    assert [round(step.rate) for step in search.steps] == [200, 400, 400]
    assert search.table().splitlines()[2].split() == ["8", "40.00", "400.0", "+100%"]


def test_more_in_flight_that_yields_less_is_taken_back() -> None:
    search = searched(lambda in_flight: 100.0 / in_flight, 2, 64)
    assert search.in_flight == 2


def test_a_refusal_halves_once_and_ends_the_search() -> None:
    search = Saturation(32, 256, window_s=2.0)
    search.note_refusal()
    search.note_refusal()
    assert (search.in_flight, search.settled, search.refused_at) == (16, True, 32)


def test_a_given_number_is_kept() -> None:
    search = Saturation.fixed(7)
    for now_s in range(100):
        search.note(float(now_s), 10)
    assert (search.in_flight, search.steps) == (7, [])


def test_without_token_counts_answers_are_counted() -> None:
    search = Saturation(1, 2, window_s=1.0)
    for place in range(200):
        search.note(0.1 * place, 0)
    assert search.steps[0].rate == pytest.approx(10.0, rel=0.1)
    assert search.table().splitlines()[1].split()[2] == "-"

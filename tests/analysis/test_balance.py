"""How evenly workers are loaded, in numbers with known ends."""

import pytest

from radixgate.analysis.balance import FleetPoll, balance_of, fleet_balance
from request_records import record


@pytest.mark.parametrize(
    ("amounts", "max_over_mean", "jain"),
    [
        pytest.param([5.0, 5.0, 5.0, 5.0], 1.0, 1.0, id="even"),
        pytest.param([8.0, 0.0, 0.0, 0.0], 4.0, 0.25, id="one-for-all"),
        pytest.param([3.0, 1.0], 1.5, 0.8, id="uneven"),
    ],
)
def test_even_and_uneven(amounts: list[float], max_over_mean: float, jain: float) -> None:
    found = balance_of(amounts)
    assert found is not None
    assert found.max_over_mean == pytest.approx(max_over_mean)
    assert found.jain == pytest.approx(jain)


def test_nothing_to_share_out_has_no_balance() -> None:
    assert balance_of([]) is None
    assert balance_of([0.0, 0.0]) is None


def poll(at_s: float, **in_flight: int) -> FleetPoll:
    return FleetPoll(at_s, in_flight, {}, {})


def test_a_worker_that_got_nothing_counts() -> None:
    records = [record((1.0, 1), cached=40, worker="a"), record((1.0, 1), cached=90, worker="a")]
    found = fleet_balance(records, [poll(0.0, a=2, b=0), poll(0.5, a=1, b=1), poll(1.0, a=0, b=0)])
    assert found.requests == {"a": 2, "b": 0}
    assert found.uncached_tokens == {"a": 70, "b": 0}
    assert found.of_requests is not None
    assert found.of_requests.max_over_mean == pytest.approx(2.0)
    assert found.mean_in_flight == {"a": pytest.approx(1.0), "b": pytest.approx(1 / 3)}
    # Averaged over the two moments with work: 2 and 1.
    assert found.over_time is not None
    assert found.over_time.max_over_mean == pytest.approx(1.5)


def test_what_is_not_told_is_absent() -> None:
    found = fleet_balance([record((1.0, 1), worker="a")], [])
    assert found.uncached_tokens == {}
    assert found.of_uncached_tokens is None
    assert found.over_time is None
    assert found.mean_in_flight == {}

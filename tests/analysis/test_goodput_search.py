"""The search finds the rate at which a known fleet stops keeping its objective."""

import pytest

from radixgate.analysis.goodput_search import GoodputSearch


def searched(limit: float, *, n: int = 1000, low: float = 1.0, high: float = 64.0) -> GoodputSearch:
    """Up to `limit` all requests are good, over it 80 % are."""
    search = GoodputSearch(low, high, target=0.95, precision=0.05, repeats=3)
    for _ in range(100):
        rate = search.next_rate()
        if rate is None:
            return search
        search.note(n if rate <= limit else int(0.8 * n), n)
    raise AssertionError("the search does not end")


@pytest.mark.parametrize("limit", [1.0, 3.0, 8.0, 13.7, 63.0])
def test_it_ends_within_its_precision_below_the_limit(limit: float) -> None:
    search = searched(limit)
    assert search.holds is not None
    assert search.fails is not None
    assert search.holds <= limit < search.fails
    assert search.fails / search.holds <= 1.05 + 1e-3


def test_a_fleet_that_fails_at_once_and_one_that_never_does() -> None:
    assert (searched(0.5).holds, searched(0.5).fails) == (None, 1.0)
    assert (searched(100.0).holds, searched(100.0).fails) == (64.0, None)


def test_what_does_not_decide_is_measured_again_and_then_the_share_does() -> None:
    search = GoodputSearch(1.0, 4.0, target=0.95, precision=0.05, repeats=3)
    for _ in range(2):
        assert search.note(96, 100).holds is None
        assert search.next_rate() == 1.0
    probe = search.note(96, 100)
    assert (probe.holds, probe.certain, probe.runs, probe.offered) == (True, False, 3, 300)
    assert search.next_rate() == 2.0


def test_a_finished_search_takes_no_more() -> None:
    search = searched(0.5)
    with pytest.raises(ValueError, match="over"):
        search.note(1, 1)

"""Who is ahead, and how surely, against figures that can be checked by hand."""

import math

import pytest

from radixgate.analysis.ranking import Estimate, Lead, estimate, leads, ranked

# Of three pieces of work, the second twice as heavy.
TIMES = {"slow": [40.0, 80.0, 42.0], "quick": [10.0, 20.0, 12.0], "middle": [21.0, 40.0, 26.0]}


def test_mean_spread_and_error_of_a_few_values() -> None:
    found = estimate([1.0, 2.0, 3.0, 6.0])
    assert found.mean == 3.0
    assert found.spread == pytest.approx(math.sqrt(14 / 3))
    assert found.error == pytest.approx(math.sqrt(14 / 3) / 2)


def test_one_value_has_no_spread() -> None:
    assert estimate([7.0]) == Estimate(7.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("values", "deviations"),
    [
        pytest.param([2.0, 4.0, 6.0], 2.0, id="mean-four-spread-two"),
        pytest.param([-2.0, -4.0, -6.0], -2.0, id="and-behind"),
        pytest.param([5.0, 5.0], math.inf, id="always-the-same"),
        pytest.param([0.0, 0.0], 0.0, id="no-difference-at-all"),
    ],
)
def test_a_mean_is_told_in_standard_deviations_of_one(
    values: list[float], deviations: float
) -> None:
    assert estimate(values).deviations == pytest.approx(deviations)


def test_the_lowest_mean_comes_first() -> None:
    assert ranked(TIMES) == ["quick", "middle", "slow"]


def test_a_lead_is_of_pairs_so_that_heavy_work_spreads_it_only_by_what_differs() -> None:
    assert leads(TIMES, ["quick", "middle", "slow"]) == [
        Lead("quick", "middle", estimate([11.0, 20.0, 14.0])),
        Lead("middle", "slow", estimate([19.0, 40.0, 16.0])),
    ]
    (wrong,) = leads(TIMES, ["middle", "quick"])
    assert wrong.by.mean == pytest.approx(-15.0)


def test_figures_of_different_work_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        leads({"a": [1.0], "b": [1.0, 2.0]}, ["a", "b"])

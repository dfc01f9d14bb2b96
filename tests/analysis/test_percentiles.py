"""Percentiles agree with numpy's, and say when they rest on too little."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.analysis.percentiles import percentile, spread_of, values_needed

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=200)


@given(values=VALUES, q=st.floats(0, 100))
def test_percentile_is_numpys(values: list[float], q: float) -> None:
    expected = float(np.percentile(values, q))
    assert percentile(sorted(values), q) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(values=VALUES)
def test_spread_describes_the_set(values: list[float]) -> None:
    spread = spread_of(values)
    assert spread is not None
    assert spread.n == len(values)
    assert spread.mean == pytest.approx(float(np.mean(values)), rel=1e-9, abs=1e-6)
    assert spread.std == pytest.approx(float(np.std(values)), rel=1e-6, abs=1e-6)
    assert (spread.min, spread.max) == (min(values), max(values))
    assert spread.p50 == pytest.approx(float(np.median(values)), rel=1e-9, abs=1e-6)


def test_nothing_has_no_spread() -> None:
    assert spread_of([]) is None


def test_percentile_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


@pytest.mark.parametrize("q", [-0.1, 100.1], ids=["below", "above"])
def test_percentile_out_of_range_is_an_error(q: float) -> None:
    with pytest.raises(ValueError, match="from 0 to 100"):
        percentile([1.0], q)


@pytest.mark.parametrize(
    ("q", "needed"),
    [pytest.param(50, 20, id="median"), pytest.param(99, 1000), pytest.param(99.9, 10_000)],
)
def test_values_needed_leaves_ten_above(q: float, needed: int) -> None:
    assert values_needed(q) == needed

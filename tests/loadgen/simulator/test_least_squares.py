"""Costs that are there are found, and none is below zero."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.loadgen.simulator.least_squares import least_squares

ROWS = [(1.0, float(rows), float(context)) for rows in (1, 2, 5, 9) for context in (10, 700, 4_000)]


@given(costs=st.tuples(st.floats(1e-3, 1.0), st.floats(1e-5, 1e-2), st.floats(1e-8, 1e-5)))
def test_exact_costs_are_found(costs: tuple[float, float, float]) -> None:
    values = [sum(c * x for c, x in zip(costs, row, strict=True)) for row in ROWS]
    assert least_squares(ROWS, values) == pytest.approx(costs, rel=1e-5)


def test_what_would_be_below_zero_is_nothing() -> None:
    rows = [(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]
    assert least_squares(rows, [3.0, 2.0, 1.0]) == pytest.approx([2.0, 0.0])
    assert least_squares(rows, [-1.0, -2.0, -3.0]) == [0.0, 0.0]


def test_a_column_that_others_make_up_is_left_out() -> None:
    rows = [(1.0, 2.0, 4.0), (1.0, 3.0, 6.0), (1.0, 7.0, 14.0)]
    found = least_squares(rows, [5.0, 7.0, 15.0])
    assert found[0] == pytest.approx(1.0)
    assert found[1] + 2.0 * found[2] == pytest.approx(2.0)

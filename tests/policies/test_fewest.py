"""Of some columns those with the least."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.policies.fewest import fewest


@pytest.mark.parametrize(
    ("among", "found"),
    [
        pytest.param([0, 1, 2, 3], [1, 3], id="all"),
        pytest.param([0, 2, 3], [3], id="some"),
        pytest.param([0, 2], [0], id="not-the-least-of-all"),
        pytest.param([2], [2], id="one"),
    ],
)
def test_those_with_the_least(among: Sequence[int], found: Sequence[int]) -> None:
    assert fewest([5, 2, 7, 2], among) == found


def test_equals_are_given_back_as_they_came() -> None:
    among = range(3)
    assert fewest([4, 4, 4], among) is among
    some = (0, 2)
    assert fewest([4, 1, 4], some) is some


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1))
def test_as_by_definition(rows: list[tuple[int, bool]]) -> None:
    column = [count for count, _ in rows]
    among = [index for index, (_, taken) in enumerate(rows) if taken] or [0]
    least = min(column[index] for index in among)
    assert list(fewest(column, among)) == [index for index in among if column[index] == least]

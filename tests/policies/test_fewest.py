"""Of some columns those with the least."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.policies.fewest import COMPILED, fewest, fewest_in_python

Function = Callable[[Sequence[int], Sequence[int]], Sequence[int]]
BOTH: list[Function] = [fewest_in_python, fewest] if COMPILED else [fewest_in_python]


@pytest.mark.parametrize("fewest", BOTH)
@pytest.mark.parametrize(
    ("among", "found"),
    [
        pytest.param([0, 1, 2, 3], [1, 3], id="all"),
        pytest.param([0, 2, 3], [3], id="some"),
        pytest.param([0, 2], [0], id="not-the-least-of-all"),
        pytest.param([2], [2], id="one"),
    ],
)
def test_those_with_the_least(fewest: Function, among: Sequence[int], found: Sequence[int]) -> None:
    assert fewest([5, 2, 7, 2], among) == found


@pytest.mark.parametrize("fewest", BOTH)
def test_equals_are_given_back_as_they_came(fewest: Function) -> None:
    among = range(3)
    assert fewest([4, 4, 4], among) is among
    some = (0, 2)
    assert fewest([4, 1, 4], some) is some


@pytest.mark.parametrize("fewest", BOTH)
def test_nobody_has_the_fewest_of_none(fewest: Function) -> None:
    with pytest.raises(ValueError, match=r"none|empty"):
        fewest([1, 2], [])


@pytest.mark.parametrize("fewest", BOTH)
def test_of_one_nothing_is_compared(fewest: Callable[..., object]) -> None:
    assert fewest(5, [0]) == [0]


@pytest.mark.parametrize("fewest", BOTH)
@pytest.mark.parametrize(
    ("args", "error"),
    [
        pytest.param(([1],), TypeError, id="too-few"),
        pytest.param((1, [0, 1]), TypeError, id="no-column"),
        pytest.param((1, []), TypeError, id="no-column-for-none"),
        pytest.param(([1, 2], 1), TypeError, id="no-indices"),
        pytest.param(([1, 2, 3], [0, 7]), IndexError, id="an-index-that-is-none"),
        pytest.param(([1, "two", 3], [0, 1]), TypeError, id="what-has-no-order"),
    ],
)
def test_what_is_no_column_is_refused(
    fewest: Callable[..., object], args: tuple[object, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        fewest(*args)


NAN = float("nan")
ODD = st.sampled_from([None, NAN, float("nan"), 0.0, -0.0, 1.5, 2.0, float("-inf"), 2, 2**70, "a"])


def outcome(function: Callable[..., object], *args: object) -> object:
    """What it returns, or the type of what it raises."""
    try:
        return repr(function(*args))
    except Exception as error:
        return type(error)


@given(st.lists(st.tuples(ODD, st.booleans()), min_size=1))
def test_what_is_no_number_and_what_is_none_are_the_same_in_both(
    rows: list[tuple[object, bool]],
) -> None:
    column = [value for value, _ in rows]
    among = [index for index, (_, taken) in enumerate(rows) if taken]
    assert len({outcome(function, column, among) for function in BOTH}) == 1


@pytest.mark.parametrize("fewest", BOTH)
def test_who_has_nothing_that_can_be_compared_is_refused(fewest: Callable[..., object]) -> None:
    with pytest.raises(TypeError):
        fewest([None, None], [0, 1])


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1))
def test_as_by_definition(rows: list[tuple[int, bool]]) -> None:
    column = [count for count, _ in rows]
    among = [index for index, (_, taken) in enumerate(rows) if taken] or [0]
    least = min(column[index] for index in among)
    expected = [index for index in among if column[index] == least]
    for function in BOTH:
        assert list(function(column, among)) == expected

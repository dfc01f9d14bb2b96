"""The costs of candidates, compiled and in Python: the same to the bit."""

import random
from array import array
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.policies.cheapest import (
    COMPILED,
    Cheapest,
    Weights,
    cheapest,
    cheapest_in_python,
)

Function = Callable[..., Cheapest]
BOTH: list[Function] = [cheapest_in_python, cheapest] if COMPILED else [cheapest_in_python]
compiled = pytest.mark.skipif(not COMPILED, reason="it was installed without a compiler")
WEIGHTS = Weights(stall=0.5, crowd=2.0)


@pytest.mark.parametrize("cheapest", BOTH)
def test_what_is_left_is_weighed_by_the_mean_of_the_requests(cheapest: Function) -> None:
    costs, least, equals, warmest, holders = cheapest(
        WEIGHTS, 1_000, [0, 300, 0], [600, 900, 600], [2, 2, 2], [1_000.0, 1_000.0, 400.0], {}
    )
    # (waiting + (1,000 - cached) x (1 + 0.5 x 2)) / speed
    assert list(array("d", costs)) == [0.8, 0.5, 2.0]
    assert (least, equals, warmest, holders) == (0.5, [1], 1, 1)


@pytest.mark.parametrize("cheapest", BOTH)
def test_what_differs_by_two_percent_and_a_millisecond_is_equal(cheapest: Function) -> None:
    cached = [900, 898, 896, 898, 0]
    _, least, equals, warmest, holders = cheapest(
        WEIGHTS, 1_000, [0] * 5, cached, [0] * 5, [1_000.0] * 5, {}
    )
    assert (least, equals, warmest, holders) == (0.1, [0, 1, 3], 0, 1)
    _, least, equals, warmest, holders = cheapest(
        WEIGHTS, 1_000, [50, 0, 0, 0, 0], cached, [0] * 5, [1_000.0] * 5, {}
    )
    assert (equals, warmest, holders) == ([1, 2, 3], 1, 3)


@pytest.mark.parametrize("cheapest", BOTH)
def test_a_full_pool_costs_seconds(cheapest: Function) -> None:
    costs, _, equals, _, _ = cheapest(
        WEIGHTS, 1_000, (0, 0), (0, 0), (0, 0), (1_000.0, 1_000.0), {0: 2.5}
    )
    assert list(array("d", costs)) == [3.5, 1.0]
    assert equals == [1]


@pytest.mark.parametrize("cheapest", BOTH)
def test_the_last_token_of_a_prompt_is_always_computed(cheapest: Function) -> None:
    costs, *_ = cheapest(WEIGHTS, 10, [0, 0], [10, 70], [0, 0], [1.0, 1.0], {})
    assert list(array("d", costs)) == [1.0, 1.0]


@pytest.mark.parametrize("cheapest", BOTH)
def test_nobody_is_the_cheapest_of_none(cheapest: Function) -> None:
    with pytest.raises(ValueError, match=r"^nobody is the cheapest of none$"):
        cheapest(WEIGHTS, 10, [], [], [], [], {})


@compiled
@given(seed=st.integers(0, 2**32), count=st.integers(1, 200))
def test_compiled_it_is_the_same_to_the_bit(seed: int, count: int) -> None:
    draw = random.Random(seed)
    most = draw.choice((1, 3, 40, 1_000))
    prompt = draw.choice((1, 100, 32_768))
    weights = Weights(draw.uniform(0.0, 1.0), draw.choice((0.0, 2.0)))
    args = (
        weights,
        prompt,
        [draw.choice((0, 0, draw.randrange(100_000))) for _ in range(count)],
        tuple([draw.randrange(prompt + 2) for _ in range(count)]),
        [draw.randrange(most) for _ in range(count)],
        [draw.choice((1_000.0, draw.uniform(100.0, 20_000.0))) for _ in range(count)],
        {draw.randrange(count): draw.uniform(0.0, 5.0)} if draw.random() < 0.3 else {},
    )
    assert cheapest(*args) == cheapest_in_python(*args)


@compiled
@pytest.mark.parametrize(
    ("args", "error"),
    [
        pytest.param((WEIGHTS, 10, [0], [0], [0], [1.0]), TypeError, id="too-few"),
        pytest.param((None, 10, [0], [0], [0], [1.0], {}), TypeError, id="no-weights"),
        pytest.param((WEIGHTS[:8], 10, [0], [0], [0], [1.0], {}), IndexError, id="too-few-weights"),
        pytest.param((WEIGHTS, 10, [], [0], [0], [1.0], {}), IndexError, id="a-shorter-column"),
        pytest.param((WEIGHTS, 10, [None], [0], [0], [1.0], {}), TypeError, id="no-number"),
        pytest.param((WEIGHTS, 10, 0, [0], [0], [1.0], {}), TypeError, id="no-column"),
        pytest.param((WEIGHTS, 10, [0], 0, [0], [1.0], {}), TypeError, id="no-cached-column"),
        pytest.param((WEIGHTS, 10, [0], [0], [0], ["fast"], {}), TypeError, id="no-speed"),
        pytest.param((WEIGHTS, 10, [0], [0], [0], [1.0], {"w": 1.0}), TypeError, id="no-index"),
        pytest.param((WEIGHTS, 10, [0], [0], [0], [1.0], []), TypeError, id="no-pressure"),
    ],
)
def test_what_are_no_columns_is_refused(args: tuple[object, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        cheapest(*args)  # type: ignore[arg-type]

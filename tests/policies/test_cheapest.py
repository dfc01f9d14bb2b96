"""The costs of candidates, compiled and in Python: the same to the bit."""

import math
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
def test_a_part_of_a_token_is_computed_as_a_whole_one(cheapest: Function) -> None:
    costs, *_ = cheapest(WEIGHTS, 10, [0, 0], [9.5, 8.5], [0, 0], [1.0, 1.0], {})
    assert list(array("d", costs)) == [1.0, 1.5]


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


# What differs from a plain question of two candidates, and how it is refused.
PLAIN: dict[str, object] = {
    "weights": WEIGHTS,
    "prompt_tokens": 10,
    "waiting": [0, 0],
    "cached": [0, 0],
    "requests": [0, 0],
    "speeds": [1.0, 1.0],
    "pressure_s": {},
}
NO_WEIGHTS = r"^weights are finite and not below zero$"
UNEQUAL = r"^the columns are of unequal lengths$"
NO_REQUESTS = r"^requests are finite and not below zero$"
NO_SPEED = r"^speeds are finite and over zero$"
NO_COST = r"^costs are finite and not below zero$"


@pytest.mark.parametrize("cheapest", BOTH)
@pytest.mark.parametrize(
    ("odd", "error"),
    [
        ({"weights": WEIGHTS._replace(stall=math.inf)}, NO_WEIGHTS),
        ({"weights": WEIGHTS._replace(crowd=math.nan)}, NO_WEIGHTS),
        ({"weights": WEIGHTS._replace(equal_share=-0.5)}, NO_WEIGHTS),
        ({"weights": WEIGHTS._replace(few=0.0)}, r"^few is over zero$"),
        ({"waiting": []}, UNEQUAL),
        ({"waiting": [0, 0, 0]}, UNEQUAL),
        ({"cached": [0]}, UNEQUAL),
        ({"cached": range(2**60)}, UNEQUAL),
        ({"requests": (0, 0, 9)}, UNEQUAL),
        ({"speeds": [1.0]}, UNEQUAL),
        ({"cached": [0, math.nan]}, r"^what is cached is finite$"),
        ({"requests": [-5, -5]}, NO_REQUESTS),
        ({"requests": [0, math.inf]}, NO_REQUESTS),
        ({"speeds": [1.0, 0.0]}, NO_SPEED),
        ({"speeds": [-1, 1]}, NO_SPEED),
        ({"speeds": [math.nan, 1.0]}, NO_SPEED),
        ({"speeds": [1.0, math.nan]}, NO_SPEED),
        ({"speeds": [1.0, math.inf]}, NO_SPEED),
        ({"prompt_tokens": math.inf}, NO_COST),
        ({"waiting": [0, math.nan]}, NO_COST),
        ({"waiting": [-1_000, 0]}, NO_COST),
        ({"weights": WEIGHTS._replace(stall=1e308), "requests": [9, 9]}, NO_COST),
        ({"pressure_s": {0: math.nan}}, NO_COST),
        ({"pressure_s": {-1: 1.0}}, r"^pressure is on none of them$"),
        ({"pressure_s": {2: 1.0}}, r"^pressure is on none of them$"),
    ],
)
def test_what_has_no_cost_is_refused(
    cheapest: Function, odd: dict[str, object], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        cheapest(*(PLAIN | odd).values())


@pytest.mark.parametrize("cheapest", BOTH)
@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"prompt_tokens": "10"}, id="no-prompt"),
        pytest.param({"waiting": [0, None]}, id="no-number"),
        pytest.param({"waiting": "ab"}, id="text"),
        pytest.param({"waiting": 0}, id="no-column"),
        pytest.param({"cached": 0}, id="no-cached-column"),
        pytest.param({"requests": iter([0, 0])}, id="no-length"),
        pytest.param({"speeds": ["fast", "slow"]}, id="no-speed"),
        pytest.param({"pressure_s": {"w": 1.0}}, id="no-index"),
        pytest.param({"pressure_s": {0: "much"}}, id="no-seconds"),
    ],
)
def test_what_are_no_numbers_is_refused(cheapest: Function, odd: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        cheapest(*(PLAIN | odd).values())


ODD = [0, 1, 10, -1, 0.5, -0.0, 1e308, 5e-324, math.inf, -math.inf, math.nan]


@compiled
@given(seed=st.integers(0, 2**32))
def test_compiled_odd_numbers_come_to_the_same(seed: int) -> None:
    draw = random.Random(seed)

    def column(usual: float) -> list[float]:
        return [draw.choice(ODD) if draw.random() < 0.1 else usual for _ in range(3)]

    args = (
        WEIGHTS._replace(crowd=draw.choice(ODD)) if draw.random() < 0.1 else WEIGHTS,
        draw.choice(ODD) if draw.random() < 0.1 else 10,
        *(column(usual) for usual in (0, 5, 2, 100.0)),
        {draw.randrange(-1, 4): draw.choice(ODD)} if draw.random() < 0.2 else {},
    )
    assert outcome(cheapest, args) == outcome(cheapest_in_python, args)


def outcome(function: Function, args: tuple[object, ...]) -> Cheapest | None:
    """None: it refuses; of several faults each names the one that it meets first."""
    try:
        return function(*args)
    except ValueError:
        return None


@compiled
@pytest.mark.parametrize(
    "args",
    [
        pytest.param((WEIGHTS, 10, [0], [0], [0], [1.0]), id="too-few"),
        pytest.param((None, 10, [0], [0], [0], [1.0], {}), id="no-weights"),
        pytest.param((WEIGHTS[:8], 10, [0], [0], [0], [1.0], {}), id="too-few-weights"),
        pytest.param(((*WEIGHTS, 1.0), 10, [0], [0], [0], [1.0], {}), id="too-many-weights"),
        pytest.param((WEIGHTS, 10, [0], [0], [0], [1.0], []), id="no-pressure"),
    ],
)
def test_other_arguments_are_refused(args: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        cheapest(*args)  # type: ignore[arg-type]


class Changing:
    """Empties the column that it stands in when it is read."""

    def __init__(self, column: list[object]) -> None:
        self._column = column

    def __float__(self) -> float:
        self._column.clear()
        return 1.0


@compiled
def test_nobody_s_code_runs_while_a_column_is_read() -> None:
    speeds: list[object] = []
    speeds += [Changing(speeds), 1.0]
    with pytest.raises(TypeError, match=r"^what costs is told in ints and floats$"):
        cheapest(*(PLAIN | {"speeds": speeds}).values())  # type: ignore[arg-type]
    assert len(speeds) == 2

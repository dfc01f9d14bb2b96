"""What depths are worth, compiled and in Python."""

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.policies.in_tokens import in_tokens, in_tokens_in_python

InTokens = Callable[[Sequence[int], int, int], Sequence[int]]


@given(depths=st.lists(st.integers(0, 600)), block=st.integers(1, 2**20), most=st.integers(0, 600))
def test_compiled_depths_are_worth_the_same(depths: list[int], block: int, most: int) -> None:
    depths += depths[-1:]  # the same object twice
    assert list(in_tokens(depths, block, most)) == in_tokens_in_python(depths, block, most)


@pytest.mark.parametrize("of", [in_tokens, in_tokens_in_python])
def test_a_prompts_last_token_is_never_worth_anything(of: InTokens) -> None:
    assert list(of((3, 0, 2, 3), 16, 2)) == [32, 0, 32, 32]


@pytest.mark.parametrize("of", [in_tokens, in_tokens_in_python])
@pytest.mark.parametrize(
    ("args", "error"),
    [
        pytest.param(([1], 64), TypeError, id="too-few"),
        pytest.param((1, 64, 3), TypeError, id="no-depths"),
        pytest.param(([1], "w", 3), TypeError, id="no-block"),
        pytest.param(([1], 64, "w"), TypeError, id="no-most"),
        pytest.param(([1, "w"], 64, 3), TypeError, id="no-depth"),
        pytest.param(([1], 64, -3), ValueError, id="fewer-than-none"),
        pytest.param(([1], -64, 3), ValueError, id="a-block-of-fewer"),
        pytest.param(([1, -1], 64, 3), ValueError, id="a-depth-below-zero"),
        pytest.param(([1, -(2**70)], 64, 3), ValueError, id="far-below"),
        pytest.param(([2**40], 2**40, 2**62), OverflowError, id="tokens-beyond-any-prompt"),
        pytest.param(([1], 0, 2**64), OverflowError, id="blocks-beyond"),
        pytest.param(([1], 2**64, 0), OverflowError, id="a-block-beyond"),
    ],
)
def test_what_is_no_depth_is_worth_nothing(
    of: Callable[..., object], args: tuple[object, ...], error: type[Exception]
) -> None:
    with pytest.raises(error):
        of(*args)


ODD = st.sampled_from(
    [None, float("nan"), 0.0, 1.5, float("inf"), -1, -1.5, 2**62, 2**70, True, "a", 3, 64]
)


def outcome(of: Callable[..., object], *args: object) -> object:
    """What it returns, or the type of what it raises."""
    try:
        return repr(of(*args))
    except Exception as error:
        return type(error)


@given(depths=st.lists(ODD), block=ODD, most=ODD)
def test_what_is_not_of_whole_numbers_is_the_same_in_both(
    depths: list[object], block: object, most: object
) -> None:
    args = depths, block, most
    assert outcome(in_tokens, *args) == outcome(in_tokens_in_python, *args)


@pytest.mark.parametrize("of", [in_tokens, in_tokens_in_python])
def test_half_a_block_is_worth_half_as_much(of: Callable[..., object]) -> None:
    assert of([0.5, 3, 2.5], 64, 2) == [32.0, 128, 128]


@pytest.mark.parametrize("of", [in_tokens, in_tokens_in_python])
def test_however_deep_only_so_much_counts(of: InTokens) -> None:
    assert list(of([2**70, 1], 16, 3)) == [48, 16]
    assert list(of([5], 1, 2**62)) == [5]

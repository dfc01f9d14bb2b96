"""Walks, compiled and in Python: the same depths, and the same who lean on another table."""

import random
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.radix_mirror.walk import (
    Depths,
    FallOffs,
    Lookup,
    enter_all,
    enter_all_in_python,
    fall_offs,
    falls_in_python,
    fill,
    fill_in_python,
    without,
    without_in_python,
)

IDS = [2**64 - 1, 2, 3, 4]
Without = Callable[[Lookup, int, Sequence[int]], Sequence[int]]


def test_who_falls_where_and_who_leans() -> None:
    first = {IDS[0]: 0b1111, 2: 0b0011, 3: 0b1111}
    second = {2: 0b0100, 3: 0b0001, 4: 0b0001}
    depths = [0, 0, 0, 0]
    # The last falls at the second block; that it has the third helps nobody who looks along.
    assert fill(depths, [first.get, second.get], 0b1111, IDS) == 0b0101
    assert depths == [4, 3, 3, 1]


def test_where_they_fall_is_told_with_who_is_left() -> None:
    first = {IDS[0]: 0b1111, 2: 0b0011, 3: 0b1111}
    second = {2: 0b0100, 3: 0b0001, 4: 0b0001}
    found = fall_offs([first.get, second.get], 0b1111, IDS, 10)
    assert found == FallOffs([(0b1000, 11), (0b0110, 13)], 0b0001, 0b0101)


class Prompt:
    """Blocks of which tables have some, for so many workers. Some tables are dictionaries."""

    def __init__(self, seed: int, workers: int) -> None:
        self.draw = draw = random.Random(seed)
        self.ids = [draw.getrandbits(64) for _ in range(draw.randrange(40))]
        self.everyone = (1 << workers) - 1
        self.alive = draw.choice((self.everyone, draw.getrandbits(workers), 1 << workers - 1))
        self.lookups: list[Lookup] = [self._table(workers) for _ in range(draw.randint(1, 4))]

    def _table(self, workers: int) -> Lookup:
        draw, table, mask = self.draw, dict[int, int](), self.everyone
        for block in self.ids:
            if draw.random() < 0.3:  # some fall, and in a hole all do
                mask &= draw.getrandbits(workers) | draw.getrandbits(workers)
            if draw.random() < 0.95:
                table[block] = mask
        # A new object each time, as a table may tell that is no dictionary.
        return draw.choice((table.get, lambda block, default: int(str(table.get(block, default)))))


PROMPTS = st.builds(
    Prompt, st.integers(0, 2**32), workers=st.sampled_from([1, 2, 8, 63, 64, 65, 130])
)


@given(prompt=PROMPTS)
def test_compiled_it_is_the_same(prompt: Prompt) -> None:
    found: Depths = [0] * prompt.everyone.bit_length()
    expected = found[:]
    case = prompt.lookups, prompt.alive, prompt.ids
    assert fill(found, *case) == fill_in_python(expected, *case)
    assert found == expected


@given(prompt=PROMPTS, start=st.integers(0, 2**40))
def test_compiled_they_fall_at_the_same_depths(prompt: Prompt, start: int) -> None:
    case = prompt.lookups, prompt.alive, prompt.ids, start
    assert fall_offs(*case) == FallOffs(*falls_in_python(*case))


@given(prompt=PROMPTS, start=st.integers(0, 2**40))
def test_compiled_they_are_entered_alike(prompt: Prompt, start: int) -> None:
    fell = fall_offs(prompt.lookups, prompt.alive, prompt.ids, start)
    found: Depths = [0] * prompt.everyone.bit_length()
    expected = found[:]
    enter_all(found, fell.falls, fell.left, 2**50)
    enter_all_in_python(expected, fell.falls, fell.left, 2**50)
    assert found == expected


def test_who_fell_and_who_is_left_are_entered() -> None:
    depths = [0] * 130
    enter_all(depths, [(1 << 129 | 0b10, 7), (0b100, 0)], 1 << 70, 9)
    assert [(at, depth) for at, depth in enumerate(depths) if depth] == [(1, 7), (70, 9), (129, 7)]


@given(prompt=PROMPTS, place=st.integers(0, 130))
def test_compiled_a_worker_lacks_the_same(prompt: Prompt, place: int) -> None:
    case = prompt.lookups[0], 1 << place, prompt.ids
    found = without(*case)
    assert found == without_in_python(*case)
    assert found == [block for block in prompt.ids if not prompt.lookups[0](block, 0) >> place & 1]


@pytest.mark.parametrize("of", [without, without_in_python])
def test_what_is_lacked_whole_is_not_copied(of: Without) -> None:
    assert of({2: 0b10}.get, 0b01, IDS) is IDS
    assert of({2: 0b10}.get, 0b10, IDS) == [IDS[0], 3, 4]


@pytest.mark.parametrize(
    ("args", "error"),
    [
        pytest.param(([0], [{}.get], 1), TypeError, id="too-few"),
        pytest.param(((0,), [{}.get], 1, IDS), TypeError, id="depths-that-cannot-be-entered"),
        pytest.param(([0], [], 1, IDS), ValueError, id="no-table"),
        pytest.param(([0], 1, 1, IDS), TypeError, id="no-tables"),
        pytest.param(([0], [{}.get], 2**64, IDS), OverflowError, id="too-many-workers"),
        pytest.param(([0], [{}.get], -1, IDS), OverflowError, id="no-mask"),
        pytest.param(([0] * 65, [{}.get], -1, [1]), OverflowError, id="nor-of-many"),
        pytest.param(([0] * 65, [{}.get], 1, 7), TypeError, id="no-blocks-for-many"),
        pytest.param(([0] * 65, [{1: 2**65}.get], 2**65, [1]), IndexError, id="nor-a-place"),
        pytest.param(([0], [{}.get], 0b10, IDS), IndexError, id="a-worker-without-a-place"),
        pytest.param(([0], [{}.get], 1, 7), TypeError, id="no-blocks"),
        pytest.param(([0], [{IDS[0]: "w"}.get], 1, IDS), TypeError, id="a-table-of-no-masks"),
        pytest.param(([0], [{}.__getitem__], 1, IDS), TypeError, id="no-lookup"),
    ],
)
def test_what_is_no_walk_is_refused(args: tuple[object, ...], error: type[Exception]) -> None:
    compiled = pytest.importorskip("radixgate.radix_mirror.walk_compiled")
    with pytest.raises(error):
        compiled.fill(*args)


@pytest.mark.parametrize(
    ("args", "error"),
    [
        pytest.param(([{}.get], 1, IDS), TypeError, id="too-few"),
        pytest.param(([], 1, IDS, 0), ValueError, id="no-table"),
        pytest.param((1, 1, IDS, 0), TypeError, id="no-tables"),
        pytest.param(([{}.get], "w", IDS, 0), TypeError, id="no-mask"),
        pytest.param(([{}.get], 1, 7, 0), TypeError, id="no-blocks"),
        pytest.param(([{}.get], 1, IDS, "start"), TypeError, id="no-depth"),
        pytest.param(([{IDS[0]: "w"}.get], 1, IDS, 0), TypeError, id="a-table-of-no-masks"),
        pytest.param(([{}.get, {IDS[0]: "w"}.get], 1, IDS, 0), TypeError, id="nor-another"),
        pytest.param(([{}.__getitem__], 1, IDS, 0), TypeError, id="no-lookup"),
        pytest.param(([{}.get], 1, [[]], 0), TypeError, id="a-block-that-is-none"),
    ],
)
def test_nor_is_such_told_where_they_fall(args: tuple[object, ...], error: type[Exception]) -> None:
    compiled = pytest.importorskip("radixgate.radix_mirror.walk_compiled")
    with pytest.raises(error):
        compiled.fall_offs(*args)


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(({}.get, 1), id="too-few"),
        pytest.param(({}.get, "w", IDS), id="no-worker"),
        pytest.param(({}.get, 1, 7), id="no-blocks"),
        pytest.param(({IDS[0]: "w"}.get, 1, IDS), id="a-table-of-no-masks"),
        pytest.param((7, 1, IDS), id="no-lookup"),
    ],
)
def test_nor_what_is_lacked(args: tuple[object, ...]) -> None:
    compiled = pytest.importorskip("radixgate.radix_mirror.walk_compiled")
    with pytest.raises(TypeError):
        compiled.without(*args)


@pytest.mark.parametrize(
    ("args", "error"),
    [
        pytest.param(([0], [], 1), TypeError, id="too-few"),
        pytest.param(((0,), [], 1, 4), TypeError, id="depths-that-cannot-be-entered"),
        pytest.param(([0], 7, 1, 4), TypeError, id="no-falls"),
        pytest.param(([0], [(1,)], 1, 4), TypeError, id="half-a-fall"),
        pytest.param(([0], [1], 1, 4), TypeError, id="no-pair"),
        pytest.param(([0], [("w", 1)], 1, 4), TypeError, id="no-mask"),
        pytest.param(([0], [(1, "d")], 1, 4), TypeError, id="no-depth"),
        pytest.param(([0], [[1, 1]], 1, 4), TypeError, id="a-pair-that-may-change"),
        pytest.param(([0], [], 0b10, 4), IndexError, id="a-worker-without-a-place"),
        pytest.param(([0], [(2**90, 1)], 0, 4), OverflowError, id="a-worker-far-beyond"),
        pytest.param(([0], [(-1, 1)], 0, 4), OverflowError, id="a-mask-of-nobody"),
    ],
)
def test_nor_is_such_entered(args: tuple[object, ...], error: type[Exception]) -> None:
    compiled = pytest.importorskip("radixgate.radix_mirror.walk_compiled")
    with pytest.raises(error):
        compiled.enter_all(*args)

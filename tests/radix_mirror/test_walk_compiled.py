"""The walk, compiled and in Python: the same depths, and the same who lean on another table."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.radix_mirror.walk import fill, fill_in_python

IDS = [2**64 - 1, 2, 3, 4]


def test_who_falls_where_and_who_leans() -> None:
    first = {IDS[0]: 0b1111, 2: 0b0011, 3: 0b1111}
    second = {2: 0b0100, 3: 0b0001, 4: 0b0001}
    depths = [0, 0, 0, 0]
    # The last falls at the second block; that it has the third helps nobody who looks along.
    assert fill(depths, [first.get, second.get], 0b1111, IDS) == 0b0101
    assert depths == [4, 3, 3, 1]


@given(seed=st.integers(0, 2**32), workers=st.sampled_from([1, 2, 8, 63, 64, 65, 130]))
def test_compiled_it_is_the_same(seed: int, workers: int) -> None:
    draw = random.Random(seed)
    ids = [draw.getrandbits(64) for _ in range(draw.randrange(40))]
    everyone = (1 << workers) - 1
    tables: list[dict[int, int]] = [{} for _ in range(draw.randint(1, 4))]
    for table in tables:
        mask = everyone
        for block in ids:
            if draw.random() < 0.3:  # some fall, and in a hole all do
                mask &= draw.getrandbits(workers) | draw.getrandbits(workers)
            if draw.random() < 0.95:
                table[block] = mask
    alive = draw.choice((everyone, draw.getrandbits(workers)))
    lookups = [table.get for table in tables]
    found, expected = [0] * workers, [0] * workers
    assert fill(found, lookups, alive, ids) == fill_in_python(expected, lookups, alive, ids)
    assert found == expected


@pytest.mark.parametrize(
    ("args", "error"),
    [
        pytest.param(([0], [{}.get], 1), TypeError, id="too-few"),
        pytest.param(((0,), [{}.get], 1, IDS), TypeError, id="depths-that-cannot-be-entered"),
        pytest.param(([0], [], 1, IDS), ValueError, id="no-table"),
        pytest.param(([0], 1, 1, IDS), TypeError, id="no-tables"),
        pytest.param(([0], [{}.get], 2**64, IDS), OverflowError, id="too-many-workers"),
        pytest.param(([0], [{}.get], -1, IDS), OverflowError, id="no-mask"),
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

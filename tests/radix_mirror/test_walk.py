"""Both walks along a prompt find the same, where workers hold beginnings of it."""

from hypothesis import given
from hypothesis import strategies as st

from radixgate.radix_mirror.walk import fill, fill_without_holes


@given(
    length=st.integers(0, 40),
    depths=st.lists(st.integers(0, 40), max_size=6),
    strangers=st.integers(0, 3),
)
def test_each_worker_falls_where_its_beginning_ends(
    length: int, depths: list[int], strangers: int
) -> None:
    ids = [100 + place for place in range(length)]
    held: dict[int, int] = {}
    for place, depth in enumerate(depths):
        for block in ids[:depth]:
            held[block] = held.get(block, 0) | 1 << place
    # Masks also name workers that are not asked for.
    alive = (1 << len(depths)) - 1 >> min(strangers, len(depths))
    expected = [
        min(depth, length) if alive >> place & 1 else 0 for place, depth in enumerate(depths)
    ]
    found = [0] * len(depths)
    fill_without_holes(found, held.get, alive, ids)
    assert found == expected
    if alive:
        found = [0] * len(depths)
        fill(found, [held.get], alive, ids)
        assert found == expected


def test_a_block_is_held_if_any_table_says_so_and_a_hole_ends_it() -> None:
    first = {1: 0b111, 2: 0b001, 3: 0b111}
    second = {2: 0b010, 4: 0b011}
    found = [0, 0, 0]
    fill(found, [first.get, second.get], 0b111, [1, 2, 3, 4])
    assert found == [4, 4, 1]

"""Both walks along a prompt find the same, where workers hold beginnings of it."""

from hypothesis import given
from hypothesis import strategies as st

from radixgate.radix_mirror.walk import Falls, falls, falls_without_holes


def by_depth(found: Falls) -> dict[int, int]:
    assert [depth for depth, _ in found] == sorted({depth for depth, _ in found})
    assert all(mask for _, mask in found)
    return dict(found)


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
    expected: dict[int, int] = {}
    for place, depth in enumerate(depths):
        if alive >> place & 1:
            at = min(depth, length)
            expected[at] = expected.get(at, 0) | 1 << place
    assert by_depth(falls_without_holes(held.get, alive, ids)) == expected
    if alive:
        assert by_depth(falls([held.get], alive, ids)) == expected

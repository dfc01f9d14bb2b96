"""A known path is hopped over as a whole, and only who changed on it is looked for."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.radix_mirror.block_masks import BlockMasks
from radixgate.radix_mirror.claimed_pieces import ClaimedPieces
from radixgate.radix_mirror.pieces import Pieces
from radixgate.radix_mirror.tables import Tables
from radixgate.radix_mirror.walk import fill

SIZE = 2
WORKERS = 12
ALL = (1 << WORKERS) - 1
LONG = tuple(range(1, 14))
# They part behind the second piece, within the third, and behind the first block.
PROMPTS = (
    LONG,
    (*LONG[:4], *range(21, 28)),
    (*LONG[:5], *range(31, 38)),
    (1, *range(41, 48)),
    LONG[:6],
    tuple(range(51, 63)),
)


class Bench:
    """Twelve workers, one table, and a count of the pieces that are known by their last block."""

    def __init__(self, most_blocks: int = 1_000) -> None:
        self.pieces = Pieces(SIZE, most_blocks, hop_pieces=2)
        self.table = BlockMasks(self.pieces)
        self.tables = Tables([self.table.lookup], ClaimedPieces(SIZE))

    def depths(self, ids: Sequence[int] = LONG) -> list[int]:
        found = [0] * WORKERS
        self.pieces.fill(found, self.tables, ALL, ids)
        self.pieces.check(self.tables, ALL)
        return found

    def hops(self, ids: Sequence[int] = LONG) -> bool:
        """Whether a walk looks at no piece by itself."""
        for piece in self.pieces._pieces.values():
            piece.walked = False
        self.depths(ids)
        return not any(piece.walked for piece in self.pieces._pieces.values())


def bench_of(*held: int, most_blocks: int = 1_000) -> Bench:
    """So many blocks of the long prompt are held by the workers in turn; it is known by now."""
    bench = Bench(most_blocks)
    for place, blocks in enumerate(held):
        bench.table.add(1 << place, LONG[:blocks])
    for _ in range(4):
        assert bench.depths() == [*held] + [0] * (WORKERS - len(held))
    return bench


def test_the_fourth_walk_along_a_path_hops() -> None:
    bench = Bench()
    bench.table.add(1, LONG)
    # One remembers, one sees where they end, one keeps the path, one comes to each of its pieces.
    assert [bench.hops() for _ in range(6)] == [False, False, False, False, True, True]


def test_who_changed_is_looked_for_and_the_path_is_hopped_over() -> None:
    bench = bench_of(13, 7, 3)
    bench.table.drop(0b1, [9])
    bench.table.add(0b10, [8])
    assert bench.hops()
    assert bench.depths()[:3] == [8, 8, 3]
    bench.table.add(0b1, [9])
    assert bench.hops()
    assert bench.depths()[:3] == [13, 8, 3]


def test_a_change_behind_where_a_worker_fell_is_none() -> None:
    bench = bench_of(13, 3)
    bench.table.add(0b10, LONG[6:])
    assert bench.hops()
    assert bench.depths()[:2] == [13, 3]
    bench.table.add(0b10, LONG[3:6])
    assert bench.depths()[:2] == [13, 13]


@pytest.mark.parametrize(("changed", "hops"), [(8, True), (9, False)])
def test_of_more_than_a_few_that_changed_the_path_is_walked(changed: int, hops: bool) -> None:
    bench = bench_of(*[13] * WORKERS)
    for place in range(changed):
        bench.table.drop(1 << place, [5])
    assert bench.hops() is hops
    assert bench.depths() == [4] * changed + [13] * (WORKERS - changed)


def test_a_worker_that_came_in_the_place_of_another_is_looked_for() -> None:
    bench = bench_of(13, 13)
    held = dict.fromkeys(LONG, 0b1)
    bench.tables = Tables([lambda block, default: held.get(block, default)], ClaimedPieces(SIZE))
    bench.pieces.touch_all(0b10)
    assert bench.depths()[:2] == [13, 0]


def test_what_is_hopped_over_outlasts_what_nobody_comes_to() -> None:
    bench = bench_of(13, 13, most_blocks=40)
    for n in range(1, 60):
        other = tuple(range(100 * n, 100 * n + 4))
        bench.table.add(0b1, other)
        bench.depths(other)
        assert bench.depths()[:2] == [13, 13]
        assert bench.pieces._pieces.keys() >= set(LONG[1::SIZE])


def test_of_a_path_that_lost_a_piece_by_age_nothing_is_taken_for_known() -> None:
    bench = bench_of(13, 13, most_blocks=20)
    known, lasts = bench.pieces._pieces, LONG[1::SIZE]
    others = iter(range(100, 1_000))
    while known.keys() >= set(lasts):
        other = [next(others) for _ in range(SIZE)]
        bench.table.add(0b1, other * 2)
        bench.depths(other * 2)
    assert lasts[0] not in known
    assert lasts[-1] in known
    bench.table.drop(0b10, [1])
    assert bench.depths()[:2] == [13, 0]


def test_of_a_path_that_lost_a_piece_to_others_alike_nothing_is_taken_for_known() -> None:
    bench = bench_of(13, 13)
    for n in range(64):
        other = (1, 1_000 + n, 2_000 + n, 3_000 + n)
        bench.table.add(0b1, other)
        bench.depths(other)
    assert LONG[1] not in bench.pieces._pieces
    bench.table.drop(0b10, [2])
    assert bench.depths()[:2] == [13, 1]


def test_of_a_prompt_longer_than_all_that_is_remembered_each_change_is_seen() -> None:
    bench = Bench(most_blocks=8)
    bench.table.add(0b1, LONG)
    for walks in (1, 1, 2, 3, 4, 5, 6):
        bench.table.add(0b10, LONG[:1])
        assert [bench.depths()[:2] for _ in range(walks)] == [[13, 1]] * walks
        bench.table.drop(0b10, LONG[:1])
        assert [bench.depths()[:2] for _ in range(walks)] == [[13, 0]] * walks


def test_a_worker_that_leans_on_another_table_is_told_after_a_hop() -> None:
    bench = bench_of(13, 13)
    other = BlockMasks(bench.pieces)
    bench.tables = Tables([bench.table.lookup, other.lookup], ClaimedPieces(SIZE))
    other.add(0b10, LONG)
    bench.table.drop(0b10, [3, 11])
    for _ in range(2):
        assert bench.hops()
        found = [0] * WORKERS
        assert bench.pieces.fill(found, bench.tables, ALL, LONG) == 0b10
        assert found[:2] == [13, 13]
    bench.table.add(0b10, [11])
    assert bench.pieces.fill([0] * WORKERS, bench.tables, ALL, LONG) == 0b10
    bench.table.add(0b10, [3])
    assert bench.pieces.fill([0] * WORKERS, bench.tables, ALL, LONG) == 0


@given(
    steps=st.lists(
        st.tuples(
            st.sets(st.integers(0, WORKERS - 1), min_size=1, max_size=3),
            st.sampled_from(("add", "add", "drop", "nothing", "nothing")),
            st.sampled_from(PROMPTS),
            st.integers(0, 12),
            st.integers(1, 13),
            st.sampled_from(PROMPTS),
        ),
        max_size=60,
    ),
    size=st.integers(1, 2),
    most=st.integers(10, 60),
)
def test_whatever_changed_a_hop_ends_where_a_walk_along_all_blocks_does(
    steps: list[tuple[set[int], str, tuple[int, ...], int, int, tuple[int, ...]]],
    size: int,
    most: int,
) -> None:
    pieces = Pieces(size, most, hop_pieces=1)
    table, other = BlockMasks(pieces), BlockMasks(pieces)
    lookups = [table.lookup, other.lookup]
    tables = Tables(lookups, ClaimedPieces(size))
    table.add(0b1, LONG)
    for places, change, path, start, end, asked in steps:
        for place in places:
            held = other if place % 5 == 4 else table
            if change == "add":
                held.add(1 << place, path[start:end])
            elif change == "drop":
                held.drop(1 << place, path[start:end])
        expected, found = [0] * WORKERS, [0] * WORKERS
        leaning = fill(expected, lookups, ALL, asked)
        assert pieces.fill(found, tables, ALL, asked) == leaning
        assert found == expected
        pieces.check(tables, ALL)

"""A path keeps where it left everybody; its pieces tell who has to be looked for again."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.radix_mirror.block_masks import BlockMasks
from radixgate.radix_mirror.budget import DEPTH_BYTES, PATH_BYTES
from radixgate.radix_mirror.claimed_pieces import ClaimedPieces
from radixgate.radix_mirror.paths import Path, Paths
from radixgate.radix_mirror.piece import Piece
from radixgate.radix_mirror.pieces import Pieces
from radixgate.radix_mirror.tables import Tables
from radixgate.radix_mirror.walk import fill

SIZE = 2
WORKERS = 12
ALL = (1 << WORKERS) - 1
LONG = (1, 2, 3, 4, 5, 6, 7)
# They part behind the first piece, and within the second.
PROMPTS = (LONG, (1, 2, 11, 12, 13, 14), (1, 2, 3, 21, 22, 23), (1, 2))

NO_TABLES = Tables([lambda block, default: default], ClaimedPieces(SIZE))


class Counted:
    """A table that knows how often it was asked."""

    def __init__(self, table: BlockMasks) -> None:
        self._table = table
        self.asked = 0

    def lookup(self, block: int, default: int) -> int:
        self.asked += 1
        return self._table.get(block, default)


class Bench:
    """Twelve workers and one table."""

    def __init__(self, most_blocks: int = 1_000) -> None:
        self.pieces = Pieces(SIZE, most_blocks)
        self.table = BlockMasks(self.pieces)
        self.counted = Counted(self.table)
        self.tables = Tables([self.counted.lookup], ClaimedPieces(SIZE))

    def depths(self, ids: Sequence[int] = LONG) -> list[int]:
        found = [0] * WORKERS
        self.pieces.fill(found, self.tables, ALL, ids)
        return found

    def asked(self, ids: Sequence[int] = LONG) -> int:
        """How many blocks a walk looks at."""
        before = self.counted.asked
        self.depths(ids)
        return self.counted.asked - before


def bench_of(*held: int, most_blocks: int = 1_000) -> Bench:
    """So many blocks of the long prompt are held by the workers in turn."""
    bench = Bench(most_blocks)
    for place, blocks in enumerate(held):
        bench.table.add(1 << place, LONG[:blocks])
    return bench


def ended_before(block: int, walk: int) -> Piece:
    """A piece of one block, in which a walk ended."""
    return Piece([block], 0, walk, walk, was_last=True)


def test_who_has_not_changed_is_not_looked_for() -> None:
    bench = bench_of(*[6, 3, 1] * 4)
    assert bench.depths() == [6, 3, 1] * 4
    # What lies behind the last piece has no path: one block.
    assert [bench.asked() for _ in range(3)] == [1, 1, 1]
    assert bench.pieces.paths.bytes == PATH_BYTES + WORKERS * DEPTH_BYTES
    bench.table.drop(0b1, [6])
    bench.table.add(0b10, [4, 5])
    assert bench.asked() > 1
    assert bench.depths() == [5, 5, 1] + [6, 3, 1] * 3
    assert bench.asked() == 1


def test_a_change_that_another_walk_has_seen_is_news_to_this_one() -> None:
    bench = bench_of(6, 6)
    other = PROMPTS[1]
    bench.table.add(0b11, other)
    assert bench.depths()[:2] == [6, 6]
    assert bench.depths(other)[:2] == [6, 6]
    bench.table.drop(0b1, [2])
    assert bench.depths(other)[:2] == [1, 6]
    assert bench.depths()[:2] == [1, 6]


def test_a_crowd_that_falls_within_a_piece_has_its_depth_each_time() -> None:
    bench = bench_of(7, 7, *[3] * 10)
    assert bench.depths() == [7, 7] + [3] * 10
    assert bench.depths(LONG[:6]) == [6, 6] + [3] * 10  # by the pieces alone
    # One is looked for again and falls where it did; another holds one block more.
    bench.table.drop(1 << 4, [1])
    bench.table.add(1 << 4, [1])
    bench.table.add(1 << 5, [4])
    assert bench.depths() == [7, 7, 3, 3, 3, 4] + [3] * 6


def test_of_two_crowds_that_fall_within_a_piece_each_has_its_own_depth() -> None:
    held = [7, 7] + [2] * 5 + [3] * 5
    bench = bench_of(*held)
    for _ in range(3):
        assert bench.depths() == held
    # One of each is looked for again, for what it lost and got back in the piece before.
    for place in (2, 11):
        bench.table.drop(1 << place, [1])
        bench.table.add(1 << place, [1])
    assert bench.depths() == held


@pytest.mark.parametrize(
    ("changed", "asked"),
    [
        pytest.param(8, 8 * SIZE + 1, id="one-by-one"),
        pytest.param(9, SIZE + 1, id="all-at-once"),
    ],
)
def test_many_that_changed_are_looked_for_together(changed: int, asked: int) -> None:
    bench = bench_of(*[7] * WORKERS)
    for _ in range(3):
        bench.depths()
    for place in range(changed):
        bench.table.drop(1 << place, [2])
    assert bench.asked() == asked
    assert bench.depths() == [1] * changed + [7] * (WORKERS - changed)


def test_more_changes_than_a_piece_tells_apart_make_a_walk_begin_anew() -> None:
    bench = bench_of(*[6] * WORKERS)
    for _ in range(3):
        bench.depths()
    for place in range(11):
        bench.table.drop(1 << place, [2])
        bench.depths(LONG[:4])
    assert bench.depths() == [1] * 11 + [6]


def test_of_a_piece_that_was_forgotten_and_came_again_nothing_is_taken_for_known() -> None:
    bench = bench_of(6, 6, most_blocks=6)
    assert bench.depths()[:2] == [6, 6]
    away = (41, 42, 43, 44, 45, 46)
    bench.table.add(0b1, away)
    for _ in range(3):
        bench.depths(away)
    bench.table.drop(0b10, [2])
    assert bench.depths()[:2] == [6, 1]


def test_a_worker_that_is_asked_for_no_more_has_no_depth() -> None:
    bench = bench_of(6, 6)
    bench.depths()
    found = [0]
    bench.pieces.fill(found, bench.tables, 0b1, LONG)
    assert found == [6]


def test_beyond_the_bound_the_oldest_path_leaves() -> None:
    each = PATH_BYTES + DEPTH_BYTES
    paths = Paths(most_bytes=3 * each)
    for number in range(1, 6):
        paths.begin()
        piece = ended_before(number, paths.walk_number)
        paths.walk([piece], [0], NO_TABLES, 0b1)
        assert paths.bytes == min(number, 3) * each
    paths.walk([piece], [0], NO_TABLES, 0b1)
    assert paths.bytes == 3 * each
    paths.clear()
    assert paths.bytes == 0


def test_a_path_that_is_walked_again_outlasts_newer_ones() -> None:
    paths = Paths(most_bytes=3 * (PATH_BYTES + DEPTH_BYTES))

    def walked(number: int) -> Path:
        paths.begin()
        piece = ended_before(number, paths.walk_number)
        return paths.walk([piece], [0], NO_TABLES, 0b1)

    first, second, _ = walked(1), walked(2), walked(3)
    assert walked(1) is first
    walked(4)
    assert walked(1) is first
    assert walked(2) is not second


def test_a_path_that_is_larger_than_the_bound_is_kept_alone() -> None:
    paths = Paths(most_bytes=0)
    for number in (1, 2):
        piece = ended_before(number, 0)
        paths.walk([piece], [0], NO_TABLES, 0b1)
        assert paths.bytes == PATH_BYTES + DEPTH_BYTES


def test_where_one_walk_ended_no_path_is_kept_before_another_does() -> None:
    bench = bench_of(6, 6)
    paths = bench.pieces.paths
    bench.depths()  # knows no piece yet
    bench.depths()
    assert paths.bytes == 0
    bench.depths()
    assert paths.bytes == PATH_BYTES + DEPTH_BYTES * WORKERS
    bench.depths(LONG[:5])  # ends at another piece
    assert paths.bytes == PATH_BYTES + DEPTH_BYTES * WORKERS


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        pytest.param("depths", [6, 4] + [0] * 10, id="a-depth-that-the-piece-does-not-know"),
        pytest.param("through", 0b11, id="who-fell-did-not-come-through"),
        pytest.param("workers", 0, id="nobody-else-is-on-it"),
        pytest.param("walk", 9, id="no-walk-is-yet-to-come"),
    ],
)
def test_a_path_that_is_wrong_is_noticed(field: str, wrong: object) -> None:
    bench = bench_of(6, 5)
    for _ in range(3):
        bench.depths()
    bench.pieces.check(bench.tables, ALL)
    (path,) = bench.pieces.paths._paths.values()
    assert (path.through, path.depths[:2], path.walk) == (0b1, [0, 5], 3)
    setattr(path, field, wrong)
    with pytest.raises(AssertionError):
        bench.pieces.check(bench.tables, ALL)


@given(
    piece_blocks=st.integers(1, 2),
    steps=st.lists(
        st.tuples(
            st.sets(st.integers(0, WORKERS - 1), min_size=1, max_size=WORKERS),
            st.booleans(),
            st.sampled_from(PROMPTS),
            st.integers(0, 6),
            st.integers(1, 7),
            st.sampled_from(PROMPTS),
        ),
        max_size=40,
    ),
    most=st.integers(3, 30),
)
def test_whatever_changed_since_the_depths_are_those_of_a_walk_along_all_blocks(
    piece_blocks: int,
    steps: list[tuple[set[int], bool, tuple[int, ...], int, int, tuple[int, ...]]],
    most: int,
) -> None:
    pieces = Pieces(piece_blocks, most)
    table = BlockMasks(pieces)
    tables = Tables([table.lookup], ClaimedPieces(piece_blocks))
    for places, adds, path, start, end, asked in steps:
        for place in places:
            (table.add if adds else table.drop)(1 << place, path[start:end])
        expected, found = [0] * WORKERS, [0] * WORKERS
        leaning = fill(expected, [table.lookup], ALL, asked)
        assert pieces.fill(found, tables, ALL, asked) == leaning
        assert found == expected
        pieces.check(tables, ALL)

"""A walk that hops over what earlier walks went through finds what one along all blocks finds."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from radixgate.radix_mirror.block_masks import BlockMasks
from radixgate.radix_mirror.claimed_pieces import ClaimedPieces
from radixgate.radix_mirror.pieces import Pieces
from radixgate.radix_mirror.tables import Tables
from radixgate.radix_mirror.walk import fill

SIZE = 2
PROMPT = (1, 2, 3, 4, 5, 6, 7)
# Prompts part within a piece, between two, and after the first block.
PATHS = (PROMPT, (1, 2, 3, 8, 9, 10, 11), (1, 2, 12, 13, 14, 15), (1, 16, 17, 18, 19, 20))
A, B = 0b01, 0b10


class Bench:
    """Two workers, and two tables in which they may hold blocks."""

    def __init__(self, most_blocks: int = 1_000) -> None:
        self.pieces = Pieces(SIZE, most_blocks)
        self.first, self.second = BlockMasks(self.pieces), BlockMasks(self.pieces)
        self.tables = Tables([self.first.lookup, self.second.lookup], ClaimedPieces(SIZE))

    def depths(self, ids: Sequence[int] = PROMPT) -> list[int]:
        found = [0, 0]
        self.pieces.fill(found, self.tables, A | B, ids)
        self.pieces.check(self.tables, A | B)
        return found


def test_a_piece_that_nobody_holds_is_not_remembered() -> None:
    bench = Bench()
    assert bench.depths() == [0, 0]
    assert len(bench.pieces) == 0
    bench.first.add(A, PROMPT[:4])
    bench.first.add(B, PROMPT[:3])
    assert bench.depths() == [4, 3]
    assert len(bench.pieces) == 4


def test_who_comes_to_hold_a_block_is_looked_at_again() -> None:
    bench = Bench()
    bench.first.add(A, PROMPT[:5])
    bench.first.add(B, PROMPT[:1])
    assert bench.depths() == [5, 1]
    bench.second.add(B, PROMPT[1:])
    assert bench.depths() == [5, 7]
    bench.first.drop(B, PROMPT[:1])
    bench.first.drop(A, PROMPT[3:4])
    assert bench.depths() == [3, 0]
    bench.first.add(B, PROMPT[:1])
    assert bench.depths() == [3, 7]


def test_a_change_in_what_prompts_share_is_told_to_the_pieces_of_each() -> None:
    bench = Bench()
    for path in PATHS:
        bench.first.add(A, path)
    assert [bench.depths(path)[0] for path in PATHS] == [7, 7, 6, 6]
    bench.first.drop(A, [3])
    assert [bench.depths(path)[0] for path in PATHS] == [2, 2, 6, 6]
    bench.first.drop(A, [1])
    assert [bench.depths(path)[0] for path in PATHS] == [0, 0, 0, 0]


def test_a_worker_of_which_all_may_have_changed_is_looked_at_again() -> None:
    bench = Bench()
    bench.first.add(A, PROMPT)
    bench.first.add(B, PROMPT)
    assert bench.depths() == [7, 7]
    # Behind the pieces' back, as claims change: they tell of it afterwards.
    held = dict.fromkeys(PROMPT, A | B)
    bench.tables = Tables([lambda block, default: held.get(block, default)], ClaimedPieces(SIZE))
    held[4], held[6] = B, A
    bench.pieces.touch_all(A)
    bench.pieces.touch_from(B, PROMPT, 5)  # from the middle of a piece
    assert bench.depths() == [3, 5]


def test_who_leans_on_another_table_than_the_first_is_told() -> None:
    bench = Bench()
    bench.first.add(A, PROMPT)
    bench.first.add(B, PROMPT[:5])
    bench.second.add(B, PROMPT[5:6])
    bench.second.add(A, PROMPT)
    for _ in range(2):  # the second time by the piece
        assert bench.pieces.fill([0, 0], bench.tables, A | B, PROMPT) == B
    bench.first.add(B, PROMPT[5:6])
    assert bench.pieces.fill([0, 0], bench.tables, A | B, PROMPT) == 0


def test_what_a_worker_has_not_stored_is_what_its_mask_lacks() -> None:
    bench = Bench()
    bench.first.add(A, PROMPT)
    bench.first.add(B, (1, 2, 6))
    bench.depths()
    for _ in range(2):
        assert list(bench.pieces.missing(B, bench.first, PROMPT, 1)) == [3, 4, 5, 7]
        assert list(bench.pieces.missing(A, bench.first, PROMPT, 0)) == []
    bench.first.add(B, (4,))
    bench.first.drop(B, (6,))
    assert list(bench.pieces.missing(B, bench.first, PROMPT, 1)) == [3, 5, 6, 7]


def test_beyond_the_bound_what_no_walk_has_come_through_leaves() -> None:
    bench = Bench(most_blocks=6)
    often, once, new = (1, 2, 3, 4), (11, 12, 13, 14), (21, 22, 23, 24)
    for path in (often, once, new):
        bench.first.add(A, path)
    bench.depths(often)
    bench.depths(once[:2] * 2)
    assert len(bench.pieces) == 6
    bench.depths(often)
    bench.depths(new)
    assert len(bench.pieces) <= 6
    bench.depths(often)
    assert len(bench.pieces) <= 6


def test_prompts_that_part_in_one_piece_are_bounded_together() -> None:
    bench = Bench(most_blocks=50)
    for n in range(60):
        path = (1, 1_000 + n, 2_000 + n, 3_000 + n)
        bench.first.add(A, path)
        assert bench.depths(path) == [4, 0]
        assert len(bench.pieces) <= 50


def test_many_prompts_that_part_in_one_piece_are_found_anew() -> None:
    bench = Bench()
    paths = [(1, 1_000 + n, 2_000 + n, 3_000 + n) for n in range(200)]
    for path in paths:
        bench.first.add(A, path)
    for _ in range(2):
        assert [bench.depths(path)[0] for path in paths[::40]] == [4] * 5
    for path in paths:
        bench.pieces.fill([0, 0], bench.tables, A | B, path)
    bench.pieces.check(bench.tables, A | B)
    # Each of 200 has a piece of its own behind the parting, and a few have theirs where they part.
    assert 200 * SIZE < len(bench.pieces) < 300 * SIZE


def test_a_piece_that_outlived_the_one_before_it_is_looked_at_again() -> None:
    bench = Bench()
    paths = [(1, 1_000 + n, 2_000 + n, 3_000 + n) for n in range(65)]
    for path in paths:
        bench.first.add(A, path)
        bench.depths(path)
    # The last of so many that part in their first piece made the others' first ones leave.
    assert len(bench.pieces) == 65 * SIZE + SIZE
    bench.first.drop(A, [2_000])
    assert [bench.depths(paths[0]) for _ in range(4)] == [[2, 0]] * 4
    bench.first.add(A, [2_000])
    assert [bench.depths(paths[0]) for _ in range(4)] == [[4, 0]] * 4


@given(
    changes=st.lists(
        st.tuples(
            st.sampled_from([A, B]),
            st.booleans(),
            st.booleans(),
            st.sampled_from(PATHS),
            st.integers(0, 6),
            st.integers(1, 7),
        ),
        max_size=30,
    ),
    size=st.integers(1, 3),
    most=st.integers(3, 40),
)
def test_after_any_changes_both_walks_agree(
    changes: list[tuple[int, bool, bool, tuple[int, ...], int, int]], size: int, most: int
) -> None:
    bench = Bench()
    bench.pieces = Pieces(size, most)
    bench.first, bench.second = BlockMasks(bench.pieces), BlockMasks(bench.pieces)
    bench.tables = Tables([bench.first.lookup, bench.second.lookup], ClaimedPieces(size))
    for bit, into_first, adds, path, start, end in changes:
        table = bench.first if into_first else bench.second
        (table.add if adds else table.drop)(bit, path[start:end])
        for asked in PATHS:
            expected = [0, 0]
            leaning = fill(expected, bench.tables.lookups, A | B, asked)
            found = [0, 0]
            assert bench.pieces.fill(found, bench.tables, A | B, asked) == leaning
            assert found == expected
            for one in (A, B):
                lacks = [b for b in asked[1:] if not bench.first.get(b, 0) & one]
                assert list(bench.pieces.missing(one, bench.first, asked, 1)) == lacks
        bench.pieces.check(bench.tables, A | B)

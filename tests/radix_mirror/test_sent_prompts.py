"""Prompts that were sent are claimed by whole pieces, and block by block once that matters."""

from collections.abc import Sequence

import pytest

from clocks import FakeClock
from radixgate.proto.kv_events import KvEvent, Pending, Removed, Settled, Stored, Tier
from radixgate.radix_mirror.block_masks import BlockMasks
from radixgate.radix_mirror.claimed_pieces import ClaimedPieces
from radixgate.radix_mirror.claims import Claims
from radixgate.radix_mirror.mirror import Placement, RadixMirror
from radixgate.radix_mirror.pieces import Pieces
from radixgate.radix_mirror.sent_prompts import SentPrompts

SIZE = 4
PROMPT = list(range(1, 12))  # two pieces, and three blocks of a third


class Bench:
    """Two reporting workers and a clock."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.mirror = RadixMirror(self.clock, piece_blocks=SIZE)
        for worker in "ab":
            self.mirror.add_worker(worker)
            self.mirror.reset(worker, 1)

    def send(self, ids: Sequence[int] = PROMPT, worker: str = "a") -> Placement:
        held = self.mirror.depths(ids).get(worker, 0)
        placement = self.mirror.expect(worker, ids, 2.0, held)
        assert placement is not None
        self.mirror.check()
        return placement

    def report(self, *events: KvEvent) -> None:
        self.mirror.apply("a", 1, events)
        self.mirror.check()

    def depth(self, ids: Sequence[int] = PROMPT) -> int:
        self.mirror.check()
        return self.mirror.depths(ids).get("a", 0)

    def expected(self) -> int:
        return self.mirror.blocks_of("a").expected

    def in_pieces(self) -> int:
        return self.mirror.weight().in_pieces


def test_a_prompt_is_claimed_in_pieces_and_what_is_left_block_by_block() -> None:
    bench = Bench()
    placement = bench.send()
    assert (bench.in_pieces(), bench.mirror.weight().claimed, bench.expected()) == (8, 11, 11)
    assert bench.depth() == 11
    bench.mirror.withdraw(placement)
    bench.mirror.withdraw(placement)
    assert (bench.in_pieces(), bench.expected(), bench.depth()) == (0, 0, 0)


def test_a_piece_that_was_begun_counts_whole_until_its_worker_loses_some_of_it() -> None:
    bench = Bench()
    bench.report(Stored(0, PROMPT[:6]))
    bench.send()
    assert (bench.in_pieces(), bench.expected(), bench.depth()) == (4, 7, 11)
    bench.report(Removed([6]))
    assert (bench.in_pieces(), bench.expected(), bench.depth()) == (0, 5, 5)


def test_what_is_stored_meanwhile_is_not_expected_when_it_is_removed() -> None:
    bench = Bench()
    bench.send()
    bench.report(Stored(0, PROMPT[:6]))
    assert (bench.in_pieces(), bench.expected()) == (8, 11)
    bench.report(Removed([6, 5]))
    assert (bench.in_pieces(), bench.expected(), bench.depth()) == (0, 5, 4)


def test_blocks_of_other_prompts_may_leave_without_a_look_at_each_that_is_expected() -> None:
    bench = Bench()
    others = list(range(100, 120))
    bench.report(Stored(0, others))
    bench.send()
    bench.report(Removed(others[:5]), Stored(0, PROMPT[:6]))
    bench.send([*PROMPT[:4], *range(50, 60)])
    bench.report(Removed(others[5:9]))
    assert (bench.in_pieces(), bench.expected()) == (16, 21)
    bench.report(Removed([4]))
    assert (bench.in_pieces(), bench.expected(), bench.depth()) == (0, 15, 3)


def test_blocks_of_claims_that_are_over_are_not_listed_for_ever() -> None:
    pieces = Pieces(SIZE)
    sent = SentPrompts(Claims(pieces), pieces, BlockMasks(pieces))
    kept = sent.send(1, PROMPT, 0)
    longest = 0
    for first in range(1_000, 50_000, 100):
        over = sent.send(1, list(range(first, first + 80)), 0)
        sent.lose(1, [7_777_777])
        longest = max(longest, sent.one_by_one)
        sent.release(over)
        sent.check()
    assert 4_096 < longest < 5_000
    assert sent.blocks_in_pieces == 8
    sent.lose(1, [PROMPT[7]])
    assert (sent.blocks_in_pieces, sent.one_by_one) == (0, 11)
    sent.release(kept)
    assert sent.one_by_one == 0


def test_what_is_stored_elsewhere_than_on_the_device_is_not_expected_any_more() -> None:
    bench = Bench()
    bench.send()
    bench.report(Stored(0, PROMPT[:6], Tier.HOST))
    assert (bench.in_pieces(), bench.expected(), bench.depth()) == (0, 5, 11)
    bench.report(Removed(PROMPT[:6], Tier.HOST))
    assert bench.depth() == 0


def test_what_a_worker_forgets_as_it_begins_anew_stays_expected() -> None:
    bench = Bench()
    bench.report(Stored(0, PROMPT[:2]))
    bench.send()
    bench.mirror.reset("a", 2)
    assert (bench.depth(), bench.expected()) == (0, 9)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        pytest.param(0, 11, id="as-it-was-sent"),
        # Of which those in pieces count in these and one by one.
        pytest.param(3, 11 + 5, id="of-which-the-worker-has-more-than-was-known"),
    ],
)
def test_a_prompt_that_waits_outlasts_what_was_expected_of_it(start: int, expected: int) -> None:
    bench = Bench()
    bench.send()
    bench.report(Pending(7, 0, PROMPT[start:]))
    assert (bench.in_pieces(), bench.expected()) == (8, expected)
    bench.report(Stored(0, PROMPT[:start]))
    bench.clock.advance(2.0)
    assert bench.depth() == 11
    assert bench.in_pieces() == (8 if start == 0 else 0)
    bench.report(Settled(7))
    assert bench.depth() == start


def test_a_claim_is_seen_by_prompts_that_part_from_it_and_by_short_ones() -> None:
    bench = Bench()
    bench.send()
    bench.send([*PROMPT[:5], 80, 81, 82, 83], "b")
    assert bench.depth([*PROMPT[:6], 90, 91, 92, 93]) == 6
    assert bench.depth(PROMPT[:7]) == 7
    assert bench.depth(PROMPT[:3]) == 3
    assert bench.depth([*PROMPT[:2], 99]) == 2
    assert bench.mirror.depths([*PROMPT[:5], 80, 81])["b"] == 7


def test_prompts_that_part_in_one_piece_are_claimed_there_block_by_block_beyond_four() -> None:
    bench = Bench()
    prompts = [
        [*PROMPT[:2], 100 + n, 200 + n, *range(1_000 * n, 1_000 * n + 5)] for n in range(1, 7)
    ]
    sent = [bench.send(ids) for ids in prompts]
    assert [bench.depth(ids) for ids in prompts] == [9] * 6
    assert bench.in_pieces() == (4 + 6) * SIZE
    for placement in sent[:4]:
        bench.mirror.withdraw(placement)
    assert [bench.depth(ids) for ids in prompts] == [2] * 4 + [9] * 2
    bench.report(Removed([1]))
    assert [bench.depth(ids) for ids in prompts] == [2] * 4 + [9] * 2
    assert bench.expected() == 2 + 2 * 7


def test_a_prompt_that_is_stored_is_not_expected_though_its_time_has_not_come() -> None:
    bench = Bench()
    bench.send()
    bench.report(Pending(7, 0, PROMPT), Stored(0, PROMPT[:6]), Stored(6, [*PROMPT[6:], 90]))
    assert (bench.in_pieces(), bench.expected(), bench.depth()) == (0, 0, 11)
    bench.report(Removed(PROMPT[9:]))
    assert (bench.expected(), bench.depth()) == (0, 9)


def test_where_a_block_comes_twice_in_a_prompt_each_of_its_pieces_is_claimed() -> None:
    claimed = ClaimedPieces(2)
    twice = [1, 2, 3, 4, 1, 5]
    for prompt in (twice, [7, 8]):
        held = claimed.hold(0b1, prompt, 0)
        assert [(piece.start, piece.last) for piece in held] == [
            (at, prompt[at + 1]) for at in range(0, len(prompt), 2)
        ]
        claimed.drop(0b1, held[:1])
    assert (claimed.count(0b1), claimed.blocks, len(list(claimed.pieces()))) == (4, 4, 2)


def test_a_report_may_name_the_last_block_of_a_prompt_twice() -> None:
    bench = Bench()
    bench.send()
    bench.report(Stored(0, [*PROMPT, PROMPT[-1]]))
    assert (bench.in_pieces(), bench.expected(), bench.depth()) == (0, 0, 11)


def test_a_prompt_of_which_a_block_is_missing_is_expected_until_that_is_stored() -> None:
    bench = Bench()
    bench.send()
    bench.report(Stored(0, [*PROMPT[:3], *PROMPT[4:]]))
    assert (bench.in_pieces(), bench.depth()) == (8, 11)
    bench.report(Removed([11]))
    assert (bench.in_pieces(), bench.depth()) == (8, 10)
    bench.report(Removed([8]))
    assert (bench.in_pieces(), bench.expected(), bench.depth()) == (0, 1, 7)


@pytest.mark.parametrize("withdrawn", [pytest.param(0, id="first"), pytest.param(1, id="second")])
def test_two_claims_of_a_prompt_may_stand_for_other_pieces_of_it(withdrawn: int) -> None:
    """Of the first the piece 5 to 8 is claimed block by block, as four are alike in it."""
    bench = Bench()
    alike = [bench.send([*PROMPT[:5], n, n + 10, n + 20], "b") for n in (50, 51, 52, 53)]
    claims = [bench.send()]
    for placement in alike:
        bench.mirror.withdraw(placement)
    claims.append(bench.send())
    bench.report(Stored(0, PROMPT[:2]), Removed([2]), Stored(1, [2]))
    bench.mirror.withdraw(claims[withdrawn])
    assert (bench.depth(), bench.expected()) == (11, 9)
    bench.mirror.withdraw(claims[1 - withdrawn])
    assert (bench.depth(), bench.expected()) == (2, 0)


class Counted:
    """How many blocks were looked for."""

    def __init__(self, stored: BlockMasks) -> None:
        self._stored = stored
        self.lookup = stored.lookup
        self.looked_for = 0

    def without(self, bit: int, ids: Sequence[int]) -> Sequence[int]:
        self.looked_for += len(ids)
        return self._stored.without(bit, ids)


def test_a_prompt_that_is_sent_often_is_looked_through_and_kept_once() -> None:
    pieces = Pieces(SIZE)
    stored = Counted(BlockMasks(pieces))
    sent = SentPrompts(Claims(pieces), pieces, stored)
    other = list(range(101, 109))
    mine = [sent.send(1, ids, 0) for ids in (list(PROMPT), list(other))]
    mine += [sent.wait(1, list(PROMPT)), sent.wait(1, list(other)), sent.send(1, list(PROMPT), 0)]
    theirs = sent.send(2, list(PROMPT), 0)
    assert {id(claim.ids) for claim in mine} == {id(mine[0].ids), id(mine[1].ids)}
    assert theirs.ids is mine[0].ids
    stored.looked_for = 0
    sent.enter(1)
    assert stored.looked_for == 8 + 8
    sent.check()

"""Prompts that were sent are claimed by whole pieces, and block by block once that matters."""

import random
from collections.abc import Sequence

import pytest

from clocks import FakeClock
from radixgate.proto.kv_events import KvEvent, Pending, Removed, Settled, Stored, Tier
from radixgate.radix_mirror.block_masks import BlockMasks
from radixgate.radix_mirror.claims import Claim, Claims
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


def test_of_a_piece_that_was_begun_only_the_rest_is_expected() -> None:
    bench = Bench()
    bench.report(Stored(0, PROMPT[:6]))
    bench.send()
    assert (bench.in_pieces(), bench.expected(), bench.depth()) == (4, 5, 11)
    bench.report(Removed([6]))
    assert (bench.in_pieces(), bench.expected(), bench.depth()) == (0, 5, 5)


def test_what_is_stored_meanwhile_is_not_expected_when_it_is_removed() -> None:
    bench = Bench()
    bench.send()
    bench.report(Stored(0, PROMPT[:6]))
    assert (bench.in_pieces(), bench.expected()) == (8, 5)
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
    assert (bench.in_pieces(), bench.expected()) == (16, 15)
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
    ("start", "in_pieces"),
    [
        pytest.param(0, 8, id="as-it-was-sent"),
        pytest.param(3, 8, id="of-which-the-worker-has-more-than-was-known"),
    ],
)
def test_a_prompt_that_waits_outlasts_what_was_expected_of_it(start: int, in_pieces: int) -> None:
    bench = Bench()
    bench.send()
    bench.report(Pending(7, 0, PROMPT[start:]))
    assert (bench.in_pieces(), bench.expected()) == (in_pieces, 11)
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


class World:
    """Sent and waiting prompts, and for each what it still stands for."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        pieces = Pieces(2)
        self.claims = Claims(pieces)
        self.stored = BlockMasks(pieces)
        self.sent = SentPrompts(self.claims, pieces, self.stored)
        self.live: list[tuple[Claim, int, set[int]]] = []

    def some(self) -> tuple[list[int], int]:
        """A prompt of a small tree, and a depth in it."""
        ids, name = [], 1
        for depth in range(self.draw.randrange(1, 8)):
            name = 8 * name + (self.draw.randrange(7) if depth in (1, 4) else 0)
            ids.append(name)
        return ids, self.draw.randrange(len(ids) + 1)

    def send(self, bit: int) -> None:
        ids, _ = self.some()
        start = next((n for n, b in enumerate(ids) if not self.has(bit, b)), len(ids))
        self.enter(self.sent.send(bit, ids, self.draw.choice((0, start))), bit, ids)

    def wait(self, bit: int) -> None:
        ids, start = self.some()
        self.enter(self.sent.wait(bit, ids[start:]), bit, ids[start:])

    def enter(self, claim: Claim, bit: int, ids: list[int]) -> None:
        self.live.append((claim, bit, {block for block in ids if not self.has(bit, block)}))

    def release(self, bit: int) -> None:
        if self.live:
            claim, _, blocks = self.live.pop(self.draw.randrange(len(self.live)))
            self.sent.release(claim)
            blocks.clear()

    def store(self, bit: int) -> None:
        ids, start = self.some()
        self.stored.add(bit, ids[start:])
        self.claims.confirm(bit, ids[start:])
        self.gone(bit, ids[start:])

    def remove(self, bit: int) -> None:
        ids, start = self.some()
        self.sent.lose(bit, ids[start:])
        self.stored.drop(bit, ids[start:])

    def begin_anew(self, bit: int) -> None:
        self.sent.enter(bit)
        self.stored.purge(bit)

    def purge(self, bit: int) -> None:
        self.sent.purge(bit)
        self.live = [one for one in self.live if one[1] != bit]

    def gone(self, bit: int, ids: Sequence[int]) -> None:
        for _, whose, blocks in self.live:
            if whose == bit:
                blocks.difference_update(ids)

    def has(self, bit: int, block: int) -> bool:
        return bool(self.stored.get(block, 0) & bit)

    def agree(self) -> None:
        self.claims.check()
        self.sent.check()
        whole, everybody = self.sent.claimed.masks(), set()
        for bit in (1, 2):
            held = {block for _, whose, blocks in self.live if whose == bit for block in blocks}
            assert self.sent.count(bit) == len(held)
            for block in held | whole.keys():
                claimed = (whole.get(block, 0) | self.claims.lookup(block, 0)) & bit
                assert bool(claimed) == (block in held) or self.has(bit, block)
            everybody |= held
        assert len(self.sent) == len(everybody)


@pytest.mark.parametrize("seed", range(12))
def test_after_each_step_they_agree(seed: int) -> None:
    world = World(random.Random(seed))
    steps = [world.send] * 6 + [world.wait] * 2 + [world.release] * 3 + [world.store] * 3
    for _ in range(100):
        world.draw.choice([*steps, world.remove, world.begin_anew, world.purge])(
            world.draw.choice((1, 2))
        )
        world.agree()

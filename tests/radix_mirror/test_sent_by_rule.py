"""Prompts that were sent, claimed by whole pieces and block by block, against plain sets."""

import random
from collections.abc import Sequence

import pytest

from radixgate.radix_mirror.block_masks import BlockMasks
from radixgate.radix_mirror.claims import Claim, Claims
from radixgate.radix_mirror.pieces import Pieces
from radixgate.radix_mirror.sent_prompts import SentPrompts


class World:
    """Sent and waiting prompts, and for each what it still stands for."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        pieces = Pieces(2)
        self.claims = Claims(pieces)
        self.stored = BlockMasks(pieces)
        self.sent = SentPrompts(self.claims, pieces, self.stored)
        self.live: list[tuple[Claim, int, set[int]]] = []
        self.unlike = self.finished = 0  # see below

    def some(self) -> tuple[list[int], int]:
        """A prompt of a small tree, and a depth in it."""
        ids, name = [], 1
        for depth in range(self.draw.choice((1, 2, 3, 4, 5, 7, 7))):
            name = 8 * name + (self.draw.randrange(5) if depth == 3 else 0)
            ids.append(name)
        return ids, self.draw.randrange(len(ids) + 1)

    def send(self, bit: int) -> None:
        ids, _ = self.some()
        start = next((n for n, b in enumerate(ids) if not self.has(bit, b)), len(ids))
        self.enter(self.sent.send(bit, ids, self.draw.choice((0, start))), bit, ids)

    def send_again(self, bit: int) -> None:
        """Or it is told to wait, as it was sent."""
        mine = [claim for claim, whose, blocks in self.live if whose == bit and claim.ids]
        mine = [claim for claim in mine if claim.start is not None]
        if not mine:
            return
        # Best one that was not claimed by its second piece, as others are alike there.
        apart = [claim for claim in mine if claim.pieces and not _has_second(claim)]
        claim = self.draw.choice(apart or mine)
        ids, start = list(claim.ids), claim.start or 0
        if self.draw.random() < 0.3:
            self.enter(self.sent.wait(bit, ids[start:]), bit, ids[start:])
        elif all(self.has(bit, block) for block in ids[:start]):
            self.enter(self.sent.send(bit, ids, start), bit, ids)

    def wait(self, bit: int) -> None:
        ids, start = self.some()
        self.enter(self.sent.wait(bit, ids[start:]), bit, ids[start:])

    def enter(self, claim: Claim, bit: int, ids: list[int]) -> None:
        self.live.append((claim, bit, {block for block in ids if not self.has(bit, block)}))

    def release(self, bit: int) -> None:
        if self.live:
            self.end(self.draw.randrange(len(self.live)))

    def end(self, at: int) -> None:
        claim, _, blocks = self.live.pop(at)
        self.sent.release(claim)
        blocks.clear()

    def release_piece(self, bit: int) -> None:
        """All who have the second piece in common with somebody leave."""
        if self.live:
            begin = list(self.draw.choice(self.live)[0].ids[:4])
            for claim, _, blocks in self.live:
                if list(claim.ids[:4]) == begin:
                    self.sent.release(claim)
                    blocks.clear()

    def store(self, bit: int) -> None:
        ids, start = self.some()
        self.stored.add(bit, ids[start:])
        self.sent.confirm(bit, ids[start:])
        self.gone(bit, ids[start:])

    def finish(self, bit: int) -> None:
        """All of a prompt that was sent, in two runs."""
        mine = [claim for claim, whose, _ in self.live if whose == bit and claim.pieces]
        if mine:
            ids = list(self.draw.choice(mine).ids)
            middle = self.draw.randrange(len(ids))
            for run in (ids[:middle], ids[middle:]):
                self.stored.add(bit, run)
                self.sent.confirm(bit, run)
                self.gone(bit, run)
            self.finished += sum(not claim.pieces for claim in mine)

    def remove(self, bit: int) -> None:
        ids, start = self.some()
        self.see_unlike(bit)
        self.sent.lose(bit, ids[start:])
        self.stored.drop(bit, ids[start:])

    def begin_anew(self, bit: int) -> None:
        self.see_unlike(bit)
        self.sent.enter(bit)
        self.stored.purge(bit)

    def see_unlike(self, bit: int) -> None:
        mine = [claim for claim, whose, _ in self.live if whose == bit and claim.pieces]
        claims = {(tuple(claim.ids), claim.start) for claim in mine}
        pieces = {(tuple(claim.ids), claim.start, len(claim.pieces)) for claim in mine}
        self.unlike += len(pieces) - len(claims)

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
            count = self.sent.count(bit)
            assert count >= len(held)
            assert count == len(held) or any(mask & bit for mask in whole.values())
            for block in held | whole.keys():
                claimed = (whole.get(block, 0) | self.claims.lookup(block, 0)) & bit
                assert bool(claimed) == (block in held) or self.has(bit, block)
            everybody |= held
        assert len(self.sent) >= len(everybody)
        assert len(self.sent) == len(everybody) or whole


def _has_second(claim: Claim) -> bool:
    return any(piece.start == 2 for piece in claim.pieces) or len(claim.ids) < 4


def life(seed: int) -> World:
    world = World(random.Random(seed))
    steps = [world.send] * 20 + [world.send_again] * 20 + [world.wait] * 4 + [world.release] * 6
    steps += [world.release_piece] * 3 + [world.store, world.finish]
    for n in range(1, 161):
        world.draw.choice(steps)(world.draw.choice((1, 1, 1, 2)))
        world.agree()
        if n % 80 == 0:
            world.draw.choice((world.remove, world.begin_anew, world.purge))(1)
            world.agree()
            # What one stands for alone is seen once the others leave.
            while world.live:
                world.end(0)
                world.agree()
    return world


@pytest.mark.parametrize("seed", range(20))
def test_after_each_step_they_agree(seed: int) -> None:
    life(seed)


def test_their_lives_have_what_is_seldom() -> None:
    worlds = [life(seed) for seed in range(8)]
    # Claims of a prompt that have other pieces of it, as it is claimed block by block.
    assert sum(world.unlike for world in worlds) >= 3
    # Prompts that are over as they are stored.
    assert sum(world.finished for world in worlds) >= 10

"""Claims, which are counted by runs of blocks, against plain sets."""

import random

import pytest

from radixgate.radix_mirror.claims import Claim, Claims
from radixgate.radix_mirror.pieces import Pieces

A, B, C = 0b001, 0b010, 0b100
# They part at each depth, and one holds the end of another.
PROMPTS = ((1, 2, 3, 4, 5, 6), (1, 2, 3, 7, 8), (1, 9, 10), (4, 5, 6), (11, 12))
BLOCKS = range(1, 13)


class World:
    """Claims, and for each what it still stands for."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.claims = Claims(Pieces())
        self.live: list[tuple[Claim, int, set[int]]] = []

    def some_blocks(self) -> list[int]:
        prompt = self.draw.choice(PROMPTS)
        start = self.draw.randrange(len(prompt))
        return list(prompt[start : self.draw.randint(start, len(prompt))])

    def make(self, bit: int) -> None:
        blocks = self.some_blocks()
        self.live.append((self.claims.make(bit, blocks), bit, set(blocks)))

    def release(self, bit: int) -> None:
        if self.live:
            claim, _, blocks = self.live[self.draw.randrange(len(self.live))]
            self.claims.release(claim)
            blocks.clear()

    def confirm(self, bit: int) -> None:
        self._gone(bit, stored := self.some_blocks())
        self.claims.confirm(bit, stored)

    def purge(self, bit: int) -> None:
        self._gone(bit, BLOCKS)
        self.claims.purge(bit)

    def _gone(self, bit: int, ids: list[int] | range) -> None:
        for _, whose, blocks in self.live:
            if whose == bit:
                blocks.difference_update(ids)

    def agree(self) -> None:
        self.claims.check()
        for bit in (A, B, C):
            held = {block for _, whose, blocks in self.live if whose == bit for block in blocks}
            assert {block for block in BLOCKS if self.claims.lookup(block, 0) & bit} == held
            assert self.claims.count(bit) == len(held)
        assert len(self.claims) == len({block for _, _, blocks in self.live for block in blocks})


@pytest.mark.parametrize("seed", range(8))
def test_after_each_step_they_agree(seed: int) -> None:
    world = World(random.Random(seed))
    steps = [world.make] * 4 + [world.release] * 2 + [world.confirm] * 2 + [world.purge]
    for _ in range(120):
        world.draw.choice(steps)(world.draw.choice((A, B, C)))
        world.agree()

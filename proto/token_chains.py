"""Block ids of prompts as tokens; a beginning that came before is not hashed block by block."""

from array import array

from xxhash import xxh3_128_intdigest

from radixgate.proto.blocks import chain
from radixgate.proto.chained import COMPILED

# A prompt is looked up in pieces of about so many tokens.
SEGMENT_TOKENS = 1_024
# Segments kept in each of two halves; about 0.4 KB each in blocks of 64, 0.8 KB in blocks of 16.
MAX_SEGMENTS = 16_384


class TokenChains:
    """`chain` with a memory of segments: the next turn of a conversation hashes what is new.

    Where the chain is compiled it is quicker than the memory, and nothing is remembered.
    A segment is known by its parent id and 128 bits of its content. When the newer half of the
    memory is full, the older half is forgotten; what is asked for stays in the newer. Two threads
    may ask at once: at worst both compute the same.
    """

    def __init__(self, most: int = MAX_SEGMENTS, *, remembers: bool = not COMPILED) -> None:
        self._most = most
        self._remembers = remembers
        self._newer: dict[tuple[int, int, int], array[int]] = {}
        self._older: dict[tuple[int, int, int], array[int]] = {}

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def chain(self, parent: int, tokens: "array[int]", block_size: int) -> "array[int]":
        """As `proto.blocks.chain`. A known segment of 1,024 tokens costs 2 us."""
        if not self._remembers:
            return chain(parent, tokens, block_size)
        length = max(1, SEGMENT_TOKENS // block_size) * block_size
        ids = array("Q")
        start = 0
        for end in range(length, len(tokens) + 1, length):
            ids += self._segment(parent, tokens[start:end], block_size)
            parent = ids[-1]
            start = end
        ids += chain(parent, tokens[start:], block_size)
        return ids

    def _segment(self, parent: int, tokens: "array[int]", block_size: int) -> "array[int]":
        key = parent, xxh3_128_intdigest(tokens), block_size
        ids = self._newer.get(key)
        if ids is not None:
            return ids
        ids = self._older.get(key) or chain(parent, tokens, block_size)
        if len(self._newer) >= self._most:
            self._older, self._newer = self._newer, {}
        self._newer[key] = ids
        return ids

"""Block ids of prompts as bytes, where a long beginning that came before is not hashed again."""

from array import array

from xxhash import xxh3_64_hexdigest, xxh3_64_intdigest, xxh3_128_intdigest

from radixgate.gateway.asking.known_bodies import Hole
from radixgate.proto.blocks import (
    BYTE_BLOCK,
    LONG_AFTER_BYTES,
    blocks_in_bytes,
    byte_chain,
    bytes_in_blocks,
    long_chain,
)
from radixgate.proto.routing_text import first_exchange

# A prompt is looked up in pieces of this size; what is shorter is hashed anew.
SEGMENT_BYTES = LONG_AFTER_BYTES
# About 0.4 KB each; the ids are forgotten all at once, and hashed again as they come again.
MAX_SEGMENTS = 8_192
# Of prompts whose text has a hole; up to 8 KB each, 1 KB for a prompt of 100 KB.
MAX_HOLES = 1_024


class KnownChains:
    """`byte_chain` with a memory of segments: the next turn of a conversation hashes what is new.

    A segment is known by its parent id and 128 bits of its content. It holds no text.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], array[int]] = {}
        self._in_holes: dict[tuple[int, Hole], array[int]] = {}

    def chain(self, parent: int, text: bytes) -> "array[int]":
        """As `byte_chain`. A known segment costs 2 us, another 0.3 to 0.5 us a block."""
        ids = array("Q")
        if len(text) < BYTE_BLOCK:
            return ids
        whole = len(text) // SEGMENT_BYTES * SEGMENT_BYTES
        for start in range(0, whole, SEGMENT_BYTES):
            ids += self._segment(parent, text, start)
            parent = ids[-1]
        ids += byte_chain(parent, text, whole)
        return ids

    def around(self, parent: int, text: bytes, hole: Hole) -> "array[int] | None":
        """As `chain`, of the text that lacks the hole's bytes. None: its ids are not known."""
        known = self._in_holes.get((parent, hole))
        return None if known is None else known + long_chain(known[-1], text, hole.before)

    def keep(self, parent: int, ids: "array[int]", hole: Hole) -> None:
        """The ids are those of a prompt that has the hole."""
        if len(self._in_holes) >= MAX_HOLES:
            self._in_holes.clear()
        self._in_holes[parent, hole] = ids[: blocks_in_bytes(hole.end)]

    def _segment(self, parent: int, text: bytes, start: int) -> "array[int]":
        end = start + SEGMENT_BYTES
        key = parent, xxh3_128_intdigest(memoryview(text)[start:end])
        ids = self._known.get(key)
        if ids is None:
            ids = byte_chain(parent, text, start, end)
            if len(self._known) >= MAX_SEGMENTS:
                self._known.clear()
            self._known[key] = ids
        return ids


def fingerprint_by_ids(root: int, ids: "array[int]", text: bytes, left_out: int = 0) -> int:
    """A hash of the whole text that reads only what lies behind its last block; `ids` are the
    text's, under `root`. `left_out`: how many bytes the text lacks, all in front of that."""
    if not ids:
        return xxh3_64_intdigest(text, root)
    return xxh3_64_intdigest(memoryview(text)[bytes_in_blocks(len(ids)) - left_out :], ids[-1])


def conversation_by_ids(
    root: int, ids: "array[int]", text: bytes, hole: Hole | None = None
) -> str | None:
    """A name for the conversation, equal for all its turns under this root; None: no messages.

    It reads only what lies behind the last block of the first exchange. No exchange begins or ends
    in a hole, but one may end right behind it.
    """
    end = first_exchange(text)
    if end is None:
        return None
    if not ids:
        return xxh3_64_hexdigest(text[:end], root)
    left_out = 0 if hole is None or end < hole.before else hole.size
    blocks = blocks_in_bytes(end + left_out)
    parent = ids[blocks - 1] if blocks else root
    begin = bytes_in_blocks(blocks) - left_out
    return xxh3_64_hexdigest(memoryview(text)[begin:end], parent)

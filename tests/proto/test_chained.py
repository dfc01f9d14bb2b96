"""Hashes that chain, compiled and in Python, against the package's own hash of each block."""

import random
import struct
from array import array
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xxhash import xxh3_64_intdigest

from radixgate.proto.chained import COMPILED, chained, chained_in_python
from radixgate.proto.token_chains import TokenChains

Chained = Callable[[int, bytes, int], bytes]
BOTH: list[Chained] = [chained_in_python, chained] if COMPILED else [chained_in_python]
# The hash has a form of its own for 9 to 16 bytes, to 32, 64, 96, 128, 240, and for more, which are
# taken in stripes of 64 and blocks of 1,024; a hash has eight bytes more than its block.
EDGES = sorted(
    {
        size
        for edge in (8, 16, 32, 64, 96, 128, 144, 240, 256, 320, 1_024, 1_088, 2_048, 4_096)
        for size in (edge - 9, edge - 8, edge - 7, edge, edge + 1)
        if size > 0
    }
)


def by_rule(parent: int, content: bytes, size: int) -> bytes:
    found = b""
    for start in range(0, len(content) - size + 1, size):
        block = content[start : start + size]
        parent = xxh3_64_intdigest(struct.pack("<Q", parent) + block)
        found += struct.pack("<Q", parent)
    return found


@pytest.mark.parametrize("chained", BOTH)
@pytest.mark.parametrize("size", EDGES)
def test_each_form_of_the_hash_is_the_published_one(chained: Chained, size: int) -> None:
    content = random.Random(size).randbytes(3 * size + size // 2)
    assert chained(2**64 - 1, content, size) == by_rule(2**64 - 1, content, size)


@pytest.mark.parametrize("chained", BOTH)
@given(parent=st.integers(0, 2**64 - 1), content=st.binary(max_size=700), size=st.integers(1, 400))
def test_any_content_in_blocks_of_any_size(
    chained: Chained, parent: int, content: bytes, size: int
) -> None:
    assert chained(parent, content, size) == by_rule(parent, content, size)


@pytest.mark.parametrize("chained", BOTH)
def test_tokens_are_taken_as_they_lie(chained: Callable[[int, "array[int]", int], bytes]) -> None:
    tokens = array("I", [1, 2, 3, 2**32 - 1])
    assert chained(5, tokens, 8) == by_rule(5, tokens.tobytes(), 8)


@pytest.mark.parametrize("chained", BOTH)
@pytest.mark.parametrize("size", [0, -1, -(2**40)])
@pytest.mark.parametrize("content", [b"", b"abc"])
def test_a_block_has_one_byte_at_least(chained: Chained, content: bytes, size: int) -> None:
    with pytest.raises(ValueError, match=r"^a block has one byte at least$"):
        chained(1, content, size)


@pytest.mark.skipif(not COMPILED, reason="it was installed without a compiler")
@pytest.mark.parametrize(
    ("args", "error"),
    [
        pytest.param((1, b"a"), TypeError, id="too-few"),
        pytest.param((-1, b"a", 1), OverflowError, id="a-parent-that-is-no-hash"),
        pytest.param((2**64, b"a", 1), OverflowError, id="one-too-large"),
        pytest.param((1, "a", 1), TypeError, id="text"),
    ],
)
def test_what_is_no_chain_is_refused(args: tuple[object, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        chained(*args)  # type: ignore[arg-type]


def test_a_compiled_chain_needs_no_memory() -> None:
    chains = TokenChains()
    chains.chain(1, array("I", range(5_000)), 16)
    assert (len(chains) == 0) is COMPILED

"""Tokens and blocks, under both kinds of mirror."""

import pytest

from radixgate.fleet.identity import MirrorKey
from radixgate.proto.blocks import BYTES_A_TOKEN, bytes_in_blocks

TOKENS = MirrorKey("m", "tokens", 16)
BYTES = MirrorKey("m", "bytes", 0)


@pytest.mark.parametrize(
    ("depth", "prompt", "cached"),
    [
        pytest.param(0, 100, 0, id="cold"),
        pytest.param(2, 100, 32, id="two-pages"),
        pytest.param(6, 100, 96, id="all-whole-pages"),
        pytest.param(2, 32, 16, id="not-the-last-token"),
        pytest.param(2, 33, 32, id="but-all-before-it"),
        pytest.param(1, 0, 0, id="empty-prompt"),
    ],
)
def test_pages_are_worth_their_tokens(depth: int, prompt: int, cached: int) -> None:
    assert TOKENS.cached_tokens([depth], prompt // 16, prompt) == [cached]


def test_the_last_token_is_taken_from_whoever_holds_a_whole_prompt() -> None:
    # Three blocks of 16: the third can be held, and yet its last token is computed.
    assert list(TOKENS.cached_tokens([3, 0, 2, 3], 3, 48)) == [32, 0, 32, 32]
    assert list(TOKENS.cached_tokens([2, 1], 3, 48)) == [32, 16]
    assert list(TOKENS.cached_tokens([3, 2], 3, 49)) == [48, 32]
    of_one = TOKENS._replace(block_size=1)
    assert list(of_one.cached_tokens([5, 4, 3], 5, 5)) == [4, 4, 3]
    assert list(TOKENS.cached_tokens([], 3, 48)) == []


@pytest.mark.parametrize(
    ("depth", "cached"),
    [
        pytest.param(0, 0, id="cold"),
        pytest.param(2, 128, id="half-of-a-kilobyte"),
        pytest.param(4, 255, id="all-but-the-last-token"),
    ],
)
def test_byte_blocks_are_worth_their_share_of_the_prompt(depth: int, cached: int) -> None:
    assert BYTES.cached_tokens([depth], 4, 256) == [cached]


def test_the_only_token_of_a_prompt_is_never_cached() -> None:
    assert BYTES.cached_tokens([1], 1, 1) == [0]


def test_a_byte_prompt_without_blocks_is_cold() -> None:
    assert BYTES.cached_tokens([0, 0], 0, 40) == [0, 0]


@pytest.mark.parametrize(
    ("key", "cached", "depth"),
    [
        pytest.param(TOKENS, 47, 2, id="whole-pages"),
        pytest.param(TOKENS, 48, 3, id="whole-pages-and-no-more"),
        pytest.param(TOKENS, 10_000, 6, id="no-more-than-there-are"),
        pytest.param(BYTES, 50, 3, id="by-share"),
        pytest.param(BYTES, 40, 2, id="whole-blocks-by-share"),
        pytest.param(BYTES, 10_000, 6, id="no-more-by-share"),
    ],
)
def test_cached_tokens_cover_blocks(key: MirrorKey, cached: int, depth: int) -> None:
    assert key.depth_of(cached, 6, 100) == depth


@pytest.mark.parametrize("blocks", [10, 64, 65, 146, 250])
def test_what_a_depth_is_worth_covers_that_depth_where_blocks_are_larger_too(blocks: int) -> None:
    prompt = bytes_in_blocks(blocks) // BYTES_A_TOKEN
    for depth in range(blocks):
        (cached,) = BYTES.cached_tokens([depth], blocks, prompt)
        assert BYTES.depth_of(cached, blocks, prompt) == depth


def test_capacities_are_generous() -> None:
    assert TOKENS.capacity_blocks(1_600) == 200
    assert BYTES.capacity_blocks(1_600) == 50
    assert TOKENS.capacity_blocks(None) is None
    assert TOKENS.capacity_blocks(1) == BYTES.capacity_blocks(1) == 1

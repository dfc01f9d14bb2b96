"""A memory of chains gives what the chain itself gives, and no more of it than its bound."""

import random
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.proto import token_chains
from radixgate.proto.blocks import chain, root_id
from radixgate.proto.token_chains import SEGMENT_TOKENS, TokenChains

TOY = root_id("toy")


def words(rng: random.Random, count: int) -> "array[int]":
    return array("I", (rng.randrange(50_000) for _ in range(count)))


@given(
    lengths=st.lists(st.integers(0, 3 * SEGMENT_TOKENS), min_size=1, max_size=4),
    page=st.sampled_from([1, 16, 64, 100, 2_000]),
    remembers=st.booleans(),
)
def test_turns_of_a_conversation_have_the_ids_of_the_rule(
    lengths: list[int], page: int, remembers: bool
) -> None:
    rng, chains = random.Random(0), TokenChains(most=3, remembers=remembers)
    history = array("I")
    for length in lengths:
        history += words(rng, length)
        for parent in (TOY, root_id("toy", salt="a")):
            assert chains.chain(parent, history, page) == chain(parent, history, page)


def test_what_was_seen_is_not_hashed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[int] = []

    def counting(parent: int, tokens: "array[int]", block_size: int) -> "array[int]":
        hashed.append(len(tokens))
        return chain(parent, tokens, block_size)

    monkeypatch.setattr(token_chains, "chain", counting)
    rng, chains = random.Random(0), TokenChains(remembers=True)
    history = words(rng, 10_000)
    chains.chain(TOY, history, 16)
    assert sum(hashed) == 10_000
    hashed.clear()
    chains.chain(TOY, history + words(rng, 500), 16)
    assert sum(hashed) == 10_500 - 9 * 1_024


def test_it_keeps_no_more_than_twice_its_bound_and_what_is_asked_for_longest() -> None:
    rng, chains = random.Random(0), TokenChains(most=4, remembers=True)
    often = words(rng, SEGMENT_TOKENS)
    kept = chains.chain(TOY, often, 64)
    for _ in range(50):
        chains.chain(TOY, words(rng, SEGMENT_TOKENS), 64)
        assert chains.chain(TOY, often, 64) == kept
        assert len(chains) <= 8

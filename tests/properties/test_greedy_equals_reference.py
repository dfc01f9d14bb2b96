"""Greedy output is the reference's, id for id, whatever happens on the way."""

import random
from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from small_engine import Ear
from toy_engine import reference, toy_engine

# Prompts are made of a few shared parts, so that prefixes of all lengths meet in the cache.
_rng = random.Random(5)
PARTS = [[_rng.randrange(256) for _ in range(length)] for length in (1, 3, 8, 17, 40)]
PROMPTS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(
    lambda parts: [token for part in parts for token in part]
)
TOKENS = 12


@dataclass(frozen=True)
class Arrival:
    prompt: list[int]
    tokens: int
    choices: int
    steps_before: int
    cut: int  # goes on after so many tokens that another worker delivered


ARRIVALS = st.builds(
    Arrival,
    prompt=PROMPTS,
    tokens=st.integers(1, TOKENS),
    choices=st.sampled_from([1, 1, 1, 2]),
    steps_before=st.integers(0, 4),
    cut=st.integers(0, 3),
)


@pytest.mark.slow
@given(
    arrivals=st.lists(ARRIVALS, min_size=1, max_size=8),
    page_size=st.sampled_from([1, 4, 16]),
    pool_tokens=st.sampled_from([144, 256, 2048]),
    chunk=st.sampled_from([-1, 16, 24, 512]),
    policy=st.sampled_from(["fcfs", "lpm"]),
    conservativeness=st.sampled_from([0.0, 1.0]),
    no_cache=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_greedy_equals_the_reference_in_any_traffic(
    arrivals: list[Arrival],
    page_size: int,
    pool_tokens: int,
    chunk: int,
    policy: str,
    conservativeness: float,
    no_cache: bool,
) -> None:
    engine = toy_engine(
        pages=pool_tokens // page_size,
        page_size=page_size,
        chunked_prefill_size=chunk,
        schedule_policy=policy,
        schedule_conservativeness=conservativeness,
        disable_radix_cache=no_cache,
        debug_checks=True,
    )
    ear = Ear()
    expected: dict[int, list[int]] = {}
    for handle, arrival in enumerate(arrivals):
        for _ in range(arrival.steps_before):
            engine.step()
        whole = reference(arrival.prompt, TOKENS)[: arrival.tokens]
        prior = whole[: arrival.cut] if arrival.choices == 1 else []
        engine.submit(
            ear,
            handle,
            arrival.prompt,
            prior=prior,
            n=arrival.choices,
            max_tokens=arrival.tokens,
        )
        expected[handle] = whole[len(prior) :]
    engine.run()
    for handle, arrival in enumerate(arrivals):
        for choice in range(arrival.choices):
            assert ear.ids(handle, choice) == expected[handle]
            assert ear.finish(handle, choice) == "LENGTH"
    engine.check_idle()


@pytest.mark.slow
def test_twenty_prompts_of_one_to_six_hundred_tokens_in_one_batch() -> None:
    rng = random.Random(9)
    lengths = [
        1,
        2,
        15,
        16,
        17,
        31,
        32,
        33,
        64,
        100,
        127,
        128,
        129,
        200,
        255,
        256,
        300,
        400,
        500,
        600,
    ]
    prompts = [[rng.randrange(256) for _ in range(length)] for length in lengths]
    engine = toy_engine(pages=512, page_size=16, chunked_prefill_size=128)
    ear = Ear()
    for handle, prompt in enumerate(prompts):
        engine.submit(ear, handle, prompt, max_tokens=8)
    engine.run()
    for handle, prompt in enumerate(prompts):
        assert ear.ids(handle) == reference(prompt, 8)
    engine.check_idle()


def test_an_evicted_prefix_is_computed_again_and_a_cached_one_is_not() -> None:
    rng = random.Random(11)
    one, other = ([rng.randrange(256) for _ in range(70)] for _ in range(2))
    engine = toy_engine(pages=6, page_size=16, chunked_prefill_size=32)
    first = engine.answer(one, max_tokens=6)
    again = engine.answer(one, max_tokens=6)
    assert (first.cached(1), again.cached(1)) == (0, 64)
    engine.answer(other, max_tokens=6)
    after = engine.answer(one, max_tokens=6)
    assert after.cached(1) < 64
    assert first.ids(1) == again.ids(1) == after.ids(1) == reference(one, 6)

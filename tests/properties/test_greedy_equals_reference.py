"""Greedy output is the reference's, id for id, whatever happens on the way."""

import os
import random
from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from asking import PLENTY, Asked
from radixgate.worker.settings.engine_config import EVICTION_POLICIES, SCHEDULE_POLICIES
from radixgate.worker.weights.rounding import KvDtype
from small_engine import Ear, SmallEngine
from toy_engine import reference, toy_engine, unlike_reference

# Prompts are made of a few shared parts, so that prefixes of all lengths meet in the cache.
_rng = random.Random(5)
PARTS = [[_rng.randrange(256) for _ in range(length)] for length in (1, 3, 8, 17, 40)]
PROMPTS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=3).map(
    lambda parts: [token for part in parts for token in part]
)
TOKENS = 12
EXAMPLES = int(os.environ.get("RADIXGATE_TEST_EXAMPLES", "500"))


class RestlessClock:
    """Passes take any time, so that chunks that go by it have any size."""

    def __init__(self) -> None:
        self._rng = random.Random(2)
        self._now_s = 0.0

    def now(self) -> float:
        self._now_s += self._rng.choice([0.0, 0.001, 0.01, 0.03])
        return self._now_s


@dataclass(frozen=True)
class Arrival:
    prompt: list[int]
    tokens: int
    choices: int
    steps_before: int
    cut: int  # of one choice: goes on after so many tokens that another worker delivered
    first_choice: int
    credit: int  # given at once; the rest when nobody can go on
    scored: bool
    priority: int


@dataclass(frozen=True)
class Setting:
    """Of the engine, fixed for its life."""

    page_size: int
    pool_tokens: int
    chunk: int
    policy: str
    eviction: str
    conservativeness: float
    running: int
    no_cache: bool
    interval: int
    overlap: bool
    itl_slo: float | None
    kv: KvDtype
    backend: str

    def engine(self) -> SmallEngine:
        return toy_engine(
            pages=self.pool_tokens // self.page_size,
            kv=self.kv,
            backend=self.backend,
            clock=RestlessClock(),
            page_size=self.page_size,
            chunked_prefill_size=self.chunk,
            schedule_policy=self.policy,
            radix_eviction_policy=self.eviction,
            schedule_conservativeness=self.conservativeness,
            max_running_requests=self.running,
            disable_radix_cache=self.no_cache,
            stream_interval=self.interval,
            disable_overlap_schedule=not self.overlap,
            itl_slo=None if self.chunk == -1 else self.itl_slo,
            debug_checks=True,
        )


ARRIVALS = st.builds(
    Arrival,
    prompt=PROMPTS,
    tokens=st.integers(0, TOKENS),
    choices=st.sampled_from([1, 1, 1, 2, 4]),
    steps_before=st.integers(0, 4),
    cut=st.integers(0, 3),
    first_choice=st.sampled_from([0, 0, 5]),
    credit=st.sampled_from([PLENTY, PLENTY, PLENTY, 2]),
    scored=st.sampled_from([False, False, False, True]),
    priority=st.sampled_from([0, 0, 1]),
)
SETTINGS = st.builds(
    Setting,
    page_size=st.sampled_from([1, 4, 16]),
    pool_tokens=st.sampled_from([144, 256, 2048]),
    chunk=st.sampled_from([-1, 16, 24, 512]),
    policy=st.sampled_from(SCHEDULE_POLICIES),
    eviction=st.sampled_from(EVICTION_POLICIES),
    conservativeness=st.sampled_from([0.0, 1.0]),
    running=st.sampled_from([2, 64]),
    no_cache=st.sampled_from([False, False, False, True]),
    interval=st.sampled_from([1, 3]),
    overlap=st.booleans(),
    itl_slo=st.sampled_from([None, 20.0]),
    kv=st.sampled_from(KvDtype),
    backend=st.sampled_from(["torch", "cpu"]),
)


@pytest.mark.slow
@pytest.mark.timeout(900)
@given(arrivals=st.lists(ARRIVALS, min_size=1, max_size=8), setting=SETTINGS)
@settings(max_examples=EXAMPLES, deadline=None)
def test_greedy_equals_the_reference_in_any_traffic(
    arrivals: list[Arrival], setting: Setting
) -> None:
    engine, ear = setting.engine(), Ear()
    expected: dict[int, list[int]] = {}
    for handle, arrival in enumerate(arrivals):
        for _ in range(arrival.steps_before):
            engine.step()
        whole = reference(arrival.prompt, TOKENS, setting.kv)[: arrival.tokens]
        prior = whole[: arrival.cut] if arrival.choices == 1 else []
        asked = Asked(
            prior=prior,
            n=arrival.choices,
            first_choice=arrival.first_choice,
            max_tokens=arrival.tokens,
            credit=arrival.credit,
            priority=arrival.priority,
        )
        if arrival.scored:
            asked |= Asked(logprob_start=0)
        engine.submit(ear, handle, arrival.prompt, **asked)
        expected[handle] = prior
    engine.run()
    for handle in expected:
        engine.core.add_credit(ear, handle, PLENTY)
    engine.run()
    for handle, arrival in enumerate(arrivals):
        for choice in range(arrival.first_choice, arrival.first_choice + arrival.choices):
            output = expected[handle] + ear.ids(handle, choice)
            assert not unlike_reference(arrival.prompt, output, arrival.tokens, setting.kv)
            assert ear.finish(handle, choice) == "LENGTH"
        scored = sum(len(item.input_logprobs) for item in ear.of(handle, arrival.first_choice))
        assert scored == (len(arrival.prompt) if arrival.scored and not expected[handle] else 0)
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

"""The embedded model's greedy output is the reference's, whatever happens on the way."""

import random
from dataclasses import dataclass
from functools import cache

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import HealthCheck, given, settings

from asking import Asked
from native_kernels import has_native, native_or_skip
from radixgate.worker.forward.attention import AttentionBackend
from radixgate.worker.forward.attention_cpu import CpuAttention
from radixgate.worker.forward.attention_torch import TorchAttention
from radixgate.worker.forward.batch import KvPool
from radixgate.worker.forward.kernels_cpu import CpuKernels
from radixgate.worker.forward.llama import Llama
from radixgate.worker.forward.llama_cpu import CpuLlama
from radixgate.worker.forward.reference import reference_logits
from radixgate.worker.settings.engine_config import EVICTION_POLICIES, SCHEDULE_POLICIES
from radixgate.worker.steps.model_runner import Model, ModelRunner
from radixgate.worker.steps.page_copies import pool_copier
from radixgate.worker.weights.model_store import StoredModel, open_model
from small_engine import Ear, SmallEngine

# Two logits nearer than this may change places with the order of float32 sums.
TIE = 1e-3
TOKENS = 8

_rng = random.Random(6)
PARTS = [[_rng.randrange(20_000) for _ in range(length)] for length in (1, 5, 16, 33)]
PROMPTS = st.lists(st.sampled_from(PARTS), min_size=1, max_size=2).map(
    lambda parts: [token for part in parts for token in part]
)


@dataclass(frozen=True)
class Arrival:
    prompt: list[int]
    tokens: int
    choices: int
    steps_before: int
    cut: int  # of one choice: goes on after so many tokens that another worker delivered


@dataclass(frozen=True)
class Setting:
    """Of the engine, fixed for its life."""

    page_size: int
    pool_tokens: int
    chunk: int
    policy: str
    eviction: str
    running: int
    no_cache: bool
    overlap: bool

    def engine(self) -> SmallEngine:
        stored, llama, kernels = _parts()
        config = stored.config
        slots = self.pool_tokens // self.page_size * self.page_size
        pool = KvPool.allocate(
            layers=config.layers, slots=slots, kv_heads=config.kv_heads, head_dim=config.head_dim
        )
        model: Model = llama
        attention: AttentionBackend = TorchAttention(pool)
        if kernels is not None:
            attention = native = CpuAttention(pool, config.heads, native_or_skip())
            model = CpuLlama(llama, kernels, native, native_or_skip())
        copier = pool_copier(pool, self.page_size)
        return SmallEngine(
            pages=slots // self.page_size,
            vocab_size=config.vocab_size,
            runner=ModelRunner(model, attention, self.page_size, copy_pages=copier),
            page_size=self.page_size,
            chunked_prefill_size=self.chunk,
            schedule_policy=self.policy,
            schedule_conservativeness=0.0,  # so that pages run out
            radix_eviction_policy=self.eviction,
            max_running_requests=self.running,
            disable_radix_cache=self.no_cache,
            disable_overlap_schedule=not self.overlap,
            debug_checks=True,
        )


@cache
def _parts() -> tuple[StoredModel, Llama, CpuKernels | None]:
    stored = open_model("smollm2")
    kernels = CpuKernels(native_or_skip(), stored.tensors) if has_native() else None
    return stored, Llama(stored.config, stored.tensors, kernels), kernels


@cache
def leads(prompt: tuple[int, ...], output: tuple[int, ...]) -> list[float]:
    """By how much the reference's best logit leads each token of the output, given those before."""
    stored, _, _ = _parts()
    logits = reference_logits(stored.config, stored.tensors, [*prompt, *output[:-1]])
    rows = logits[len(prompt) - 1 :]
    chosen = rows[torch.arange(len(output)), torch.tensor(output)]
    found: list[float] = (rows.max(dim=-1).values - chosen).tolist()
    return found


@cache
def greedy(prompt: tuple[int, ...], tokens: int) -> list[int]:
    """Of an engine in which nothing else happens, checked against the reference."""
    calm = Setting(16, 256, 512, "fcfs", "lru", 1, no_cache=True, overlap=False)
    output = calm.engine().answer(prompt, max_tokens=tokens, ignore_eos=True).ids(1)
    assert max(leads(prompt, tuple(output))) < TIE
    return output


ARRIVALS = st.builds(
    Arrival,
    prompt=PROMPTS,
    tokens=st.integers(1, TOKENS),
    choices=st.sampled_from([1, 1, 1, 2]),
    steps_before=st.integers(0, 3),
    cut=st.integers(0, 3),
)
SETTINGS = st.builds(
    Setting,
    page_size=st.sampled_from([1, 4, 16]),
    pool_tokens=st.sampled_from([80, 128, 1024]),
    chunk=st.sampled_from([-1, 16, 48, 512]),
    policy=st.sampled_from(SCHEDULE_POLICIES),
    eviction=st.sampled_from(EVICTION_POLICIES),
    running=st.sampled_from([2, 64]),
    no_cache=st.sampled_from([False, False, True]),
    overlap=st.booleans(),
)


@pytest.mark.slow
@pytest.mark.timeout(600)
@given(arrivals=st.lists(ARRIVALS, min_size=2, max_size=5), setting=SETTINGS)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_embedded_model_answers_like_the_reference_in_any_traffic(
    arrivals: list[Arrival], setting: Setting
) -> None:
    engine, ear = setting.engine(), Ear()
    given_before: dict[int, list[int]] = {}
    for handle, arrival in enumerate(arrivals):
        for _ in range(arrival.steps_before):
            engine.step()
        alone = arrival.choices == 1
        cut = min(arrival.cut, arrival.tokens) if alone else 0
        given_before[handle] = greedy(tuple(arrival.prompt), TOKENS)[:cut]
        asked = Asked(
            prior=given_before[handle],
            n=arrival.choices,
            max_tokens=arrival.tokens,
            ignore_eos=True,
        )
        engine.submit(ear, handle, arrival.prompt, **asked)
    engine.run()
    for handle, arrival in enumerate(arrivals):
        for choice in range(arrival.choices):
            output = given_before[handle] + ear.ids(handle, choice)
            assert len(output) == arrival.tokens
            assert max(leads(tuple(arrival.prompt), tuple(output))) < TIE
            assert ear.finish(handle, choice) == "LENGTH"
    engine.check_idle()

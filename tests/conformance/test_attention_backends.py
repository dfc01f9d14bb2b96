"""What every attention backend must do: the logits of the plain forward, however KV is paged.

Where keys and values are stored in fewer bits, the plain forward rounds them so too.
"""

import os
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from native_kernels import native_or_skip
from paged_world import PLAIN, VARIANTS, MakeAttention, PagedSequence, PagedWorld, random_weights
from radixgate.worker.forward.attention import AttentionBackend
from radixgate.worker.forward.attention_cpu import CpuAttention
from radixgate.worker.forward.attention_torch import TorchAttention
from radixgate.worker.forward.batch import KvPool
from radixgate.worker.forward.reference import reference_logits
from radixgate.worker.weights.rounding import Arithmetic, KvDtype


def cpu_attention(pool: KvPool) -> AttentionBackend:
    return CpuAttention(pool, PLAIN.heads, native_or_skip())


BACKENDS: dict[str, MakeAttention] = {"torch": TorchAttention, "cpu": cpu_attention}
DTYPES = tuple(KvDtype)
# In a process of its own (see test_attention_triton.py): triton must be imported under this flag.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
if INTERPRETED:
    triton = import_module("radixgate.worker.forward.attention_triton")
    BACKENDS = {"triton": triton.TritonAttention}
    DTYPES = (KvDtype.FP32, KvDtype.FP16)
PAGE_SIZES = (1, 4, 16, 64)
# Logits are about 1. Sums in another order differ by 1e-6, which moves a number in a thousand to
# the next half-precision number, and one in ten thousand to the next of 127 steps.
WITHIN = {KvDtype.FP32: 1e-4, KvDtype.FP16: 2e-3, KvDtype.INT8: 3e-2}


@dataclass(frozen=True)
class Backend:
    """One way of attending, over a pool in one form."""

    make: MakeAttention
    kv: KvDtype


backends = pytest.mark.parametrize(
    "backend",
    [
        pytest.param(Backend(make, kv), id=f"{name}-{kv}")
        for name, make in BACKENDS.items()
        for kv in DTYPES
    ],
)
page_sizes = pytest.mark.parametrize("page_size", PAGE_SIZES, ids="page-{}".format)


@cache
def weights(variant: str) -> dict[str, torch.Tensor]:
    return random_weights(VARIANTS[variant])


def world(backend: Backend, page_size: int, *, variant: str = "plain", seed: int = 0) -> PagedWorld:
    return PagedWorld(
        VARIANTS[variant],
        weights(variant),
        backend.make,
        page_size=page_size,
        pages=max(64, 1200 // page_size),
        dtype=backend.kv.torch_dtype,
        seed=seed,
    )


def assert_right(backend: Backend, sequence: PagedSequence, variant: str = "plain") -> None:
    """The logits of the rows computed for it, against those of the whole text at once."""
    ids = sequence.ids[: sequence.computed]
    truth = reference_logits(VARIANTS[variant], weights(variant), ids, Arithmetic(kv=backend.kv))
    computed = torch.stack(sequence.logits)
    within = WITHIN[backend.kv]
    torch.testing.assert_close(computed, truth[-len(computed) :], atol=within, rtol=0)


def tokens(count: int, seed: int = 0) -> list[int]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(PLAIN.vocab_size, (count,), generator=generator).tolist()


@backends
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_prompt_in_two_chunks_and_then_tokens(backend: Backend, variant: str) -> None:
    w = world(backend, 4, variant=variant)
    sequence = w.begin(tokens(13))
    w.step([(sequence, 6)])
    w.step([(sequence, 5)])
    w.greedy(sequence, 3)
    assert_right(backend, sequence, variant)


@backends
@page_sizes
def test_chunks_and_single_tokens_of_many_lengths_share_a_pass(
    backend: Backend, page_size: int
) -> None:
    w = world(backend, page_size)
    first, second, third, fourth = (w.begin(tokens(n, seed=n)) for n in (40, 22, 70, 9))
    w.step([(first, 39), (second, 5), (third, 1)])
    w.step([(third, 60), (first, 1), (second, 1), (fourth, 8)])
    w.step([(second, 1), (third, 9), (fourth, 1)])
    w.step([(second, 15)])
    for sequence in (first, second, third, fourth):
        assert_right(backend, sequence)


@backends
@page_sizes
def test_sequences_that_share_pages(backend: Backend, page_size: int) -> None:
    w = world(backend, page_size)
    pages = -(-10 // page_size)
    parent = w.begin(tokens(pages * page_size + 2))
    w.step([(parent, pages * page_size)])
    forks = [w.fork(parent, pages, tokens(count, seed=count)) for count in (1, 3, 5)]
    w.step([(forks[0], 1), (forks[1], 3), (parent, 2), (forks[2], 4)])
    w.step([(forks[2], 1)])
    for sequence in (parent, *forks):
        assert_right(backend, sequence)


@backends
def test_a_long_chunk_over_a_cached_prefix(backend: Backend) -> None:
    w = world(backend, 16)
    sequence = w.begin(tokens(700))
    w.step([(sequence, 70)])
    w.step([(sequence, 630)])
    assert_right(backend, sequence)


@backends
def test_many_single_tokens_over_long_contexts(backend: Backend) -> None:
    w = world(backend, 16)
    parent = w.begin(tokens(480))
    w.step([(parent, 480)])
    forks = [w.fork(parent, 30 - 3 * (i % 4), [i]) for i in range(24)]
    w.step([(fork, 1) for fork in forks])
    for fork in forks[:5]:
        assert_right(backend, fork)


@backends
def test_pages_beyond_the_context_are_not_read(backend: Backend) -> None:
    w = world(backend, 4)
    chunked, single = w.begin(tokens(6), spare_pages=2), w.begin(tokens(5), spare_pages=3)
    w.step([(chunked, 6), (single, 4)])
    w.step([(single, 1)])
    assert_right(backend, chunked)
    assert_right(backend, single)


@backends
@pytest.mark.slow
@settings(max_examples=2 if INTERPRETED else 20, deadline=None)
@given(data=st.data())
def test_any_mix_of_chunks(backend: Backend, data: st.DataObject) -> None:
    variant = data.draw(st.sampled_from(list(VARIANTS)), "variant")
    page_size = data.draw(st.sampled_from(PAGE_SIZES), "page size")
    w = world(backend, page_size, variant=variant, seed=data.draw(st.integers(0, 9), "deal"))
    lengths = data.draw(st.lists(st.integers(1, 90), min_size=1, max_size=4), "lengths")
    sequences = [w.begin(tokens(n, seed=i)) for i, n in enumerate(lengths)]
    while unfinished := [s for s in sequences if s.computed < len(s.ids)]:
        chunks = [
            (s, data.draw(st.integers(0, len(s.ids) - s.computed), "rows")) for s in unfinished
        ]
        chunks = [(s, rows) for s, rows in chunks if rows] or [(unfinished[0], 1)]
        w.step(chunks)
        parent = data.draw(st.sampled_from(sequences), "parent")
        shared = data.draw(st.integers(0, parent.computed // page_size), "shared pages")
        if shared and len(sequences) < 7:
            sequences.append(w.fork(parent, shared, tokens(data.draw(st.integers(1, 9)), seed=99)))
    for sequence in sequences:
        assert_right(backend, sequence, variant)

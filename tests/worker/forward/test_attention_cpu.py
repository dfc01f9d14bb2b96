"""The compiled attention: what it answers, and that nothing beside a row changes its answer."""

import random
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_rows import Deal, Heads, Rows
from native_kernels import native_or_skip
from radixgate.worker.forward.attention_cpu import CpuAttention
from radixgate.worker.forward.batch import KvPool
from radixgate.worker.weights.rounding import KvDtype

PAGES = 64 * 16  # tokens, whatever the page size
kvs = pytest.mark.parametrize("kv", list(KvDtype), ids=str)


def backend(heads: Heads, kv: KvDtype = KvDtype.FP32) -> CpuAttention:
    pool = KvPool.allocate(
        layers=1, slots=PAGES, kv_heads=heads.kv, head_dim=heads.dim, dtype=kv.torch_dtype
    )
    for stored in pool.key_scales or pool.keys:
        stored.fill_(torch.nan)  # who reads what was not written spoils its answer
    return CpuAttention(pool, heads.queries, native_or_skip())


def plain(rows: Rows, kv: KvDtype) -> torch.Tensor:
    """The formula, in double precision."""
    group = rows.q.shape[1] // rows.k.shape[1]
    k, v = (kv.rounded(side).double().repeat_interleave(group, dim=1) for side in (rows.k, rows.v))
    scores = torch.einsum("qhd,khd->hqk", rows.q.double(), k) / rows.q.shape[2] ** 0.5
    future = torch.ones(len(rows), len(rows), dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -torch.inf).softmax(dim=-1)
    return torch.einsum("hqk,khd->qhd", weights, v).float()


@kvs
@pytest.mark.parametrize("page_size", [1, 4, 16, 64, 96], ids="page-{}".format)
def test_it_is_the_formula(kv: KvDtype, page_size: int) -> None:
    deal = Deal(Heads(), page_size, PAGES // page_size)
    attention = backend(deal.heads, kv)
    long, short = deal.sequence(500), deal.sequence(7)
    answers = deal.attend(attention, [(long, range(500)), (short, range(7))])
    for rows, answer in zip((long, short), answers, strict=True):
        torch.testing.assert_close(answer, plain(rows, kv), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    "heads",
    [Heads(1, 1, 2), Heads(9, 3, 64), Heads(4, 4, 8), Heads(5, 1, 80), Heads(8, 2, 128)],
    ids=str,
)
def test_heads_of_any_number_and_size(heads: Heads) -> None:
    deal = Deal(heads, 16, 64)
    attention = backend(heads)
    rows = deal.sequence(150)
    deal.attend(attention, [(rows, range(140))])
    parts = [deal.attend(attention, [(rows, range(at, at + 1))])[0] for at in range(140, 150)]
    torch.testing.assert_close(torch.cat(parts), plain(rows, KvDtype.FP32)[140:], atol=1e-5, rtol=0)


@kvs
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_an_answer_is_the_same_bits_whatever_else_is_computed(
    kv: KvDtype, data: st.DataObject
) -> None:
    """Alone and at once, or cut into chunks, beside others, and over pages that are shared."""
    page_size = data.draw(st.sampled_from([1, 16, 64]), "page size")
    deal = Deal(Heads(), page_size, PAGES // page_size, seed=data.draw(st.integers(0, 99)))
    tokens = data.draw(st.integers(1, 400), "tokens")
    rows = deal.sequence(tokens)
    (alone,) = deal.attend(backend(deal.heads, kv), [(rows, range(tokens))])

    attention = backend(deal.heads, kv)
    others = [deal.sequence(n) for n in data.draw(st.lists(st.integers(1, 150), max_size=2))]
    shared = data.draw(st.integers(0, tokens // page_size), "shared pages")
    cuts = data.draw(st.lists(st.integers(0, tokens), max_size=4), "cuts")
    answers = []
    for start, end in pairwise(sorted({0, *cuts, tokens})):
        # The others are computed over and over, which is as good as anything.
        beside = [(other, range(len(other))) for other in others]
        answers.append(deal.attend(attention, [*beside, (rows, range(start, end))])[-1])
    assert torch.equal(torch.cat(answers), alone)
    if shared and tokens > 1:
        fork = deal.sequence(shared * page_size + 3, rows, shared)
        last = range(tokens - 1, tokens)
        both = [(fork, range(shared * page_size, len(fork))), (rows, last)]
        assert torch.equal(deal.attend(attention, both)[1][0], alone[-1])


@kvs
def test_decoding_rows_that_share_a_prefix(kv: KvDtype) -> None:
    """Two groups over the pages of two parents, and one row that shares with nobody."""
    deal = Deal(Heads(), 16, 64)
    attention = backend(deal.heads, kv)
    parents = [deal.sequence(300), deal.sequence(280)]
    forks = [deal.sequence(290 + i, parents[i % 2], 16) for i in range(6)]
    everyone = [*parents, *forks]
    for rows in everyone:
        deal.attend(attention, [(rows, range(len(rows)))])
    random.Random(0).shuffle(everyone)
    last = [(rows, range(len(rows) - 1, len(rows))) for rows in everyone]
    for rows, answer in zip(everyone, deal.attend(attention, last), strict=True):
        torch.testing.assert_close(answer, plain(rows, kv)[-1:], atol=1e-5, rtol=0)


def test_scores_far_apart_and_beyond_the_range_of_exponentials() -> None:
    deal = Deal(Heads(), 16, 64)
    rows = deal.sequence(300)
    rows.q *= 300.0
    (answer,) = deal.attend(backend(deal.heads), [(rows, range(300))])
    torch.testing.assert_close(answer, plain(rows, KvDtype.FP32), atol=1e-3, rtol=0)


def test_two_threads_answer_as_one_does() -> None:
    deal = Deal(Heads(), 16, 64)
    rows = [deal.sequence(n) for n in (300, 130, 90)]
    chunks = [(each, range(len(each))) for each in rows]
    answers = []
    before = torch.get_num_threads()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        attention = backend(deal.heads, KvDtype.INT8)
        answers.append(torch.cat(deal.attend(attention, chunks)))
    torch.set_num_threads(before)
    assert torch.equal(*answers)

"""Which token a row of logits gives."""

from array import array

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from asking import Asked
from radixgate.proto.sampling import SamplingParams
from radixgate.worker.requests.logits import LogitBias, MinTokens, Penalties, Row
from radixgate.worker.steps.logprobs import row_logprobs
from radixgate.worker.steps.sampler import UnusableLogits, choose, uniform
from small_engine import SmallEngine

ROWS = st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=40).map(
    lambda values: np.array(values, dtype=np.float32)
)
POINTS = st.floats(0, 1, exclude_max=True)


def row(*values: float) -> Row:
    return np.array(values, dtype=np.float32)


def reachable(logits: Row, sampling: SamplingParams, points: int = 400) -> set[int]:
    return {choose(logits, sampling, place / points) for place in range(points)}


def test_draws_are_spread_evenly_and_depend_on_every_part_of_their_key() -> None:
    draws = [uniform(7, 0, position) for position in range(4000)]
    assert all(0.0 <= draw < 1.0 for draw in draws)
    assert abs(float(np.mean(draws)) - 0.5) < 0.02
    assert len({uniform(7, 0, 0), uniform(8, 0, 0), uniform(7, 1, 0), uniform(7, 0, 1)}) == 4


def test_the_golden_draw_never_changes() -> None:
    # A request may go on at a worker of another version: these numbers are part of the contract.
    assert uniform(42, 0, 0) == 0.48772010054674886
    assert uniform(2**64 - 1, 3, 1000) == 0.30609678469464763


@given(logits=ROWS, point=POINTS)
@settings(max_examples=30)
def test_a_token_comes_as_often_as_its_probability_says(logits: Row, point: float) -> None:
    token = choose(logits, SamplingParams(), point)
    weights = np.exp((logits - logits.max()).astype(np.float64))
    ends = np.cumsum(weights) / weights.sum()
    assert point <= ends[token] + 1e-6
    assert token == 0 or point >= ends[token - 1] - 1e-6


@given(
    logits=ROWS,
    point=POINTS,
    top_k=st.one_of(st.just(-1), st.integers(1, 50)),
    top_p=st.floats(0.01, 1),
    min_p=st.floats(0, 1),
    temperature=st.floats(0.1, 5),
)
@settings(max_examples=30)
def test_cuts_keep_what_they_promise(
    logits: Row, point: float, top_k: int, top_p: float, min_p: float, temperature: float
) -> None:
    sampling = SamplingParams(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    token = choose(logits, sampling, point)
    chances = np.exp((logits - logits.max()).astype(np.float64) / temperature)
    more_likely = np.flatnonzero(chances > chances[token] * (1 + 1e-4))
    if top_k > 0:
        assert len(more_likely) < top_k
        chances[np.argsort(-chances)[top_k:]] *= 0
    assert chances[more_likely].sum() <= top_p * chances.sum() * (1 + 1e-4)
    assert np.exp((logits[token] - logits.max()) / temperature) >= min_p * (1 - 1e-4)


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        pytest.param(SamplingParams(), {0, 1, 2, 3}, id="nothing-cut"),
        pytest.param(SamplingParams(top_k=2), {0, 2}, id="top_k"),
        pytest.param(SamplingParams(top_k=99), {0, 1, 2, 3}, id="top_k-beyond-the-vocabulary"),
        pytest.param(SamplingParams(top_p=0.3), {2}, id="top_p-of-the-most-likely"),
        pytest.param(SamplingParams(top_p=0.75), {0, 2}, id="top_p"),
        pytest.param(SamplingParams(min_p=0.5), {0, 2}, id="min_p"),
        pytest.param(SamplingParams(top_k=3, top_p=0.8), {0, 2}, id="top_p-of-what-top_k-left"),
        pytest.param(SamplingParams(temperature=0.001), {2}, id="cold"),
    ],
)
def test_only_likely_tokens_survive_the_cuts(sampling: SamplingParams, kept: set[int]) -> None:
    logits = np.log(row(0.3, 0.15, 0.45, 0.1))
    assert reachable(logits, sampling) == kept


def test_a_nucleus_wider_than_the_head_is_found_all_the_same() -> None:
    logits = np.zeros(5000, dtype=np.float32)
    # Equally likely: the lower ids come first.
    assert choose(logits, SamplingParams(top_p=0.5), 0.0) == 0
    assert choose(logits, SamplingParams(top_p=0.5), 1 - 1e-9) == 2499


def test_a_row_in_which_nothing_is_allowed_is_an_error() -> None:
    with pytest.raises(UnusableLogits):
        choose(row(-np.inf, -np.inf), SamplingParams(), 0.5)


def test_penalties_count_prompt_and_output_as_they_should() -> None:
    ids = array("I", [0, 1, 2, 2, 3])  # prompt: 0 1; output: 2 2 3
    logits = row(1.0, -1.0, 1.0, 1.0, 1.0)
    Penalties(2.0, frequency=0.5, presence=0.25).apply(logits, ids, 2)
    assert logits.tolist() == [0.5, -2.0, 0.5 - 1.0 - 0.25, 0.5 - 0.5 - 0.25, 1.0]


@given(
    prompt=st.lists(st.integers(0, 7), min_size=1),
    output=st.lists(st.integers(0, 7)),
    calls=st.lists(st.integers(0, 10), max_size=4),
)
@settings(max_examples=30)
def test_penalties_do_not_depend_on_when_they_were_asked(
    prompt: list[int], output: list[int], calls: list[int]
) -> None:
    fresh, used = Penalties(1.3, 0.5, 0.2), Penalties(1.3, 0.5, 0.2)
    ids = array("I", prompt + output)
    for seen in sorted(calls):
        used.apply(np.zeros(8, dtype=np.float32), ids[: len(prompt) + seen], len(prompt))
    one, other = (np.linspace(-1, 1, 8).astype(np.float32) for _ in range(2))
    fresh.apply(one, ids, len(prompt))
    used.apply(other, ids, len(prompt))
    assert one.tolist() == other.tolist()


def test_bias_is_added_and_ends_are_masked() -> None:
    logits = row(0, 0, 0, 0)
    LogitBias({1: 2.0, 3: -1.0}).apply(logits, array("I", [0]), 1)
    assert logits.tolist() == [0, 2, 0, -1]
    mask = MinTokens(2, frozenset({1}))
    mask.apply(logits, array("I", [0, 2]), 1)
    assert logits.tolist() == [0, -np.inf, 0, -1]
    open_row = row(0, 0)
    mask.apply(open_row, array("I", [0, 2, 2]), 1)
    assert open_row.tolist() == [0, 0]


def test_logprobs_are_those_of_the_model_itself() -> None:
    logits = np.log(row(0.1, 0.6, 0.3))
    found = row_logprobs(logits + 5, token_id=2, top=2, of_ids=[0])
    assert found.chosen == pytest.approx(np.log(0.3), abs=1e-5)
    assert [token for token, _ in found.top] == [1, 2]
    assert found.top[0][1] == pytest.approx(np.log(0.6), abs=1e-5)
    assert found.of_ids[0][1] == pytest.approx(np.log(0.1), abs=1e-5)


def test_logprobs_reach_the_wire_once_a_token_whatever_changes_the_choice() -> None:
    engine = SmallEngine()
    plain = engine.answer([1, 2], max_tokens=3, top_logprobs=2, token_ids_logprob=[9])
    entries = [entry for item in plain.of(1) for entry in item.logprobs]
    assert [entry.token_id for entry in entries] == plain.ids(1)
    assert all(entry.top[0].token_id == entry.token_id for entry in entries)
    assert all(entry.of_ids[0].token_id == 9 for entry in entries)
    biased = engine.answer([1, 2], max_tokens=1, top_logprobs=1, logit_bias={9: 100.0})
    (entry,) = biased.of(1)[0].logprobs
    assert entry.token_id == 9
    assert entry.top[0].token_id == plain.ids(1)[0]
    assert entry.logprob == entries[0].of_ids[0].logprob


def test_an_error_in_one_requests_chain_ends_that_request_alone() -> None:
    class Broken:
        def apply(self, logits: Row, ids: "array[int]", prompt_tokens: int) -> None:
            if ids[0] == 13:
                raise ZeroDivisionError("unlucky")

    engine = SmallEngine(processors=lambda sampling, stop_ids: [Broken()])
    assert engine.answer([13], **Asked(max_tokens=3)).refused[1].status == 500
    assert engine.answer([14], **Asked(max_tokens=3)).finish(1) == "LENGTH"
    engine.check_idle()

"""The formulas, on chunk logs whose figures were worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixgate.analysis import latency
from request_records import record

# Case LG1: 3 tokens at .200, 2 at .300, 1 at .360; the role event at .050 is no arrival.
LG1 = record((0.200, 3), (0.300, 2), (0.360, 1))


def test_lg1_extra_tokens_of_a_chunk_share_its_gap_and_of_the_first_count_zero() -> None:
    assert latency.ttft_s(LG1) == pytest.approx(0.200)
    assert latency.e2e_s(LG1) == pytest.approx(0.360)
    assert latency.tpot_s(LG1) == pytest.approx(0.032)
    assert latency.itl_tokens_s(LG1) == pytest.approx([0, 0, 0.05, 0.05, 0.06])
    assert math.fsum(latency.itl_tokens_s(LG1)) / 5 == pytest.approx(0.032)
    assert latency.itl_gaps_s(LG1) == pytest.approx([0.100, 0.060])
    assert LG1.output_tokens == 6


def test_response_figures_count_from_when_it_was_due() -> None:
    late = record((2.5, 1), (3.0, 1), sent=2.0, due=0.5)
    assert latency.ttft_s(late) == pytest.approx(0.5)
    assert latency.response_ttft_s(late) == pytest.approx(2.0)
    assert latency.e2e_s(late) == pytest.approx(1.0)
    assert latency.response_e2e_s(late) == pytest.approx(2.5)
    assert latency.schedule_lag_s(late) == pytest.approx(1.5)


def test_one_token_has_no_time_per_further_token() -> None:
    one = record((0.4, 1))
    assert latency.ttft_s(one) == latency.e2e_s(one)
    assert latency.tpot_s(one) is None
    assert latency.itl_tokens_s(one) == []


def test_no_token_has_no_ttft() -> None:
    nothing = record(end=0.3)
    assert latency.ttft_s(nothing) is None
    assert latency.response_ttft_s(nothing) is None
    assert latency.tpot_s(nothing) is None
    assert latency.itl_tokens_s(nothing) == []
    assert latency.e2e_s(nothing) == pytest.approx(0.3)


def test_text_without_a_new_token_gives_its_gap_to_the_next_token() -> None:
    assert latency.itl_tokens_s(record((0.1, 1), (0.2, 0), (0.3, 2))) == pytest.approx([0.1, 0.1])


@given(
    first_s=st.floats(0.001, 5),
    chunks=st.lists(st.tuples(st.floats(0, 2), st.integers(1, 5)), max_size=20),
    tokens=st.integers(1, 5),
)
def test_token_latencies_add_up_to_the_time_between_first_and_last(
    first_s: float, chunks: list[tuple[float, int]], tokens: int
) -> None:
    log = [(first_s, tokens)]
    for gap_s, more in chunks:
        log.append((log[-1][0] + gap_s, more))
    one = record(*log)
    values = latency.itl_tokens_s(one)
    assert len(values) == one.output_tokens - 1
    assert math.fsum(values) == pytest.approx(log[-1][0] - first_s, abs=1e-9)
    tpot = latency.tpot_s(one)
    if tpot is not None:
        assert math.fsum(values) / len(values) == pytest.approx(tpot, abs=1e-9)


def test_concurrency_is_littles_law() -> None:
    two_at_a_time = [record((1.0, 1)), record((1.0, 1)), record((2.0, 1), sent=1.0)]
    assert latency.concurrency(two_at_a_time, 2.0) == pytest.approx(1.5)
    assert latency.concurrency(two_at_a_time, 0.0) == 0.0

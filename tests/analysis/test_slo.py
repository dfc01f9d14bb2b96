"""An objective is kept by requests, out of all that were offered."""

import pytest

from radixgate.analysis.records import ABANDONED, RequestRecord
from radixgate.analysis.slo import LatencyBounds, slo_of
from radixgate.errors import ConfigError
from request_records import record


def slo(*words: str) -> LatencyBounds:
    found = slo_of(words)
    assert found is not None
    return found


LATE = record((0.6, 1), (0.8, 1), sent=0.4, due=0.0)


@pytest.mark.parametrize(
    ("words", "one", "met"),
    [
        pytest.param(["ttft:600"], LATE, True, id="ttft-at-the-bound"),
        pytest.param(["ttft:500"], LATE, False, id="ttft-counts-from-the-intended-time"),
        pytest.param(["e2e:800"], LATE, True, id="e2e"),
        pytest.param(["tpot:199"], LATE, False, id="tpot"),
        pytest.param(["itl_p99:201", "tpot:201"], LATE, True, id="both"),
        pytest.param(["tpot:1"], record((0.5, 1)), True, id="one-token-has-no-tpot"),
        pytest.param(["ttft:9999"], record(failure="timeout"), False, id="a-failure-is-a-miss"),
    ],
)
def test_who_keeps_it(words: list[str], one: RequestRecord, met: bool) -> None:
    assert slo(*words).met_by(one) is met


def test_attainment_is_over_all_that_was_offered() -> None:
    records = [record((0.1, 1))] * 6 + [record((9.0, 1))] * 2 + [record(failure="HTTP 500")] * 2
    records += [record(failure=ABANDONED)] * 5
    found = slo("ttft:500").attainment(records, 2.0)
    assert (found.good, found.offered, found.share) == (6, 10, 0.6)
    assert found.goodput == pytest.approx(3.0)
    assert found.interval.low < 0.6 < found.interval.high


@pytest.mark.parametrize("word", ["ttft", "ttft:", "ttft:-1", "latency:5", "ttft:x"])
def test_a_wrong_word_is_named(word: str) -> None:
    with pytest.raises(ConfigError, match=f"--goodput {word}:? ?.*NAME:MILLISECONDS"):
        slo_of([word])


def test_a_name_twice_is_wrong_and_no_words_are_no_objective() -> None:
    with pytest.raises(ConfigError, match="each name once"):
        slo_of(["ttft:1", "ttft:2"])
    assert slo_of([]) is None


def test_a_closed_loop_has_no_intended_times_to_count_from() -> None:
    for word, met in (
        ("ttft:200", True),
        ("ttft:199", False),
        ("e2e:400", True),
        ("e2e:399", False),
    ):
        bounds = slo_of([word], open_loop=False)
        assert bounds is not None
        assert bounds.met_by(record((0.625, 1), (0.825, 1), sent=0.425, due=0.0)) is met

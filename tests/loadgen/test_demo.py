"""The demo: what it asks, what it shows, and a toy version of the whole."""

import json
from collections import Counter
from pathlib import Path

import pytest

from radixgate.analysis.records import RequestRecord
from radixgate.analysis.summary import summarise
from radixgate.configs.command import Command
from radixgate.configs.load import load
from radixgate.errors import ConfigError
from radixgate.loadgen.demo import bench_config, comparison, figures_of, run_demo, write_figures
from radixgate.loadgen.demo_config import DemoConfig
from radixgate.loadgen.intended import schedule_of
from request_records import record


def test_the_schedule_is_60_questions_about_12_documents_of_256_words() -> None:
    schedule = schedule_of(bench_config(DemoConfig(), "http://h:1"))
    texts = [str(one.prompt.native()["text"]) for one in schedule]
    documents = Counter(text.partition("\n\n")[0] for text in texts)
    assert len(schedule) == 60
    assert all(len(document.split()) == 256 for document in documents)
    assert 9 <= len(documents) <= 12  # an unpopular one may not be asked about
    assert len(set(texts)) == 60
    assert {one.output_tokens for one in schedule} == {4}


def test_the_pool_holds_six_documents_in_whole_pages() -> None:
    config = DemoConfig()
    # 256 + 20 + 4 tokens are 18 pages of 16.
    assert config.pool_tokens == 6 * 288
    assert DemoConfig(max_total_tokens=512).pool_tokens == 512


def hits(order: list[str], capacity: int) -> int:
    """How often an LRU of documents has what is asked for."""
    kept: list[str] = []
    found = 0
    for document in order:
        if document in kept:
            found += 1
            kept.remove(document)
        elif len(kept) == capacity:
            kept.pop(0)
        kept.append(document)
    return found


def test_the_default_schedule_rewards_documents_that_stay_with_one_worker() -> None:
    """What the demo can show is in its schedule: counted here without any process."""
    schedule = schedule_of(bench_config(DemoConfig(), "http://h:1"))
    order = [str(one.group) for one in schedule]
    by_turns = hits(order[::2], 6) + hits(order[1::2], 6)
    homes = {group: place % 2 for place, group in enumerate(dict.fromkeys(order))}
    at_home = sum(
        hits([group for group in order if homes[group] == worker], 6) for worker in (0, 1)
    )
    assert by_turns / 60 < 0.45
    assert at_home / 60 > 0.75


def test_the_default_seed_is_in_the_middle_of_twelve() -> None:
    by_turns = {}
    for seed in range(1, 13):
        schedule = schedule_of(bench_config(DemoConfig(seed=seed), "http://h:1"))
        order = [str(one.group) for one in schedule]
        by_turns[seed] = hits(order[::2], 6) + hits(order[1::2], 6)
    assert sorted(by_turns.values()) == [20, 20, 25, 26, 26, 26, 27, 29, 29, 30, 33, 37]
    assert by_turns[DemoConfig().seed] == 26


SUMMARIES = {
    "round_robin": summarise(
        [
            record((1.0, 1), (2.0, 1), cached=20, worker="a"),
            record((2.0, 1), (3.0, 1), cached=40, worker="b"),
        ]
    ),
    "cache_aware": summarise([record((0.25, 1), (1.0, 1), cached=90, worker="a")]),
}


def test_figures_have_the_form_that_readers_of_the_file_expect() -> None:
    assert figures_of(SUMMARIES["round_robin"]) == {
        "hit_rate": pytest.approx(0.3),
        "ttft_ms": {"p50": pytest.approx(1500.0), "p99": pytest.approx(1990.0)},
        "requests_per_s": pytest.approx(2 / 3),
    }


def test_a_folder_that_became_a_file_while_it_measured_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").touch()
    with pytest.raises(ConfigError, match=r"^--output .*demo.json cannot be written: "):
        write_figures(tmp_path / "out" / "demo.json", SUMMARIES)


def test_both_stand_side_by_side() -> None:
    assert comparison(SUMMARIES) == (
        "                             round_robin     cache_aware\n"
        "prefix cache hit rate              0.300           0.900\n"
        "prompt tokens computed               140              10\n"
        "TTFT p50 (ms)                       1500             250\n"
        "TTFT p99 (ms)                       1990             250\n"
        "E2E p50 (ms)                        2500            1000\n"
        "requests per second                 0.67            1.00\n"
        "requests per worker                1 + 1               1\n"
        "requests failed                   0 of 2          0 of 1"
    )


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([], id="nothing-sent"),
        pytest.param([record(failure="timeout")], id="all-failed"),
    ],
)
def test_nothing_measured_is_null_and_a_dash(records: list[RequestRecord]) -> None:
    summary = summarise(records)
    assert figures_of(summary)["ttft_ms"] == {"p50": None, "p99": None}
    assert "TTFT p50 (ms)                          -" in comparison({"random": summary})


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param("--questions 25", "multiple of --documents 12", id="uneven"),
        pytest.param("--documents 0", "--documents must be at least 1", id="none"),
    ],
)
def test_impossible_settings_are_named(line: str, problem: str) -> None:
    command = Command("demo", "Show.", {"demo": DemoConfig})
    with pytest.raises(ConfigError, match=problem):
        load(command, line.split(), {})


@pytest.mark.slow
def test_a_toy_demo_shows_a_higher_hit_rate_under_cache_aware(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out" / "demo.json"
    config = DemoConfig(
        model_path="toy",
        documents=12,
        document_tokens=40,  # words; some 200 bytes, which are the toy's tokens
        questions=60,
        question_tokens=3,
        output_tokens=4,
        max_total_tokens=5 * 288,
        threads=1,
        output=str(output),
        start_timeout_s=60.0,
        time_limit_s=110.0,
    )
    assert run_demo(config) == 0
    shown = capsys.readouterr().out
    assert "prefix cache hit rate" in shown
    found = json.loads(output.read_text())
    assert set(found) == {"round_robin", "cache_aware"}
    assert found["cache_aware"]["hit_rate"] >= found["round_robin"]["hit_rate"] + 0.15
    for policy in found.values():
        assert policy["ttft_ms"]["p50"] > 0
        assert policy["requests_per_s"] > 0

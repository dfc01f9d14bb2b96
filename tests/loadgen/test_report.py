"""The table: SGLang's rows in order, word for word; and the result line's keys."""

import json
import math
from pathlib import Path

import pytest

from radixgate.analysis.records import RequestRecord
from radixgate.analysis.summary import summarise
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.report import table
from radixgate.loadgen.result_line import append_line, details_of, result_of
from request_records import record

RUN = [
    record((0.200, 3), (0.300, 2), (0.360, 1), cached=64, worker="w1"),
    record((0.500, 1), (0.600, 1), (0.900, 1), sent=0.4, cached=0, worker="w2"),
    record(failure="HTTP 500", end=0.1),
    record(failure="timeout", end=5.0),
    record(failure="HTTP 500", end=0.1),
]

GOLDEN = """\
============ Serving Benchmark Result ============
Backend:                                 sglang
Traffic request rate:                    inf
Max request concurrency:                 25
Successful requests:                     2
Benchmark duration (s):                  0.90
Total input tokens:                      200
Total generated tokens:                  9
Request throughput (req/s):              2.22
Input token throughput (tok/s):          222.22
Output token throughput (tok/s):         10.00
Total token throughput (tok/s):          232.22
Concurrency:                             0.96
----------------End-to-End Latency----------------
Mean E2E Latency (ms):                   430.00
Median E2E Latency (ms):                 430.00
---------------Time to First Token----------------
Mean TTFT (ms):                          150.00
Median TTFT (ms):                        150.00
P99 TTFT (ms):                           199.00
---------------Inter-Token Latency----------------
Mean ITL (ms):                           80.00
Median ITL (ms):                         50.00
P95 ITL (ms):                            240.00
P99 ITL (ms):                            288.00
Max ITL (ms):                            300.00
--------------Time per Output Token---------------
Mean TPOT (ms):                          116.00
Median TPOT (ms):                        116.00
P99 TPOT (ms):                           n = 2 < 1000
-------------Prefix Cache and Workers-------------
Cached token share:                      0.320
Requests by w1:                          1
Requests by w2:                          1
---------------------Failures---------------------
Failed requests:                         3
  HTTP 500:                              2
  timeout:                               1
--------------------------------------------------
TTFT = first token - dispatch. E2E = last token - dispatch.
TPOT = (last - first token) / (output tokens - 1), per request.
ITL  = gap between events / tokens in the later one, per token.
Concurrency = sum of E2E / duration.
Duration: first dispatch to the last token of a success, or the last dispatch if later.
NOTE: P99 TTFT rests on n = 2; it takes 1000 to mean much.
FAILED: 3 of 5 requests; the figures leave them out.
=================================================="""


def test_the_table_word_for_word() -> None:
    config = BenchConfig(backend="sglang", max_concurrency=25)
    assert table(config, summarise(RUN)) == GOLDEN


# As users' scripts look for them: each row's label, top to bottom.
ORDER = (
    "Backend:",
    "Traffic request rate:",
    "Max request concurrency:",
    "Successful requests:",
    "Benchmark duration (s):",
    "Total input tokens:",
    "Total generated tokens:",
    "Request throughput (req/s):",
    "Input token throughput (tok/s):",
    "Output token throughput (tok/s):",
    "Total token throughput (tok/s):",
    "Concurrency:",
    "Mean E2E Latency (ms):",
    "Median E2E Latency (ms):",
    "Mean TTFT (ms):",
    "Median TTFT (ms):",
    "P99 TTFT (ms):",
    "Mean ITL (ms):",
    "Median ITL (ms):",
    "P95 ITL (ms):",
    "P99 ITL (ms):",
    "Max ITL (ms):",
)


def test_rows_come_in_the_order_users_know() -> None:
    shown = [line[:40].strip() for line in table(BenchConfig(), summarise(RUN)).splitlines()]
    assert [label for label in shown if label in ORDER] == list(ORDER)


def test_an_open_loop_also_shows_what_its_users_waited() -> None:
    late = [record((2.5, 1), sent=2.0, due=0.5)]
    shown = table(BenchConfig(request_rate=4.0), summarise(late))
    assert "Traffic request rate:                    4\n" in shown
    assert "Max request concurrency:                 not set\n" in shown
    assert "Mean TTFT (ms):                          500.00\n" in shown
    assert "Mean response TTFT (ms):                 2000.00\n" in shown
    assert "Max schedule lag (ms):                   1500.00\n" in shown


def test_nothing_measured_shows_dashes() -> None:
    shown = table(BenchConfig(), summarise([record(failure="timeout")]))
    assert "Successful requests:                     0\n" in shown
    assert "Median TTFT (ms):                        -\n" in shown
    assert "Cached token share:                      not reported\n" in shown


# What scripts around SGLang's bench read.
SGLANG_KEYS = {
    "backend",
    "dataset_name",
    "request_rate",
    "max_concurrency",
    "sharegpt_output_len",
    "random_input_len",
    "random_output_len",
    "random_range_ratio",
    "duration",
    "completed",
    "total_input_tokens",
    "total_output_tokens",
    "request_throughput",
    "input_throughput",
    "output_throughput",
    "mean_e2e_latency_ms",
    "median_e2e_latency_ms",
    "std_e2e_latency_ms",
    "p99_e2e_latency_ms",
    "mean_ttft_ms",
    "median_ttft_ms",
    "std_ttft_ms",
    "p99_ttft_ms",
    "mean_tpot_ms",
    "median_tpot_ms",
    "std_tpot_ms",
    "p99_tpot_ms",
    "mean_itl_ms",
    "median_itl_ms",
    "std_itl_ms",
    "p95_itl_ms",
    "p99_itl_ms",
    "max_itl_ms",
    "concurrency",
}


def line_of(tmp_path: Path, config: BenchConfig, records: list[RequestRecord]) -> dict[str, object]:
    path = tmp_path / "deep" / "result.jsonl"
    append_line(path, result_of(config, summarise(records), "abcd"))
    parsed: dict[str, object] = json.loads(path.read_text().splitlines()[-1])
    return parsed


def test_the_result_line_has_the_keys_and_values_that_scripts_read(tmp_path: Path) -> None:
    line = line_of(tmp_path, BenchConfig(backend="sglang", max_concurrency=25, tag="t"), RUN)
    assert set(line) >= SGLANG_KEYS
    assert line["completed"] == 2
    assert line["failed"] == 3
    assert line["failures"] == {"HTTP 500": 2, "timeout": 1}
    assert line["request_rate"] == "inf"
    assert line["mean_ttft_ms"] == pytest.approx(150.0)
    assert line["p95_itl_ms"] == pytest.approx(240.0)
    assert line["max_itl_ms"] == pytest.approx(300.0)
    assert line["cached_token_share"] == pytest.approx(0.32)
    assert line["workers"] == {"w1": 1, "w2": 1}
    assert line["schedule_hash"] == "abcd"
    assert line["tag"] == "t"


def test_figures_with_nothing_to_measure_are_null(tmp_path: Path) -> None:
    line = line_of(tmp_path, BenchConfig(), [record(failure="timeout")])
    assert line["mean_ttft_ms"] is None
    assert line["p99_itl_ms"] is None
    assert line["request_throughput"] == 0.0


def test_lines_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "result.jsonl"
    for _ in range(2):
        append_line(path, result_of(BenchConfig(), summarise(RUN), "abcd"))
    assert len(path.read_text().splitlines()) == 2


def test_an_open_loop_line_has_response_figures(tmp_path: Path) -> None:
    late = [record((2.5, 1), sent=2.0, due=0.5)]
    line = line_of(tmp_path, BenchConfig(request_rate=4.0), late)
    assert line["mean_response_ttft_ms"] == pytest.approx(2000.0)
    assert line["max_schedule_lag_ms"] == pytest.approx(1500.0)


def test_details_give_each_request_and_no_latency_to_failures() -> None:
    details = details_of(RUN)
    assert details["output_lens"] == [6, 3, 0, 0, 0]
    ttfts = details["ttfts"]
    assert isinstance(ttfts, list)
    assert [None if t is None else round(t, 3) for t in ttfts] == [0.2, 0.1, None, None, None]
    assert details["errors"] == ["", "", "HTTP 500: ", "timeout: ", "HTTP 500: "]
    assert all(isinstance(values, list) and len(values) == 5 for values in details.values())
    assert not any(isinstance(t, float) and math.isnan(t) for t in ttfts)

"""Reports are made of a run's files alone: the same bytes each time, and nothing secret in them."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from radixgate.analysis.balance import FleetPoll
from radixgate.analysis.validity import ClientHealth
from radixgate.cli import main
from radixgate.errors import ConfigError
from radixgate.loadgen.arrivals import ArrivalConfig
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.reports.regenerate import write_reports
from radixgate.loadgen.reports.run_folder import RunInfo, read_run, run_info, write_run
from radixgate.loadgen.workload_config import WorkloadConfig
from request_records import record

RECORDS = [
    replace(
        record(
            (0.1 * n + 0.123456789, 1),
            (0.1 * n + 0.2, 3),
            sent=0.1 * n + 0.001,
            due=0.1 * n,
            cached=10 * (n % 3),
            worker=f"w{n % 2}",
            index=n,
        ),
        session=f"r{n}",
        reusable_share=0.25,
    )
    for n in range(40)
]
RECORDS.append(record(failure="HTTP 500", sent=4.0, due=4.0, end=4.1, index=40))
POLLS = [FleetPoll(0.5 * n, {"w0": n, "w1": 1}, {"w0": 9, "w1": 9}, {"w0": None}) for n in range(8)]
CONFIG = BenchConfig(
    backend="sglang",
    request_rate=10.0,
    goodput=("ttft:500",),
    header=("Authorization=Bearer secret-key",),
    model="</script><b>m",
)


def written(folder: Path, config: BenchConfig = CONFIG) -> Path:
    clients = [ClientHealth(0, 41, 0.1, 0.001, 0.01)]
    sections = (config, WorkloadConfig(), ArrivalConfig())
    info = run_info(sections, "abcd", clients, "2026-01-01T00:00:00+00:00")
    write_run(folder, info, RECORDS, POLLS)
    return folder


REPORTS = ("summary.json", "summary.md", "report.html")


def test_reports_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    folder = written(tmp_path / "run")
    write_reports(folder)
    first = {name: (folder / name).read_bytes() for name in REPORTS}
    for name in REPORTS:
        (folder / name).unlink()
    assert main(["report", str(folder)]) == 0
    assert {name: (folder / name).read_bytes() for name in REPORTS} == first


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    folder = written(tmp_path)
    run = read_run(folder)
    assert run.info.bench == replace(CONFIG, header=("Authorization=hidden",))
    assert run.records[0].arrivals[0].at_s == 0.123457  # to the microsecond
    assert [replace(r, arrivals=()) for r in run.records[:1]] == [
        replace(r, arrivals=()) for r in RECORDS[:1]
    ]
    assert list(run.polls) == POLLS
    again = tmp_path / "again"
    write_run(again, run.info, run.records, run.polls)
    for name in ("requests.jsonl", "fleet.jsonl", "run.json"):
        assert (again / name).read_bytes() == (folder / name).read_bytes()


def test_an_endless_rate_is_kept(tmp_path: Path) -> None:
    endless = replace(CONFIG, request_rate=float("inf"))
    assert read_run(written(tmp_path, endless)).info.bench.request_rate == float("inf")


def test_the_summary_says_what_there_is_to_say(tmp_path: Path) -> None:
    _, summary = write_reports(written(tmp_path))
    told = json.loads((tmp_path / "summary.json").read_text())
    assert told["mean_ttft_ms"] == pytest.approx(122.457, abs=0.01)
    assert told["whole"]["verdict"]["valid"] is True
    assert told["whole"]["attainment"]["good"] == 40
    assert told["whole"]["attainment"]["offered"] == 41
    assert told["whole"]["cache"]["bound_share"] == pytest.approx(0.25)
    assert told["whole"]["failures"] == {"HTTP 500": 1}
    assert summary.fleet.polls == 8
    page = (tmp_path / "summary.md").read_text()
    assert page.startswith("# random on sglang: VALID")
    assert "| TTFT | 40 | 122.46 [" in page
    assert "n < 1,000" in page
    assert "kept by | 40 of 41 offered: 97.56% [" in page
    assert "never" in page
    assert "Jain's index" in page
    assert "- TPOT = (t(last arrival) - t(first arrival)) / (output tokens - 1)" in page


def test_the_html_file_stands_alone_and_hides_what_is_secret(tmp_path: Path) -> None:
    write_reports(written(tmp_path))
    html = (tmp_path / "report.html").read_text()
    assert html.count("<script>") == html.count("</script>") == 1 + html.count('Plotly.newPlot("')
    assert "<script src" not in html
    assert "<link" not in html
    assert "&lt;/script&gt;&lt;b&gt;m" in html
    for name in (*REPORTS, "run.json"):
        assert "secret-key" not in (tmp_path / name).read_text()


@pytest.mark.parametrize("gone", ["run.json", "requests.jsonl", "fleet.jsonl"])
def test_a_folder_that_lacks_a_file_is_no_run(tmp_path: Path, gone: str) -> None:
    (written(tmp_path) / gone).unlink()
    with pytest.raises(ConfigError, match=gone):
        write_reports(tmp_path)


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    with (written(tmp_path) / "requests.jsonl").open("ab") as file:
        file.write(b'{"index": 1}\n')
    with pytest.raises(ConfigError, match=r"requests.jsonl:42: "):
        write_reports(tmp_path)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        pytest.param(
            lambda lines: lines[:7] + lines[8:], "40 requests, and the run had 41", id="gone"
        ),
        pytest.param(lambda lines: [*lines, lines[3]], ":42: index 3 stands a second", id="twice"),
    ],
)
def test_a_run_whose_lines_are_not_all_there_once_is_refused(
    tmp_path: Path, lines: Callable[[list[bytes]], list[bytes]], problem: str
) -> None:
    requests = written(tmp_path) / "requests.jsonl"
    requests.write_bytes(b"".join(lines(requests.read_bytes().splitlines(keepends=True))))
    with pytest.raises(ConfigError, match=problem):
        read_run(tmp_path)


def test_a_run_that_only_failed_is_reported(tmp_path: Path) -> None:
    folder = written(tmp_path)
    run = read_run(folder)
    alone = replace(run.info, clients=[replace(run.info.clients[0], requests=1)])
    write_run(folder, alone, run.records[-1:], [])
    _, summary = write_reports(folder)
    assert summary.completed == 0
    assert "0 of 1 succeeded" in (folder / "summary.md").read_text()


def test_a_closed_loop_s_reports_have_nothing_from_the_intended_time(tmp_path: Path) -> None:
    write_reports(written(tmp_path, replace(CONFIG, request_rate=float("inf"))))
    told = json.loads((tmp_path / "summary.json").read_text())["whole"]
    assert [one["name"] for one in told["figures"][:2]] == ["TTFT", "E2E"]
    assert [one["name"] for one in told["adjusted"]] == ["TTFT", "E2E"]
    page, drawn = ((tmp_path / name).read_text() for name in REPORTS[1:])
    assert "| response TTFT |" not in page
    assert "schedule lag" not in page
    assert "from the intended time" not in drawn.split("<script")[-1]
    assert "TTFT over the run" in drawn
    assert "Response TTFT over the run" not in drawn


@pytest.mark.parametrize("config", [{}, {"bench": {"request_rate": "often"}}])
def test_settings_that_are_none_of_a_bench_are_no_run(config: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"^run\.json has no settings of a bench: "):
        RunInfo("", config, (), {}, "").bench  # type: ignore[arg-type]  # noqa: B018

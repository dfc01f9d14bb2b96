"""`radixgate experiment report` from files of records, again and again the same."""

import json
from pathlib import Path

import msgspec
import pytest

from lived_experiments import declared, lived
from radixgate.analysis.experiments.records import (
    BlockEvent,
    Record,
    RequestLine,
    ShadowDecision,
    line_of,
)
from radixgate.cli import main


def written(path: Path, records: list[Record]) -> Path:
    path.write_bytes(b"".join(map(line_of, records)))
    return path


def report(*words: object) -> int:
    return main(["experiment", "report", *map(str, words)])


def test_it_tells_the_effect_and_how_far_to_trust_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path / "e.jsonl", lived(factor=1.5))
    assert report(path) == 0
    printed = capsys.readouterr().out
    assert "experiment spread (switchback)" in printed
    assert "12 of 12 pairs compared; blocks of 100 s, washout 20 s" in printed
    (row,) = [line for line in printed.splitlines() if "(primary)" in line]
    assert row.split()[0] == "ttft_mean"
    assert row.endswith("WORSE")
    assert "arms as scheduled      ok" in printed
    assert "VALID: every check passed" in printed
    assert "warning" not in printed


def test_what_could_not_be_checked_is_not_said_to_have_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [
        msgspec.structs.replace(record, prompt_tokens=None)
        if isinstance(record, RequestLine)
        else record
        for record in lived()
    ]
    assert report(written(tmp_path / "e.jsonl", records)) == 0
    printed = capsys.readouterr().out
    assert "VALID: 5 checks passed, 1 not checked" in printed
    (row,) = [line for line in printed.splitlines() if "prompt tokens" in line]
    assert " ".join(row.split()) == "prompt tokens not checked not known of enough units"


def test_the_same_records_make_the_same_bytes_however_they_are_split(tmp_path: Path) -> None:
    records = lived(factor=1.2)
    whole = written(tmp_path / "whole.jsonl", records)
    first = written(tmp_path / "first.jsonl", records[:100])
    rest = written(tmp_path / "rest.jsonl", records[100:])
    for folder, files in (("one", [whole]), ("two", [whole]), ("three", [first, rest])):
        assert report(*files, "--output-folder", tmp_path / folder) == 0
    for name in ("experiment.json", "experiment.md", "experiment.html"):
        made = {(tmp_path / folder / name).read_bytes() for folder in ("one", "two", "three")}
        assert len(made) == 1
    found = json.loads((tmp_path / "one/experiment.json").read_bytes())
    assert found["pairs"] == 12
    assert found["valid"] is True
    assert found["metrics"][0]["effect"]["test"]["exact"] is True
    page = (tmp_path / "one/experiment.md").read_text()
    assert page.startswith("# experiment spread (switchback)\n\n**VALID: every check passed**\n")


def test_a_request_under_the_wrong_arm_makes_it_invalid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = lived()
    place = next(n for n, record in enumerate(records) if isinstance(record, RequestLine))
    line = records[place]
    assert isinstance(line, RequestLine)
    other = "even" if line.arm == "near" else "near"
    records[place] = RequestLine(
        line.experiment, line.block, other, line.washout, line.t_dispatch_s, "ok"
    )
    assert report(written(tmp_path / "e.jsonl", records)) == 1
    printed = capsys.readouterr().out
    assert "INVALID: arms as scheduled" in printed
    assert "1 of 960 requests not of their block's arm or time" in printed


@pytest.mark.parametrize("kind", ["canary", "bucket"])
def test_a_split_is_no_effect_estimate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    split = declared(kind=kind, pairs=0, block_s=0.0, washout_s=0.0, share_b=0.5)
    records: list[Record] = [split]
    for number in range(400):
        arm = ("near", "even")[number % 2]
        records.append(
            RequestLine("spread", -1, arm, False, float(number), "ok", ttft_s=0.2, unit=number)
        )
    path = written(tmp_path / "e.jsonl", records)
    assert report(path) == 0
    printed = capsys.readouterr().out
    assert "NOT AN EFFECT ESTIMATE" in printed
    assert "Arms (no effect estimate)" in printed
    assert "200 of 400 units in B, 50.0% were meant" in printed
    assert "Effects" not in printed


def test_shadow_decisions_are_compared_and_say_nothing_of_latency(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records: list[Record] = [declared(kind="shadow", pairs=0, block_s=0.0)]
    for number in range(4):
        chosen = "w0" if number else "w1"
        records.append(
            ShadowDecision(
                "spread", float(number), "w0", chosen, "w0", 1_000, 500, 250, 750, 1.0, 2.0
            )
        )
    assert report(written(tmp_path / "e.jsonl", records)) == 0
    printed = capsys.readouterr().out
    assert "same worker as A        -      75.0%  100.0%" in printed
    assert "predicted cached share  50.0%  25.0%  75.0%" in printed
    assert "nothing follows for latency" in printed
    assert "NOT CHECKED: there is nothing that could be" in printed


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        pytest.param((), "write it as", id="nothing"),
        pytest.param(("list",), "write it as", id="another-verb"),
        pytest.param(("report",), "needs a file", id="no-file"),
        pytest.param(("report", "/nowhere"), "/nowhere cannot be read", id="no-such-file"),
    ],
)
def test_what_cannot_be_reported_is_refused(
    words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", *words]) == 2
    assert complaint in capsys.readouterr().err


def test_help_shows_what_is_to_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["experiment", "--help"])
    shown = capsys.readouterr().out
    assert shown.startswith("usage: radixgate experiment report FILE... [flags]\n")
    assert "--output-folder" in shown
    assert "--words" not in shown


def test_two_experiments_are_not_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = written(tmp_path / "1", lived())
    two = written(tmp_path / "2", lived(declared(experiment="other")))
    assert report(one, two) == 2
    assert "2 experiments (other, spread)" in capsys.readouterr().err


def test_an_unknown_metric_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = lived(declared(metrics=("happiness",)))
    assert report(written(tmp_path / "e.jsonl", records)) == 2
    assert "unknown metric: 'happiness'" in capsys.readouterr().err


def test_an_experiment_that_is_cut_off_uses_the_pairs_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [
        record
        for record in lived()
        if not (isinstance(record, BlockEvent | RequestLine) and record.block > 16)
    ][:-1]
    assert report(written(tmp_path / "e.jsonl", records)) == 0
    printed = capsys.readouterr().out
    assert "8 of 12 pairs compared" in printed
    assert "pair 8: not both of its blocks ran to their end" in printed
    assert "warning: no end is recorded" in printed

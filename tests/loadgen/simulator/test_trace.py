"""Reading traces, and when their requests are sent."""

import gzip
import json
import random
from pathlib import Path

import pytest

from radixgate.errors import ConfigError
from radixgate.loadgen.simulator.trace import (
    TracedRequest,
    is_closed_loop,
    jittered,
    read_trace,
)
from radixgate.loadgen.simulator.workload import (
    SessionLimits,
    closed_loop,
    open_loop,
    sessions_of,
)
from simulated import conversations, request

ROW = {"timestamp": 1_500, "input_length": 1_100, "output_length": 7, "hash_ids": [0, 5, 9]}


def written(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_row_has_ids_of_whole_blocks_only(tmp_path: Path) -> None:
    (read,) = read_trace(written(tmp_path / "t.jsonl", ROW), 512)
    assert (read.at_s, read.input_tokens, read.output_tokens) == (1.5, 1_100, 7)
    assert list(read.ids) == [1, 6]  # moved by one, as 0 is the root
    assert not is_closed_loop([read])


def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    plain = written(tmp_path / "plain", ROW, ROW)
    zipped = tmp_path / "zipped"
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_trace(zipped, 512) == read_trace(plain, 512)
    assert len(read_trace(zipped, 512, most=1)) == 1


def test_sessions_without_times_are_a_closed_loop(tmp_path: Path) -> None:
    row = {**ROW, "session": "a", "turn": 3, "think": None}
    del row["timestamp"]
    read = read_trace(written(tmp_path / "t.jsonl", row), 512)
    assert is_closed_loop(read)
    assert (read[0].session, read[0].turn, read[0].think_s) == ("a", 3, 0.0)


def test_sessions_and_pauses_are_known_by_both_their_names(tmp_path: Path) -> None:
    row = {"input_length": 600, "output_length": 7, "hash_ids": [0], "turn": 1}
    one = written(tmp_path / "one", {**row, "session": 8, "think": 0.25})
    other = written(tmp_path / "other", {**row, "session_id": "8", "think_ms": 250})
    assert read_trace(one, 512) == read_trace(other, 512)
    (read,) = read_trace(other, 512)
    assert (read.session, read.think_s) == ("8", 0.25)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("{", "bad.jsonl:1: ", id="no-json"),
        pytest.param('{"input_length": 5}', "bad.jsonl:1: .*output_length", id="field-missing"),
        pytest.param(json.dumps({**ROW, "input_length": 0}), "no request", id="empty-prompt"),
        pytest.param(json.dumps({**ROW, "timestamp": -5}), "timestamp -5 is", id="negative-time"),
        pytest.param(json.dumps({**ROW, "hash_ids": [-1]}), "hash id -1 is", id="negative-id"),
        pytest.param("", "holds no requests", id="empty-file"),
    ],
)
def test_bad_files_are_refused_with_the_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        read_trace(path, 512)


def rows_of_blocks(size: int) -> list[dict[str, object]]:
    """Prompts of 3,000 to 10,600 tokens, with an id for each of their blocks."""
    return [
        {**ROW, "input_length": tokens, "hash_ids": list(range(-(-tokens // size)))}
        for tokens in range(3_000, 10_601, 400)
    ]


@pytest.mark.parametrize("size", [64, 500, 512])
def test_a_trace_is_read_by_the_size_its_blocks_have(tmp_path: Path, size: int) -> None:
    path = written(tmp_path / "t.jsonl", *rows_of_blocks(size))
    assert len(read_trace(path, size)) == 20
    for wrong in (16, 300, 2_048):
        with pytest.raises(ConfigError, match=f"id for each .*not for each {wrong}: give --block"):
            read_trace(path, wrong)


def test_the_size_to_give_is_told(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", *rows_of_blocks(64))
    with pytest.raises(
        ConfigError, match=r"each 64 tokens .* not for each 512: give --block-size 64"
    ):
        read_trace(path, 512)


def test_prompts_may_end_in_a_part_without_ids_but_none_has_more_ids_than_blocks(
    tmp_path: Path,
) -> None:
    shared = [{**row, "hash_ids": [1, 2, 3]} for row in rows_of_blocks(64)]
    path = written(tmp_path / "t.jsonl", *shared)
    assert {len(request.ids) for request in read_trace(path, 64)} == {3}
    with pytest.raises(
        ConfigError, match=r"a prompt of 3000 tokens has 3 hash ids, .* of 2048: .* under 1500$"
    ):
        read_trace(path, 2_048)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.gz"
    path.write_bytes(gzip.compress(b"x")[:10] + b"\xff" * 20)
    with pytest.raises(ConfigError, match=r"cannot be read: .*decompressing"):
        read_trace(path, 512)


def test_a_file_that_is_not_there_is_a_setting_that_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_trace(tmp_path / "none", 512)


def at(*times: float) -> list[TracedRequest]:
    return [request(600, at_s=time) for time in times]


def test_bins_are_spread_evenly_and_no_further_than_the_next() -> None:
    moved = jittered(at(*[0.0] * 500, *[3.0] * 500, *[6.0] * 500), random.Random(1))
    times = [r.at_s for r in moved]
    assert times == sorted(times)
    assert all(sum(low <= time < low + 3.0 for time in times) == 500 for low in (0.0, 3.0, 6.0))
    assert sum(time < 1.5 for time in times) == pytest.approx(250, abs=50)


def test_times_that_are_no_bins_stay() -> None:
    apart = at(0.0, 0.4, 0.4, 2.0)
    assert jittered(apart, random.Random(1)) == apart


def test_an_open_loop_keeps_the_trace_s_rhythm_at_another_pace() -> None:
    load = open_loop(at(0.0, 1.0, 4.0), requests_per_s=1.5)
    assert [client.starts_s for client in load.clients] == [0.0, 0.5, 2.0]


def test_the_last_of_many_steps_counts_as_one_request_of_the_pace() -> None:
    steps = at(*[0.0] * 8, *[8.0] * 8, *[16.0] * 8)
    load = open_loop(steps, requests_per_s=17 / 16)
    assert [client.starts_s for client in load.clients] == [request.at_s for request in steps]


def test_a_closed_loop_is_cut_and_begins_session_by_session() -> None:
    requests = [r for session in conversations(6, 5, random.Random(1)) for r in session]
    limits = SessionLimits(sessions=4, max_turns=3, think_cap_s=0.25)
    sessions = sessions_of(requests, limits, random.Random(2))
    assert [len(session) for session in sessions] == [3] * 4
    assert {r.think_s for session in sessions for r in session} == {0.25}
    load = closed_loop(sessions, requests_per_s=3.0, rng=random.Random(3))
    starts = [client.starts_s for client in load.clients]
    assert starts == sorted(starts)
    assert len(load) == 12
    hurried = load.at_once()
    assert {client.starts_s for client in hurried.clients} == {0.0}
    assert {r.think_s for client in hurried.clients for r in client.requests} == {0.0}

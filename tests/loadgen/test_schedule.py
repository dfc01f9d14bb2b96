"""A schedule is the same bytes for the same seed, and is read back as it was written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from radixgate.errors import ConfigError
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.intended import schedule_of
from radixgate.loadgen.prompts import ChatPrompt, IdsPrompt, TextPrompt
from radixgate.loadgen.schedule import (
    PlannedPrompt,
    as_lines,
    from_lines,
    hash_of,
    plan,
    write_schedule,
)

SMALL = BenchConfig(num_prompts=20, random_input_len=30, random_output_len=8, request_rate=4.0)


def test_the_same_seed_gives_the_same_hash_and_another_seed_another() -> None:
    other = BenchConfig(
        num_prompts=20, random_input_len=30, random_output_len=8, request_rate=4.0, seed=2
    )
    assert hash_of(schedule_of(SMALL)) == hash_of(schedule_of(SMALL))
    assert hash_of(schedule_of(SMALL)) != hash_of(schedule_of(other))


def test_this_schedule_stays_what_it_is() -> None:
    """A change here makes results of before and after incomparable: say so in the changelog."""
    assert hash_of(schedule_of(SMALL)) == "6538d094719d6d7ea0bb208774f5e784"


def test_the_rate_changes_the_times_and_not_the_prompts() -> None:
    fast = BenchConfig(num_prompts=20, random_input_len=30, random_output_len=8, request_rate=9.0)
    slow, quick = schedule_of(SMALL), schedule_of(fast)
    assert [one.prompt for one in slow] == [one.prompt for one in quick]
    assert [one.t_intended_s for one in slow] != [one.t_intended_s for one in quick]


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["random", "random-ids", "generated-shared-prefix"])
def test_any_hash_seed_gives_the_same_bytes(dataset: str) -> None:
    program = (
        "from radixgate.loadgen.intended import schedule_of\n"
        "from radixgate.loadgen.config import BenchConfig\n"
        "from radixgate.loadgen.schedule import hash_of\n"
        f"config = BenchConfig(dataset_name={dataset!r}, request_rate=3.0, gsp_num_groups=3,\n"
        "    gsp_prompts_per_group=4, gsp_group_distribution='zipf', num_prompts=12)\n"
        "print(hash_of(schedule_of(config)))\n"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(hashes) == 1


def test_a_schedule_read_back_is_the_schedule_written(tmp_path: Path) -> None:
    schedule = plan(
        [
            PlannedPrompt(TextPrompt("für 😀"), 3, 5, session="s", turn=1, group="g", think_s=0.25),
            PlannedPrompt(IdsPrompt((1, 2, 3)), 3, 5),
            PlannedPrompt(ChatPrompt((("system", "be kind"), ("user", "hi"))), 3, 5),
        ],
        [0.0, 1 / 3, 2.0],
    )
    path = tmp_path / "deep" / "schedule.jsonl"
    write_schedule(path, schedule)
    assert from_lines(path.read_bytes()) == schedule
    assert path.read_bytes() == as_lines(schedule)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"{", id="not-json"),
        pytest.param(b'{"index": 1}', id="fields-missing"),
        pytest.param(
            b'{"index":0,"t_intended_s":0.0,"session":"a","turn":0,"group":null,"think_s":0.0,'
            b'"prompt_tokens":1,"output_tokens":1}',
            id="no-prompt",
        ),
    ],
)
def test_a_broken_row_is_named_by_its_line(line: bytes) -> None:
    good = as_lines(plan([PlannedPrompt(TextPrompt("a"), 1, 1)], [0.0]))
    with pytest.raises(ConfigError, match="play:2: not a row"):
        from_lines(good + line, "play")


ROW = {
    **{"index": 0, "t_intended_s": 0.0, "session": "a", "turn": 0, "group": None, "think_s": 0.0},
    **{"prompt_tokens": 1, "output_tokens": 1, "text": "a"},
}


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"output_tokens": -3}, "output_tokens"),
        ({"t_intended_s": -1.0}, "t_intended_s"),
        ({"think_s": -1.0}, "think_s"),
        ({"step": 0, "step_target": 0}, "step_target"),
        ({"text": None, "input_ids": ["a"]}, "int"),
        ({"text": None, "input_ids": [1.5]}, "int"),
        ({"text": None, "input_ids": [-1]}, ">= 0"),
        ({"text": None, "messages": [["user"]]}, "length 2"),
        ({"text": None, "messages": [[1, 2]]}, "str"),
    ],
)
def test_what_no_server_could_be_sent_is_refused_with_its_line(
    wrong: dict[str, object], complaint: str
) -> None:
    with pytest.raises(ConfigError, match=f"play:1: not a row of a schedule: .*{complaint}"):
        from_lines(json.dumps(ROW | wrong).encode(), "play")


def test_an_index_stands_once_and_empty_lines_are_passed_over() -> None:
    line = json.dumps(ROW).encode() + b"\n"
    assert len(from_lines(b"\n" + line + b"  \n")) == 1
    with pytest.raises(ConfigError, match="play:3: index 0 stands a second time"):
        from_lines(line + b"\n" + line, "play")


def test_a_schedule_without_requests_is_none(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(ConfigError, match="holds no requests"):
        schedule_of(BenchConfig(schedule_from=str(tmp_path / "empty")))


def test_times_and_prompts_must_be_as_many() -> None:
    with pytest.raises(ConfigError, match="1 prompts cannot be sent at 2 times"):
        plan([PlannedPrompt(TextPrompt("a"), 1, 1)], [0.0, 1.0])

"""rag, mooncake, agentic, grpo and conversations: who shares what with whom, and when."""

import gzip
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from radixgate.analysis.cache_bound import reusable_shares
from radixgate.errors import ConfigError
from radixgate.loadgen.arrivals import ArrivalConfig
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.datasets.by_name import planned_prompts
from radixgate.loadgen.intended import schedule_of
from radixgate.loadgen.prompts import ChatPrompt, TextPrompt
from radixgate.loadgen.schedule import Schedule, as_lines, from_lines, hash_of
from radixgate.loadgen.workload_config import WorkloadConfig

SMALL = WorkloadConfig(
    rag_documents=20,
    rag_document_len=10,
    rag_question_len=5,
    agentic_turns=4,
    agentic_system_len=20,
    agentic_task_len=5,
    agentic_tool_len=6,
    agentic_output_len=3,
    grpo_steps=2,
    grpo_groups=3,
    grpo_group_size=4,
    grpo_prompt_len=10,
    grpo_output_len=50,
)


def text(prompt: object) -> str:
    assert isinstance(prompt, TextPrompt)
    return prompt.text


@pytest.mark.parametrize("name", ["rag", "agentic", "grpo", "generated-shared-prefix"])
@pytest.mark.parametrize("turns", [1, 3])
def test_the_same_seed_gives_the_same_schedule_and_it_is_read_back(name: str, turns: int) -> None:
    config = BenchConfig(
        dataset_name=name,
        num_prompts=12,
        request_rate=3.0,
        gsp_num_groups=3,
        gsp_prompts_per_group=4,
        gsp_system_prompt_len=9,
        gsp_question_len=5,
        gsp_output_len=4,
        arrival="rl-step" if name == "grpo" else "poisson",
    )
    workload = WorkloadConfig(
        rag_document_len=5, agentic_system_len=9, agentic_turns=turns, gsp_num_turns=turns
    )
    first, second = (schedule_of(config, workload) for _ in range(2))
    assert hash_of(first) == hash_of(second)
    assert from_lines(as_lines(first)) == first
    other = schedule_of(BenchConfig(dataset_name=name, num_prompts=12, seed=2), workload)
    assert hash_of(first) != hash_of(other)


def test_rag_asks_mostly_about_the_popular_fifth() -> None:
    planned = planned_prompts(BenchConfig(dataset_name="rag", num_prompts=2000), SMALL)
    asked = Counter(str(one.group) for one in planned)
    popular = sum(asked[f"d{place}"] for place in range(4))
    assert popular / 2000 > 0.8  # the first of three documents, by rank
    parts = text(planned[0].prompt).split("\n\n")
    assert len(parts) == 5
    assert len(set(parts[1:4])) == 3
    assert len({text(one.prompt).rpartition("\n\n")[2] for one in planned}) == 2000


def test_rag_shares_the_documents_at_the_front() -> None:
    planned = planned_prompts(BenchConfig(dataset_name="rag", num_prompts=200), SMALL)
    shares = reusable_shares([one.prompt.units()[0] for one in planned])
    assert sum(shares) / len(shares) > 0.4


def test_an_agents_conversation_grows_and_each_turn_begins_with_the_one_before() -> None:
    planned = planned_prompts(BenchConfig(dataset_name="agentic", num_prompts=8), SMALL)
    assert [(one.session, one.turn) for one in planned] == [
        (f"agent{n}", turn) for n in range(2) for turn in range(4)
    ]
    texts = [text(one.prompt) for one in planned[:4]]
    assert all(late.startswith(early) for early, late in pairwise(texts))
    assert [one.prompt_tokens for one in planned] == sorted(
        one.prompt_tokens for one in planned[:4]
    ) + sorted(one.prompt_tokens for one in planned[4:])
    assert all(one.think_s > 0 for one in planned)


def test_an_agent_on_a_chat_endpoint_sends_messages() -> None:
    config = BenchConfig(dataset_name="agentic", num_prompts=2, backend="openai-chat")
    first, second = planned_prompts(config, SMALL)
    assert isinstance(first.prompt, ChatPrompt)
    assert isinstance(second.prompt, ChatPrompt)
    assert [role for role, _ in second.prompt.turns] == ["system", "user", "assistant", "user"]
    assert second.prompt.turns[:2] == first.prompt.turns


def test_turns_of_a_shared_prefix_are_one_session_at_one_time() -> None:
    config = BenchConfig(
        dataset_name="generated-shared-prefix",
        gsp_num_groups=2,
        gsp_prompts_per_group=3,
        gsp_system_prompt_len=8,
        gsp_question_len=4,
        gsp_output_len=2,
        request_rate=5.0,
    )
    schedule = schedule_of(config, WorkloadConfig(gsp_num_turns=3, gsp_range_ratio=0.5))
    assert len(schedule) == 18
    by_session: dict[str, list[float]] = {}
    for request in schedule:
        by_session.setdefault(request.session, []).append(request.t_intended_s)
    assert len(by_session) == 6
    assert all(len(set(times)) == 1 for times in by_session.values())
    assert len({times[0] for times in by_session.values()}) == 6
    assert all(1 <= request.output_tokens <= 2 for request in schedule)


def test_a_groups_rollouts_have_one_prompt_and_lengths_of_their_own() -> None:
    planned = planned_prompts(BenchConfig(dataset_name="grpo"), SMALL)
    assert len(planned) == 2 * 3 * 4
    groups = Counter((one.step, one.group, one.prompt) for one in planned)
    assert set(groups.values()) == {4}
    assert len({one.output_tokens for one in planned}) > 5
    assert max(one.output_tokens for one in planned) <= 50


def test_steps_follow_each_other_and_may_end_early() -> None:
    config = BenchConfig(dataset_name="grpo", arrival="rl-step")
    schedule = schedule_of(config, SMALL, ArrivalConfig(rl_target=0.75))
    assert [request.step for request in schedule] == [0] * 12 + [1] * 12
    assert {request.step_target for request in schedule} == {9}
    assert {request.t_intended_s for request in schedule} == {0.0}


ROWS: list[dict[str, object]] = [
    {"timestamp": 1000, "input_length": 20, "output_length": 5, "hash_ids": [1, 2, 3]},
    {"timestamp": 3500, "input_length": 24, "output_length": 0, "hash_ids": [1, 2, 9]},
    {"timestamp": 3600, "input_length": 12, "output_length": 5, "hash_ids": [4, 5]},
]


def traced(tmp_path: Path, rows: list[dict[str, object]], **further: object) -> Schedule:
    path = tmp_path / "trace.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    settings: dict[str, object] = {"arrival": "trace", **further}
    config = BenchConfig(dataset_name="mooncake", dataset_path=str(path), **settings)  # type: ignore[arg-type]
    return schedule_of(config, WorkloadConfig(trace_block_size=8), ArrivalConfig(trace_slowdown=2))


def test_hash_ids_become_tokens_that_share_what_the_ids_share(tmp_path: Path) -> None:
    schedule = traced(tmp_path, ROWS)
    assert [request.t_intended_s for request in schedule] == [0.0, 5.0, 5.2]
    assert [request.output_tokens for request in schedule] == [5, 1, 5]
    words = [text(request.prompt).split() for request in schedule]
    assert [len(some) for some in words] == [20, 24, 12]
    assert words[0][:16] == words[1][:16]
    assert words[0][16:] != words[1][16:20]
    assert words[2][:8] != words[0][:8]
    assert hash_of(schedule) == hash_of(traced(tmp_path, ROWS))
    assert len(traced(tmp_path, ROWS, num_prompts=2)) == 2


def test_what_of_a_prompt_no_id_stands_for_is_its_own(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "hash_ids": [1], "input_length": 12} for _ in range(2)]
    first, second = (text(request.prompt).split() for request in traced(tmp_path, rows))
    assert first[:8] == second[:8]
    assert first[8:] != second[8:]


def test_sessions_of_a_trace_wait_for_each_other_and_think(tmp_path: Path) -> None:
    rows = [
        {**ROWS[0], "session": "s", "turn": 0, "think": 0.0},
        {**ROWS[1], "session": "s", "turn": 1, "think": 4.5},
        {**ROWS[2], "session_id": 7, "turn": 0, "think_ms": 100, "group_id": "g"},
    ]
    schedule = traced(tmp_path, rows)
    assert [(r.session, r.turn, r.think_s) for r in schedule] == [
        ("s", 0, 4.5),
        ("s", 1, 0.0),
        ("7", 0, 0.0),
    ]
    assert schedule[2].group == "g"


@pytest.mark.parametrize("turns", [(0, 1, 2), (None, None, None), (1, 3, 7)])
def test_turns_may_be_counted_in_any_way_or_not_at_all(
    tmp_path: Path, turns: tuple[int | None, ...]
) -> None:
    rows: list[dict[str, object]] = [
        {**row, "session": "s", "think": 1.5, **({} if turn is None else {"turn": turn})}
        for row, turn in zip(ROWS, turns, strict=True)
    ]
    schedule = traced(tmp_path, rows)
    assert [(r.turn, r.think_s) for r in schedule] == [(0, 1.5), (1, 1.5), (2, 0.0)]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        pytest.param({"input_length": 1}, r":1: .*output_length", id="a-field-is-missing"),
        pytest.param({**ROWS[0], "input_length": 0}, ":1: 0 prompt tokens", id="no-prompt"),
    ],
)
def test_a_wrong_row_is_named(tmp_path: Path, row: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        traced(tmp_path, [row])


def test_a_trace_without_times_cannot_be_played_by_them(tmp_path: Path) -> None:
    rows = [{name: value for name, value in ROWS[0].items() if name != "timestamp"}]
    with pytest.raises(ConfigError, match="has no times of its own"):
        traced(tmp_path, rows)
    assert len(traced(tmp_path, rows, arrival="poisson")) == 1
    with pytest.raises(ConfigError, match="has no times of its own"):
        schedule_of(BenchConfig(num_prompts=2, use_trace_timestamps=True))


def test_a_trace_needs_its_file() -> None:
    with pytest.raises(ConfigError, match="nothing is downloaded"):
        schedule_of(BenchConfig(dataset_name="mooncake"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("gsp_num_turns", 0),
        ("rag_popular_share", 0.0),
        ("trace_shrink", 0.5),
        ("agentic_think_s", -1.0),
        ("rag_per_question", 900),
    ],
)
def test_impossible_workloads_are_named(field: str, value: float) -> None:
    with pytest.raises(ConfigError, match="--" + field.replace("_", "-")):
        WorkloadConfig(**{field: value})  # type: ignore[arg-type]

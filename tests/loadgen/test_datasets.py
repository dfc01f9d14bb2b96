"""Datasets give as many requests as asked, of the lengths asked."""

import json
from collections import Counter
from pathlib import Path

import pytest

from radixgate.errors import ConfigError
from radixgate.loadgen.config import DATASET_NAMES, BenchConfig
from radixgate.loadgen.datasets.by_name import DATASETS, planned_prompts
from radixgate.loadgen.datasets.random_lengths import LOWEST_ID, warmup_prompts
from radixgate.loadgen.prompts import ChatPrompt, IdsPrompt, TextPrompt
from radixgate.loadgen.schedule import PlannedPrompt


def text_of(planned: PlannedPrompt) -> str:
    assert isinstance(planned.prompt, TextPrompt)
    return planned.prompt.text


def words_of(planned: PlannedPrompt) -> int:
    return len(text_of(planned).split())


def test_every_name_the_flag_offers_has_a_dataset() -> None:
    assert set(DATASETS) == set(DATASET_NAMES)


def test_random_lengths_lie_between_the_ratio_and_the_whole() -> None:
    planned = planned_prompts(
        BenchConfig(
            num_prompts=500, random_input_len=40, random_output_len=20, random_range_ratio=0.5
        )
    )
    assert len(planned) == 500
    assert all(words_of(one) == one.prompt_tokens for one in planned)
    assert {one.prompt_tokens for one in planned} == set(range(20, 41))
    assert {one.output_tokens for one in planned} == set(range(10, 21))


def test_a_ratio_of_one_makes_all_lengths_equal() -> None:
    planned = planned_prompts(
        BenchConfig(
            num_prompts=9, random_input_len=40, random_output_len=20, random_range_ratio=1.0
        )
    )
    assert {(one.prompt_tokens, one.output_tokens) for one in planned} == {(40, 20)}


def test_random_prompts_share_no_prefix() -> None:
    config = BenchConfig(num_prompts=200, random_input_len=40, random_range_ratio=1.0)
    starts = {" ".join(text_of(one).split()[:4]) for one in planned_prompts(config)}
    assert len(starts) == 200


def test_random_ids_are_exact_and_within_the_vocabulary() -> None:
    planned = planned_prompts(
        BenchConfig(
            dataset_name="random-ids",
            num_prompts=50,
            random_input_len=30,
            random_range_ratio=1.0,
            random_ids_below=100,
        )
    )
    for one in planned:
        assert isinstance(one.prompt, IdsPrompt)
        assert len(one.prompt.ids) == one.prompt_tokens == 30
        assert all(LOWEST_ID <= token < 100 for token in one.prompt.ids)


def gsp(
    *,
    num_prompts: int | None = None,
    gsp_ordered: bool = False,
    gsp_group_distribution: str = "uniform",
    gsp_zipf_alpha: float = 1.0,
) -> list[PlannedPrompt]:
    return planned_prompts(
        BenchConfig(
            dataset_name="generated-shared-prefix",
            gsp_num_groups=6,
            gsp_prompts_per_group=50,
            gsp_system_prompt_len=30,
            gsp_question_len=5,
            gsp_output_len=7,
            num_prompts=num_prompts,
            gsp_ordered=gsp_ordered,
            gsp_group_distribution=gsp_group_distribution,
            gsp_zipf_alpha=gsp_zipf_alpha,
        )
    )


def test_a_group_shares_its_prefix_and_no_other_does() -> None:
    prefixes: dict[str | None, set[str]] = {}
    for one in gsp():
        prefix, _, question = text_of(one).partition("\n\n")
        assert (len(prefix.split()), len(question.split())) == (30, 5)
        assert (one.prompt_tokens, one.output_tokens) == (35, 7)
        prefixes.setdefault(one.group, set()).add(prefix)
    assert len(prefixes) == 6
    assert all(len(found) == 1 for found in prefixes.values())
    assert len(set.union(*prefixes.values())) == 6


def test_uniform_asks_each_group_equally_often() -> None:
    assert set(Counter(one.group for one in gsp()).values()) == {50}


def test_groups_are_mixed_unless_ordered() -> None:
    ordered = [one.group for one in gsp(gsp_ordered=True)]
    assert ordered == sorted(ordered, key=str)
    assert [one.group for one in gsp()] != ordered


def test_zipf_makes_the_first_group_the_most_popular() -> None:
    counts = Counter(one.group for one in gsp(gsp_group_distribution="zipf", gsp_zipf_alpha=1.0))
    assert sum(counts.values()) == 300
    # Shares of 1, 1/2, ... 1/6 over their sum 2.45: the first gets 0.408, the last 0.068.
    assert counts["g0"] / 300 == pytest.approx(0.408, abs=4 * 0.028)
    assert counts["g5"] / 300 == pytest.approx(0.068, abs=4 * 0.015)


def test_fewer_prompts_than_the_groups_hold() -> None:
    assert len(gsp(num_prompts=17)) == 17


def test_more_prompts_than_the_groups_hold_is_an_error_with_both_numbers() -> None:
    with pytest.raises(ConfigError, match=r"--num-prompts 301 is over .* 6 times .* 50 = 300"):
        gsp(num_prompts=301)


def test_custom_takes_prompts_and_messages_in_order(tmp_path: Path) -> None:
    path = tmp_path / "asks.jsonl"
    rows: list[object] = [
        {"prompt": "one"},
        {"messages": [{"role": "user", "content": "two"}], "output_len": 9},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "three"}]}]},
    ]
    path.write_text("\n\n".join(json.dumps(row) for row in rows))
    planned = planned_prompts(
        BenchConfig(dataset_name="custom", dataset_path=str(path), output_len=4)
    )
    assert [one.prompt for one in planned] == [
        TextPrompt("one"),
        ChatPrompt((("user", "two"),)),
        ChatPrompt((("user", "three"),)),
    ]
    assert [one.output_tokens for one in planned] == [4, 9, 4]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        pytest.param('{"prompt": 3}', "Expected `str", id="wrong-type"),
        pytest.param("{", "truncated", id="not-json"),
        pytest.param("{}", "either prompt or messages", id="neither"),
        pytest.param('{"prompt": "a", "messages": []}', "either prompt or messages", id="both"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "asks.jsonl"
    path.write_text(f'{{"prompt": "good"}}\n{line}\n')
    with pytest.raises(ConfigError, match=rf"asks\.jsonl:2: .*{problem}"):
        planned_prompts(BenchConfig(dataset_name="custom", dataset_path=str(path)))


def conversations(path: Path) -> Path:
    def talk(*said: str) -> dict[str, object]:
        return {
            "conversations": [
                {"from": "human" if turn % 2 == 0 else "gpt", "value": text}
                for turn, text in enumerate(said)
            ]
        }

    asked, answered = "word " * 20, "word " * 40
    path.write_text(
        json.dumps(
            [talk(f"{n} {asked}", answered) for n in range(5)]
            + [talk(asked), talk("hi", answered), talk("long " * 900, answered)]
        )
    )
    return path


def test_sharegpt_takes_first_questions_and_passes_over_what_is_too_short(tmp_path: Path) -> None:
    path = conversations(tmp_path / "talks.json")
    planned = planned_prompts(
        BenchConfig(dataset_name="sharegpt", dataset_path=str(path), sharegpt_context_len=500)
    )
    assert sorted(text_of(one)[0] for one in planned) == ["0", "1", "2", "3", "4"]
    assert {one.output_tokens for one in planned} == {48}  # 200 characters


def test_sharegpt_output_length_can_be_given(tmp_path: Path) -> None:
    path = conversations(tmp_path / "talks.json")
    planned = planned_prompts(
        BenchConfig(dataset_name="sharegpt", dataset_path=str(path), output_len=12, num_prompts=3)
    )
    assert [one.output_tokens for one in planned] == [12, 12, 12]


@pytest.mark.parametrize("name", ["sharegpt", "custom"])
def test_a_file_dataset_without_a_file_says_what_to_do(name: str) -> None:
    with pytest.raises(ConfigError, match=f"--dataset-name {name} needs --dataset-path"):
        planned_prompts(BenchConfig(dataset_name=name))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: No such file"):
        planned_prompts(
            BenchConfig(dataset_name="sharegpt", dataset_path=str(tmp_path / "nowhere"))
        )


def test_a_file_with_fewer_prompts_than_asked_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "asks.jsonl"
    path.write_text('{"prompt": "only one"}\n')
    with pytest.raises(ConfigError, match="--num-prompts 2 is over the 1 usable"):
        planned_prompts(BenchConfig(dataset_name="custom", dataset_path=str(path), num_prompts=2))


def test_warm_up_prompts_begin_like_no_other() -> None:
    config = BenchConfig(warmup_requests=30, num_prompts=300)
    warm = [text_of(one) for one in warmup_prompts(config)]
    assert len(set(warm)) == 30
    assert all(text.startswith("warm-up ") for text in warm)
    assert not any(text_of(one).startswith("warm-up") for one in planned_prompts(config))

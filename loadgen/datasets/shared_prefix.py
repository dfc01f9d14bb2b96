"""Groups of prompts with a common long prefix: what a prefix cache and its router live on."""

import random
from collections.abc import Iterator
from itertools import accumulate

from radixgate.errors import ConfigError
from radixgate.loadgen.config import BenchConfig
from radixgate.loadgen.datasets.agentic import conversation
from radixgate.loadgen.prompts import TextPrompt
from radixgate.loadgen.schedule import PlannedPrompt, stream_of
from radixgate.loadgen.vocabulary import sentence
from radixgate.loadgen.workload_config import WorkloadConfig


def shared_prefix(
    config: BenchConfig, workload: WorkloadConfig | None = None
) -> list[PlannedPrompt]:
    """Each prompt is its group's prefix and a question of its own.

    `uniform` asks every group equally often; under `zipf` the g-th group is asked with weight
    `1 / g ** alpha`. Unless ordered, the groups are mixed. With more than one turn each prompt is
    a conversation: the question before and a planned answer come before the next question.
    """
    workload = workload or WorkloadConfig()
    total = config.gsp_num_groups * config.gsp_prompts_per_group
    count = config.prompts_or(total)
    if count > total:
        raise ConfigError(
            f"--num-prompts {count} is over --gsp-num-groups {config.gsp_num_groups} times "
            f"--gsp-prompts-per-group {config.gsp_prompts_per_group} = {total}"
        )
    words = stream_of(config.seed, "gsp-words")
    lengths = _Lengths(config, workload)
    prefixes = [
        sentence(words, lengths.at_most(config.gsp_system_prompt_len))
        for _ in range(config.gsp_num_groups)
    ]
    groups = _groups(config, total)[:count]
    if workload.gsp_num_turns > 1:
        return [
            planned
            for place, group in enumerate(groups)
            for planned in _turns(config, workload, place, (group, prefixes[group]))
        ]
    planned = []
    for group in groups:
        asked = lengths.at_most(config.gsp_question_len)
        text = f"{prefixes[group]}\n\n{sentence(words, asked)}"
        length = len(prefixes[group].split()) + asked
        new = lengths.at_most(config.gsp_output_len)
        planned.append(PlannedPrompt(TextPrompt(text), length, new, group=f"g{group}"))
    return planned


def _turns(
    config: BenchConfig, workload: WorkloadConfig, place: int, group: tuple[int, str]
) -> Iterator[PlannedPrompt]:
    words = stream_of(config.seed, f"gsp-words/{place}")
    lengths = _Lengths(config, workload, f"/{place}")
    number, prefix = group
    said: list[tuple[str, str]] = [("system", prefix)]
    length = len(prefix.split())
    for turn in range(workload.gsp_num_turns):
        asked = lengths.at_most(config.gsp_question_len)
        new = lengths.at_most(config.gsp_output_len)
        said.append(("user", sentence(words, asked)))
        length += asked
        yield PlannedPrompt(
            conversation(config, said),
            length,
            new,
            session=f"c{place}",
            turn=turn,
            group=f"g{number}",
        )
        said.append(("assistant", sentence(words, new)))
        length += new


class _Lengths:
    """Draws lengths; with a ratio of 1 each is the longest and nothing is drawn."""

    def __init__(self, config: BenchConfig, workload: WorkloadConfig, of: str = "") -> None:
        self._ratio = workload.gsp_range_ratio
        self._rng = stream_of(config.seed, f"gsp-lengths{of}")

    def at_most(self, longest: int) -> int:
        if self._ratio >= 1.0:
            return longest
        return self._rng.randint(max(1, int(longest * self._ratio)), longest)


def _groups(config: BenchConfig, total: int) -> list[int]:
    """Which group each prompt belongs to."""
    rng = stream_of(config.seed, "gsp-groups")
    if config.gsp_group_distribution == "zipf":
        groups = zipf_draws(rng, config.gsp_num_groups, config.gsp_zipf_alpha, total)
        return sorted(groups) if config.gsp_ordered else groups
    groups = [g for g in range(config.gsp_num_groups) for _ in range(config.gsp_prompts_per_group)]
    if not config.gsp_ordered:
        rng.shuffle(groups)
    return groups


def zipf_draws(rng: random.Random, items: int, alpha: float, count: int) -> list[int]:
    """`count` draws from 0 to items - 1, the i-th with weight `1 / (i + 1) ** alpha`."""
    weights = list(accumulate((place + 1) ** -alpha for place in range(items)))
    return rng.choices(range(items), cum_weights=weights, k=count)
